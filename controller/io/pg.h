/* One PostgreSQL connection on the loop, never waiting (pg.c is the only includer of libpq-fe.h).
 * Statements queue and run one after another; each has a deadline, after which the connection is
 * dropped (libpq's cancel can wait, so it is not used) and every queued statement fails with
 * ERR_UNREACHABLE. The connection is made again with back-off. Host names are resolved outside the
 * loop's thread or not at all: addresses and Unix sockets never wait.
 */
#ifndef BROOM_IO_PG_H
#define BROOM_IO_PG_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct pg;

struct pg_answer {
    enum status
        status;           /* OK, ERR_UNREACHABLE (may have happened), ERR_CONFLICT (serialization,
                             or class P0: raised by our functions), ERR_INVALID (the server refused it) */
    const char *reason;   /* server's message when not OK */
    const char *sqlstate; /* five characters or "" */
    int rows, columns;
    const void *result; /* for pg_value */
};
typedef void pg_answer_fn(void *context, const struct pg_answer *answer);

/* conninfo: a libpq connection string or URL; one that cannot be read is told by on_state. on_state
 * is called with up = true after each (re)connect. */
typedef void pg_state_fn(void *context, bool up, const char *reason);
struct pg *pg_new(struct loop *loop, const char *conninfo, pg_state_fn *on_state, void *context);
void pg_free(
    struct pg *pg); /* not from inside an answer; queued statements are dropped without one */
DEFINE_AUTO(struct pg, pg_free)
bool pg_is_up(const struct pg *pg);
/* Tries now instead of when the back-off ends; no effect while connected or connecting. */
void pg_try_now(struct pg *pg);
/* Drops the connection and makes a new one: for a server that takes no writes. From the loop. */
void pg_drop(struct pg *pg, const char *reason);

/* Queues one statement with text parameters ($1..). NULL entries are SQL NULL. All is copied.
 * timeout_ms 0 means 30 s. When the connection is down, fn is called from the loop with
 * ERR_UNREACHABLE. Without parameters sql may be a script of several statements; the answer is the
 * last one's, or the first failure's. */
void pg_query(struct pg *pg, const char *sql, const char *const *params, int param_count,
              int timeout_ms, pg_answer_fn *fn, void *context);

/* Text of a value, or NULL for SQL NULL; lent for the time of the answer call. */
const char *pg_value(const struct pg_answer *answer, int row, int column);

#endif
