/* Inside the store: what its files share. store.c drives the connection and the states, submit.c
 * the batches, lease.c the lease, query.c the reads.
 */
#ifndef BROOM_STORE_STORE_STATE_H
#define BROOM_STORE_STORE_STATE_H

#include "controller/io/pg.h"
#include "controller/store/dir_lock.h"
#include "controller/store/migrate.h"
#include "controller/store/spool.h"
#include "controller/store/store.h"

/* A batch on its way. One that the server refuses whole is split into children until the record
 * that is at fault stands alone; the parent is answered after its last child. */
struct batch {
    struct batch *next;
    struct batch *parent;
    int children;        /* not answered yet */
    struct text records; /* clean lines */
    int64_t count;
    bool may_spool;
    bool is_from_spool;
    store_done_fn *done;
    void *context;
    enum status status; /* of the answer that is due */
    char *reason;
};

struct batches {
    struct batch *first, *last;
    size_t count;
    size_t bytes;
};

struct store {
    struct loop *loop;
    char *conninfo;
    int64_t lease_ns;
    int32_t keep_days;
    bool is_private;
    store_change_fn *on_change;
    void *context;

    struct dir_lock *lock;
    struct spool *spool;
    char holder[80];   /* who we are in the lease row */
    struct pg *pg;     /* the writer's connection */
    struct pg *reader; /* made once there is a schema to read */
    bool reader_is_ready;
    bool reader_is_refused;
    struct reading *readings; /* asked, not answered */
    struct migrate *migrate;
    struct loop_timer *wake;       /* answers and changes that were caused inside a call */
    struct loop_timer *hold_timer; /* a server that answers with errors is given time */
    int64_t hold_ns;
    struct loop_timer *maintain;
    bool change_is_due;
    bool schema_is_refused;

    struct loop_timer *lease_timer;
    int64_t lease_until_ns; /* monotonic; by our own clock from before the request was sent */
    int64_t lease_asked_ns;

    struct batches queue;    /* not sent */
    struct batches flight;   /* sent as one statement */
    struct batches answered; /* done is due */
    int alone; /* so many batches of the queue go one by one: a merged flight failed */

    struct loop_timer *stop_timer;
    loop_fn *on_stopped;
    void *stop_context;
    bool is_stopping, is_releasing;

    struct store_status status;
};

void store_set_state(struct store *store, enum store_state state, const char *reason);
void store_changed(struct store *store); /* on_change is due, from the loop */
/* The server answered with an error that is not about our data: connect anew, later each time. */
void store_back_off(struct store *store, const char *reason);
void store_check_stopped(struct store *store);

/* lease.c */
void lease_begin(struct store *store); /* after migrating: renews ours, else takes it */
void lease_lost(struct store *store, const char *reason);
void lease_pause(struct store *store); /* the connection is gone; the lease itself runs on */
bool lease_is_held(const struct store *store);
void lease_release(struct store *store, pg_answer_fn *fn); /* fn is called in any case */

/* submit.c */
void submit_next(struct store *store); /* sends when nothing is under way and the store is up */
void submit_away(struct store *store,
                 const char *reason);        /* queued batches go to the spool or are answered */
void submit_answer_due(struct store *store); /* calls done of what is answered */
void submit_free(struct store *store);

/* query.c */
void query_reader_start(struct store *store);
void query_send_due(struct store *store);
void query_free(struct store *store);

#endif
