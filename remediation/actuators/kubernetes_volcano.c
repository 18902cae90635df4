/* Decide from a fresh read, write the state before on the job, post the Command, follow. */
#include "remediation/actuators/kubernetes_volcano.h"

#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_partition.h"
#include "remediation/actuators/kubernetes_volcano_withdraw.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ISSUES_MAX = 2 };
static const int64_t FOLLOW_NS = INT64_C(500000000);
static const int64_t FOLLOW_SLOWLY_NS = INT64_C(2000000000);
static const int64_t UNTOUCHED_NS = INT64_C(20000000000);      /* then the controller may be down */
static const int64_t WITHOUT_EFFECT_NS = INT64_C(15000000000); /* then it is issued again */

void volcano_command_name(const char *operation_id, int issue, char buffer[VOLCANO_NAME_BYTES])
{
    char plain[OPERATION_ID_BYTES];
    size_t length = 0;
    for (const char *c = operation_id; *c != '\0' && length < sizeof plain - 1; c++)
        plain[length++] = (char)(isalnum((unsigned char)*c) ? tolower((unsigned char)*c) : '-');
    plain[length] = '\0';
    if (issue > 1)
        snprintf(buffer, VOLCANO_NAME_BYTES, VOLCANO_NAME_BEGIN "%s-%d", plain, issue);
    else
        snprintf(buffer, VOLCANO_NAME_BYTES, VOLCANO_NAME_BEGIN "%s", plain);
}

/* --- the state before --- */

static void read_state(struct work_call *call)
{
    AUTO(json_free) struct json *state = NULL;
    const char *text = call->item.operation_state;
    int64_t issued_ns = 0;
    if (json_parse(view_of(text), &state, NULL) != OK)
        state = NULL; /* somebody wrote over it: nothing is known of before */
    call->retries_before = json_get_int(state, "retries", -1);
    call->issued = json_get_int(state, "issued", 1) > 1 ? ISSUES_MAX : 1;
    volcano_command_name(call->item.operation, call->issued, call->command);
    const char *command = json_get_string(state, "command", "");
    if (command[0] != '\0')
        text_copy(call->command, sizeof call->command, command);
    text_copy(call->evicted, sizeof call->evicted, json_get_string(state, "evicted", ""));
    if (!text_parse_time(view_of(json_get_string(state, "at", "")), &issued_ns))
        issued_ns = call->begun_ns;
    call->issued_ns = issued_ns;
    if (!text_parse_time(view_of(json_get_string(state, "withdrawn", "")), &call->withdrawn_ns))
        call->withdrawn_ns = 0;
}

static bool is_ours(const struct work_call *call)
{
    return strcmp(call->item.operation, call->operation_id) == 0;
}

/* True when none of the pods that live now was there when this call decided. */
static bool pods_are_new(const struct work_call *call)
{
    size_t count = 0, live = 0, old = 0;
    const char *reason = NULL;
    if (call->pods_seen_before == 0 || !workloads_pods_are_synced(call->owner, &reason))
        return false;
    AUTO_FREE const struct pod **pods = workloads_pods_of(call->owner, &call->item, &count);
    for (size_t i = 0; i < count; i++) {
        live += pods[i]->deleted_ns == 0 && !pods[i]->has_ended;
        old += pods[i]->seen <= call->pods_seen_before;
    }
    return live > 0 && old == 0;
}

static bool has_restarted(const struct work_call *call)
{
    return call->item.phase == WORKLOAD_RESTARTING ||
           (call->retries_before >= 0 && call->item.restarts > call->retries_before) ||
           pods_are_new(call);
}

static bool is_another(const struct work_call *call)
{
    return call->ref.uid[0] != '\0' && strcmp(call->item.uid, call->ref.uid) != 0;
}

/* --- paths and bodies --- */

void volcano_add_commands_path(const struct work_call *call, struct text *path)
{
    text_add(path, "/apis/bus.volcano.sh/v1alpha1/namespaces");
    kube_path_add(path, call->ref.namespace_name);
    text_add(path, "/commands");
}

static void put_job(struct json_writer *writer, const struct work_call *call, bool controls)
{
    json_open_object(writer);
    json_put_string(writer, "apiVersion", call->ref.kind->api_version);
    json_put_string(writer, "kind", call->ref.kind->kind);
    json_put_string(writer, "name", call->item.name);
    json_put_string(writer, "uid", call->item.uid);
    if (controls)
        json_put_bool(writer, "controller", true);
    json_close(writer);
}

static void write_command(const struct work_call *call, struct text *body)
{
    struct json_writer writer = json_writer(body);
    AUTO_TEXT message = {0};
    text_addf(&message, "%s: %s", call->operation_id, call->reason);
    json_open_object(&writer);
    json_put_string(&writer, "apiVersion", "bus.volcano.sh/v1alpha1");
    json_put_string(&writer, "kind", "Command");
    json_add_key(&writer, "metadata");
    json_open_object(&writer);
    json_put_string(&writer, "name", call->command);
    json_put_string(&writer, "namespace", call->ref.namespace_name);
    json_add_key(&writer, "ownerReferences");
    json_open_array(&writer);
    put_job(&writer, call, true);
    json_close(&writer);
    json_close(&writer);
    json_put_string(&writer, "action", "RestartJob");
    json_add_key(&writer, "target");
    put_job(&writer, call, true);
    json_put_string(&writer, "reason", "BroomwagonIncident");
    json_put_string(&writer, "message", message.bytes);
    json_close(&writer);
}

static void write_intent(const struct work_call *call, struct text *body)
{
    AUTO_TEXT state = {0};
    struct json_writer inner = json_writer(&state);
    json_open_object(&inner);
    json_put_int(&inner, "retries", call->retries_before);
    json_put_int(&inner, "issued", call->issued);
    if (call->evicted[0] != '\0')
        json_put_string(&inner, "evicted", call->evicted);
    else
        json_put_string(&inner, "command", call->command);
    json_put_time(&inner, "at", call->issued_ns);
    if (call->withdrawn_ns != 0)
        json_put_time(&inner, "withdrawn", call->withdrawn_ns);
    json_close(&inner);
    struct json_writer writer = json_writer(body);
    json_open_object(&writer);
    json_add_key(&writer, "metadata");
    json_open_object(&writer);
    json_put_string(&writer, "resourceVersion", call->item.version);
    json_add_key(&writer, "annotations");
    json_open_object(&writer);
    json_put_string(&writer, WORKLOAD_OPERATION, call->operation_id);
    json_put_string(&writer, WORKLOAD_STATE, state.bytes);
    json_close(&writer);
    json_close(&writer);
    json_close(&writer);
}

/* --- following --- */

static void issue(struct work_call *call);

void volcano_follow(struct work_call *call)
{
    work_call_read(call, volcano_go_on);
}

static void not_taken(struct work_call *call, const struct json *command, int64_t now_ns)
{
    bool lies = now_ns - call->issued_ns >= UNTOUCHED_NS;
    int64_t left_ns = withdraw_due_ns(call) - now_ns;
    int64_t wait_ns = lies ? FOLLOW_SLOWLY_NS : FOLLOW_NS;
    call->gone_ns = 0;
    if (left_ns <= 0) {
        withdraw_untaken(call, command);
        return;
    }
    snprintf(call->waits_for, sizeof call->waits_for,
             "the job controller to take Command %.80s/%.100s%s", call->ref.namespace_name,
             call->command, lies ? ", which lies untouched (is it up?)" : "");
    work_call_later(call, wait_ns < left_ns ? wait_ns : left_ns, volcano_follow);
}

static void issue_again(struct work_call *call, int64_t now_ns)
{
    call->issued++;
    call->is_adopted = false;
    call->gone_ns = 0;
    volcano_command_name(call->operation_id, call->issued, call->command);
    call->issued_ns = now_ns;
    issue(call);
}

static void taken(struct work_call *call, int64_t now_ns)
{
    if (call->gone_ns == 0)
        call->gone_ns = now_ns;
    if (now_ns - call->gone_ns < WITHOUT_EFFECT_NS) {
        text_copy(call->waits_for, sizeof call->waits_for,
                  "the job controller to carry out the Command that it took");
        work_call_later(call, FOLLOW_NS, volcano_follow);
    } else if (call->withdrawn_ns != 0) {
        work_call_answer(call, OUTCOME_TRANSIENT,
                         "Command %s/%s was withdrawn: the job controller did not take it in time",
                         call->ref.namespace_name, call->command);
    } else if (call->issued < ISSUES_MAX && now_ns < withdraw_due_ns(call)) {
        issue_again(call, now_ns);
    } else if (call->issued < ISSUES_MAX) {
        work_call_answer(call, OUTCOME_TRANSIENT,
                         "the job controller took Command %s/%s and did nothing, and there is no "
                         "time for another",
                         call->ref.namespace_name, call->command);
    } else {
        work_call_answer(call, OUTCOME_REFUSED,
                         "the job controller took %d Commands and did nothing: Job %s/%s is still "
                         "%s with %" PRId64 " restarts",
                         call->issued, call->ref.namespace_name, call->ref.name,
                         call->item.said[0] != '\0' ? call->item.said : "without a phase",
                         call->item.restarts);
    }
}

static void look_again(struct work_call *call, const struct kube_answer *answer)
{
    snprintf(call->waits_for, sizeof call->waits_for, "the API server: %.200s", answer->message);
    work_call_later(call, FOLLOW_NS, volcano_follow);
}

static void on_command(struct work_call *call, const struct kube_answer *answer)
{
    int64_t now_ns = clock_now_ns();
    if (answer->result == KUBE_OK)
        not_taken(call, answer->body, now_ns);
    else if (answer->result == KUBE_NOT_FOUND)
        taken(call, now_ns);
    else
        look_again(call, answer);
}

/* A Command is taken before it is carried out: one that is still there did not cause the restart,
 * and would cause another. */
static void on_command_after(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK)
        withdraw_surplus(call, answer->body);
    else if (answer->result == KUBE_NOT_FOUND)
        work_call_answer(call, OUTCOME_SUCCEEDED, "Job %s/%s is %s, %s", call->ref.namespace_name,
                         call->ref.name, call->item.said, call->item.budget);
    else
        look_again(call, answer);
}

static void ask_command(struct work_call *call, work_answer_fn *fn)
{
    AUTO_TEXT path = {0};
    volcano_add_commands_path(call, &path);
    kube_path_add(&path, call->command);
    work_call_get(call, path.bytes, fn);
}

void volcano_go_on(struct work_call *call)
{
    if (is_another(call))
        work_call_answer(call, OUTCOME_SUPERSEDED, "Job %s/%s was made anew by somebody",
                         call->ref.namespace_name, call->ref.name);
    else if (workload_item_is_final(&call->item))
        work_call_answer(call, OUTCOME_REFUSED, "Job %s/%s has become %s", call->ref.namespace_name,
                         call->ref.name, call->item.said);
    else
        ask_command(call, has_restarted(call) ? on_command_after : on_command);
}

/* --- issuing --- */

static void on_posted(struct work_call *call, const struct kube_answer *answer)
{
    switch (answer->result) {
    case KUBE_OK:
    case KUBE_EXISTS: /* ours, from before */
    case KUBE_UNKNOWN:
        work_call_later(call, FOLLOW_NS / 2, volcano_follow);
        return;
    case KUBE_NOT_FOUND:
        work_call_answer(call, OUTCOME_REFUSED, "Commands of Volcano are not served: %s",
                         answer->message);
        return;
    case KUBE_CONFLICT:
    case KUBE_EXPIRED:
    case KUBE_BLOCKED:
    case KUBE_BUSY:
    case KUBE_DENIED:
    case KUBE_REFUSED:
    case KUBE_UNREACHABLE:
    case KUBE_RESULT_COUNT:
        break;
    }
    work_call_fail(call, answer);
}

static void post(struct work_call *call)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    volcano_add_commands_path(call, &path);
    write_command(call, &body);
    work_call_post(call, path.bytes, &body, on_posted);
}

static void on_noted(struct work_call *call, const struct kube_answer *answer)
{
    call->has_begun = call->has_begun || answer->result == KUBE_OK;
    if (answer->result == KUBE_OK && call->is_adopted)
        work_call_later(call, 0, volcano_follow);
    else if (answer->result == KUBE_OK)
        post(call);
    else if (answer->result == KUBE_CONFLICT)
        work_call_decide_again(call, call->issued > 1 ? issue : volcano_restart);
    else
        work_call_fail(call, answer);
}

/* Writes down what is about to be done, then does it. */
static void issue(struct work_call *call)
{
    if (call->issued > 1 && (has_restarted(call) || workload_item_is_final(&call->item)))
        volcano_go_on(call);
    else
        volcano_note(call, on_noted);
}

void volcano_note(struct work_call *call, work_answer_fn *fn)
{
    AUTO_TEXT body = {0};
    write_intent(call, &body);
    work_call_patch(call, &body, fn);
}

/* Somebody's word on the job says that it should not, or need not, be restarted by us now. */
static bool is_settled(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    if (is_another(call))
        work_call_answer(call, OUTCOME_SUPERSEDED, "Job %s/%s was made anew by somebody",
                         item->namespace_name, item->name);
    else if (workload_item_is_final(item) || item->phase == WORKLOAD_ENDING)
        work_call_answer(call, OUTCOME_REFUSED, "Job %s/%s is %s, no restart leads out of that",
                         item->namespace_name, item->name, item->said);
    else if (item->phase == WORKLOAD_RESTARTING)
        work_call_answer(call, OUTCOME_SUPERSEDED, "Job %s/%s is restarting already",
                         item->namespace_name, item->name);
    else if (item->cannot_restart[0] != '\0')
        work_call_answer(call, OUTCOME_REFUSED, "%s", item->cannot_restart);
    else
        return false;
    return true;
}

static void begin(struct work_call *call)
{
    call->retries_before = call->item.restarts;
    call->pods_seen_before = call->owner->pods.seen;
    call->issued = 1;
    call->issued_ns = clock_now_ns();
    call->withdrawn_ns = 0;
    call->evicted[0] = '\0';
    if (!call->is_adopted && partition_restart(call))
        return;
    if (!call->is_adopted)
        volcano_command_name(call->operation_id, call->issued, call->command);
    issue(call);
}

/* Two Commands would be two restarts: one that nobody took yet does for this operation too. */
static void on_earlier_command(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result != KUBE_OK && answer->result != KUBE_NOT_FOUND) {
        work_call_fail(call, answer);
        return;
    }
    call->is_adopted = answer->result == KUBE_OK;
    begin(call);
}

void volcano_restart(struct work_call *call)
{
    call->is_adopted = false;
    if (is_ours(call)) {
        call->has_begun = true;
        read_state(call);
        call->gone_ns = call->withdrawn_ns != 0 ? call->withdrawn_ns : call->issued_ns;
        if (call->evicted[0] != '\0')
            partition_go_on(call);
        else
            volcano_go_on(call);
    } else if (is_settled(call)) {
        return;
    } else if (call->item.operation[0] != '\0') {
        read_state(call);
        if (call->evicted[0] != '\0')
            begin(call);
        else
            ask_command(call, on_earlier_command);
    } else {
        begin(call);
    }
}

/* --- polling --- */

static void gone(struct work_call *call)
{
    int64_t now_ns = clock_now_ns();
    int64_t since_ns = call->withdrawn_ns != 0 ? call->withdrawn_ns : call->issued_ns;
    if (now_ns - since_ns < WITHOUT_EFFECT_NS)
        work_call_tell(call, POLL_RUNNING, "the Command is gone, nothing has changed yet");
    else if (call->withdrawn_ns != 0)
        work_call_end(call, OUTCOME_TRANSIENT, POLL_DONE,
                      "Command %s/%s was withdrawn: the job controller did not take it in time",
                      call->ref.namespace_name, call->command);
    else
        work_call_tell(call, POLL_ABSENT, "no Command is there, and the job is as it was");
}

/* Absent where nobody follows it: started again, it finds its Command and follows it, or withdraws
 * it. */
static void on_command_seen(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK && clock_now_ns() - call->issued_ns >= UNTOUCHED_NS)
        work_call_tell(call, POLL_ABSENT,
                       "Command %s/%s lies untouched (is the job controller up?) and nobody "
                       "follows it",
                       call->ref.namespace_name, call->command);
    else if (answer->result == KUBE_OK)
        work_call_tell(call, POLL_RUNNING, "Command %s/%s is not taken yet",
                       call->ref.namespace_name, call->command);
    else if (answer->result == KUBE_NOT_FOUND)
        gone(call);
    else
        work_call_tell(call, POLL_UNREACHABLE, "%s", answer->message);
}

static void on_command_left(struct work_call *call, const struct kube_answer *answer)
{
    if (answer->result == KUBE_OK)
        work_call_tell(call, POLL_ABSENT,
                       "the job has restarted without Command %s/%s, which is to be withdrawn",
                       call->ref.namespace_name, call->command);
    else if (answer->result == KUBE_NOT_FOUND)
        work_call_end(call, OUTCOME_SUCCEEDED, POLL_DONE, "Job %s/%s is %s, %s",
                      call->ref.namespace_name, call->ref.name, call->item.said, call->item.budget);
    else
        work_call_tell(call, POLL_UNREACHABLE, "%s", answer->message);
}

void volcano_poll(struct work_call *call)
{
    const struct workload_item *item = &call->item;
    if (!is_ours(call)) {
        work_call_tell(call, POLL_ABSENT, "the job carries no mark of this operation");
        return;
    }
    read_state(call);
    if (is_another(call))
        work_call_end(call, OUTCOME_SUPERSEDED, POLL_DONE, "Job %s/%s was made anew by somebody",
                      item->namespace_name, item->name);
    else if (workload_item_is_final(item))
        work_call_end(call, OUTCOME_REFUSED, POLL_DONE, "Job %s/%s has become %s",
                      item->namespace_name, item->name, item->said);
    else if (call->evicted[0] != '\0')
        partition_poll(call);
    else
        ask_command(call, has_restarted(call) ? on_command_left : on_command_seen);
}
