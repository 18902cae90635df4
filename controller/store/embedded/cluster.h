/* The files of a private cluster: where they lie, who owns them, what stands in them. No processes
 * here.
 */
#ifndef BROOM_STORE_EMBEDDED_CLUSTER_H
#define BROOM_STORE_EMBEDDED_CLUSTER_H

#include "controller/store/embedded/child.h"
#include "controller/store/embedded/embedded.h"

struct cluster {
    char *root;          /* DATA_DIR/postgres */
    char *data, *making; /* root/data; root/data.new while initdb works */
    char *socket, *conf, *log;
    char *initdb, *postgres; /* programs */
    char *account_name;
    char *conninfo;
    struct child_account account;
};

/* Finds programs and account. Then cluster_make_root, the caller's lock on it, cluster_prepare. */
MUST_CHECK enum status cluster_find(const struct embedded_params *params,
                                    struct cluster *ret_cluster, struct error *reterr);
MUST_CHECK enum status cluster_make_root(const struct cluster *cluster, struct error *reterr);
MUST_CHECK enum status cluster_prepare(const struct cluster *cluster, struct error *reterr);
void cluster_done(struct cluster *cluster);

bool cluster_is_made(const struct cluster *cluster);
/* Removes what an initdb that did not end has left. */
MUST_CHECK enum status cluster_clear_making(const struct cluster *cluster, struct error *reterr);
MUST_CHECK enum status cluster_keep_made(const struct cluster *cluster, struct error *reterr);

/* From postmaster.pid: the process that serves this directory, 0 when none lives. */
pid_t cluster_postmaster(const struct cluster *cluster);
/* The server says in postmaster.pid that it takes connections. */
bool cluster_is_ready(const struct cluster *cluster);

/* For reasons: the last line of the server's log. */
void cluster_last_log_line(const struct cluster *cluster, char *buffer, size_t bytes);
/* Opens the log for appending, beginning a new file when the old one is large. -1: errno says why.
 */
int cluster_open_log(const struct cluster *cluster);

#endif
