/* Note on the job, DELETE, and what the answers mean. */
#include "remediation/actuators/kubernetes_volcano_withdraw.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_volcano.h"

#include <stdio.h>
#include <string.h>

static const int64_t BEFORE_END_NS = INT64_C(10000000000);
static const int64_t AGAIN_NS = INT64_C(500000000);

int64_t withdraw_due_ns(const struct work_call *call)
{
    int64_t allowed_ns = call->limit_ns - call->begun_ns;
    int64_t margin_ns = allowed_ns / 2 < BEFORE_END_NS ? allowed_ns / 2 : BEFORE_END_NS;
    int64_t spent_ns = call->begun_ns - call->issued_ns; /* before a restart of broomd */
    if (spent_ns < 0)
        spent_ns = 0;
    return call->limit_ns - margin_ns - (spent_ns < allowed_ns ? spent_ns : allowed_ns);
}

/* Anybody who may change the job may write another name into our annotation. */
static bool read_command(struct work_call *call, const struct json *command)
{
    const struct json *target = json_get(command, "target");
    const char *uid = json_get_string(json_get(command, "metadata"), "uid", "");
    return strcmp(json_get_string(target, "uid", ""), call->item.uid) == 0 &&
           strcmp(json_get_string(target, "name", ""), call->item.name) == 0 &&
           strncmp(call->command, VOLCANO_NAME_BEGIN, strlen(VOLCANO_NAME_BEGIN)) == 0 &&
           text_copy(call->command_uid, sizeof call->command_uid, uid) && uid[0] != '\0';
}

static void take_back(struct work_call *call, work_answer_fn *fn)
{
    AUTO_TEXT path = {0};
    volcano_add_commands_path(call, &path);
    kube_path_add(&path, call->command);
    work_call_delete(call, path.bytes, call->command_uid, fn);
}

/* True for answers after which the truth is found by reading again. */
static bool looks_again(struct work_call *call, const struct kube_answer *answer)
{
    bool is_open = answer->result == KUBE_UNKNOWN || answer->result == KUBE_BUSY ||
                   answer->result == KUBE_UNREACHABLE;
    if (!is_open)
        return false;
    snprintf(call->waits_for, sizeof call->waits_for,
             "the API server to take Command %.100s back: %.100s", call->command, answer->message);
    work_call_later(call, AGAIN_NS, volcano_follow);
    return true;
}

/* --- nobody took it --- */

static void on_withdrawn(struct work_call *call, const struct kube_answer *answer)
{
    AUTO_TEXT lay = {0};
    int64_t lay_ns = clock_now_ns() - call->issued_ns;
    if (looks_again(call, answer))
        return;
    text_add_duration(&lay, lay_ns / 1000000000 * 1000000000);
    if (answer->result == KUBE_OK)
        work_call_answer(call, OUTCOME_TRANSIENT,
                         "the job controller took no Command within %s (is it up?): withdrawn",
                         lay.bytes);
    else if (answer->result == KUBE_NOT_FOUND)
        work_call_later(call, AGAIN_NS, volcano_follow); /* it was taken after all */
    else
        work_call_answer(call, OUTCOME_UNKNOWN,
                         "Command %s/%s, which nobody took in %s, cannot be withdrawn: %s",
                         call->ref.namespace_name, call->command, lay.bytes, answer->message);
}

static void on_noted(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK) {
        take_back(call, on_withdrawn);
        return;
    }
    call->withdrawn_ns = 0;
    if (answer->result == KUBE_CONFLICT) {
        work_call_decide_again(call, volcano_go_on);
    } else {
        snprintf(call->waits_for, sizeof call->waits_for, "the API server: %.200s",
                 answer->message);
        work_call_later(call, AGAIN_NS, volcano_follow);
    }
}

void withdraw_untaken(struct work_call *call, const struct json *command)
{
    if (!read_command(call, command)) {
        work_call_answer(call, OUTCOME_UNKNOWN,
                         "Command %s/%s lies untouched and is not for this job: left alone",
                         call->ref.namespace_name, call->command);
    } else if (call->withdrawn_ns != 0) {
        take_back(call, on_withdrawn);
    } else {
        call->withdrawn_ns = clock_now_ns();
        volcano_note(call, on_noted);
    }
}

/* --- it is not needed --- */

static void on_surplus_gone(struct work_call *call, const struct kube_answer *answer)
{
    if (looks_again(call, answer))
        return;
    if (answer->result == KUBE_OK || answer->result == KUBE_NOT_FOUND)
        work_call_answer(call, OUTCOME_SUCCEEDED,
                         "Job %s/%s is %s, %s; our Command was not needed and is withdrawn",
                         call->ref.namespace_name, call->ref.name, call->item.said,
                         call->item.budget);
    else
        work_call_answer(call, OUTCOME_SUCCEEDED,
                         "Job %s/%s is %s, %s; our Command %s cannot be withdrawn and restarts it "
                         "once more when it is taken: %s",
                         call->ref.namespace_name, call->ref.name, call->item.said,
                         call->item.budget, call->command, answer->message);
}

void withdraw_surplus(struct work_call *call, const struct json *command)
{
    if (read_command(call, command))
        take_back(call, on_surplus_gone);
    else
        work_call_answer(call, OUTCOME_SUCCEEDED, "Job %s/%s is %s, %s", call->ref.namespace_name,
                         call->ref.name, call->item.said, call->item.budget);
}
