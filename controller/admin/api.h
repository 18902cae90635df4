/* The HTTP API of broomd on its main listeners: which route exists, who may call it, what it
 * answers. Routes are a table in api.c. What they ask for comes from a backend that app.c fills, so
 * that this file knows HTTP and the backend does not.
 *
 * Errors are {"error": "what is wrong; what to do"}. Codes: 400 bad input, 401 no identity, 403 not
 * allowed, 404 unknown, 405 wrong method, 409 somebody was faster, 413 and 415 from the guard, 422
 * refused by a guard of remediation, 429 back off, 503 no memory or no database (both with
 * Retry-After), 504 no answer in time.
 */
#ifndef BROOM_ADMIN_API_H
#define BROOM_ADMIN_API_H

#include "controller/base/json.h"
#include "controller/io/http_server.h"
#include "controller/topology/layout.h"
#include "remediation/core.h"

struct auth;     /* controller/admin/auth.h */
struct identity; /* likewise: whom authentication proved; .name is the actor of a command */

enum { API_BAD_LINES_MAX = 100 };

/* Unit of the timestamps of a write: `precision=` ns (or n), us (u), ms, s. */
enum api_precision { API_PRECISION_NS = 0, API_PRECISION_US, API_PRECISION_MS, API_PRECISION_S };

struct api_bad_line {
    int64_t line;      /* from 1 */
    const char *cause; /* static text */
};

struct api_write {
    struct view body; /* inflated lines, lent */
    enum api_precision precision;
    const struct identity *identity; /* a job-bound one may only write lines of its job */
};

struct api_write_result { /* zeroed before the call */
    int64_t accepted;     /* samples taken */
    int64_t refused; /* good lines that were not for us: wrong host, wrong job, rank beyond world */
    int64_t bad_lines; /* all of them, also beyond the array */
    struct api_bad_line
        bad[API_BAD_LINES_MAX]; /* the first ones, in order; refused lines stand here too */
    size_t bad_count;
    int retry_after_s; /* with ERR_AGAIN and ERR_LIMIT; 0 means 5 */
};

struct api_command {
    enum command_verb verb;
    const char *incident_ref;        /* "INC-3"; NULL for pause, resume, breaker_close */
    const char *node;                /* fenced of one node; else NULL */
    const char *text;                /* what the person wrote; "" when nothing */
    const struct identity *identity; /* lent for the call: copy the name */
};

enum api_read { API_INCIDENTS = 0, API_INCIDENT, API_TIMELINE, API_EXPORT, API_READ_COUNT };

/* Strings are lent for the call. */
struct api_query {
    enum api_read read;
    const char *incident_ref; /* API_INCIDENTS: NULL */
    int64_t
        since_ns; /* API_INCIDENTS: changed after it, by the pipeline's clock, or open; 0: all */
    const char *status; /* API_INCIDENTS: "open", ...; NULL: any */
    const char *job;    /* API_INCIDENTS: NULL: any */
};

/* Strings are lent for the call. */
struct api_layout {
    const char *job;
    const char *nodes;        /* "gb-1,gb-2": those that it will have; NULL: see layout below */
    const char *incident_ref; /* NULL: every open one of the job */
    bool by_counting;
};

/* An answer that may come later. status OK: json is the whole answer. An empty or "null" json is
 * 404. Not OK: reason says why in one line. All is lent for the call. */
struct api_answer {
    enum status status;
    const char *reason;
    struct view json;
};
/* Called exactly once, from inside the asking call or later from the loop; also after the client
 * has left. */
typedef void api_done_fn(void *context, const struct api_answer *answer);

/* What app.c provides. Writers get an open writer and write exactly one value; api_views.h has
 * functions that write the bigger shapes from an engine. */
struct api_backend {
    void *self;

    /* OK also when some lines were bad. ERR_AGAIN: back off, 429. ERR_LIMIT: no memory left in the
     * budget, 503. ERR_DENIED: 403. */
    enum status (*write)(void *self, const struct api_write *write,
                         struct api_write_result *ret_result, struct error *reterr);

    /* GET /api/v1/status:
     * {"version","now","started","mode":"observe|approve|enforce","paused":null|{"by"},
     *  "acting":true|false,"not_acting_because":null|"first guard that stops it",
     *  "policies":null|"nvl72-default (hash), ...","policies_refused":null|"why the newest files
     * were not taken", "breaker":{"open":false,"reason":null},
     *  "database":{"up","state","reason":null|"why not","spooled":bytes on disk,"lost_records"},
     *  "lease":{"held","epoch"},"telemetry":{"ok","newest"},"actuator":"dry_run",
     *  "jobs":1,"ranks":128,"open_incidents":2,
     *  "escalated_incidents":0} */
    void (*status)(void *self, struct json_writer *writer);

    /* GET /api/v1/jobs: an array of what api_view_job_row writes. */
    void (*jobs)(void *self, struct json_writer *writer);
    /* GET /api/v1/jobs/{job}: what api_view_job writes. ERR_NOT_FOUND. */
    enum status (*job)(void *self, const char *name, struct json_writer *writer,
                       struct error *reterr);
    /* GET /api/v1/jobs/{job}/ranks: what api_view_ranks writes. ERR_NOT_FOUND. */
    enum status (*ranks)(void *self, const char *name, bool slow_only, struct json_writer *writer,
                         struct error *reterr);
    /* PUT /api/v1/jobs/{job}; name equals the document's. ERR_INVALID 400, ERR_CONFLICT 409 (a
     * second live workload of one name), ERR_LIMIT 503. */
    enum status (*put_job)(void *self, const char *name, struct view document,
                           const struct identity *identity, bool *ret_created,
                           struct error *reterr);

    /* Answers after the records of the command are durable. json:
     * {"incident","status","phase","text"}, where text is what the incident waits for now; {} for
     * pause, resume and breaker_close. ERR_NOT_FOUND 404, ERR_DENIED 403, ERR_REFUSED 422,
     * ERR_CONFLICT 409, ERR_UNREACHABLE 503. */
    void (*command)(void *self, const struct api_command *command, api_done_fn *done,
                    void *context);

    /* The api adds "now_ns" to each object that comes back.
     * API_INCIDENTS: {"incidents":[the incident records of the brief, newest first]}.
     * API_INCIDENT: one incident record, and in it "timeline":[...], "decisions":[...],
     * "actions":[...]. API_TIMELINE:
     * {"incident":"INC-3","timeline":[{"seq","time_ns","kind","actor","text","details"}]}.
     * API_EXPORT: {"incident":{},"timeline":[],"decisions":[],"actions":[{..., "outcome":{}|null}],
     *              "verdicts":[],"events":[],"raw_windows":[],"job":{job record}|null}. */
    void (*query)(void *self, const struct api_query *query, api_done_fn *done, void *context);

    int64_t (*now_ns)(void *self); /* pipeline time, for since= */

    /* May be NULL. Asked when a query ended with ERR_UNREACHABLE: writes what is in memory
     * (api_recall does it from the core) and answers true, or writes nothing and answers false.
     * Just when the database is away people want to know what is going on. */
    bool (*recall)(void *self, const struct api_query *query, struct json_writer *writer);

    /* GET /api/v1/topology: what inventory_write writes. NULL: there is no inventory, 404. */
    void (*topology)(void *self, struct json_writer *writer);
    /* GET /api/v1/jobs/{job}/layout?format=&nodes=&incident=&by_counting=1: where its ranks should
     * go when it starts again, on the nodes that it has, without those that leave, with the spares
     * that were promised for them. ERR_NOT_FOUND 404, ERR_INVALID 400, ERR_REFUSED 422: they do not
     * fit. NULL: 404. */
    enum status (*layout)(void *self, const struct api_layout *question, struct layout **ret_layout,
                          struct error *reterr);
};

struct api_counts {
    int64_t requests, client_errors, server_errors, denied;
};

struct api;
/* backend is copied; auth is lent for the life of the api. Caller frees, after the http_server. */
struct api *api_new(const struct api_backend *backend, const struct auth *auth);
void api_free(struct api *api);
DEFINE_AUTO(struct api, api_free)

/* An http_route_fn: api_route(api, request) answers every request, now or when its backend does. */
void api_route(void *api, struct http_request *request);

struct api_counts api_counts(const struct api *api);

#endif
