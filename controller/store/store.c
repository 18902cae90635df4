/* The connection's life: connecting, migrating, the lease, up; and everything that is told later.
 */
#include "controller/store/store.h"

#include "controller/store/store_state.h"
#include "controller/sys/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { KEEP_DAYS = 90, LEASE_S = 15, SPOOL_MIB = 256, MAINTAIN_HOURS = 6 };

static const int64_t NS_PER_S = 1000000000;
static const int64_t HOLD_LEAST_NS = 200000000;
static const int64_t HOLD_MOST_NS = 5000000000;

static const char *const state_names[] = {
    [STORE_CONNECTING] = "connecting",
    [STORE_MIGRATING] = "migrating",
    [STORE_WAITING_LEASE] = "waiting_lease",
    [STORE_UP] = "up",
    [STORE_STOPPED] = "stopped",
};
_Static_assert(ARRAY_LEN(state_names) == STORE_STATE_COUNT, "every state has a name");

const char *store_state_name(enum store_state state)
{
    return state_names[state];
}

/* ---- states ---- */

void store_changed(struct store *store)
{
    store->change_is_due = true;
    loop_timer_set(store->wake, 0);
}

void store_set_state(struct store *store, enum store_state state, const char *reason)
{
    enum store_state before = store->status.state;
    bool is_worse = before == STORE_UP && state != STORE_STOPPED;
    text_copy(store->status.reason, sizeof store->status.reason, reason);
    if (before == state)
        return;
    store->status.state = state;
    log_event(is_worse ? LOG_WARN : LOG_INFO, "store_state_changed",
              kv_str("state", state_names[state]), kv_str("reason", reason));
    if (state == STORE_UP)
        loop_timer_set(store->maintain, NS_PER_S);
    else
        loop_timer_stop(store->maintain);
    store_changed(store);
}

void store_back_off(struct store *store, const char *reason)
{
    int64_t hold_ns = store->hold_ns * 2;
    if (hold_ns < HOLD_LEAST_NS)
        hold_ns = HOLD_LEAST_NS;
    store->hold_ns = hold_ns < HOLD_MOST_NS ? hold_ns : HOLD_MOST_NS;
    pg_drop(store->pg, reason);
}

static void on_migrated(void *context, enum status status, const char *reason)
{
    struct store *store = context;
    migrate_free(TAKE(store->migrate));
    store->schema_is_refused = status == ERR_REFUSED;
    if (status == ERR_UNREACHABLE)
        return;
    if (status != OK) {
        log_event(LOG_ERROR, "schema_refused", kv_str("reason", reason));
        store->hold_ns = HOLD_MOST_NS;
        store_back_off(store, reason);
        return;
    }
    query_reader_start(store);
    lease_begin(store);
}

static void begin_migrating(void *context)
{
    struct store *store = context;
    if (!pg_is_up(store->pg) || store->migrate != NULL)
        return;
    store_set_state(store, STORE_MIGRATING, store->status.reason);
    store->migrate = migrate_new(store->pg, on_migrated, store);
}

static void on_pg_state(void *context, bool up, const char *reason)
{
    struct store *store = context;
    loop_timer_stop(store->hold_timer);
    if (store->status.state == STORE_STOPPED)
        return;
    if (up) {
        loop_timer_set(store->hold_timer, store->hold_ns);
        return;
    }
    if (store->status.state == STORE_UP)
        store->status.reconnects++;
    lease_pause(store);
    store_set_state(store, store->schema_is_refused ? STORE_MIGRATING : STORE_CONNECTING, reason);
}

/* ---- told later ---- */

static void on_wake(void *context)
{
    struct store *store = context;
    if (store->status.state != STORE_UP && store->queue.count > 0)
        submit_away(store, store->status.reason);
    submit_answer_due(store);
    query_send_due(store);
    if (store->change_is_due) {
        store->change_is_due = false;
        store->on_change(store->context);
    }
}

/* ---- upkeep ---- */

static void on_maintained(void *context, const struct pg_answer *answer)
{
    (void)context;
    const char *dropped = answer->status == OK ? pg_value(answer, 0, 0) : NULL;
    if (answer->status != OK && answer->status != ERR_UNREACHABLE)
        log_event(LOG_WARN, "partitions_not_kept", kv_str("reason", answer->reason));
    else if (dropped != NULL && strcmp(dropped, "{}") != 0)
        log_event(LOG_INFO, "partitions_dropped", kv_str("names", dropped));
}

static void on_replication(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    const char *names = answer->status == OK ? pg_value(answer, 0, 0) : NULL;
    bool before = store->status.commits_are_replicated;
    if (names != NULL)
        store->status.commits_are_replicated = store->is_private || names[0] != '\0';
    if (before != store->status.commits_are_replicated)
        store_changed(store);
}

static void on_maintain(void *context)
{
    struct store *store = context;
    char days[16];
    snprintf(days, sizeof days, "%d", store->keep_days);
    const char *params[] = {days};
    pg_query(store->pg, "SELECT broom.keep_partitions($1::integer)", params, 1, 0, on_maintained,
             store);
    pg_query(store->pg, "SHOW synchronous_standby_names", NULL, 0, 0, on_replication, store);
    loop_timer_set(store->maintain, MAINTAIN_HOURS * 3600 * NS_PER_S);
}

/* ---- who we are ---- */

static enum status read_identity(int fd, char ret_hex[33], const char *directory,
                                 struct error *reterr)
{
    unsigned char bytes[16];
    if (pread(fd, ret_hex, 32, 0) == 32)
        return OK;
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes)
        return error_set(reterr, ERR_IO, "no random bytes: %s", strerror(errno));
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", bytes[i]);
    if (pwrite(fd, ret_hex, 32, 0) != 32 || fsync(fd) != 0)
        return error_set(reterr, ERR_IO, "the identity in '%s' cannot be written: %s", directory,
                         strerror(errno));
    return OK;
}

/* The same daemon after a restart is the same holder: the lock on its directory says that the
 * former process is dead, so its lease need not be waited for. */
static enum status load_identity(struct store *store, const char *directory, struct error *reterr)
{
    char host[40] = "", hex[33] = "";
    AUTO_TEXT path = {0};
    text_addf(&path, "%s/identity", directory);
    int fd = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "'%s' cannot be opened: %s", path.bytes, strerror(errno));
    enum status status = read_identity(fd, hex, directory, reterr);
    close(fd);
    (void)gethostname(host, sizeof host - 1);
    snprintf(store->holder, sizeof store->holder, "%.32s/%s", host, hex);
    return status;
}

/* ---- the interface ---- */

static void on_lease_timer(void *context)
{
    struct store *store = context;
    if (pg_is_up(store->pg) && store->migrate == NULL &&
        (store->status.state == STORE_UP || store->status.state == STORE_WAITING_LEASE))
        lease_begin(store);
    else
        store_changed(store); /* it has run out */
}

static void on_stop_timer(void *context);

static void make_timers(struct store *store)
{
    store->wake = loop_timer_new(store->loop, on_wake, store);
    store->hold_timer = loop_timer_new(store->loop, begin_migrating, store);
    store->maintain = loop_timer_new(store->loop, on_maintain, store);
    store->lease_timer = loop_timer_new(store->loop, on_lease_timer, store);
    store->stop_timer = loop_timer_new(store->loop, on_stop_timer, store);
}

enum status store_new(struct loop *loop, const struct store_params *params,
                      store_change_fn *on_change, void *context, struct store **ret_store,
                      struct error *reterr)
{
    AUTO(dir_lock_free) struct dir_lock *lock = NULL;
    AUTO(store_free) struct store *store = xcalloc(1, sizeof *store);
    store->loop = loop;
    store->conninfo = xstrdup(params->conninfo);
    store->lease_ns = params->lease_ns > 0 ? params->lease_ns : LEASE_S * NS_PER_S;
    store->keep_days = params->keep_days > 0 ? params->keep_days : KEEP_DAYS;
    store->is_private = params->is_private;
    store->on_change = on_change;
    store->context = context;
    store->status.commits_are_replicated = params->is_private;
    make_timers(store);
    TRY(dir_lock_take(params->dir, &lock, reterr));
    store->lock = TAKE(lock);
    TRY(load_identity(store, params->dir, reterr));
    int64_t bytes_max = params->spool_bytes_max > 0 ? params->spool_bytes_max
                                                    : SPOOL_MIB * INT64_C(1048576);
    TRY(spool_open(params->dir, bytes_max, &store->spool, reterr));
    store->status.spooled_bytes = spool_bytes(store->spool);
    text_copy(store->status.reason, sizeof store->status.reason,
              "the database was not reached yet");
    store->pg = pg_new(loop, store->conninfo, on_pg_state, store);
    *ret_store = TAKE(store);
    return OK;
}

void store_free(struct store *store)
{
    if (store == NULL)
        return;
    pg_free(store->pg);
    pg_free(store->reader);
    migrate_free(store->migrate);
    submit_free(store);
    query_free(store);
    spool_free(store->spool);
    dir_lock_free(store->lock);
    struct loop_timer *const timers[] = {store->wake, store->hold_timer, store->maintain,
                                         store->lease_timer, store->stop_timer};
    for (size_t i = 0; i < ARRAY_LEN(timers); i++)
        loop_timer_free(timers[i]);
    xfree(store->conninfo);
    xfree(store);
}

void store_try_now(struct store *store)
{
    pg_try_now(store->pg);
    if (store->reader != NULL)
        pg_try_now(store->reader);
}

struct store_status store_status(const struct store *store)
{
    struct store_status status = store->status;
    status.lease_held = lease_is_held(store);
    status.queued_batches = (int64_t)(store->queue.count + store->flight.count +
                                      store->answered.count);
    return status;
}

/* ---- the end ---- */

static void stopped(struct store *store)
{
    loop_fn *fn = TAKE(store->on_stopped);
    loop_timer_stop(store->stop_timer);
    loop_timer_stop(store->lease_timer);
    store->status.epoch = 0;
    store_set_state(store, STORE_STOPPED, "the store was stopped");
    if (fn != NULL)
        fn(store->stop_context);
}

static void on_released(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    (void)answer; /* not given back, it runs out by itself */
    if (store->on_stopped != NULL)
        stopped(store);
}

static void on_stop_timer(void *context)
{
    struct store *store = context;
    if (store->on_stopped != NULL)
        stopped(store);
}

void store_check_stopped(struct store *store)
{
    if (!store->is_stopping || store->is_releasing || store->queue.count > 0 ||
        store->flight.count > 0)
        return;
    store->is_releasing = true;
    lease_release(store, on_released);
}

void store_stop(struct store *store, int64_t timeout_ns, loop_fn *done, void *context)
{
    store->is_stopping = true;
    store->on_stopped = done;
    store->stop_context = context;
    loop_timer_set(store->stop_timer, timeout_ns);
    loop_timer_set(store->wake, 0);
}
