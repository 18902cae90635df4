/* Programs. What a failure means is a table of Slurm's own words: its exit code is 1 for
 * everything. */
#include "controller/sys/file.h"
#include "remediation/actuators/slurm_call.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { RUN_LIMIT_MS = 10000, ARGUMENTS_MAX = 8, MESSAGE_BYTES = 256, TOKEN_BYTES_MAX = 65536 };

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

enum status slurm_token(const struct slurm *slurm, struct text *token, struct error *reterr)
{
    TRY(file_read(slurm->token_file, TOKEN_BYTES_MAX, token, reterr));
    while (token->length > 0 && isspace((unsigned char)token->bytes[token->length - 1]))
        token->bytes[--token->length] = '\0';
    return OK;
}

/* SLURM_JWT takes the place of munge where a token is configured. */
static enum status environment_of(const struct slurm *slurm, struct names *lines,
                                  struct error *reterr)
{
    AUTO_TEXT line = {0};
    /* Their defaults, whatever broomd's own environment says. */
    names_add(lines, "LC_ALL=C");
    names_add(lines, "SLURM_TIME_FORMAT=%s"); /* seconds, as slurmrestd tells them */
    names_add(lines, "SCONTROL_ALL=");
    if (slurm->conf[0] != '\0') {
        text_addf(&line, "SLURM_CONF=%s", slurm->conf);
        names_add(lines, line.bytes);
    }
    if (slurm->token_file[0] == '\0')
        return OK;
    AUTO_TEXT token = {0};
    TRY(slurm_token(slurm, &token, reterr));
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

void slurm_read_by_tool(struct slurm_call *call, struct slurm_reading *reading, const char *what,
                        const char *id, slurm_answer_fn *fn)
{
    const char *argv[] = {call->owner->scontrol, "show", what, id, NULL};
    struct slurm_run *run = run_new(call, fn);
    run->reading = reading;
    start_run(run, argv);
}

void slurm_drop_runs(struct slurm_call *call)
{
    while (call->runs != NULL)
        run_free(call->runs);
}
