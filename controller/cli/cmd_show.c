/* `broom incidents show INC-n`: one screen for somebody who was woken up. What happened and to
 * whom, what the robot did and why, what it waits for, and what can be typed now, the command that
 * stops it included.
 */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/incident_view.h"
#include "remediation/incident.h"

#include <math.h>
#include <string.h>

enum { TIMELINE_ROWS = 8, NAMES_SHOWN = 6, LINE_WIDTH = 100 };

struct screen {
    struct cli *cli;
    bool colour;
    const struct json *root;
    struct incident_view view;
    int64_t now_ns; /* of the server; 0 unknown */
};

static void put(struct screen *screen, const char *sgr, const char *text)
{
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, text);
    const char *bytes = clean.bytes != NULL ? clean.bytes : "";
    if (sgr != NULL && screen->colour)
        fprintf(screen->cli->out, "\033[%sm%s\033[0m", sgr, bytes);
    else
        fputs(bytes, screen->cli->out);
}

static void put_heading(struct screen *screen, const char *title)
{
    put(screen, NULL, "\n");
    put(screen, "1", title);
    put(screen, NULL, "\n");
}

/* A named line; long text goes on under itself. */
static void put_line(struct screen *screen, const char *name, const char *text)
{
    AUTO_TEXT label = {0};
    text_addf(&label, "  %-11s ", name);
    put(screen, "2", label.bytes);
    size_t indent = label.length;
    size_t column = indent;
    while (*text != '\0') {
        AUTO_TEXT piece = {0};
        size_t word = strcspn(text, " ");
        if (column > indent && column + 1 + word > LINE_WIDTH) {
            text_addf(&piece, "\n%*s", (int)indent, "");
            column = indent;
        } else if (column > indent) {
            text_add(&piece, " ");
            column++;
        }
        text_add_bytes(&piece, text, word);
        put(screen, NULL, piece.bytes);
        column += word;
        text += word + strspn(text + word, " ");
    }
    put(screen, NULL, "\n");
}

static void put_title(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT rest = {0};
    text_addf(&rest, "  %s, %s  ", view->status, view->phase);
    text_addf(&rest, "%s of ", incident_view_noun(view));
    incident_view_add_domain(view, &rest);
    text_addf(&rest, ", job %s", view->job);
    put(screen, "1", view->ref);
    put(screen, NULL, "  ");
    put(screen, strcmp(view->severity, "P0") == 0 ? "1;31" : "1", view->severity);
    put(screen, NULL, rest.bytes);
    put(screen, NULL, "\n");
}

/* What stands there when the record names nothing. */
static const char *nothing_to_wait_for(const struct incident_view *view)
{
    bool is_over = strcmp(view->phase, "done") == 0 || strcmp(view->status, "closed") == 0;
    if (is_over)
        return "nothing: it is over";
    if (strcmp(view->phase, "cancelled") == 0)
        return "nothing: it was called off";
    if (strcmp(view->phase, "escalated") == 0)
        return "YOU: the robot gave up and will do no more";
    if (strcmp(view->mode, "observe") == 0)
        return "nothing: mode observe only records what it would have done";
    return "nothing: it is at work";
}

static void put_waiting(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT text = {0};
    text_add(&text, view->waiting_for != NULL ? view->waiting_for : nothing_to_wait_for(view));
    if (view->deadline_ns > 0 && !view->has_ended) {
        text_add(&text, " (until ");
        cli_add_time(&text, view->deadline_ns);
        if (screen->now_ns > 0 && view->deadline_ns > screen->now_ns) {
            text_add(&text, ", in ");
            cli_add_span(&text, view->deadline_ns - screen->now_ns);
        }
        text_add(&text, ")");
    }
    bool needs_person = strcmp(view->phase, "awaiting_approval") == 0 ||
                        (strcmp(view->phase, "escalated") == 0 && view->is_open);
    put(screen, NULL, "\n");
    put(screen, needs_person ? "1;33" : "1", "Waiting for ");
    put(screen, needs_person ? "1;33" : NULL, text.bytes);
    put(screen, NULL, "\n");
}

static void add_moment(struct text *out, const char *what, int64_t time_ns, int64_t since_ns)
{
    if (time_ns <= 0)
        return;
    text_addf(out, "%s%s ", out->length > 0 ? " · " : "", what);
    cli_add_clock(out, time_ns);
    if (since_ns > 0 && time_ns >= since_ns) {
        text_add(out, " +");
        cli_add_span(out, time_ns - since_ns);
    }
}

static void put_when(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT text = {0};
    int64_t start_ns = view->fault_ns > 0 ? view->fault_ns : view->detected_ns;
    text_add(&text, "started ");
    cli_add_time(&text, start_ns);
    text_add(&text, " UTC");
    add_moment(&text, "noticed", view->detected_ns, start_ns);
    add_moment(&text, "decided", view->decided_ns, start_ns);
    add_moment(&text, "acted", view->acted_ns, start_ns);
    add_moment(&text, "training again", view->mitigated_ns, start_ns);
    add_moment(&text, "hardware back", view->resolved_ns, start_ns);
    put_line(screen, "when", text.bytes);
}

static void put_who(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT nodes = {0};
    AUTO_TEXT ranks = {0};
    size_t node_count = json_size(view->nodes);
    text_addf(&nodes, "%zu: ", node_count);
    incident_view_add_names(view->nodes, NAMES_SHOWN, &nodes);
    put_line(screen, "nodes", node_count > 0 ? nodes.bytes : "none");
    text_addf(&ranks, "%zu: ", json_size(view->ranks));
    cli_add_ranges(&ranks, view->ranks);
    put_line(screen, "ranks", json_size(view->ranks) > 0 ? ranks.bytes : "none");
    if (json_size(view->victims) == 0)
        return;
    AUTO_TEXT victims = {0};
    text_addf(&victims, "%zu ranks only wait for these, nothing is wrong with them: ",
              json_size(view->victims));
    cli_add_ranges(&victims, view->victims);
    put_line(screen, "victims", victims.bytes);
}

static void put_signal(struct screen *screen)
{
    const struct json *record = screen->view.record;
    const struct json *state = json_get(record, "state");
    double slowdown = json_get_number(state, "slowdown", NAN);
    double gain = json_get_number(state, "gain", NAN);
    double confidence = json_get_number(state, "confidence", NAN);
    AUTO_TEXT text = {0};
    text_add(&text, screen->view.kind);
    if (strcmp(screen->view.cause, "unknown") != 0)
        text_addf(&text, ", cause %s", screen->view.cause);
    if (isfinite(slowdown) && slowdown > 1.0)
        text_addf(&text, ", %.2f times as slow as its peers", slowdown);
    if (isfinite(gain) && gain > 0 && gain < 1)
        text_addf(&text, ", costs %.1f %% of every step", 100 * gain);
    if (isfinite(confidence) && confidence > 0)
        text_addf(&text, ", confidence %.4g", confidence);
    const char *source = json_get_string(record, "source", NULL);
    if (source != NULL && source[0] != '\0')
        text_addf(&text, ", seen by %s", source);
    if (json_get_bool(record, "observer_suspect", false))
        text_add(&text, "; THE OBSERVER IS THE SUSPECT, not the nodes");
    put_line(screen, "signal", text.bytes);
}

static void put_spares(struct screen *screen)
{
    const struct json *spares = json_get(json_get(screen->view.record, "state"), "spares");
    AUTO_TEXT text = {0};
    incident_view_add_names(spares, NAMES_SHOWN, &text);
    if (json_size(spares) > 0)
        put_line(screen, "spares", text.bytes);
}

static void put_cost(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT text = {0};
    if (view->steps_lost >= 0) {
        cli_add_grouped(&text, (double)view->steps_lost, 0);
        text_add(&text, " steps lost");
    }
    if (isfinite(view->gpu_hours)) {
        text_add(&text, text.length > 0 ? ", " : "");
        cli_add_grouped(&text, view->gpu_hours, 1);
        text_addf(&text, " GPU-hours%s", view->mitigated_ns > 0 ? "" : " so far");
    }
    if (text.length > 0)
        put_line(screen, "cost", text.bytes);
}

static void add_person(struct text *out, const struct json *record, const char *key,
                       const char *what)
{
    const char *name = json_get_string(record, key, "");
    if (name[0] != '\0')
        text_addf(out, "%s%s by %s", out->length > 0 ? ", " : "", what, name);
}

static void put_people(struct screen *screen)
{
    AUTO_TEXT text = {0};
    add_person(&text, screen->view.record, "acked_by", "acknowledged");
    add_person(&text, screen->view.record, "approved_by", "approved");
    if (text.length > 0)
        put_line(screen, "people", text.bytes);
}

/* Nodes that somebody vouches are powered off. */
static void put_fenced(struct screen *screen)
{
    AUTO_TEXT text = {0};
    const struct json *nodes = json_get(json_get(screen->view.record, "state"), "node_states");
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node)) {
        const char *who = json_get_string(node, "fenced_by", "");
        if (who[0] != '\0')
            text_addf(&text, "%s%s says %s", text.length > 0 ? ", " : "",
                      json_get_string(node, "node", "?"), who);
    }
    if (text.length > 0)
        put_line(screen, "off", text.bytes);
}

static void put_what_happened(struct screen *screen)
{
    put_heading(screen, "What happened");
    put_when(screen);
    put_signal(screen);
    put_who(screen);
    put_spares(screen);
    put_cost(screen);
    put_people(screen);
    put_fenced(screen);
    const char *merged = json_get_string(screen->view.record, "merged_into", "");
    if (merged[0] != '\0')
        put_line(screen, "merged into", merged);
}

static const struct json *last_of(const struct json *array)
{
    const struct json *last = NULL;
    for (const struct json *item = json_first(array); item != NULL; item = json_next(item))
        last = item;
    return last;
}

static void add_scalar(struct text *out, const struct json *value)
{
    if (json_kind(value) == JSON_STRING)
        text_add(out, json_string(value, ""));
    else
        json_print(value, out);
}

static void put_values(struct screen *screen, const struct json *decision)
{
    AUTO_TEXT values = {0};
    for (const struct json *item = json_first(json_get(decision, "values")); item != NULL;
         item = json_next(item)) {
        enum json_kind kind = json_kind(item);
        if (kind == JSON_ARRAY || kind == JSON_OBJECT || kind == JSON_NULL)
            continue;
        text_addf(&values, "%s%s=", values.length > 0 ? " " : "", json_key(item));
        add_scalar(&values, item);
    }
    if (values.length > 0)
        put_line(screen, "it saw", values.bytes);
}

/* Acting costs too: both sides of the scale. */
static void put_worth(struct screen *screen)
{
    const struct json *cost = json_get(screen->view.record, "cost");
    double loss = json_get_number(cost, "loss_gpu_hours", 0);
    double restart = json_get_number(cost, "restart_gpu_hours", 0);
    if (!(restart > 0))
        return;
    AUTO_TEXT text = {0};
    text_add(&text, "the fault has cost ");
    cli_add_grouped(&text, loss, 1);
    text_add(&text, " GPU-hours so far, a restart costs ");
    cli_add_grouped(&text, restart, 1);
    put_line(screen, "worth it", text.bytes);
}

static void put_why(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    AUTO_TEXT policy = {0};
    put_heading(screen, "Why");
    if (view->rule[0] != '\0') {
        text_addf(&policy, "rule %s of policy %s", view->rule, view->policy);
        if (view->policy_hash[0] != '\0')
            text_addf(&policy, " (%.12s)", view->policy_hash);
        text_addf(&policy, ", plan %s, mode %s", view->plan[0] != '\0' ? view->plan : "none",
                  view->mode[0] != '\0' ? view->mode : "observe");
    } else {
        text_add(&policy, "no rule has matched yet");
    }
    put_line(screen, "policy", policy.bytes);
    put_worth(screen);
    const struct json *decision = last_of(json_get(screen->root, "decisions"));
    if (decision == NULL)
        return;
    AUTO_TEXT last = {0};
    cli_add_clock(&last, json_get_int(decision, "time_ns", 0));
    text_addf(&last, " %s: %s -> %s", json_get_string(decision, "fsm_rule", "?"),
              json_get_string(decision, "phase_from", "?"),
              json_get_string(decision, "phase_to", "?"));
    const char *reason = json_get_string(decision, "reason", "");
    if (reason[0] != '\0')
        text_addf(&last, ", %s", reason);
    if (!json_get_bool(decision, "executed", true))
        text_add(&last, " (not executed: this mode only records what it would have done)");
    put_line(screen, "last step", last.bytes);
    put_values(screen, decision);
}

/* A repair takes days: then the time of day alone says too little. */
static bool spans_days(const struct json *rows)
{
    const int64_t day_ns = INT64_C(86400000000000);
    int64_t first_ns = json_get_int(json_first(rows), "time_ns", 0);
    int64_t last_ns = json_get_int(last_of(rows), "time_ns", 0);
    return first_ns / day_ns != last_ns / day_ns;
}

static void put_timeline(struct screen *screen)
{
    const struct json *timeline = json_get(screen->root, "timeline");
    size_t count = json_size(timeline);
    size_t skip = count > TIMELINE_ROWS ? count - TIMELINE_ROWS : 0;
    put_heading(screen, "What the robot and people did");
    if (count == 0)
        put_line(screen, "",
                 json_get_bool(screen->root, "from_memory", false)
                     ? "not known while the database is away"
                     : "nothing yet");
    if (skip > 0) {
        AUTO_TEXT more = {0};
        text_addf(&more, "%zu earlier lines: broom incidents timeline %s", skip, screen->view.ref);
        put_line(screen, "...", more.bytes);
    }
    size_t index = 0;
    bool many_days = spans_days(timeline);
    for (const struct json *row = json_first(timeline); row != NULL; row = json_next(row)) {
        if (index++ < skip)
            continue;
        AUTO_TEXT when = {0};
        AUTO_TEXT text = {0};
        const char *actor = json_get_string(row, "actor", "broomd");
        if (many_days)
            cli_add_time(&when, json_get_int(row, "time_ns", 0));
        else
            cli_add_clock(&when, json_get_int(row, "time_ns", 0));
        if (strcmp(actor, "broomd") != 0)
            text_addf(&text, "%s: ", actor);
        text_add(&text, json_get_string(row, "text", json_get_string(row, "kind", "")));
        put_line(screen, when.bytes, text.bytes);
    }
}

static void put_command(struct screen *screen, const char *meaning, const char *format, ...)
    PRINTF_LIKE(3, 4);
static void put_command(struct screen *screen, const char *meaning, const char *format, ...)
{
    AUTO_TEXT command = {0};
    va_list args;
    va_start(args, format);
    text_addv(&command, format, args);
    va_end(args);
    AUTO_TEXT line = {0};
    text_addf(&line, "  %-44s", command.bytes);
    put(screen, "36", line.bytes);
    put(screen, NULL, "  ");
    put(screen, NULL, meaning);
    put(screen, NULL, "\n");
}

/* The command that ends the wait, where a person can end it. */
static void put_unblocking(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    const char *waits = view->waiting_for != NULL ? view->waiting_for : "";
    if (strcmp(view->phase, "awaiting_approval") == 0)
        put_command(screen, "let the robot carry out the plan", "broom approve %s", view->ref);
    if (strstr(waits, "close the breaker") != NULL)
        put_command(screen, "trust the observer again, once you know why",
                    "broom breaker close --reason 'why'");
    if (strstr(waits, "nobody says that it is off") != NULL)
        put_command(screen, "once you know that it is off", "broom fenced NODE --reason 'how'");
    if (strstr(waits, "acting is paused") != NULL)
        put_command(screen, "let the robot act again", "broom resume");
}

static void put_page(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    enum verdict_kind kind;
    enum scope scope;
    enum phase phase;
    if (!verdict_kind_parse(view->kind, &kind) || !scope_parse(view->scope, &scope) ||
        !phase_parse(view->phase, &phase))
        return; /* of a newer server */
    bool suspect = json_get_bool(view->record, "observer_suspect", false);
    put_line(screen, "runbook", incident_runbook(kind, scope, suspect, phase));
}

static void put_next(struct screen *screen)
{
    const struct incident_view *view = &screen->view;
    bool escalated = strcmp(view->phase, "escalated") == 0;
    put_heading(screen, "What you can type");
    put_unblocking(screen);
    if (!view->has_ended) {
        put_command(screen, "STOP the robot here; cordons stay", "broom abort %s --reason 'why'",
                    view->ref);
        put_command(screen, "STOP the robot everywhere; watching goes on",
                    "broom pause --reason 'why'");
    }
    if (escalated && view->is_open)
        put_command(screen, "close it, once you have repaired it by hand",
                    "broom abort %s --reason 'how'", view->ref);
    if (view->is_open) {
        if (json_get_string(view->record, "acked_by", "")[0] == '\0')
            put_command(screen, "say that you are on it", "broom incidents ack %s", view->ref);
        put_command(screen, "false alarm: takes our cordons off",
                    "broom incidents decline %s 'why'", view->ref);
        put_command(screen, "how its ranks do now", "broom ranks %s --slow", view->job);
    }
    put_command(screen, "every step, minute by minute", "broom incidents timeline %s", view->ref);
    put_command(screen, "all of it, for the postmortem", "broom export %s --out %s.tar", view->ref,
                view->ref);
    put_page(screen);
}

static void print_screen(struct cli *cli, const struct cli_common *common, const struct json *root)
{
    const struct json *record = json_kind(json_get(root, "incident")) == JSON_OBJECT
                                    ? json_get(root, "incident")
                                    : root;
    struct screen screen = {.cli = cli,
                            .colour = cli->colour && !common->no_colour,
                            .root = root,
                            .view = incident_view_of(record),
                            .now_ns = json_get_int(root, "now_ns", 0)};
    put_title(&screen);
    put_waiting(&screen);
    put_what_happened(&screen);
    put_timeline(&screen);
    put_why(&screen);
    put_next(&screen);
}

int cmd_incident_show(struct cli *cli, int argc, char **argv)
{
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct usage usage = {
        .command = "incidents show",
        .arguments = "INC-n",
        .summary = "one screen: what happened, what the robot did and why, what it waits for, what "
                   "to type",
        .examples = "  broom incidents show INC-3\n"
                    "  broom incidents show INC-3 -o json | jq .decisions\n",
        .least = 1,
        .most = 1,
        .shared = cli_common_options(&common, shared)};
    char ref[32];
    int code = cli_take_ref(cli, &usage, argc, argv, ref);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    text_addf(&path, "/api/v1/incidents/%s", ref);
    code = cli_get_shown(cli, &common, path.bytes, &root);
    if (code != OPTIONS_RUN)
        return code;
    print_screen(cli, &common, root);
    return EXIT_DONE;
}
