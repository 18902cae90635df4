/* The only door to PostgreSQL, and the only place that knows SQL. Records (JSON objects, one a
 * line) go in, answers (one JSON value each) come out. Whatever happens to the server, a record
 * that was answered OK is in the database once, or in the spool on disk and will be.
 *
 * It connects by itself and again after every loss: connecting -> migrating -> waiting for the
 * lease -> up. While it is not up, batches that may spool go to disk and the others fail with
 * ERR_UNREACHABLE: their owner submits them again with the same keys, which is harmless even when
 * the first try was committed.
 */
#ifndef BROOM_STORE_STORE_H
#define BROOM_STORE_STORE_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct store;

enum store_state {
    STORE_CONNECTING = 0,
    STORE_MIGRATING,     /* also while the schema is refused: status.reason says why */
    STORE_WAITING_LEASE, /* another daemon holds it: nothing is written but to the spool */
    STORE_UP,
    STORE_STOPPED,
    STORE_STATE_COUNT
};
const char *store_state_name(enum store_state state);

struct store_params {
    const char *conninfo; /* libpq string or URL; several hosts are allowed */
    const char *dir; /* spool and identity of this daemon; made when missing, guarded by a lock */
    int64_t spool_bytes_max; /* 0 means 256 MiB */
    int64_t lease_ns;        /* 0 means 15 s: how long a silent holder keeps others out */
    int32_t keep_days;       /* of events, verdicts and rollups no incident needs; 0 means 90 */
    bool is_private; /* the server is our own (embedded): a lease found there is a dead holder's */
};

/* Something in store_status changed. Never called from inside a call of this interface. */
typedef void store_change_fn(void *context);

/* ERR_REFUSED: another process uses dir. ERR_IO: dir cannot be used. Strings are copied. */
MUST_CHECK enum status store_new(struct loop *loop, const struct store_params *params,
                                 store_change_fn *on_change, void *context,
                                 struct store **ret_store, struct error *reterr);
/* Answers nothing more: what is pending is dropped. For an orderly end call store_stop first. */
void store_free(struct store *store);
DEFINE_AUTO(struct store, store_free)

/* Gives the lease back once what is queued is written, then calls done (also when timeout_ns passed
 * first). */
void store_stop(struct store *store, int64_t timeout_ns, loop_fn *done, void *context);

/* The server was just started: do not wait for the next try. */
void store_try_now(struct store *store);

struct store_status {
    enum store_state state;
    bool lease_held; /* true until the lease runs out, also while the server is away */
    int64_t epoch;   /* of the lease held last; 0 never */
    char reason[ERROR_MESSAGE_BYTES]; /* why it is not up; "" when up */
    int64_t spooled_bytes;            /* on disk, not in the database yet */
    int64_t queued_batches;           /* submitted, not answered */
    int64_t committed_batches, committed_records;
    int64_t spooled_records; /* ever */
    int64_t drained_records;
    int64_t lost_records;     /* spoolable ones that found the spool full or the disk refusing */
    int64_t rejected_records; /* spoolable ones that the server will never take; kept in
                                 rejected.jsonl */
    int64_t reconnects;
    bool commits_are_replicated; /* synchronous_standby_names is set, or the server is our own */
};
struct store_status store_status(const struct store *store);

enum { STORE_MAY_SPOOL = 1 };

/* status OK: committed, or with STORE_MAY_SPOOL safe on disk. ERR_UNREACHABLE: the server is away
 * and it may or may not have been committed; submit it again. ERR_CONFLICT: another writer was
 * there (lease, version of an incident): read the state again. ERR_INVALID: the server refuses it
 * for good. ERR_LIMIT, ERR_IO: the spool is full or cannot be written. reason is lent for the call.
 */
typedef void store_done_fn(void *context, enum status status, const char *reason);

/* records: one JSON object a line; copied. A batch is one transaction; batches are committed in the
 * order of the calls. done may be NULL and is never called from inside this call. */
void store_submit(struct store *store, struct view records, unsigned flags, store_done_fn *done,
                  void *context);

/* What can be read. Each is one function of schema broom_api that gives one JSON value.
 * params are text, NULL for SQL NULL. */
enum store_read {
    STORE_INCIDENTS = 0, /* since_ns, status, job -> {"incidents":[records, newest first]} */
    STORE_INCIDENT, /* ref -> the record with timeline, decisions, actions; null when unknown */
    STORE_TIMELINE, /* ref -> {"incident","timeline":[...]} or null */
    STORE_EXPORT,   /* ref -> everything of one incident, or null */
    STORE_JOBS,     /* job -> [{"job","attempt","time_ns","document"}], oldest first */
    STORE_SPENDING, /* since_ns -> [{"verb","nodes","job","incident","time_ns"}] of succeeded
                       actions */
    STORE_RESTORE,  /* since_ns -> see store_restore */
    STORE_READ_COUNT
};
enum { STORE_PARAMS_MAX = 3 };

/* json is lent for the call; "null" when there is no such thing. Not OK: reason. */
typedef void store_json_fn(void *context, enum status status, const char *reason, struct view json);
void store_query(struct store *store, enum store_read read,
                 const char *const params[STORE_PARAMS_MAX], store_json_fn *done, void *context);

/* What a daemon needs to go on: {"incidents":[records, by number], "next_number":n, "paused":bool,
 * "paused_by":text|null, "paused_text":text|null, "breaker_open":bool, "breaker_reason":text|null,
 * "spares":[{"node","state","job","incident"}], "jobs":[latest job record of each job]}.
 * Incidents are those that have not ended or were touched after since_ns (pipeline time). */
void store_restore(struct store *store, int64_t since_ns, store_json_fn *done, void *context);

#endif
