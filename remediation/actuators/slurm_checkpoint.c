/* A checkpoint is asked for by a signal that the job's own document names: one that it does not
 * handle would end it. That the save is done shows in a file that changes; without one a fixed wait
 * has to do.
 */
#include "controller/sys/clock.h"
#include "remediation/actuators/slurm_call.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { WAIT_S_DEFAULT = 60, LOOK_MS = 1000 };
static const int64_t LIMIT_NS_DEFAULT = INT64_C(300000000000);
static const int64_t MARGIN_NS = INT64_C(2000000000); /* the step's own deadline comes after ours */

static void finish_asked(struct slurm_call *call)
{
    slurm_finish(
        call, OUTCOME_SUCCEEDED, POLL_DONE,
        "signalled, and waited %lld s; the job names no checkpoint_file that would show it",
        (long long)json_get_int(call->workload, "checkpoint_wait_s", WAIT_S_DEFAULT));
}

static void look(struct slurm_call *call);

/* `stat` in a process: a hung file system must not stop the loop. */
static void looked(struct slurm_call *call, const struct slurm_answer *answer)
{
    int64_t changed_s = 0;
    struct view output = answer->output;
    while (output.length > 0 && isspace((unsigned char)output.bytes[output.length - 1]))
        output.length--;
    bool is_saved = answer->status == OK && text_parse_int(output, &changed_s) &&
                    changed_s >= call->signalled_s;
    if (is_saved)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "signalled, and saved");
    else if (clock_read().monotonic_ns >= call->deadline_ns)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE,
                     "signalled, but '%s' has not changed since (%s)",
                     json_get_string(call->workload, "checkpoint_file", ""),
                     answer->status == OK ? "it is older" : answer->message);
    else
        slurm_wait(call, LOOK_MS, look);
}

static void look(struct slurm_call *call)
{
    const char *argv[] = {"stat", "-L", "-c",
                          "%Y",   "--", json_get_string(call->workload, "checkpoint_file", ""),
                          NULL};
    slurm_run(call, argv, false, looked);
}

static void signalled(struct slurm_call *call, const struct slurm_answer *answer)
{
    int64_t limit_ns = json_get_int(call->params, "timeout_ns", LIMIT_NS_DEFAULT) - MARGIN_NS;
    int64_t wait_ns = json_get_int(call->workload, "checkpoint_wait_s", WAIT_S_DEFAULT) *
                      INT64_C(1000000000);
    if (answer->status != OK) {
        slurm_finish_failed(call, answer);
        return;
    }
    call->deadline_ns = clock_read().monotonic_ns + limit_ns;
    if (json_get(call->workload, "checkpoint_file") != NULL)
        look(call);
    else
        slurm_wait(call, (wait_ns < limit_ns ? wait_ns : limit_ns) / 1000000, finish_asked);
}

/* Letters and digits: USR1, SIGUSR1, 10. */
static bool is_signal_name(const char *name)
{
    size_t length = 0;
    while (isalnum((unsigned char)name[length]))
        length++;
    return length > 0 && length < 16 && name[length] == '\0';
}

static const char *target_option(const char *target)
{
    if (strcmp(target, "batch") == 0)
        return "--batch";
    return strcmp(target, "steps") == 0 ? NULL : "--full";
}

static void ask(struct slurm_call *call)
{
    const char *signal = json_get_string(call->workload, "checkpoint_signal", "");
    const char *option = target_option(json_get_string(call->workload, "checkpoint_target", "all"));
    char signal_option[32];
    if (call->job_id[0] == '\0') {
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", call->workload_problem);
        return;
    }
    if (!is_signal_name(signal)) {
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE,
                     "the workload names no checkpoint_signal; a signal that job %s does not "
                     "handle would end it",
                     call->job_id);
        return;
    }
    if (call->kind == SLURM_POLL) {
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT,
                     "a signal leaves no trace; asking twice does no harm");
        return;
    }
    snprintf(signal_option, sizeof signal_option, "--signal=%s", signal);
    const char *argv[] = {call->owner->scancel, signal_option,
                          option != NULL ? option : call->job_id,
                          option != NULL ? call->job_id : NULL, NULL};
    call->signalled_s = clock_read().wall_ns / INT64_C(1000000000);
    slurm_run(call, argv, true, signalled);
}

void slurm_checkpoint_start(struct slurm_call *call)
{
    slurm_wait(call, 0, ask);
}
