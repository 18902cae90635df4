/* Incident records for people. */
#include "controller/cli/incident_view.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void read_severity(const struct json *record, char ret_severity[8])
{
    const struct json *severity = json_get(record, "severity");
    if (json_kind(severity) == JSON_NUMBER)
        snprintf(ret_severity, 8, "P%lld", (long long)json_int(severity, 9) % 10);
    else
        text_copy(ret_severity, 8, json_string(severity, "-"));
}

/* What was lost up to the mitigation; before it, what has piled up so far. */
static double lost_gpu_hours(const struct json *cost)
{
    double lost = json_get_number(cost, "gpu_hours", NAN);
    return lost > 0 ? lost : json_get_number(cost, "loss_gpu_hours", lost);
}

struct incident_view incident_view_of(const struct json *record)
{
    const struct json *times = json_get(record, "times");
    const struct json *cost = json_get(record, "cost");
    struct incident_view view = {
        .record = record,
        .ref = json_get_string(record, "ref", "INC-?"),
        .job = json_get_string(record, "job", ""),
        .kind = json_get_string(record, "kind", ""),
        .scope = json_get_string(record, "scope", ""),
        .domain = json_get_string(record, "domain", ""),
        .cause = json_get_string(record, "cause", "unknown"),
        .status = json_get_string(record, "status", ""),
        .phase = json_get_string(record, "phase", ""),
        .rule = json_get_string(record, "rule", ""),
        .policy = json_get_string(record, "policy", ""),
        .policy_hash = json_get_string(record, "policy_hash", ""),
        .mode = json_get_string(record, "mode", ""),
        .waiting_for = json_get_string(record, "waiting_for", NULL),
        .nodes = json_get(record, "nodes"),
        .ranks = json_get(record, "ranks"),
        .victims = json_get(record, "victims"),
        .fault_ns = json_get_int(times, "fault_started_ns", 0),
        .detected_ns = json_get_int(times, "detected_ns", 0),
        .decided_ns = json_get_int(times, "decided_ns", 0),
        .acted_ns = json_get_int(times, "acted_ns", 0),
        .mitigated_ns = json_get_int(times, "mitigated_ns", 0),
        .resolved_ns = json_get_int(times, "resolved_ns", 0),
        .closed_ns = json_get_int(times, "closed_ns", 0),
        .deadline_ns = json_get_int(record, "deadline_ns", 0),
        .steps_lost = json_get_int(cost, "steps_lost", -1),
        .gpu_hours = lost_gpu_hours(cost),
    };
    const struct json *plan = json_get(record, "plan");
    view.plan = json_kind(plan) == JSON_OBJECT ? json_get_string(plan, "name", "")
                                               : json_string(plan, "");
    read_severity(record, view.severity);
    if (view.waiting_for != NULL && view.waiting_for[0] == '\0')
        view.waiting_for = NULL;
    view.is_open = strcmp(view.status, "open") == 0;
    view.has_ended = strcmp(view.phase, "done") == 0 || strcmp(view.phase, "cancelled") == 0 ||
                     strcmp(view.phase, "escalated") == 0;
    return view;
}

const char *incident_view_noun(const struct incident_view *view)
{
    static const char *const nouns[][2] = {{"slow", "slowness"},
                                           {"fault", "hardware fault"},
                                           {"numeric", "numeric trouble"},
                                           {"regression", "slow-down"},
                                           {"info", "remark"}};
    for (size_t i = 0; i < ARRAY_LEN(nouns); i++)
        if (strcmp(view->kind, nouns[i][0]) == 0)
            return nouns[i][1];
    return view->kind;
}

void incident_view_add_domain(const struct incident_view *view, struct text *out)
{
    if (strcmp(view->scope, "job") == 0)
        text_add(out, "the whole job");
    else if (strcmp(view->scope, "switch_tray") == 0)
        text_addf(out, "switch tray %s", view->domain);
    else
        text_addf(out, "%s %s", view->scope, view->domain);
}

static int64_t span(int64_t from_ns, int64_t to_ns)
{
    return from_ns > 0 && to_ns >= from_ns ? to_ns - from_ns : -1;
}

int64_t incident_view_to_detect(const struct incident_view *view)
{
    return span(view->fault_ns, view->detected_ns);
}

int64_t incident_view_to_mitigate(const struct incident_view *view)
{
    return span(view->fault_ns > 0 ? view->fault_ns : view->detected_ns, view->mitigated_ns);
}

void incident_view_add_names(const struct json *names, size_t limit, struct text *out)
{
    size_t count = json_size(names);
    size_t shown = 0;
    if (count == 0)
        text_add(out, "none");
    if (limit == 0 || limit + 1 == count) /* "and 1 more" takes the place of the one */
        limit = count;
    for (const struct json *item = json_first(names); item != NULL && shown < limit;
         item = json_next(item)) {
        const char *name = json_kind(item) == JSON_OBJECT ? json_get_string(item, "name", "?")
                                                          : json_string(item, "?");
        text_addf(out, "%s%s", shown++ > 0 ? ", " : "", name);
    }
    if (count > shown)
        text_addf(out, " and %zu more", count - shown);
}
