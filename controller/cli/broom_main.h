/* The whole of `broom`, behind main(). */
#ifndef BROOM_CLI_BROOM_MAIN_H
#define BROOM_CLI_BROOM_MAIN_H

int broom_main(int argc, char **argv); /* returns the exit code */

#endif
