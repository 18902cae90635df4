/* An incident record as the shell, the page's golden tests and the export read it: missing members
 * have plain fallbacks, so that an older record can still be shown.
 */
#ifndef BROOM_CLI_INCIDENT_VIEW_H
#define BROOM_CLI_INCIDENT_VIEW_H

#include "controller/base/json.h"

struct incident_view {
    const struct json *record; /* borrowed, as all below */
    const char *ref, *job, *kind, *scope, *domain, *cause, *status, *phase, *rule, *policy,
        *policy_hash, *plan, *mode;
    const char *waiting_for; /* NULL when it waits for nothing */
    char severity[8];        /* "P0" */
    const struct json *nodes, *ranks, *victims;
    int64_t fault_ns, detected_ns, decided_ns, acted_ns, mitigated_ns, resolved_ns, closed_ns,
        deadline_ns;
    int64_t steps_lost; /* -1 unknown */
    double gpu_hours;   /* NAN unknown */
    bool is_open;       /* status open */
    bool has_ended;     /* phase done, cancelled or escalated */
};

struct incident_view incident_view_of(const struct json *record);

/* "slowness", "crash", "hardware fault": the kind as a noun. */
const char *incident_view_noun(const struct incident_view *view);
/* "rack rk-1a2b3c", "rank 57", "job": the fault domain for people. */
void incident_view_add_domain(const struct incident_view *view, struct text *out);
/* Spans in ns; -1 while one end is unknown. */
int64_t incident_view_to_detect(const struct incident_view *view);   /* fault -> detected */
int64_t incident_view_to_mitigate(const struct incident_view *view); /* fault -> new steps */
/* "gb-1, gb-2 and 16 more"; "none" when empty. At most limit names; 0: all. */
void incident_view_add_names(const struct json *names, size_t limit, struct text *out);

#endif
