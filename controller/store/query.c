/* Reads: named functions of broom_api, on a connection of their own that can do nothing else, so
 * that a long export never holds up a commit.
 */
#include "controller/store/store_state.h"
#include "controller/sys/log.h"

#include <inttypes.h>
#include <stdio.h>

enum { READ_TIMEOUT_MS = 60000 };

struct read_row {
    const char *sql;
    int param_count;
};

static const struct read_row reads[] = {
    [STORE_INCIDENTS] = {"SELECT broom_api.incidents_json($1::bigint, $2, $3)", 3},
    [STORE_INCIDENT] = {"SELECT broom_api.incident_json($1)", 1},
    [STORE_TIMELINE] = {"SELECT broom_api.timeline_json($1)", 1},
    [STORE_EXPORT] = {"SELECT broom_api.export_json($1)", 1},
    [STORE_JOBS] = {"SELECT broom_api.jobs_json($1)", 1},
    [STORE_SPENDING] = {"SELECT broom_api.spending_json($1::bigint)", 1},
    [STORE_RESTORE] = {"SELECT broom_api.restore_json($1::bigint)", 1},
};
_Static_assert(ARRAY_LEN(reads) == STORE_READ_COUNT, "every read has its function");

struct reading {
    struct reading *next;
    struct store *store;
    enum store_read read;
    char *params[STORE_PARAMS_MAX];
    bool is_sent;
    store_json_fn *done;
    void *context;
};

static void reading_free(struct reading *reading)
{
    for (size_t i = 0; i < STORE_PARAMS_MAX; i++)
        xfree(reading->params[i]);
    xfree(reading);
}

static void unlink_reading(struct store *store, const struct reading *reading)
{
    struct reading **at = &store->readings;
    while (*at != reading)
        at = &(*at)->next;
    *at = reading->next;
}

static void on_json(void *context, const struct pg_answer *answer)
{
    struct reading *reading = context;
    const char *json = answer->status == OK ? pg_value(answer, 0, 0) : NULL;
    enum status status = answer->status == ERR_CONFLICT ? ERR_UNREACHABLE : answer->status;
    unlink_reading(reading->store, reading);
    reading->done(reading->context, status, answer->reason, view_of(json != NULL ? json : "null"));
    reading_free(reading);
}

static void send(struct store *store, struct reading *reading)
{
    const char *params[STORE_PARAMS_MAX];
    for (size_t i = 0; i < STORE_PARAMS_MAX; i++)
        params[i] = reading->params[i];
    reading->is_sent = true;
    pg_query(store->reader, reads[reading->read].sql, params, reads[reading->read].param_count,
             READ_TIMEOUT_MS, on_json, reading);
}

static void refuse(struct store *store, struct reading *reading, const char *reason)
{
    unlink_reading(store, reading);
    reading->done(reading->context, ERR_UNREACHABLE, reason, view_of("null"));
    reading_free(reading);
}

static struct reading *first_waiting(const struct store *store)
{
    struct reading *reading = store->readings;
    while (reading != NULL && reading->is_sent)
        reading = reading->next;
    return reading;
}

void query_send_due(struct store *store)
{
    bool is_away = store->status.state != STORE_UP && store->status.state != STORE_WAITING_LEASE;
    for (struct reading *reading; (reading = first_waiting(store)) != NULL;) {
        if (store->reader_is_ready)
            send(store, reading);
        else if (is_away || store->reader_is_refused)
            refuse(store, reading,
                   is_away ? store->status.reason : "the database refuses to be read");
        else
            return; /* the reader's connection is being made */
    }
}

void query_free(struct store *store)
{
    for (struct reading *reading; (reading = store->readings) != NULL;) {
        store->readings = reading->next;
        reading_free(reading);
    }
}

static void on_session(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    store->reader_is_ready = answer->status == OK;
    store->reader_is_refused = answer->status != OK && answer->status != ERR_UNREACHABLE;
    if (store->reader_is_refused)
        log_event(LOG_ERROR, "reader_refused", kv_str("reason", answer->reason));
    query_send_due(store);
}

static void on_reader_state(void *context, bool up, const char *reason)
{
    struct store *store = context;
    (void)reason; /* the writer's connection tells the same */
    store->reader_is_ready = store->reader_is_refused = false;
    if (up)
        pg_query(
            store->reader,
            "SET SESSION TimeZone = 'UTC'; SET SESSION search_path = pg_catalog;"
            "SET SESSION statement_timeout = '55s'; SET SESSION default_transaction_read_only = on;"
            "SET ROLE broom_reader",
            NULL, 0, 0, on_session, store);
}

void query_reader_start(struct store *store)
{
    if (store->reader == NULL)
        store->reader = pg_new(store->loop, store->conninfo, on_reader_state, store);
    else
        pg_try_now(store->reader);
}

void store_query(struct store *store, enum store_read read,
                 const char *const params[STORE_PARAMS_MAX], store_json_fn *done, void *context)
{
    struct reading *reading = xcalloc(1, sizeof *reading);
    struct reading **end = &store->readings;
    while (*end != NULL)
        end = &(*end)->next;
    *end = reading;
    reading->store = store;
    reading->read = read;
    for (int i = 0; i < reads[read].param_count; i++)
        reading->params[i] = params[i] != NULL ? xstrdup(params[i]) : NULL;
    reading->done = done;
    reading->context = context;
    loop_timer_set(store->wake, 0);
}

void store_restore(struct store *store, int64_t since_ns, store_json_fn *done, void *context)
{
    char since[24];
    snprintf(since, sizeof since, "%" PRId64, since_ns);
    const char *const params[STORE_PARAMS_MAX] = {since};
    store_query(store, STORE_RESTORE, params, done, context);
}
