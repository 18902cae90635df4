/* Calls, programs, reads. What a program's failure means is a table of Slurm's own words: its exit
 * code is 1 for everything.
 */
#include "remediation/actuators/slurm_call.h"

#include "controller/sys/clock.h"
#include "controller/sys/file.h"
#include "remediation/actuators/slurm_hostlist.h"
#include "remediation/actuators/slurm_text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { RUN_LIMIT_MS = 10000, ARGUMENTS_MAX = 8, MESSAGE_BYTES = 256, TOKEN_BYTES_MAX = 65536 };

/* --- the call --- */

struct slurm_call *slurm_call_new(struct slurm *owner, enum slurm_call_kind kind, void *context)
{
    struct slurm_call *call = xcalloc(1, sizeof *call);
    call->owner = owner;
    call->kind = kind;
    call->context = context;
    call->next = owner->first;
    if (call->next != NULL)
        call->next->previous = call;
    owner->first = call;
    return call;
}

static struct json *parse_or_null(const char *text)
{
    struct json *json = NULL;
    if (text != NULL)
        ignore_status(json_parse(view_of(text), &json, NULL)); /* defaults serve */
    return json;
}

/* Digits, and "12_3" or "12+0" of arrays and heterogeneous jobs. */
static bool is_job_id(const char *id)
{
    bool has_mark = false;
    if (!isdigit((unsigned char)id[0]) || strlen(id) > 30)
        return false;
    for (const char *c = id; *c != '\0'; c++) {
        bool is_mark = (*c == '_' || *c == '+') && !has_mark && isdigit((unsigned char)c[1]);
        has_mark = has_mark || is_mark;
        if (!isdigit((unsigned char)*c) && !is_mark)
            return false;
    }
    return true;
}

char *slurm_workload_job(const struct json *workload, const char *cluster, char **ret_why_not)
{
    AUTO_TEXT id = {0};
    const struct json *value = json_get(workload, "job_id");
    const char *theirs = json_get_string(workload, "cluster", "");
    if (json_kind(value) == JSON_NUMBER && json_int(value, -1) > 0)
        text_addf(&id, "%lld", (long long)json_int(value, -1));
    else
        text_add(&id, json_string(value, ""));
    *ret_why_not = NULL;
    if (workload == NULL)
        *ret_why_not = xstrdup("its workload is not known: the job document names none");
    else if (strcmp(json_get_string(workload, "kind", ""), "slurm") != 0)
        *ret_why_not = xstrdup("its workload is not of kind slurm");
    else if (id.bytes == NULL || !is_job_id(id.bytes))
        *ret_why_not = xstrdup("its workload names no Slurm job_id");
    else if (theirs[0] != '\0' && cluster != NULL && strcmp(theirs, cluster) != 0)
        *ret_why_not = xstrdup("its workload is of another Slurm cluster");
    return *ret_why_not != NULL ? xstrdup("") : text_take(&id);
}

void slurm_call_take_action(struct slurm_call *call, const struct action *action)
{
    text_copy(call->operation_id, sizeof call->operation_id, action->operation_id);
    call->verb = action->verb;
    call->incident_ref = xstrdup(action->incident_ref != NULL ? action->incident_ref : "");
    call->reason = xstrdup(action->reason != NULL ? action->reason : "");
    call->workload = parse_or_null(action->workload_json);
    call->params = parse_or_null(action->params_json);
    call->job_id = slurm_workload_job(call->workload, NULL, &call->workload_problem);
    for (size_t i = 0; i < action->node_count; i++)
        names_add(&call->nodes_wanted, action->nodes[i]);
    for (size_t i = 0; i < action->spare_count; i++)
        names_add(&call->spares, action->spares[i]);
}

struct slurm_run {
    struct slurm_call *call;
    struct slurm_run *next;
    struct loop_timer *timer; /* of a run that failed before it began */
    slurm_answer_fn *fn;
    struct slurm_reading *reading; /* of a read: where its text goes */
    bool is_recorded;
};

static void run_free(struct slurm_run *run)
{
    struct slurm_run **place = &run->call->runs;
    while (*place != run)
        place = &(*place)->next;
    *place = run->next;
    loop_timer_free(run->timer);
    xfree(run);
}

static void nodes_done(struct slurm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        slurm_node_done(&nodes->items[i]);
    xfree(nodes->items);
    *nodes = (struct slurm_nodes){0};
}

void slurm_call_free(struct slurm_call *call)
{
    struct slurm_call **place = call->previous != NULL ? &call->previous->next
                                                       : &call->owner->first;
    *place = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    xfree(call->incident_ref);
    xfree(call->reason);
    xfree(call->job_id);
    xfree(call->workload_problem);
    json_free(call->workload);
    json_free(call->params);
    names_done(&call->nodes_wanted);
    names_done(&call->spares);
    names_done(&call->todo);
    for (size_t i = 0; i < SLURM_READ_COUNT; i++)
        text_done(&call->readings[i].text);
    nodes_done(&call->nodes);
    if (call->has_job)
        slurm_job_done(&call->job);
    for (size_t i = 0; i < call->asked_count; i++) {
        xfree(call->asked[i].name);
        xfree(call->asked[i].id);
        xfree(call->asked[i].why_not);
        xfree(call->asked[i].distribution);
        text_done(&call->asked[i].reading.text);
    }
    xfree(call->asked);
    text_done(&call->kept);
    text_done(&call->said);
    while (call->runs != NULL)
        run_free(call->runs);
    loop_timer_free(call->timer);
    xfree(call);
}

void slurm_finish(struct slurm_call *call, enum outcome outcome, enum poll_state poll,
                  const char *format, ...)
{
    AUTO_TEXT reason = {0};
    AUTO_TEXT said = call->said;
    action_done_fn *done = call->done;
    void *context = call->context;
    va_list args;
    va_start(args, format);
    text_addv(&reason, format, args);
    va_end(args);
    call->said = (struct text){0};
    slurm_call_free(call);
    struct action_result result = {outcome, poll, reason.bytes, said.bytes};
    done(context, &result);
}

void slurm_finish_unread(struct slurm_call *call, enum status status, const char *message)
{
    /* The mark of an earlier start may stand: only a restart that has begun is in doubt. */
    if (call->kind == SLURM_START && status == ERR_NOT_FOUND)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "%s", message);
    else if (call->kind == SLURM_START)
        slurm_finish(call, call->said.length > 0 ? OUTCOME_UNKNOWN : OUTCOME_TRANSIENT,
                     POLL_UNREACHABLE, "%s", message);
    else
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_UNREACHABLE, "%s", message);
}

void slurm_finish_failed(struct slurm_call *call, const struct slurm_answer *answer)
{
    switch (answer->status) {
    case ERR_UNREACHABLE:
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_UNREACHABLE, "%s", answer->message);
        break;
    case ERR_REFUSED:
    case ERR_NOT_FOUND:
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "Slurm says: %s", answer->message);
        break;
    case OK:
    case ERR_INVALID:
    case ERR_DENIED:
    case ERR_CONFLICT:
    case ERR_AGAIN:
    case ERR_LIMIT:
    case ERR_TIMEOUT:
    case ERR_IO:
    case ERR_BUG:
    case STATUS_COUNT:
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_UNREACHABLE, "%s", answer->message);
        break;
    }
}

/* --- programs --- */

/* clang-format off */
static const struct {
    const char *text;
    enum status status;
} MEANINGS[] = {
    {"Invalid job id specified",                ERR_NOT_FOUND},
    {"Invalid node name specified",             ERR_NOT_FOUND},
    {"Requested reservation is invalid",        ERR_NOT_FOUND},
    {"not found",                               ERR_NOT_FOUND},
    {"Unable to contact slurm controller",      ERR_UNREACHABLE},
    {"Could not establish a configuration",     ERR_UNREACHABLE},
    {"Connection refused",                      ERR_UNREACHABLE},
    {"Unable to resolve",                       ERR_UNREACHABLE},
    {"Invalid authentication credential",       ERR_UNREACHABLE},
    {"Protocol authentication error",           ERR_UNREACHABLE},
    {"Munge",                                   ERR_UNREACHABLE},
    {"slurmctld is in standby mode",            ERR_UNREACHABLE},
    {"Slurm backup controller",                 ERR_UNREACHABLE},
    {"Socket timed out",                        ERR_TIMEOUT},
    {"Zero Bytes were transmitted",             ERR_TIMEOUT},
    {"Unexpected message received",             ERR_TIMEOUT},
    {"Transport endpoint",                      ERR_TIMEOUT},
};
/* clang-format on */

static enum status meaning_of(const char *message)
{
    for (size_t i = 0; i < ARRAY_LEN(MEANINGS); i++)
        if (strstr(message, MEANINGS[i].text) != NULL)
            return MEANINGS[i].status;
    return ERR_REFUSED;
}

/* The last line of what it said is the reason; where stderr is empty, stdout is. */
static void last_line(const struct process_result *result, char *buffer, size_t bytes)
{
    struct view text = result->errors.length > 0 ? result->errors : result->output;
    while (text.length > 0 && isspace((unsigned char)text.bytes[text.length - 1]))
        text.length--;
    size_t from = text.length;
    while (from > 0 && text.bytes[from - 1] != '\n')
        from--;
    snprintf(buffer, bytes, "%.*s", (int)(text.length - from),
             text.length > 0 ? text.bytes + from : "");
}

static void on_ran(void *context, const struct process_result *result)
{
    struct slurm_run *run = context;
    struct slurm_call *call = run->call;
    char message[MESSAGE_BYTES] = "";
    struct slurm_answer answer = {result->status, result->output, message};
    if (result->status != OK) {
        text_copy(message, sizeof message, result->reason);
    } else if (result->exit_code != 0) {
        last_line(result, message, sizeof message);
        answer.status = meaning_of(message);
        if (message[0] == '\0')
            snprintf(message, sizeof message, "exit code %d without a word", result->exit_code);
    }
    if (run->is_recorded)
        text_addf(&call->said, " -> %s\n", answer.status == OK ? "ok" : message);
    if (run->reading != NULL) {
        run->reading->status = answer.status;
        text_copy(run->reading->message, sizeof run->reading->message, message);
        text_add_bytes(&run->reading->text,
                       result->output.bytes != NULL ? result->output.bytes : "",
                       result->output.length);
    }
    slurm_answer_fn *fn = run->fn;
    run_free(run);
    fn(call, &answer);
}

/* SLURM_JWT takes the place of munge where a token is configured. */
static enum status environment_of(const struct slurm *slurm, struct names *lines,
                                  struct error *reterr)
{
    AUTO_TEXT line = {0};
    /* Their defaults, whatever broomd's own environment says. */
    names_add(lines, "LC_ALL=C");
    names_add(lines, "SLURM_TIME_FORMAT=standard");
    names_add(lines, "SCONTROL_ALL=");
    if (slurm->conf[0] != '\0') {
        text_addf(&line, "SLURM_CONF=%s", slurm->conf);
        names_add(lines, line.bytes);
    }
    if (slurm->token_file[0] == '\0')
        return OK;
    AUTO_TEXT token = {0};
    TRY(file_read(slurm->token_file, TOKEN_BYTES_MAX, &token, reterr));
    while (token.length > 0 && isspace((unsigned char)token.bytes[token.length - 1]))
        token.bytes[--token.length] = '\0';
    text_clear(&line);
    text_addf(&line, "SLURM_JWT=%s", token.length > 0 ? token.bytes : "");
    names_add(lines, line.bytes);
    return OK;
}

static void fail_run(void *context)
{
    struct slurm_run *run = context;
    on_ran(run, &(struct process_result){.status = ERR_UNREACHABLE,
                                         .reason = "the token file cannot be read"});
}

static void start_run(struct slurm_run *run, const char *const *argv)
{
    struct slurm *slurm = run->call->owner;
    struct names lines = {0};
    struct error error = {0};
    if (environment_of(slurm, &lines, &error) != OK) {
        run->timer = loop_timer_new(slurm->loop, fail_run, run);
        loop_timer_set(run->timer, 0);
        names_done(&lines);
        return;
    }
    const char **environment = xcalloc(lines.count + 1, sizeof *environment);
    for (size_t i = 0; i < lines.count; i++)
        environment[i] = lines.items[i];
    struct process_call process = {
        .argv = argv, .environment = environment, .timeout_ms = RUN_LIMIT_MS};
    process_start(slurm->runner, &process, on_ran, run);
    xfree(environment);
    names_done(&lines);
}

static struct slurm_run *run_new(struct slurm_call *call, slurm_answer_fn *fn)
{
    struct slurm_run *run = xcalloc(1, sizeof *run);
    run->call = call;
    run->fn = fn;
    run->next = call->runs;
    call->runs = run;
    return run;
}

static void record(struct slurm_call *call, const char *const *argv)
{
    const char *slash = strrchr(argv[0], '/');
    text_add(&call->said, slash != NULL ? slash + 1 : argv[0]);
    for (size_t i = 1; argv[i] != NULL; i++)
        text_addf(&call->said, " %s", argv[i]);
}

void slurm_run(struct slurm_call *call, const char *const *argv, bool recorded, slurm_answer_fn *fn)
{
    struct slurm_run *run = run_new(call, fn);
    run->is_recorded = recorded;
    if (recorded)
        record(call, argv);
    start_run(run, argv);
}

void slurm_change(struct slurm_call *call, slurm_answer_fn *fn, const char *first, ...)
{
    const char *argv[ARGUMENTS_MAX + 2] = {call->owner->scontrol, first};
    va_list args;
    va_start(args, first);
    for (size_t i = 2; i <= ARGUMENTS_MAX && argv[i - 1] != NULL; i++)
        argv[i] = va_arg(args, const char *);
    va_end(args);
    slurm_run(call, argv, true, fn);
}

/* --- reads --- */

static void on_read(struct slurm_call *call, const struct slurm_answer *answer)
{
    (void)answer;
    if (--call->reads_left == 0)
        call->after_reads(call);
}

static void start_read(struct slurm_call *call, struct slurm_reading *reading, const char *what,
                       const char *id)
{
    const char *argv[] = {call->owner->scontrol, "show", what, id, NULL};
    struct slurm_run *run = run_new(call, on_read);
    run->reading = reading;
    reading->status = OK;
    reading->message[0] = '\0';
    text_clear(&reading->text);
    call->reads_left++;
    start_run(run, argv);
}

void slurm_read_all(struct slurm_call *call, unsigned mask, slurm_step_fn *fn)
{
    static const char *const WHAT[SLURM_READ_COUNT] = {
        [SLURM_READ_CONFIG] = "config",     [SLURM_READ_NODES] = "node",
        [SLURM_READ_TOPOLOGY] = "topology", [SLURM_READ_RESERVATIONS] = "reservation",
        [SLURM_READ_JOB] = "job",
    };
    call->after_reads = fn;
    for (unsigned i = 0; i < SLURM_READ_COUNT; i++)
        if ((mask & (1u << i)) != 0)
            start_read(call, &call->readings[i], WHAT[i],
                       i == SLURM_READ_JOB ? call->job_id : NULL);
    for (size_t i = 0; i < call->asked_count; i++)
        if (call->asked[i].id[0] != '\0')
            start_read(call, &call->asked[i].reading, "job", call->asked[i].id);
}

const struct slurm_reading *slurm_failed_reading(const struct slurm_call *call, unsigned mask)
{
    for (unsigned i = 0; i < SLURM_READ_COUNT; i++)
        if ((mask & (1u << i)) != 0 && call->readings[i].status != OK)
            return &call->readings[i];
    return NULL;
}

static void on_wait(void *context)
{
    struct slurm_call *call = context;
    call->on_timer(call);
}

void slurm_wait(struct slurm_call *call, int64_t after_ms, slurm_step_fn *fn)
{
    if (call->timer == NULL)
        call->timer = loop_timer_new(call->owner->loop, on_wait, call);
    call->on_timer = fn;
    loop_timer_set(call->timer, after_ms * 1000000);
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct slurm_node *)a)->name, ((const struct slurm_node *)b)->name);
}

bool slurm_take_nodes(struct slurm_call *call)
{
    const struct text *text = &call->readings[SLURM_READ_NODES].text;
    struct view rest = {text->bytes, text->length}, record;
    size_t capacity = 0;
    nodes_done(&call->nodes);
    while (slurm_next_record(&rest, "NodeName=", &record)) {
        call->nodes.items = array_grow(call->nodes.items, call->nodes.count, &capacity,
                                       sizeof *call->nodes.items);
        slurm_node_read(record, &call->nodes.items[call->nodes.count++]);
    }
    if (call->nodes.count > 0)
        qsort(call->nodes.items, call->nodes.count, sizeof *call->nodes.items, compare_nodes);
    return call->nodes.count > 0;
}

struct slurm_node *slurm_find_node(const struct slurm_nodes *nodes, const char *name)
{
    size_t low = 0, high = nodes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(nodes->items[middle].name, name);
        if (order == 0)
            return &nodes->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool slurm_take_job(struct slurm_call *call)
{
    const struct text *text = &call->readings[SLURM_READ_JOB].text;
    struct view rest = {text->bytes, text->length}, record;
    if (call->has_job)
        slurm_job_done(&call->job);
    call->has_job = slurm_next_record(&rest, "JobId=", &record);
    if (call->has_job)
        slurm_job_read(record, &call->job);
    return call->has_job && call->job.state[0] != '\0';
}
