/* The lease: one row that says which daemon may write and act. Ours lasts lease_ns from the moment
 * before the request was sent, so that we never believe in it longer than the database does.
 */
#include "controller/store/store_state.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"

#include <inttypes.h>
#include <stdio.h>

enum { LEASE_TIMEOUT_MS = 10000 };

static int64_t renew_every_ns(const struct store *store)
{
    return store->lease_ns / 3;
}

bool lease_is_held(const struct store *store)
{
    return store->status.epoch > 0 && clock_read().monotonic_ns < store->lease_until_ns;
}

static void arm(struct store *store, int64_t after_ns)
{
    loop_timer_set(store->lease_timer, after_ns);
}

static void send(struct store *store, const char *sql, const char *const *params, int count,
                 pg_answer_fn *fn)
{
    store->lease_asked_ns = clock_read().monotonic_ns;
    pg_query(store->pg, sql, params, count, LEASE_TIMEOUT_MS, fn, store);
}

static void hold_until_expiry(struct store *store)
{
    store->lease_until_ns = store->lease_asked_ns + store->lease_ns;
    arm(store, renew_every_ns(store));
}

static void on_taken(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    int64_t epoch = 0, remaining_ms = 0;
    if (answer->status == ERR_UNREACHABLE)
        return; /* the connection tells by itself */
    if (answer->status != OK || answer->rows != 1) {
        store_back_off(store, answer->reason);
        return;
    }
    (void)text_parse_int(view_of(pg_value(answer, 0, 0)), &epoch);
    const char *holder = pg_value(answer, 0, 1);
    (void)text_parse_int(view_of(pg_value(answer, 0, 2)), &remaining_ms);
    if (!view_equals(view_of(holder), store->holder)) {
        char reason[ERROR_MESSAGE_BYTES];
        snprintf(reason, sizeof reason, "the lease is held by '%s' for another %" PRId64 " ms",
                 holder, remaining_ms);
        store_set_state(store, STORE_WAITING_LEASE, reason);
        int64_t wait_ns = (remaining_ms + 20) * 1000000;
        arm(store, wait_ns < renew_every_ns(store) ? wait_ns : renew_every_ns(store));
        return;
    }
    store->status.epoch = epoch;
    hold_until_expiry(store);
    log_event(LOG_INFO, "lease_taken", kv_int("epoch", epoch), kv_str("holder", store->holder));
    store_set_state(store, STORE_UP, "");
}

static void take(struct store *store)
{
    char ttl_ms[24];
    snprintf(ttl_ms, sizeof ttl_ms, "%" PRId64, store->lease_ns / 1000000);
    const char *params[] = {store->holder, ttl_ms, store->is_private ? "true" : "false"};
    send(store,
         "SELECT epoch, holder, remaining_ms FROM broom.lease_take($1, $2::bigint, $3::boolean)",
         params, 3, on_taken);
}

static void on_renewed(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    if (answer->status == ERR_UNREACHABLE)
        return;
    if (answer->status != OK) {
        store_back_off(store, answer->reason);
        return;
    }
    const char *is_ours = pg_value(answer, 0, 0);
    if (is_ours == NULL || is_ours[0] != 't') {
        lease_lost(store, "another daemon took the lease");
        return;
    }
    hold_until_expiry(store);
    if (store->status.state != STORE_UP)
        store_set_state(store, STORE_UP, "");
}

static void renew(struct store *store)
{
    char epoch[24], ttl_ms[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, store->status.epoch);
    snprintf(ttl_ms, sizeof ttl_ms, "%" PRId64, store->lease_ns / 1000000);
    const char *params[] = {epoch, ttl_ms};
    send(store, "SELECT broom.lease_renew($1::bigint, $2::bigint)", params, 2, on_renewed);
}

void lease_begin(struct store *store)
{
    if (store->status.epoch > 0)
        renew(store);
    else
        take(store);
}

/* Its epoch is over for good: the owner reads the state again when the next one is taken. */
void lease_lost(struct store *store, const char *reason)
{
    log_event(LOG_WARN, "lease_lost", kv_int("epoch", store->status.epoch),
              kv_str("reason", reason));
    store->status.epoch = 0;
    store->lease_until_ns = 0;
    store_set_state(store, STORE_WAITING_LEASE, reason);
    submit_away(store, reason);
    arm(store, 0);
}

void lease_pause(struct store *store)
{
    int64_t left_ns = store->lease_until_ns - clock_read().monotonic_ns;
    if (store->status.epoch > 0 && left_ns > 0)
        arm(store, left_ns); /* tells the owner when it has run out */
    else
        loop_timer_stop(store->lease_timer);
}

void lease_release(struct store *store, pg_answer_fn *fn)
{
    char epoch[24];
    snprintf(epoch, sizeof epoch, "%" PRId64, store->status.epoch);
    const char *params[] = {epoch};
    pg_query(store->pg, "SELECT broom.lease_release($1::bigint)", params, 1, LEASE_TIMEOUT_MS, fn,
             store);
}
