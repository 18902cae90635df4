/* The order of record, then act: what one pass emits is one batch, submitted whole; its actions are
 * handed out only after the batch is durable. One batch is under way at a time; what comes
 * meanwhile is the next one.
 */
#ifndef BROOM_CONTROLLER_OUTBOX_H
#define BROOM_CONTROLLER_OUTBOX_H

#include "controller/pipeline.h"

struct outbox;

/* An action whose records are durable: START or POLL. The effect is lent for the call. */
typedef void outbox_action_fn(void *context, const struct effect *effect);

/* More than this is not kept for a store that takes nothing: the state is read again from it
 * instead. */
enum { OUTBOX_BYTES_MAX = 32 * 1024 * 1024 };

struct outbox *outbox_new(const struct pipeline_ports *ports, outbox_action_fn *fn, void *context);
void outbox_free(struct outbox *outbox); /* waiters are told ERR_UNREACHABLE; submits are not
                                            answered after it */
DEFINE_AUTO(struct outbox, outbox_free)

void outbox_add_record(struct outbox *outbox, const char *record);
void outbox_add_action(struct outbox *outbox, const struct effect *take_effect);
/* fn is called once: when the records added so far are durable, or with the reason why they are not
 * yet. */
void outbox_add_waiter(struct outbox *outbox, pipeline_durable_fn *fn, void *context);
void outbox_flush(struct outbox *outbox); /* submits when nothing is under way */
void outbox_retry(struct outbox *outbox); /* the store is back: what failed goes again */
/* Drops what is not durable, with its actions; answers under way start nothing. Waiters are told
 * ERR_CONFLICT. */
void outbox_clear(struct outbox *outbox);

struct outbox_counts {
    int64_t records, batches, failed;
};
struct outbox_counts outbox_counts(const struct outbox *outbox);

#endif
