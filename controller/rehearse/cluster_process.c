/* Loop, cluster, HTTP; ends in order so that its files are whole. */
#include "controller/rehearse/cluster_process.h"

#include "controller/rehearse/cluster_http.h"
#include "controller/sys/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>

static void on_signal(void *context, int signal_number)
{
    (void)signal_number;
    loop_stop(context);
}

/* Written beside and renamed: whoever sees the file sees the whole number. */
static bool tell_port(const char *path, int port)
{
    AUTO_TEXT beside = {0};
    text_addf(&beside, "%s.new", path);
    FILE *file = fopen(beside.bytes, "w");
    if (file == NULL)
        return false;
    bool written = fprintf(file, "%d\n", port) > 0;
    return fclose(file) == 0 && written && rename(beside.bytes, path) == 0;
}

static struct cluster *build(const struct cluster_process *process)
{
    struct cluster_config config = scenario_cluster(process->scenario, process->seed);
    struct model_fault fault = scenario_fault(process->scenario, process->seed);
    config.swallow_restart = process->swallow_restart;
    struct cluster *cluster = cluster_new(&config);
    if (process->scenario->fault_step > 0)
        model_add_fault(cluster_model(cluster), &fault);
    return cluster;
}

static void say_counts(const struct cluster_http *http)
{
    struct cluster_http_counts counts = cluster_http_counts(http);
    fprintf(stderr,
            "stopped: %" PRId64 " lines in %" PRId64 " batches, %" PRId64 " sent again, %" PRId64
            " refused, %" PRId64 " bytes dropped\n",
            counts.lines, counts.batches, counts.retries, counts.refused_batches,
            counts.dropped_bytes);
}

static int run(const struct cluster_process *process, struct loop *loop, struct cluster *cluster)
{
    struct cluster_http_params params = {.loop = loop,
                                         .cluster = cluster,
                                         .stream_path = process->stream_path,
                                         .log_path = process->log_path};
    AUTO(cluster_http_free) struct cluster_http *http = NULL;
    struct error error = {0};
    if (cluster_http_new(&params, &http, &error) != OK) {
        fprintf(stderr, "broom: the simulated cluster: %s\n", error.message);
        return status_exit_code(error.status);
    }
    if (!tell_port(process->port_path, cluster_http_port(http))) {
        fprintf(stderr, "broom: the simulated cluster: cannot write '%s'\n", process->port_path);
        return 1;
    }
    loop_run(loop);
    say_counts(http);
    return 0;
}

int cluster_process_run(const struct cluster_process *process)
{
    struct error error = {0};
    if (clock_join(process->time_path, &error) != OK) {
        fprintf(stderr, "broom: the simulated cluster: %s\n", error.message);
        return status_exit_code(error.status);
    }
    AUTO(loop_free) struct loop *loop = loop_new();
    AUTO(cluster_free) struct cluster *cluster = build(process);
    signal(SIGPIPE, SIG_IGN);
    struct loop_signal *terminate = loop_signal_new(loop, SIGTERM, on_signal, loop);
    struct loop_signal *interrupt = loop_signal_new(loop, SIGINT, on_signal, loop);
    int code = run(process, loop, cluster);
    loop_signal_free(terminate);
    loop_signal_free(interrupt);
    return code;
}
