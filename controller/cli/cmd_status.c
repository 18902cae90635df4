/* `broom status`, `broom jobs`, `broom ranks`: how things stand now. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/incident_view.h"
#include "controller/cli/rows.h"

#include <math.h>
#include <string.h>

/* One "name  text" line; sgr colours the text. */
static void put_line(struct cli *cli, const struct cli_common *common, const char *name,
                     const char *text, const char *sgr)
{
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, text);
    if (sgr != NULL && cli->colour && !common->no_colour)
        fprintf(cli->out, "%-11s \033[%sm%s\033[0m\n", name, sgr, clean.bytes);
    else
        fprintf(cli->out, "%-11s %s\n", name, clean.bytes != NULL ? clean.bytes : "");
}

/* The first guard that stops the act half, in words; an unknown one is shown as it is. */
static const char *guard_in_words(const char *guard)
{
    static const char *const words[][2] = {
        {"lease_not_held",
         "the lease is not held: another broomd may be acting, or the database is away"},
        {"clock_not_trusted", "the clock jumped"},
        {"telemetry_blind", "the samples are missing or stale"},
        {"store_down", "the database is away"},
        {"breaker_open", "the breaker is open"}};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(guard, words[i][0]) == 0)
            return words[i][1];
    return guard;
}

static void put_acting(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    const struct json *paused = json_get(root, "paused");
    bool is_paused = json_kind(paused) == JSON_OBJECT;
    bool is_acting = !is_paused && json_get_bool(root, "acting", true);
    AUTO_TEXT mode = {0};
    AUTO_TEXT acting = {0};
    text_addf(&mode, "%s with actuator %s", json_get_string(root, "mode", "?"),
              json_get_string(root, "actuator", "?"));
    put_line(cli, common, "mode", mode.bytes, NULL);
    if (is_paused)
        text_addf(&acting, "PAUSED by %s; 'broom resume' lets the robot act again",
                  json_get_string(paused, "by", "?"));
    else if (!is_acting)
        text_addf(&acting, "NO: %s",
                  guard_in_words(
                      json_get_string(root, "not_acting_because", "the server does not say why")));
    else if (strcmp(json_get_string(root, "mode", ""), "observe") == 0)
        text_add(&acting, "observes only: what it would do is recorded, nothing is done");
    else
        text_add(&acting, "yes");
    put_line(cli, common, "acting", acting.bytes, is_acting ? "32" : "1;33");
    const struct json *breaker = json_get(root, "breaker");
    if (json_get_bool(breaker, "open", false)) {
        AUTO_TEXT text = {0};
        text_addf(&text, "OPEN: %s; 'broom breaker close --reason' once the cause is known",
                  json_get_string(breaker, "reason", "?"));
        put_line(cli, common, "breaker", text.bytes, "1;31");
    }
}

static void put_policy(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    const char *policies = json_get_string(root, "policies", NULL);
    const char *refused = json_get_string(root, "policies_refused", NULL);
    if (policies == NULL)
        put_line(cli, common, "policies", "NONE: incidents are recorded, nothing is done", "33");
    else
        put_line(cli, common, "policies", policies, NULL);
    if (refused != NULL) {
        AUTO_TEXT text = {0};
        text_addf(&text, "the newest files were NOT TAKEN: %s; 'broom policy lint' says where",
                  refused);
        put_line(cli, common, "", text.bytes, "1;31");
    }
}

static void put_database(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    const struct json *database = json_get(root, "database");
    bool up = json_get_bool(database, "up", false);
    AUTO_TEXT text = {0};
    int64_t spooled = json_get_int(database, "spooled", 0);
    int64_t lost = json_get_int(database, "lost_records", 0);
    const char *reason = json_get_string(database, "reason", NULL);
    text_addf(&text, "%s%s%s", up ? "up" : "AWAY", reason != NULL ? ": " : "",
              reason != NULL ? reason : "");
    if (spooled > 0)
        text_addf(&text, "; %lld KiB wait in the spool", (long long)(spooled + 1023) / 1024);
    if (lost > 0)
        text_addf(&text, "; %lld records LOST, the spool was full", (long long)lost);
    if (up && !json_get_bool(json_get(root, "lease"), "held", true))
        text_add(&text, "; another broomd holds the lease");
    put_line(cli, common, "database", text.bytes, up && lost == 0 ? NULL : "1;31");
}

static void put_budgets(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    AUTO_TEXT text = {0};
    for (const struct json *item = json_first(json_get(root, "budgets")); item != NULL;
         item = json_next(item)) {
        const char *name = json_get_string(item, "name", "?");
        const char *unit = json_get_string(item, "domain", "");
        bool says_unit = strcmp(name, unit) == 0;
        text_addf(&text, "%s%s %lld of %lld%s%s in %s", text.length > 0 ? "; " : "", name,
                  (long long)json_get_int(item, "used", 0),
                  (long long)json_get_int(item, "limit", 0), says_unit ? "" : " ",
                  says_unit ? "" : unit, json_get_string(item, "window", "?"));
    }
    if (text.length > 0)
        put_line(cli, common, "budgets", text.bytes, NULL);
}

static void put_telemetry(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    const struct json *telemetry = json_get(root, "telemetry");
    bool ok = json_get_bool(telemetry, "ok", true);
    AUTO_TEXT newest = {0};
    int64_t newest_ns = row_time_ns(telemetry, "newest");
    int64_t now_ns = row_time_ns(root, "now");
    text_add(&newest, ok ? "" : "BLIND: ");
    if (newest_ns > 0) {
        text_add(&newest, "newest sample ");
        cli_add_span(&newest, now_ns > newest_ns ? now_ns - newest_ns : 0);
        text_add(&newest, " ago");
    } else {
        text_add(&newest, "no sample yet");
    }
    put_line(cli, common, "telemetry", newest.bytes, ok ? NULL : "1;33");
}

static void print_status(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    int64_t open = json_get_int(root, "open_incidents", 0);
    int64_t escalated = json_get_int(root, "escalated_incidents", 0);
    AUTO_TEXT now = {0};
    AUTO_TEXT work = {0};
    text_addf(&now, "%s, it is ", json_get_string(root, "version", "?"));
    cli_add_time(&now, row_time_ns(root, "now"));
    text_add(&now, " UTC there");
    put_line(cli, common, "broomd", now.bytes, NULL);
    put_acting(cli, common, root);
    put_policy(cli, common, root);
    put_database(cli, common, root);
    put_budgets(cli, common, root);
    put_telemetry(cli, common, root);
    text_addf(&work, "%lld, with ", (long long)json_get_int(root, "jobs", 0));
    int64_t ranks = json_get_int(root, "ranks", 0);
    cli_add_grouped(&work, (double)ranks, 0);
    text_add(&work, ranks == 1 ? " rank" : " ranks");
    put_line(cli, common, "jobs", work.bytes, NULL);
    AUTO_TEXT incidents = {0};
    text_addf(&incidents, "%lld in progress", (long long)open);
    if (escalated > 0)
        text_addf(&incidents, ", %lld ESCALATED: the robot gave up, they wait for a person",
                  (long long)escalated);
    if (open + escalated > 0)
        text_add(&incidents, "; 'broom incidents' lists them");
    put_line(cli, common, "incidents", incidents.bytes, open + escalated > 0 ? "1;33" : NULL);
}

/* status is an object: as CSV it is name,value lines. */
static void print_status_csv(struct cli *cli, const struct json *root)
{
    AUTO_TEXT out = {0};
    text_add(&out, "name,value\n");
    for (const struct json *item = json_first(root); item != NULL; item = json_next(item)) {
        AUTO_TEXT value = {0};
        if (json_kind(item) == JSON_STRING)
            text_add(&value, json_string(item, ""));
        else
            json_print(item, &value);
        csv_add_cell(&out, json_key(item), true);
        csv_add_cell(&out, value.bytes != NULL ? value.bytes : "", false);
        text_add(&out, "\n");
    }
    fputs(out.bytes, cli->out);
}

int cmd_status(struct cli *cli, int argc, char **argv)
{
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct usage usage = {.command = "status",
                                .arguments = "",
                                .summary = "how broomd is doing, on one screen",
                                .details = "Says whether the robot acts and why not, which "
                                           "policies hold, and whether the database and the\n"
                                           "samples are there.\n",
                                .examples = "  broom status\n  broom status -o json | jq .acting\n",
                                .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO(json_free) struct json *root = NULL;
    code = cli_get_shown(cli, &common, "/api/v1/status", &root);
    if (code != OPTIONS_RUN)
        return code;
    if (strcmp(common.output, "csv") == 0)
        print_status_csv(cli, root);
    else
        print_status(cli, &common, root);
    return EXIT_DONE;
}

static const struct table_column job_columns[] = {
    {"JOB", "job", false, false, NULL},
    {"PHASE", "phase", false, false, NULL},
    {"RANKS", "ranks", true, false, NULL},
    {"STEP", "step", true, false, NULL},
    {"LAST STEP (UTC)", "step_time", false, false, NULL},
    {"STEP MS", "step_ms", true, false, NULL},
    {"BASE MS", "baseline_ms", true, false, NULL},
    {"PACE", "pace", true, false, NULL},
    {"ATTEMPT", "attempt", true, false, NULL},
    {"RACKS", "racks", true, false, NULL},
    {"SPARES", "spares", true, false, NULL},
    {"RESTART", "restartable", false, true, NULL},
    {"CHECKPOINT", "checkpoint_step", true, true, NULL},
};

static void add_job_row(struct table *table, const struct json *row)
{
    int64_t world = json_get_int(row, "world_size", 0);
    int64_t reporting = json_get_int(row, "ranks_reporting", world);
    AUTO_TEXT ranks = {0};
    AUTO_TEXT exact = {0};
    text_addf(&exact, "%lld", (long long)world);
    if (reporting < world)
        text_addf(&ranks, "%lld/", (long long)reporting);
    text_add(&ranks, exact.bytes);
    row_add_string(table, row, "job");
    row_add_string(table, row, "phase");
    table_add_both(table, ranks.bytes, exact.bytes);
    row_add_number(table, row, "step", ROW_WHOLE);
    row_add_time(table, row, "step_time");
    row_add_number(table, row, "step_ms", ROW_MS);
    row_add_number(table, row, "baseline_ms", ROW_MS);
    row_add_number(table, row, "pace", ROW_RATIO);
    row_add_number(table, row, "attempt", ROW_WHOLE);
    row_add_number(table, row, "racks", ROW_WHOLE);
    row_add_number(table, row, "spares", ROW_WHOLE);
    table_add(table, json_get_bool(row, "restartable", false) ? "yes" : "no");
    row_add_number(table, row, "checkpoint_step", ROW_WHOLE);
}

static const struct table_column rank_columns[] = {
    {"RANK", "rank", true, false, NULL},
    {"NODE", "node", false, false, NULL},
    {"GPU", "gpu", true, false, NULL},
    {"RACK", "rack", false, false, NULL},
    {"STEP", "step", true, false, NULL},
    {"SLOW", "slow_ratio", true, false, NULL},
    {"SUSPICION", "suspicion", true, false, NULL},
    {"STATUS", "status", false, false, colour_of_status},
    {"STEP MS", "step_ms", true, false, NULL},
    {"COMPUTE", "compute_ms", true, false, NULL},
    {"ALLREDUCE", "allreduce_ms", true, false, NULL},
    {"WAIT", "wait_ms", true, false, NULL},
    {"SM", "sm", true, false, NULL},
    {"MEM", "mem", true, true, NULL},
    {"STAGE", "stage", true, true, NULL},
    {"SEEN (UTC)", "seen", false, true, NULL},
};

static void add_rank_row(struct table *table, const struct json *row)
{
    row_add_number(table, row, "rank", ROW_WHOLE);
    row_add_string(table, row, "node");
    row_add_number(table, row, "gpu", ROW_WHOLE);
    row_add_string(table, row, "rack");
    row_add_number(table, row, "step", ROW_WHOLE);
    row_add_number(table, row, "slow_ratio", ROW_RATIO);
    row_add_number(table, row, "suspicion", ROW_PART);
    row_add_string(table, row, "status");
    row_add_number(table, row, "step_ms", ROW_MS);
    row_add_number(table, row, "compute_ms", ROW_MS);
    row_add_number(table, row, "allreduce_ms", ROW_MS);
    row_add_number(table, row, "wait_ms", ROW_MS);
    row_add_number(table, row, "sm", ROW_PART);
    row_add_number(table, row, "mem", ROW_PART);
    row_add_number(table, row, "stage", ROW_WHOLE);
    row_add_time(table, row, "seen");
}

int cmd_jobs(struct cli *cli, int argc, char **argv)
{
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct usage usage = {
        .command = "jobs",
        .arguments = "",
        .summary = "the jobs being watched, their step and pace",
        .details = "PACE is the present step time over that of the first healthy steps: 1.00x is "
                   "as it should be.\n"
                   "RANKS shows 120/128 when only 120 ranks reported the last step.\n",
        .examples = "  broom jobs\n  broom jobs -o csv\n",
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO(json_free) struct json *root = NULL;
    code = cli_get_shown(cli, &common, "/api/v1/jobs", &root);
    if (code != OPTIONS_RUN)
        return code;
    rows_print(cli, &common, json_get(root, "jobs"), job_columns, ARRAY_LEN(job_columns),
               add_job_row);
    if (json_size(json_get(root, "jobs")) == 0)
        fputs("no job sends samples: see deploy/training/broomwagon.py\n", cli->err);
    return EXIT_DONE;
}

int cmd_ranks(struct cli *cli, int argc, char **argv)
{
    bool slow = false;
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"slow", 0, OPTION_FLAG, NULL, "only the suspects, the worst first", &slow, NULL}};
    const struct usage usage = {
        .command = "ranks",
        .arguments = "JOB",
        .summary = "every rank of a job as the detectors see it",
        .details =
            "SLOW is the rank's own busy time over that of its peers. SUSPICION is 0 for a healthy "
            "rank and 1\n"
            "at the verdict. All ranks of a synchronous job show the same STEP MS: the slow one is "
            "the one\n"
            "with a long COMPUTE and a short WAIT. Numbers are medians of the last 20 steps.\n",
        .examples = "  broom ranks default/llm-17 --slow\n  broom ranks default/llm-17 -o csv > "
                    "ranks.csv\n",
        .least = 1,
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    text_add(&path, "/api/v1/jobs/");
    text_add_percent(&path, arguments.items[0]);
    text_addf(&path, "/ranks%s", slow ? "?slow=1" : "");
    code = cli_get_shown(cli, &common, path.bytes, &root);
    if (code != OPTIONS_RUN)
        return code;
    rows_print(cli, &common, json_get(root, "ranks"), rank_columns, ARRAY_LEN(rank_columns),
               add_rank_row);
    if (json_size(json_get(root, "ranks")) == 0)
        fputs(slow ? "no rank is suspect\n" : "no rank is known yet\n", cli->err);
    return EXIT_DONE;
}
