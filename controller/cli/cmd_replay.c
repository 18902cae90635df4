/* Prints what broomd would have made of a recording: verdicts, incidents, decisions, actions, in
 * order. */
#include "controller/cli/cmd_replay.h"

#include "controller/cli/cli.h"
#include "controller/cli/job_document.h"
#include "controller/config/policy_files.h"
#include "controller/replay.h"

#include <string.h>

enum { BAD_LINES_SHOWN = 5 };

struct replay_screen {
    bool as_json;
    int64_t bad_lines;
};

static void print_json(const char *record, const char *type)
{
    if (strcmp(type, "rollup") != 0 && strcmp(type, "raw_window") != 0)
        printf("%s\n", record);
}

static void print_line(const struct json *record, const char *who, const char *what)
{
    AUTO_TEXT line = {0};
    text_add_time(&line, json_get_int(record, "time_ns", 0));
    text_addf(&line, "  %-8s ", who);
    cli_add_clean(&line, what);
    printf("%s\n", line.bytes);
}

static void print_verdict(const struct json *record)
{
    const struct json *verdict = json_get(record, "verdict");
    AUTO_TEXT what = {0};
    text_addf(&what, "verdict %s %s %s, cause %s, slowdown %.3f, since step %lld%s",
              json_get_string(verdict, "kind", "?"), json_get_string(verdict, "scope", "?"),
              json_get_string(verdict, "id", "?"), json_get_string(verdict, "cause", "?"),
              json_get_number(verdict, "slowdown", 1),
              (long long)json_get_int(verdict, "since_step", 0),
              json_get_bool(verdict, "evict", false) ? ", advice: replace" : "");
    print_line(record, "-", what.bytes);
}

static void on_record(void *context, const char *text)
{
    const struct replay_screen *screen = context;
    AUTO(json_free) struct json *record = NULL;
    if (json_parse(view_of(text), &record, NULL) != OK)
        return;
    const char *type = json_get_string(record, "type", "");
    if (screen->as_json)
        print_json(text, type);
    else if (strcmp(type, "verdict") == 0)
        print_verdict(record);
    else if (strcmp(type, "timeline") == 0)
        print_line(record, json_get_string(record, "incident", "?"),
                   json_get_string(record, "text", ""));
}

static void on_bad_line(void *context, int64_t line, const char *cause)
{
    struct replay_screen *screen = context;
    if (screen->bad_lines++ < BAD_LINES_SHOWN)
        fprintf(stderr, "line %lld of its block: %s\n", (long long)line, cause);
}

static int fail(const struct error *error)
{
    fprintf(stderr, "broom replay: %s\n", error->message);
    return status_exit_code(error->status);
}

int cmd_replay(int argc, char **argv)
{
    static const char *const modes[] = {"observe", "approve", "enforce", NULL};
    const char *job_path = NULL, *policy_path = NULL, *mode_word = "observe";
    bool as_json = false;
    const struct option_row rows[] = {
        {"job", 0, OPTION_TEXT, "FILE", "the job document; without it jobs come from hello lines",
         &job_path, NULL},
        {"policy", 0, OPTION_TEXT, "PATH", "a policy file, or a folder of them", &policy_path,
         NULL},
        {"mode", 0, OPTION_CHOICE, "MODE",
         "observe, approve or enforce; the cluster is pretended in all", &mode_word, modes},
        {"json", 0, OPTION_FLAG, NULL, "the records themselves, one a line", &as_json, NULL},
    };
    const struct usage usage = {
        .command = "replay",
        .arguments = "RECORDING",
        .summary = "run the whole pipeline on a recording, in the recording's own time",
        .details = "Detects, opens incidents, applies a policy and plans, exactly as broomd would "
                   "have, and prints\n"
                   "what happened as a timeline. Nothing outside this process is touched: actions "
                   "are only said.\n",
        .examples = "  broom replay --job job.json --policy nvl72.yaml stream.lp.zst\n"
                    "  broom replay --json stream.lp.zst | jq -c 'select(.type==\"decision\")'\n",
        .least = 1,
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)}};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, stdout, stderr, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    struct error error = {0};
    struct replay_screen screen = {.as_json = as_json};
    struct replay_params params = {.recording = arguments.items[0],
                                   .detection = engine_params_default(),
                                   .on_record = on_record,
                                   .on_bad_line = on_bad_line,
                                   .context = &screen};
    AUTO(job_free) struct job *job = NULL;
    AUTO_TEXT findings = {0};
    struct replay_result result;
    if (!mode_parse(mode_word, &params.mode) ||
        (job_path != NULL && job_document_load(job_path, &job, &error) != OK))
        return fail(&error);
    if (policy_path != NULL &&
        policy_files_load_typed(policy_path, &params.take_policies, &findings, &error) != OK) {
        fputs(findings.length > 0 ? findings.bytes : "", stderr);
        int failed = fail(&error);
        return error.status == ERR_NOT_FOUND ? failed : EXIT_FINDINGS;
    }
    params.job = job;
    enum status status = replay_run(&params, &result, &error);
    if (status != OK)
        return fail(&error);
    fprintf(stderr,
            "%lld lines, %lld taken, %lld refused, %lld bad; %lld verdict%s, %lld incident%s\n",
            (long long)result.written.lines, (long long)result.written.accepted,
            (long long)result.written.refused, (long long)result.written.bad_lines,
            (long long)result.verdicts, result.verdicts == 1 ? "" : "s",
            (long long)result.incidents, result.incidents == 1 ? "" : "s");
    return EXIT_DONE;
}
