/* The command line's main: libraries are made safe first, then commands take over. */
#include "controller/cli/broom_main.h"
#include "detectors/stats/gsl.h"

#include <signal.h>

int main(int argc, char **argv)
{
    stats_init();
    signal(SIGPIPE, SIG_IGN);
    return broom_main(argc, argv);
}
