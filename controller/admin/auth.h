/* Who is speaking, and what they may do. A name comes only from what was proved: the uid of a Unix
 * peer, a bearer token of the token file, the CN of a verified client certificate, or that the
 * connection is local.
 *
 * | speaker                                        | roles | | Unix socket, uid 0, broomd's own or
 * admin_uids | admin                                         | | Unix socket, operator_uids |
 * operator                                      | | Unix socket, anybody else | reader | | bearer
 * token, client certificate               | as the file or auth.certificates says         | |
 * loopback, not forwarded by a proxy             | ingest, reader                                |
 * | elsewhere, where no identity is configured     | ingest, reader; never in mode enforce |
 *
 * A token that is sent must be right, wherever it comes from.
 */
#ifndef BROOM_ADMIN_AUTH_H
#define BROOM_ADMIN_AUTH_H

#include "controller/config/config.h"
#include "controller/io/http_server.h"

enum role {
    ROLE_INGEST = 1,   /* may send samples and job files */
    ROLE_READER = 2,   /* may look */
    ROLE_OPERATOR = 4, /* may look and command */
    ROLE_ADMIN = 8     /* may do everything */
};

enum permission {
    PERMISSION_READ = 0,
    PERMISSION_INGEST,
    PERMISSION_OPERATE,
    PERMISSION_ADMIN,
    PERMISSION_COUNT
};

struct identity {
    char name[128]; /* the actor of a command; "" when nobody was proved */
    unsigned roles; /* bits of enum role */
    char job[256];  /* bound to this job: may ingest for it and nothing else; "" when not bound */
};

struct auth;

/* Reads the token file and the names of the configured uids (that look-up may wait: only here and
 * in a reload). Findings hold "FILE:LINE:1: error: ..." lines when a line of the token file or an
 * entry of auth.certificates is wrong. A token file that everybody may read is ERR_REFUSED. */
MUST_CHECK enum status auth_new(const struct config *config, struct text *findings,
                                struct auth **ret_auth, struct error *reterr);
/* As auth_new, onto an auth that is in use; on any error it stays as it was. */
MUST_CHECK enum status auth_reload(struct auth *auth, const struct config *config,
                                   struct text *findings, struct error *reterr);
void auth_free(struct auth *auth);
DEFINE_AUTO(struct auth, auth_free)

/* Who sent this request. ERR_DENIED: nobody was proved; the message says what would. */
MUST_CHECK enum status auth_identify(const struct auth *auth, const struct http_request *request,
                                     struct identity *ret_identity, struct error *reterr);

/* job NULL: for anything; a job-bound identity may then ingest, and its lines are checked one by
 * one. */
bool auth_allows(const struct identity *identity, enum permission permission, const char *job);

/* auth_identify and auth_allows. ERR_DENIED with an empty ret_identity->name is 401, with a name
 * 403. */
MUST_CHECK enum status auth_check(const struct auth *auth, const struct http_request *request,
                                  enum permission permission, struct identity *ret_identity,
                                  struct error *reterr);

#endif
