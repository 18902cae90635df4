/* Batches of records with the actions that wait for them. */
#include "controller/outbox.h"

#include <assert.h>

struct waiter {
    pipeline_durable_fn *fn;
    void *context;
};

struct batch {
    struct text records;
    struct effect *actions;
    size_t action_count, action_capacity;
    struct waiter *waiters;
    size_t waiter_count, waiter_capacity;
};

struct outbox {
    struct pipeline_ports ports;
    outbox_action_fn *fn;
    void *context;
    struct batch open;      /* being filled */
    struct batch under_way; /* submitted, or failed and waiting for the store */
    bool is_submitted;
    bool has_failed;
    bool is_overflowed;  /* what came since the last durable batch is no whole history: nothing is
                            submitted */
    uint64_t generation; /* outbox_clear makes late answers strangers */
    struct ticket *tickets; /* of submits that have not been answered */
    struct outbox_counts counts;
};

/* What a submit call carries back; it outlives a cleared outbox. */
struct ticket {
    struct outbox *outbox;
    uint64_t generation;
    struct ticket *next;
};

struct outbox *outbox_new(const struct pipeline_ports *ports, outbox_action_fn *fn, void *context)
{
    struct outbox *outbox = xcalloc(1, sizeof *outbox);
    outbox->ports = *ports;
    outbox->fn = fn;
    outbox->context = context;
    return outbox;
}

static void batch_done(struct batch *batch)
{
    text_done(&batch->records);
    for (size_t i = 0; i < batch->action_count; i++)
        effect_done(&batch->actions[i]);
    xfree(batch->actions);
    xfree(batch->waiters);
    *batch = (struct batch){0};
}

static bool batch_is_empty(const struct batch *batch)
{
    return batch->records.length == 0 && batch->action_count == 0 && batch->waiter_count == 0;
}

void outbox_add_record(struct outbox *outbox, const char *record)
{
    if (outbox->is_overflowed)
        return;
    text_add(&outbox->open.records, record);
    text_add(&outbox->open.records, "\n");
    outbox->counts.records++;
}

void outbox_add_action(struct outbox *outbox, const struct effect *take_effect)
{
    struct batch *batch = &outbox->open;
    if (outbox->is_overflowed) {
        struct effect dropped = *take_effect;
        effect_done(&dropped);
        return;
    }
    batch->actions = array_grow(batch->actions, batch->action_count, &batch->action_capacity,
                                sizeof *batch->actions);
    batch->actions[batch->action_count++] = *take_effect;
}

void outbox_add_waiter(struct outbox *outbox, pipeline_durable_fn *fn, void *context)
{
    struct batch *batch = &outbox->open;
    batch->waiters = array_grow(batch->waiters, batch->waiter_count, &batch->waiter_capacity,
                                sizeof *batch->waiters);
    batch->waiters[batch->waiter_count++] = (struct waiter){.fn = fn, .context = context};
}

static void tell_waiters(struct batch *batch, enum status status, const char *reason)
{
    size_t count = batch->waiter_count;
    struct waiter *waiters = TAKE(batch->waiters);
    batch->waiter_count = batch->waiter_capacity = 0;
    for (size_t i = 0; i < count; i++)
        waiters[i].fn(waiters[i].context, status, reason);
    xfree(waiters);
}

static void drop_all(struct outbox *outbox, enum status status, const char *reason)
{
    outbox->generation++;
    outbox->is_submitted = outbox->has_failed = false;
    tell_waiters(&outbox->under_way, status, reason);
    tell_waiters(&outbox->open, status, reason);
    batch_done(&outbox->under_way);
    batch_done(&outbox->open);
}

void outbox_free(struct outbox *outbox)
{
    if (outbox == NULL)
        return;
    drop_all(outbox, ERR_UNREACHABLE, "broomd is stopping");
    while (outbox->tickets != NULL) {
        struct ticket *ticket = outbox->tickets;
        outbox->tickets = ticket->next;
        xfree(ticket);
    }
    xfree(outbox);
}

static void finish(struct outbox *outbox)
{
    struct batch done = outbox->under_way;
    outbox->under_way = (struct batch){0};
    outbox->is_submitted = false;
    tell_waiters(&done, OK, NULL);
    for (size_t i = 0; i < done.action_count; i++)
        outbox->fn(outbox->context, &done.actions[i]);
    batch_done(&done);
    outbox_flush(outbox);
}

/* Gives the ticket back; true when its batch is still the one under way. */
static bool take_ticket(struct ticket *ticket)
{
    struct outbox *outbox = ticket->outbox;
    struct ticket **place = &outbox->tickets;
    bool is_current = ticket->generation == outbox->generation;
    while (*place != ticket)
        place = &(*place)->next;
    *place = ticket->next;
    xfree(ticket);
    return is_current;
}

static void on_durable(void *context, enum status status, const char *reason)
{
    struct ticket *ticket = context;
    struct outbox *outbox = ticket->outbox;
    if (!take_ticket(ticket))
        return;
    if (status == OK) {
        finish(outbox);
        return;
    }
    outbox->counts.failed++;
    outbox->is_submitted = false;
    outbox->has_failed = true;
    tell_waiters(&outbox->under_way, status, reason);
    if (status != ERR_UNREACHABLE && status != ERR_TIMEOUT && status != ERR_AGAIN)
        outbox->ports.diverged(outbox->ports.self, reason);
}

static void submit(struct outbox *outbox)
{
    struct ticket *ticket = xmalloc(sizeof *ticket);
    *ticket = (struct ticket){
        .outbox = outbox, .generation = outbox->generation, .next = outbox->tickets};
    outbox->tickets = ticket;
    outbox->is_submitted = true;
    outbox->has_failed = false;
    outbox->counts.batches++;
    struct view records = {outbox->under_way.records.bytes, outbox->under_way.records.length};
    outbox->ports.submit(outbox->ports.self, records, false, on_durable, ticket);
}

/* A database that is away for days must not take our memory. What it holds and what the engines
 * still say is enough to go on from. */
static void overflow(struct outbox *outbox)
{
    static const char reason[] = "the database is away and more records wait than are kept";
    drop_all(outbox, ERR_UNREACHABLE, reason);
    outbox->is_overflowed = true;
    outbox->ports.diverged(outbox->ports.self, reason);
}

void outbox_flush(struct outbox *outbox)
{
    if (outbox->open.records.length > OUTBOX_BYTES_MAX)
        overflow(outbox);
    if (outbox->has_failed || outbox->is_overflowed)
        tell_waiters(&outbox->open, ERR_UNREACHABLE,
                     "the database is away: what was asked for is not recorded yet");
    if (outbox->is_submitted || outbox->has_failed || batch_is_empty(&outbox->open))
        return;
    assert(batch_is_empty(&outbox->under_way));
    outbox->under_way = outbox->open;
    outbox->open = (struct batch){0};
    if (outbox->under_way.records.length == 0)
        finish(outbox); /* a poll or a start whose records were durable before */
    else
        submit(outbox);
}

void outbox_retry(struct outbox *outbox)
{
    if (outbox->has_failed)
        submit(outbox);
    else
        outbox_flush(outbox);
}

void outbox_clear(struct outbox *outbox)
{
    outbox->is_overflowed = false;
    drop_all(outbox, ERR_CONFLICT, "the state was read again from the database");
}

struct outbox_counts outbox_counts(const struct outbox *outbox)
{
    return outbox->counts;
}
