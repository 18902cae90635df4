/* Batches: merged under load into one statement, sent one statement at a time, in order. What the
 * spool holds goes in between, when no live batch waits.
 */
#include "controller/store/records.h"
#include "controller/store/store_state.h"
#include "controller/sys/log.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
    MERGED_BYTES = 1024 * 1024,
    DRAINED_BYTES = 512 * 1024,
    WAITING_BYTES_MAX = 16 * 1024 * 1024,
    APPLY_TIMEOUT_MS = 15000
};

static const int64_t SERIALIZATION_RETRY_NS = 20000000;

static void push(struct batches *list, struct batch *batch)
{
    batch->next = NULL;
    if (list->last != NULL)
        list->last->next = batch;
    else
        list->first = batch;
    list->last = batch;
    list->count++;
    list->bytes += batch->records.length;
}

static void push_front(struct batches *list, struct batch *batch)
{
    batch->next = list->first;
    list->first = batch;
    if (list->last == NULL)
        list->last = batch;
    list->count++;
    list->bytes += batch->records.length;
}

static struct batch *pop(struct batches *list)
{
    struct batch *batch = list->first;
    if (batch == NULL)
        return NULL;
    list->first = batch->next;
    if (list->first == NULL)
        list->last = NULL;
    list->count--;
    list->bytes -= batch->records.length;
    return batch;
}

static void batch_free(struct batch *batch)
{
    text_done(&batch->records);
    xfree(batch->reason);
    xfree(batch);
}

/* A child that is dropped takes its parent along with the last sibling. */
static void drop(struct batch *batch)
{
    struct batch *parent = batch->parent;
    batch_free(batch);
    if (parent != NULL && --parent->children == 0)
        drop(parent);
}

void submit_free(struct store *store)
{
    struct batches *const lists[] = {&store->queue, &store->flight, &store->answered};
    for (size_t i = 0; i < ARRAY_LEN(lists); i++)
        for (struct batch *batch; (batch = pop(lists[i])) != NULL;)
            drop(batch);
}

/* ---- answers ---- */

static void finish(struct store *store, struct batch *batch, enum status status, const char *reason)
{
    struct batch *parent = batch->parent;
    if (parent == NULL) {
        batch->status = status;
        batch->reason = xstrdup(reason);
        push(&store->answered, batch);
        loop_timer_set(store->wake, 0);
        return;
    }
    if (status != OK)
        parent->status = status;
    batch_free(batch);
    if (--parent->children == 0)
        finish(store, parent, parent->status, parent->status == OK ? "" : reason);
}

static void take_drained(struct store *store, enum status status)
{
    if (status == OK)
        spool_advance(store->spool);
    store->status.spooled_bytes = spool_bytes(store->spool);
    if (status == OK && store->status.spooled_bytes == 0) {
        log_event(LOG_INFO, "spool_drained", kv_int("records", store->status.drained_records));
        store_changed(store);
    }
}

void submit_answer_due(struct store *store)
{
    struct batches due = store->answered;
    store->answered = (struct batches){0};
    for (struct batch *batch; (batch = pop(&due)) != NULL;) {
        if (batch->is_from_spool)
            take_drained(store, batch->status);
        else if (batch->done != NULL)
            batch->done(batch->context, batch->status, batch->status == OK ? NULL : batch->reason);
        batch_free(batch);
    }
    submit_next(store);
    store_check_stopped(store);
}

/* ---- the database is away ---- */

static void to_spool(struct store *store, struct batch *batch)
{
    struct error error = {0};
    struct view records = {batch->records.bytes, batch->records.length};
    bool was_empty = spool_bytes(store->spool) == 0;
    enum status status = spool_add(store->spool, records, &error);
    if (status == OK) {
        if (was_empty)
            log_event(LOG_WARN, "spool_begun", kv_str("reason", store->status.reason));
        store->status.spooled_records += batch->count;
    } else {
        log_event(LOG_ERROR, "records_lost", kv_int("records", batch->count),
                  kv_str("reason", error.message));
        store->status.lost_records += batch->count;
    }
    store->status.spooled_bytes = spool_bytes(store->spool);
    finish(store, batch, status, status == OK ? "" : error.message);
}

static void away(struct store *store, struct batch *batch, const char *reason)
{
    if (batch->is_from_spool)
        finish(store, batch, ERR_UNREACHABLE, reason); /* it is in the spool still */
    else if (batch->may_spool)
        to_spool(store, batch);
    else
        finish(store, batch, ERR_UNREACHABLE, reason);
}

static void list_away(struct store *store, struct batches *list, const char *reason)
{
    struct batches all = *list;
    *list = (struct batches){0};
    for (struct batch *batch; (batch = pop(&all)) != NULL;)
        away(store, batch, reason);
}

void submit_away(struct store *store, const char *reason)
{
    list_away(store, &store->queue, reason);
    store->alone = 0;
}

/* ---- the answer of a statement ---- */

static void committed(struct store *store)
{
    store->hold_ns = 0;
    for (struct batch *batch; (batch = pop(&store->flight)) != NULL;) {
        store->status.committed_batches++;
        store->status.committed_records += batch->count;
        if (batch->is_from_spool)
            store->status.drained_records += batch->count;
        finish(store, batch, OK, "");
    }
}

/* Everything of the flight goes again, first, in its old order. */
static void requeue(struct store *store)
{
    struct batches flight = store->flight;
    struct batches rest = store->queue;
    store->flight = store->queue = (struct batches){0};
    for (struct batch *batch; (batch = pop(&flight)) != NULL;)
        push(&store->queue, batch);
    for (struct batch *batch; (batch = pop(&rest)) != NULL;)
        push(&store->queue, batch);
}

static struct batch *child_of(struct batch *parent, size_t from, size_t to)
{
    struct batch *child = xcalloc(1, sizeof *child);
    child->parent = parent;
    child->may_spool = parent->may_spool;
    child->is_from_spool = parent->is_from_spool;
    text_add_bytes(&child->records, parent->records.bytes + from, to - from);
    for (size_t i = from; i < to; i++)
        child->count += parent->records.bytes[i] == '\n';
    parent->children++;
    return child;
}

static void split(struct store *store, struct batch *batch, size_t middle)
{
    struct batch *second = child_of(batch, middle, batch->records.length);
    struct batch *first = child_of(batch, 0, middle);
    batch->status = OK;
    push_front(&store->queue, second);
    push_front(&store->queue, first);
    store->alone += 2;
}

/* One batch that the server will not take, now or ever. */
static void refused(struct store *store, struct batch *batch, enum status status,
                    const char *reason)
{
    struct view records = {batch->records.bytes, batch->records.length};
    size_t middle = records_middle(records);
    if (!batch->may_spool) {
        finish(store, batch, status, reason);
    } else if (middle > 0) {
        split(store, batch, middle);
    } else {
        log_event(LOG_ERROR, "record_rejected", kv_str("reason", reason));
        spool_reject(store->spool, records, reason);
        store->status.rejected_records++;
        finish(store, batch, OK, ""); /* its siblings are safe, and a repeat would change nothing */
    }
}

static void on_refused(struct store *store, enum status status, const char *reason)
{
    if (store->flight.count > 1) {
        store->alone += (int)store->flight.count;
        requeue(store);
    } else {
        refused(store, pop(&store->flight), status, reason);
    }
}

/* Classes of SQLSTATE that speak of the data: 21, 22, 23 and 54 (too large). */
static bool is_about_data(const char *sqlstate)
{
    return strncmp(sqlstate, "21", 2) == 0 || strncmp(sqlstate, "22", 2) == 0 ||
           strncmp(sqlstate, "23", 2) == 0 || strncmp(sqlstate, "54", 2) == 0;
}

static void conflicted(struct store *store, const struct pg_answer *answer)
{
    if (strcmp(answer->sqlstate, "P0L01") == 0) {
        struct batches flight = store->flight;
        store->flight = (struct batches){0};
        for (struct batch *batch; (batch = pop(&flight)) != NULL;) {
            if (batch->may_spool)
                away(store, batch, answer->reason);
            else
                finish(store, batch, ERR_CONFLICT, answer->reason);
        }
        lease_lost(store, answer->reason);
    } else if (strncmp(answer->sqlstate, "40", 2) == 0) {
        requeue(store);
        loop_timer_set(store->wake, SERIALIZATION_RETRY_NS);
    } else {
        on_refused(store, ERR_CONFLICT, answer->reason);
    }
}

static void on_applied(void *context, const struct pg_answer *answer)
{
    struct store *store = context;
    if (answer->status == OK)
        committed(store);
    else if (answer->status == ERR_CONFLICT)
        conflicted(store, answer);
    else if (answer->status == ERR_INVALID && is_about_data(answer->sqlstate))
        on_refused(store, ERR_INVALID, answer->reason);
    else {
        list_away(store, &store->flight, answer->reason);
        if (pg_is_up(store->pg))
            store_back_off(store, answer->reason);
    }
    if (store->answered.count > 0)
        submit_answer_due(store);
    else
        submit_next(store);
}

/* ---- sending ---- */

/* The next of the spool as a batch of its own; NULL when there is none. */
static struct batch *from_spool(struct store *store)
{
    struct error error = {0};
    struct batch *batch = xcalloc(1, sizeof *batch);
    batch->may_spool = batch->is_from_spool = true;
    if (spool_peek(store->spool, DRAINED_BYTES, &batch->records, &batch->count, &error) != OK)
        log_event(LOG_ERROR, "spool_unreadable", kv_str("reason", error.message));
    if (batch->count > 0)
        return batch;
    store->status.spooled_bytes = spool_bytes(store->spool);
    batch_free(batch);
    return NULL;
}

static void fill_flight(struct store *store)
{
    bool is_alone = store->alone > 0;
    if (is_alone)
        store->alone--;
    while (store->queue.count > 0) {
        size_t bytes = store->flight.bytes + store->queue.first->records.length;
        if (store->flight.count > 0 && (is_alone || bytes > MERGED_BYTES))
            return;
        push(&store->flight, pop(&store->queue));
    }
    struct batch *spooled = NULL;
    if (store->flight.count == 0 && !store->is_stopping && spool_bytes(store->spool) > 0)
        spooled = from_spool(store);
    if (spooled != NULL)
        push(&store->flight, spooled);
}

void submit_next(struct store *store)
{
    AUTO_TEXT lines = {0}, array = {0};
    char epoch[24];
    if (store->status.state != STORE_UP || store->flight.count > 0)
        return;
    fill_flight(store);
    if (store->flight.count == 0)
        return;
    for (const struct batch *batch = store->flight.first; batch != NULL; batch = batch->next)
        text_add_bytes(&lines, batch->records.bytes, batch->records.length);
    records_to_array((struct view){lines.bytes, lines.length}, &array);
    snprintf(epoch, sizeof epoch, "%" PRId64, store->status.epoch);
    const char *params[] = {array.bytes, epoch};
    pg_query(store->pg, "SELECT broom.apply($1::jsonb, $2::bigint)", params, 2, APPLY_TIMEOUT_MS,
             on_applied, store);
}

void store_submit(struct store *store, struct view records, unsigned flags, store_done_fn *done,
                  void *context)
{
    struct batch *batch = xcalloc(1, sizeof *batch);
    batch->may_spool = (flags & STORE_MAY_SPOOL) != 0;
    batch->done = done;
    batch->context = context;
    batch->count = records_clean(records, &batch->records);
    /* A server that hangs takes the memory of its clients, unless they turn to the disk in time. */
    bool is_crowded = batch->may_spool && store->queue.bytes > WAITING_BYTES_MAX;
    if (batch->count == 0) {
        finish(store, batch, OK, "");
    } else if (is_crowded) {
        to_spool(store, batch);
    } else if (store->status.state == STORE_UP && !store->is_stopping) {
        push(&store->queue, batch);
        loop_timer_set(store->wake, 0);
    } else {
        away(store, batch,
             store->status.reason[0] != '\0' ? store->status.reason : "the store is stopping");
    }
}
