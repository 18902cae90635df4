/* The simulated cluster as a process: what `broom rehearse --cluster` runs. */
#ifndef BROOM_REHEARSE_CLUSTER_PROCESS_H
#define BROOM_REHEARSE_CLUSTER_PROCESS_H

#include "controller/rehearse/scenario.h"

struct cluster_process {
    const struct scenario *scenario;
    uint64_t seed;
    bool swallow_restart;
    const char *time_path;              /* the shared clock, which it drives */
    const char *port_path;              /* its port is written here once it listens */
    const char *stream_path, *log_path; /* NULL: not kept */
};

/* Runs until SIGTERM or SIGINT; returns the exit code. */
int cluster_process_run(const struct cluster_process *process);

#endif
