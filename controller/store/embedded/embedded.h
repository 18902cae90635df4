/* A private PostgreSQL: made (initdb), started, watched and stopped by this process, reachable over
 * a Unix socket in the data directory only.
 *
 * DATA_DIR/postgres/data      the cluster, owned by the account that runs it
 *                  /socket    its socket (or /tmp/broom-HASH where the path would be too long)
 *                  /conf      pg_hba.conf and pg_ident.conf, ours
 *                  /server.log
 *                  /lock      one process a directory
 */
#ifndef BROOM_STORE_EMBEDDED_EMBEDDED_H
#define BROOM_STORE_EMBEDDED_EMBEDDED_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct embedded;

struct embedded_params {
    const char *data_dir; /* exists, or its parent does */
    const char *account;  /* runs the server when this process is root; NULL means postgres */
    const char
        *bin_dir; /* of postgres and initdb; NULL: the newest of /usr/lib/postgresql, else PATH */
    bool is_durable; /* false only in tests: no fsync */
};

/* ready: it takes connections. Not ready: reason says what is being done about it. Also called
 * again after a crash and the restart that follows. Never from inside a call of this interface. */
typedef void embedded_fn(void *context, bool ready, const char *reason);

/* Begins. ERR_REFUSED: another process uses the directory (named), or this one is root and the
 * account is missing or root itself. ERR_NOT_FOUND: no PostgreSQL is installed. ERR_IO: the
 * directory cannot be used. */
MUST_CHECK enum status embedded_new(struct loop *loop, const struct embedded_params *params,
                                    embedded_fn *fn, void *context, struct embedded **ret_embedded,
                                    struct error *reterr);
/* A server that still runs is told to stop at once, not waited for. */
void embedded_free(struct embedded *embedded);
DEFINE_AUTO(struct embedded, embedded_free)

/* For store_new; valid from the start, and the same after restarts. */
const char *embedded_conninfo(const struct embedded *embedded);
int64_t embedded_restarts(const struct embedded *embedded); /* after crashes */

/* Fast shutdown; after 2/3 of the time an immediate one, at its end SIGKILL. done is called once it
 * is down. */
void embedded_stop(struct embedded *embedded, int64_t timeout_ns, loop_fn *done, void *context);

#endif
