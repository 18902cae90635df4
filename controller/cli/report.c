/* The postmortem, in the order that SRE teams use. */
#include "controller/cli/report.h"

#include "controller/cli/cli.h"
#include "controller/cli/incident_view.h"

#include <math.h>
#include <string.h>

/* Text inside a Markdown table or paragraph: no markup of its own, no line ends. */
static void add_escaped(struct text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("\\`*_[]<>|#", *text) != NULL)
            text_add(out, "\\");
        if ((unsigned char)*text < 0x20)
            text_add(out, " ");
        else
            text_add_bytes(out, text, 1);
    }
}

void report_write_timeline(const struct json *timeline, struct text *out)
{
    text_add(out, "| time (UTC) | kind | actor | what happened |\n|---|---|---|---|\n");
    for (const struct json *row = json_first(timeline); row != NULL; row = json_next(row)) {
        text_add(out, "| ");
        cli_add_time(out, json_get_int(row, "time_ns", 0));
        text_add(out, " | ");
        add_escaped(out, json_get_string(row, "kind", ""));
        text_add(out, " | ");
        add_escaped(out, json_get_string(row, "actor", ""));
        text_add(out, " | ");
        add_escaped(out, json_get_string(row, "text", ""));
        text_add(out, " |\n");
    }
}

void report_write_readme(const char *ref, struct text *out)
{
    text_addf(
        out,
        "%s: everything that broomd recorded about this incident.\n\n"
        "Verify:   broom export verify FILE.tar\n"
        "          or, without broom: tar xf FILE.tar && cd %s && sha256sum -c SHA256SUMS\n"
        "Start at: report.md (the postmortem, facts filled in), then timeline.md\n\n"
        "incident.json    the incident as last recorded; times in ns since 1970, UTC\n"
        "timeline.csv     what happened, in order; timeline.md is the same as a table\n"
        "decisions.jsonl  each decision with the rule, the policy's hash and the values it saw\n"
        "actions.jsonl    each action: intent, outcome and the cluster's response\n"
        "verdicts.jsonl   what the detectors said, with evidence\n"
        "events.csv       hardware and cluster events\n"
        "topology.json    the job's layout at that time\n"
        "plots/*.svg      the suspects against their peers\n"
        "raw/METRIC.csv   every sample round the incident: time, step, rank, value\n"
        "manifest.json    names, sizes and SHA-256 of the files\n",
        ref, ref);
}

static void add_fact(struct text *out, const char *name, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    text_addf(out, "| %s | ", name);
    add_escaped(out, value);
    text_add(out, " |\n");
}

static void add_time_fact(struct text *out, const char *name, int64_t time_ns, int64_t since_ns)
{
    if (time_ns <= 0)
        return;
    AUTO_TEXT value = {0};
    cli_add_time(&value, time_ns);
    if (since_ns > 0 && time_ns >= since_ns) {
        text_add(&value, " (+");
        cli_add_span(&value, time_ns - since_ns);
        text_add(&value, ")");
    }
    add_fact(out, name, value.bytes);
}

static void add_head(struct text *out, const struct incident_view *view)
{
    AUTO_TEXT domain = {0};
    AUTO_TEXT policy = {0};
    incident_view_add_domain(view, &domain);
    text_addf(out, "# Postmortem %s: %s of ", view->ref, incident_view_noun(view));
    add_escaped(out, domain.bytes);
    text_addf(&policy, "%s, rule %s, plan %s, mode %s, hash %s", view->policy, view->rule,
              view->plan, view->mode, view->policy_hash);
    text_add(out, "\n\n| fact | value |\n|---|---|\n");
    add_fact(out, "severity", view->severity);
    add_fact(out, "status", view->status);
    add_fact(out, "phase", view->phase);
    add_fact(out, "job", view->job);
    add_fact(out, "policy", view->policy[0] != '\0' ? policy.bytes : "no rule matched");
    text_add(out, "| authors | _to be filled in_ |\n| reviewed by | _to be filled in_ |\n");
}

static void add_summary(struct text *out, const struct incident_view *view)
{
    AUTO_TEXT domain = {0};
    AUTO_TEXT nodes = {0};
    incident_view_add_domain(view, &domain);
    incident_view_add_names(view->nodes, 4, &nodes);
    text_add(out, "\n## Summary\n\nAt ");
    cli_add_time(out, view->fault_ns > 0 ? view->fault_ns : view->detected_ns);
    text_addf(out, " UTC %s of ", incident_view_noun(view));
    add_escaped(out, domain.bytes);
    text_add(out, " hit job ");
    add_escaped(out, view->job);
    size_t ranks = json_size(view->ranks);
    size_t node_count = json_size(view->nodes);
    text_addf(out, " (%zu rank%s on %zu node%s: ", ranks, ranks == 1 ? "" : "s", node_count,
              node_count == 1 ? "" : "s");
    add_escaped(out, nodes.bytes);
    text_add(out, "). ");
    if (incident_view_to_detect(view) >= 0) {
        text_add(out, "It was noticed after ");
        cli_add_span(out, incident_view_to_detect(view));
        text_add(out, ". ");
    }
    if (incident_view_to_mitigate(view) >= 0) {
        text_add(out, "The job made new steps at its old pace after ");
        cli_add_span(out, incident_view_to_mitigate(view));
        text_add(out, ".\n");
    } else {
        text_addf(out, "The job was not back at its old pace when this was exported (%s, %s).\n",
                  view->status, view->phase);
    }
}

static void add_impact(struct text *out, const struct incident_view *view)
{
    text_add(out, "\n## Impact\n\n| what | how much |\n|---|---|\n| steps lost | ");
    if (view->steps_lost >= 0)
        cli_add_grouped(out, (double)view->steps_lost, 0);
    else
        text_add(out, "unknown");
    text_add(out, " |\n| GPU-hours lost | ");
    cli_add_grouped(out, view->gpu_hours, 2);
    text_addf(out, " |\n| ranks at fault | %zu: ", json_size(view->ranks));
    cli_add_ranges(out, view->ranks);
    text_addf(out, " |\n| ranks that only waited for them | %zu: ", json_size(view->victims));
    cli_add_ranges(out, view->victims);
    AUTO_TEXT nodes = {0};
    incident_view_add_names(view->nodes, 0, &nodes);
    text_addf(out, " |\n| nodes | %zu: ", json_size(view->nodes));
    add_escaped(out, nodes.bytes);
    text_add(out, " |\n");
}

static void add_evidence(struct text *out, const struct json *verdict)
{
    bool first = true;
    for (const struct json *item = json_first(json_get(verdict, "evidence")); item != NULL;
         item = json_next(item)) {
        text_add(out, first ? "; evidence: " : ", ");
        add_escaped(out, json_key(item));
        text_add(out, " ");
        if (json_kind(item) == JSON_STRING)
            add_escaped(out, json_string(item, ""));
        else
            json_print(item, out);
        first = false;
    }
}

static const struct json *verdict_of(const struct json *record)
{
    const struct json *inner = json_get(record, "verdict");
    return json_kind(inner) == JSON_OBJECT ? inner : record;
}

/* All of the job's verdicts of that time are in the bundle. The report tells those that accuse, and
 * of them those that the core tied to this incident, if it tied any. */
static bool accuses(const struct json *row)
{
    const char *kind = json_get_string(verdict_of(row), "kind", "");
    return strcmp(kind, "info") != 0 && strcmp(kind, "clear") != 0;
}

static bool is_tied(const struct json *row, const struct incident_view *view)
{
    return strcmp(json_get_string(row, "incident", ""), view->ref) == 0;
}

static bool any_tied(const struct json *verdicts, const struct incident_view *view)
{
    for (const struct json *row = json_first(verdicts); row != NULL; row = json_next(row))
        if (accuses(row) && is_tied(row, view))
            return true;
    return false;
}

static void add_root_cause(struct text *out, const struct json *answer,
                           const struct incident_view *view)
{
    enum { VERDICTS_TOLD = 20 };
    size_t told = 0;
    text_add(out, "\n## Root cause\n\nWhat the detectors saw (");
    add_escaped(out, view->cause);
    text_add(out, " is their class of the cause):\n\n");
    const struct json *verdicts = json_get(answer, "verdicts");
    bool only_tied = any_tied(verdicts, view);
    for (const struct json *row = json_first(verdicts); row != NULL; row = json_next(row)) {
        const struct json *verdict = verdict_of(row);
        if (!accuses(row) || (only_tied && !is_tied(row, view)) || ++told > VERDICTS_TOLD)
            continue;
        text_addf(out, "- %s: %s %s ", json_get_string(verdict, "time", "?"),
                  json_get_string(verdict, "kind", "?"), json_get_string(verdict, "scope", "?"));
        add_escaped(out, json_get_string(verdict, "id", "?"));
        text_addf(out, " at step %lld, cause %s, slowdown %.3g, gain %.3g, confidence %.4g",
                  (long long)json_get_int(verdict, "step", -1),
                  json_get_string(verdict, "cause", "unknown"),
                  json_get_number(verdict, "slowdown", NAN), json_get_number(verdict, "gain", NAN),
                  json_get_number(verdict, "confidence", NAN));
        add_evidence(out, verdict);
        text_add(out, "\n");
    }
    if (told > VERDICTS_TOLD)
        text_addf(out, "- and %zu more in verdicts.jsonl\n", told - VERDICTS_TOLD);
    if (told == 0)
        text_add(out, "- no verdict that accuses is recorded\n");
    text_add(out,
             "\nWhat it really was: _to be filled in (hardware log, vendor, repair ticket)_\n");
}

static void add_trigger(struct text *out, const struct json *answer)
{
    enum { SHOWN = 12 };
    const struct json *events = json_get(answer, "events");
    size_t shown = 0;
    text_add(out, "\n## Trigger\n\n");
    for (const struct json *row = json_first(events); row != NULL && shown < SHOWN;
         row = json_next(row), shown++) {
        text_add(out, "- ");
        cli_add_time(out, json_get_int(row, "time_ns", 0));
        text_addf(out, " %s", json_get_string(row, "kind", "?"));
        if (json_get(row, "code") != NULL && json_kind(json_get(row, "code")) == JSON_NUMBER)
            text_addf(out, " %lld", (long long)json_get_int(row, "code", 0));
        text_add(out, " on ");
        add_escaped(out, json_get_string(row, "host", json_get_string(row, "rack", "?")));
        text_add(out, " ");
        add_escaped(out, json_get_string(row, "message", ""));
        text_add(out, "\n");
    }
    if (json_size(events) > shown)
        text_addf(out, "- and %zu more in events.csv\n", json_size(events) - shown);
    if (json_size(events) == 0)
        text_add(out,
                 "No hardware or cluster event was reported around it: the steps alone told.\n");
    text_add(out, "\nWhat set it off: _to be filled in_\n");
}

static void add_detection(struct text *out, const struct incident_view *view)
{
    int64_t start_ns = view->fault_ns > 0 ? view->fault_ns : view->detected_ns;
    text_add(out, "\n## Detection\n\n| moment | time (UTC) |\n|---|---|\n");
    add_time_fact(out, "fault started", start_ns, 0);
    add_time_fact(out, "detected", view->detected_ns, start_ns);
    add_time_fact(out, "decided", view->decided_ns, start_ns);
    add_time_fact(out, "first action", view->acted_ns, start_ns);
    add_time_fact(out, "training again", view->mitigated_ns, start_ns);
    add_time_fact(out, "hardware back", view->resolved_ns, start_ns);
    add_time_fact(out, "closed", view->closed_ns, start_ns);
}

static void add_action(struct text *out, const struct json *action)
{
    const struct json *outcome = json_get(action, "outcome");
    AUTO_TEXT nodes = {0};
    incident_view_add_names(json_get(action, "nodes"), 4, &nodes);
    if (json_size(json_get(action, "spares")) > 0) {
        text_add(&nodes, " -> ");
        incident_view_add_names(json_get(action, "spares"), 4, &nodes);
    }
    text_add(out, "| ");
    cli_add_time(out, json_get_int(action, "time_ns", 0));
    text_addf(out, " | %s | ", json_get_string(action, "verb", "?"));
    add_escaped(out, nodes.bytes);
    text_addf(out, " | %s | ",
              json_kind(outcome) == JSON_OBJECT ? json_get_string(outcome, "outcome", "?")
                                                : json_string(outcome, "no outcome"));
    add_escaped(out, json_get_string(outcome, "reason", json_get_string(action, "reason", "")));
    text_add(out, " |\n");
}

static void add_decision(struct text *out, const struct json *decision)
{
    text_add(out, "| ");
    cli_add_time(out, json_get_int(decision, "time_ns", 0));
    text_addf(out, " | %s | %s -> %s | %s | ", json_get_string(decision, "fsm_rule", "?"),
              json_get_string(decision, "phase_from", "?"),
              json_get_string(decision, "phase_to", "?"),
              json_get_bool(decision, "executed", true) ? "done" : "only recorded");
    add_escaped(out, json_get_string(decision, "reason", ""));
    text_add(out, " |\n");
}

static void add_controller(struct text *out, const struct json *answer)
{
    text_add(out, "\n## What the controller did and why\n\n");
    const struct json *actions = json_get(answer, "actions");
    if (json_size(actions) == 0)
        text_add(out, "It changed nothing in the cluster.\n");
    else
        text_add(out,
                 "| time (UTC) | action | nodes | outcome | reason |\n|---|---|---|---|---|\n");
    for (const struct json *row = json_first(actions); row != NULL; row = json_next(row))
        add_action(out, row);
    const struct json *decisions = json_get(answer, "decisions");
    if (json_size(decisions) > 0)
        text_add(out, "\nDecisions (the values that each saw are in decisions.jsonl):\n\n"
                      "| time (UTC) | rule | phase | executed | reason |\n|---|---|---|---|---|\n");
    for (const struct json *row = json_first(decisions); row != NULL; row = json_next(row))
        add_decision(out, row);
}

static void add_lessons(struct text *out)
{
    text_add(out, "\n## Lessons\n\n"
                  "### What went well\n\n- _Was it noticed before a person noticed it?_\n"
                  "- _Was the accused domain the right one, and no healthy one touched?_\n\n"
                  "### What went badly\n\n- _Which of the waits above was the longest, and what "
                  "did it wait for?_\n"
                  "- _Did anybody have to act by hand? Why?_\n\n"
                  "### Where we were lucky\n\n- _to be filled in_\n"
                  "\n## Action items\n\n"
                  "| action | kind (prevent, detect, mitigate) | owner | priority | ticket "
                  "|\n|---|---|---|---|---|\n"
                  "| _to be filled in_ | | | | |\n");
}

static void add_problems(struct text *out, const char *problems)
{
    while (*problems != '\0') {
        AUTO_TEXT line = {0};
        size_t length = strcspn(problems, "\n");
        text_add_bytes(&line, problems, length);
        text_add(out, "\n**This bundle is not whole:** ");
        add_escaped(out, line.bytes);
        text_add(out, "\n");
        problems += length + (problems[length] == '\n');
    }
}

void report_write(const struct json *answer, const char *const *plots, size_t plot_count,
                  const char *problems, struct text *out)
{
    struct incident_view view = incident_view_of(json_get(answer, "incident"));
    add_head(out, &view);
    add_problems(out, problems);
    add_summary(out, &view);
    add_impact(out, &view);
    add_root_cause(out, answer, &view);
    for (size_t i = 0; i < plot_count; i++)
        text_addf(out, "%s![the suspects against their peers](%s)\n", i == 0 ? "\n" : "", plots[i]);
    add_trigger(out, answer);
    add_detection(out, &view);
    text_add(out, "\n## Timeline\n\n");
    report_write_timeline(json_get(answer, "timeline"), out);
    add_controller(out, answer);
    add_lessons(out);
}
