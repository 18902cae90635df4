/* `broom incidents`: the list and the timeline, and the words behind it. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/incident_view.h"
#include "controller/cli/rows.h"

#include <string.h>

static const struct table_column incident_columns[] = {
    {"REF", "ref", false, false, NULL},
    {"SEV", "severity", false, false, colour_of_severity},
    {"STATUS", "status", false, false, colour_of_status},
    {"PHASE", "phase", false, false, colour_of_status},
    {"KIND", "kind", false, false, NULL},
    {"DOMAIN", "domain", false, false, NULL},
    {"JOB", "job", false, false, NULL},
    {"STARTED (UTC)", "started", false, false, NULL},
    {"DETECT", "detect_s", true, false, NULL},
    {"MITIGATE", "mitigate_s", true, false, NULL},
    {"LOST GPU-H", "gpu_hours", true, false, NULL},
    {"RULE", "rule", false, true, NULL},
    {"PLAN", "plan", false, true, NULL},
    {"MODE", "mode", false, true, NULL},
    {"POLICY", "policy", false, true, NULL},
    {"STEPS LOST", "steps_lost", true, true, NULL},
    {"NODES", "nodes", false, true, NULL},
    {"WAITING FOR", "waiting_for", false, true, NULL},
};

static void add_time_cell(struct table *table, int64_t time_ns)
{
    AUTO_TEXT shown = {0};
    AUTO_TEXT csv = {0};
    cli_add_time(&shown, time_ns);
    if (time_ns > 0)
        text_add_time(&csv, time_ns);
    table_add_both(table, shown.bytes, csv.bytes);
}

static void add_span_cell(struct table *table, int64_t span_ns)
{
    AUTO_TEXT shown = {0};
    char csv[32] = "";
    cli_add_span(&shown, span_ns);
    if (span_ns >= 0)
        snprintf(csv, sizeof csv, "%.3f", (double)span_ns / 1e9);
    table_add_both(table, shown.bytes, csv);
}

static void add_number_cell(struct table *table, double value, int decimals)
{
    AUTO_TEXT shown = {0};
    char csv[64] = "";
    cli_add_grouped(&shown, value, decimals);
    if (strcmp(shown.bytes, "-") != 0)
        snprintf(csv, sizeof csv, "%.*f", decimals, value);
    table_add_both(table, shown.bytes, csv);
}

static void add_names_cell(struct table *table, const struct json *names)
{
    AUTO_TEXT shown = {0};
    AUTO_TEXT csv = {0};
    incident_view_add_names(names, 3, &shown);
    for (const struct json *item = json_first(names); item != NULL; item = json_next(item))
        text_addf(&csv, "%s%s", csv.length > 0 ? " " : "", json_string(item, ""));
    table_add_both(table, json_size(names) > 0 ? shown.bytes : "", csv.bytes);
}

static void add_incident_row(struct table *table, const struct json *row)
{
    struct incident_view view = incident_view_of(row);
    table_add(table, view.ref);
    table_add(table, view.severity);
    table_add(table, view.status);
    table_add(table, view.phase);
    table_add(table, view.kind);
    table_addf(table, "%s/%s", view.scope, view.domain);
    table_add(table, view.job);
    add_time_cell(table, view.fault_ns > 0 ? view.fault_ns : view.detected_ns);
    add_span_cell(table, incident_view_to_detect(&view));
    add_span_cell(table, incident_view_to_mitigate(&view));
    add_number_cell(table, view.gpu_hours, 1);
    table_add(table, view.rule);
    table_add(table, view.plan);
    table_add(table, view.mode);
    table_add(table, view.policy);
    if (view.steps_lost >= 0)
        add_number_cell(table, (double)view.steps_lost, 0);
    else
        table_add(table, NULL);
    add_names_cell(table, view.nodes);
    table_add(table, view.waiting_for);
}

static bool is_escalated(const struct incident_view *view)
{
    return view->is_open && strcmp(view->phase, "escalated") == 0;
}

/* The words under the list: what goes on, what waits, what to type next. */
static void print_summary(struct cli *cli, const struct json *incidents, const char *within)
{
    size_t in_progress = 0;
    size_t escalated = 0;
    const char *next = NULL;
    AUTO_TEXT words = {0};
    for (const struct json *item = json_first(incidents); item != NULL; item = json_next(item)) {
        struct incident_view view = incident_view_of(item);
        in_progress += !view.has_ended;
        escalated += is_escalated(&view);
        if (next == NULL || view.is_open)
            next = view.ref;
        if (is_escalated(&view))
            text_addf(&words, "%s waits for YOU: the robot gave up\n", view.ref);
        else if (view.waiting_for != NULL && !view.has_ended)
            text_addf(&words, "%s waits for %s\n", view.ref, view.waiting_for);
    }
    if (next == NULL) {
        fprintf(cli->err, "no incidents %s\n", within);
        return;
    }
    text_addf(&words, "%zu incident%s, %zu in progress", json_size(incidents),
              json_size(incidents) == 1 ? "" : "s", in_progress);
    if (escalated > 0)
        text_addf(&words, ", %zu ESCALATED", escalated);
    text_addf(&words, ". Next: broom incidents show %s\n", next);
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, words.bytes);
    fputs(clean.bytes, cli->err);
}

static void print_list(struct cli *cli, const struct cli_common *common, const struct json *root,
                       const char *within)
{
    const struct json *incidents = json_kind(root) == JSON_ARRAY ? root
                                                                 : json_get(root, "incidents");
    rows_print(cli, common, incidents, incident_columns, ARRAY_LEN(incident_columns),
               add_incident_row);
    if (strcmp(common->output, "csv") != 0)
        print_summary(cli, incidents, within);
}

static int cmd_incident_list(struct cli *cli, int argc, char **argv)
{
    static const char *const statuses[] = {"open",   "mitigated", "resolved", "closed",
                                           "merged", "declined",  NULL};
    const char *since = "24h";
    const char *status = NULL;
    const char *job = NULL;
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"since", 0, OPTION_TEXT, "TIME",
         "changed within 24h (default), 7d ..., or after a UTC time; open ones always", &since,
         NULL},
        {"status", 0, OPTION_CHOICE, "STATUS",
         "open, mitigated, resolved, closed, merged or declined", &status, statuses},
        {"job", 0, OPTION_TEXT, "JOB", "of one job", &job, NULL},
    };
    const struct usage usage = {
        .command = "incidents",
        .arguments = "[show|timeline|note|ack|decline INC-n]",
        .summary = "what went wrong and how far the repair is",
        .details = "One row an incident: a fault domain (rank, tray, rack, ...) counts once, "
                   "however many of its\n"
                   "GPUs complain. DETECT and MITIGATE count from the start of the fault: until it "
                   "was noticed,\n"
                   "and until the job made new steps at its old pace.\n"
                   "'broom help incidents show' and so on explain the words behind it.\n",
        .examples = "  broom incidents\n"
                    "  broom incidents --since 7d --status open -o wide\n"
                    "  broom incidents --since 2026-05-28T00:00:00Z -o csv > last-night.csv\n"
                    "  broom incidents show INC-3\n",
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT path = {0};
    text_add(&path, "/api/v1/incidents");
    cli_add_query(&path, "since", since);
    cli_add_query(&path, "status", status);
    cli_add_query(&path, "job", job);
    AUTO(json_free) struct json *root = NULL;
    code = cli_get_shown(cli, &common, path.bytes, &root);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT within = {0};
    text_addf(&within, "since %s%s%s", since, strchr(since, 'T') == NULL ? " ago" : "",
              status != NULL || job != NULL ? " that match" : "");
    print_list(cli, &common, root, within.bytes);
    return EXIT_DONE;
}

static const struct {
    const char *name;
    int (*run)(struct cli *cli, int argc, char **argv);
} words[] = {{"list", cmd_incident_list},
             {"show", cmd_incident_show},
             {"timeline", cmd_incident_timeline},
             {"note", cmd_note},
             {"ack", cmd_ack},
             {"decline", cmd_decline}};

int cmd_incidents(struct cli *cli, int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-')
        return cmd_incident_list(cli, argc, argv);
    const char *names[ARRAY_LEN(words)];
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        if (strcmp(argv[1], words[i].name) == 0)
            return words[i].run(cli, argc - 1, argv + 1);
        names[i] = words[i].name;
    }
    const char *near = text_nearest(argv[1], names, ARRAY_LEN(names));
    if (strncasecmp(argv[1], "inc-", 4) == 0)
        fprintf(cli->err, "broom incidents: did you mean 'broom incidents show %s'?\n", argv[1]);
    else if (near != NULL)
        fprintf(cli->err,
                "broom incidents: unknown word '%s'; did you mean '%s'?\n"
                "try 'broom help incidents'\n",
                argv[1], near);
    else
        fprintf(cli->err,
                "broom incidents: unknown word '%s': list, show, timeline, note, ack or decline\n",
                argv[1]);
    return EXIT_USAGE;
}

static const struct table_column timeline_columns[] = {
    {"TIME (UTC)", "time", false, false, NULL},    {"SEQ", "seq", true, true, NULL},
    {"KIND", "kind", false, false, NULL},          {"ACTOR", "actor", false, false, NULL},
    {"WHAT HAPPENED", "text", false, false, NULL}, {"DETAILS", "details", false, true, NULL},
};

static void add_timeline_row(struct table *table, const struct json *row)
{
    AUTO_TEXT details = {0};
    if (json_size(json_get(row, "details")) > 0)
        json_print(json_get(row, "details"), &details);
    add_time_cell(table, json_get_int(row, "time_ns", 0));
    table_addf(table, "%lld", (long long)json_get_int(row, "seq", 0));
    table_add(table, json_get_string(row, "kind", ""));
    table_add(table, json_get_string(row, "actor", ""));
    table_add(table, json_get_string(row, "text", ""));
    table_add(table, details.bytes);
}

int cmd_incident_timeline(struct cli *cli, int argc, char **argv)
{
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct usage usage = {
        .command = "incidents timeline",
        .arguments = "INC-n",
        .summary = "everything about one incident in order: signals, decisions, actions, people",
        .examples = "  broom incidents timeline INC-3\n"
                    "  broom incidents timeline INC-3 -o wide      with the details of each line\n",
        .least = 1,
        .most = 1,
        .shared = cli_common_options(&common, shared)};
    char ref[32];
    int code = cli_take_ref(cli, &usage, argc, argv, ref);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    text_addf(&path, "/api/v1/incidents/%s/timeline", ref);
    code = cli_get_shown(cli, &common, path.bytes, &root);
    if (code != OPTIONS_RUN)
        return code;
    rows_print(cli, &common, json_get(root, "timeline"), timeline_columns,
               ARRAY_LEN(timeline_columns), add_timeline_row);
    return EXIT_DONE;
}
