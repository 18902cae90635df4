/* Where a connection string leads: its hosts, with names turned into addresses before libpq sees
 * them, since libpq looks names up in the caller's thread.
 */
#ifndef BROOM_IO_PG_TARGET_H
#define BROOM_IO_PG_TARGET_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct pg_target;

/* Values of the connection string, each a comma-separated list or NULL; copied. */
struct pg_target *pg_target_new(struct loop *loop, const char *host, const char *hostaddr,
                                const char *port);
void pg_target_free(struct pg_target *target);

/* fn is called from the loop when every name was looked up (names are looked up each time: they
 * move). */
void pg_target_resolve(struct pg_target *target, loop_fn *fn, void *context);

/* Lists of equal length for libpq, the first host another one with each try, so that a silent host
 * cannot keep the others out. False: no host is known; reason says which name. */
bool pg_target_lists(const struct pg_target *target, unsigned try_number, struct text *host,
                     struct text *hostaddr, struct text *port, struct text *reason);

/* True when the connection string names no host: libpq's own default, a Unix socket, is used. */
bool pg_target_is_default(const struct pg_target *target);

#endif
