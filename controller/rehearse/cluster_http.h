/* The simulated cluster behind HTTP, and its ranks as senders.
 *
 *   GET  /v1/world              the cluster as it is now (cluster_write_world)
 *   PUT  /v1/operations/ID      does {"verb","incident","job","nodes","spares","reason","params"},
 * once an id GET  /v1/operations/ID      {"id","state","outcome","reason"}; 404 when it was never
 * asked for GET  /v1/job                the job document GET  /v1/log                its own log so
 * far, JSON lines POST /v1/start              {"broomd": URL}: the job starts and its ranks send
 * there POST /v1/trouble            {"lose_answers": n, "errors": n, "hold": VERB}: the next
 * operations are done but never answered; answered 500 without being done; the next one of this
 * verb is done but never answered
 *
 * Time is pipeline time (sys/clock). A clock that is shared with broomd is driven here.
 */
#ifndef BROOM_REHEARSE_CLUSTER_HTTP_H
#define BROOM_REHEARSE_CLUSTER_HTTP_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "controller/rehearse/cluster_state.h"

struct cluster_http;

struct cluster_http_params {
    struct loop *loop;       /* lent */
    struct cluster *cluster; /* lent */
    const char *stream_path; /* all lines as sent, zstd; NULL: not kept */
    const char *log_path;    /* the cluster's log, appended as it grows; NULL: not kept */
};

/* Listens on a free port of 127.0.0.1. Caller frees, before the loop and the cluster. */
MUST_CHECK enum status cluster_http_new(const struct cluster_http_params *params,
                                        struct cluster_http **ret_http, struct error *reterr);
void cluster_http_free(struct cluster_http *http);
DEFINE_AUTO(struct cluster_http, cluster_http_free)
int cluster_http_port(const struct cluster_http *http);

struct cluster_http_counts {
    int64_t lines, batches, retries, dropped_bytes, refused_batches;
};
struct cluster_http_counts cluster_http_counts(const struct cluster_http *http);

#endif
