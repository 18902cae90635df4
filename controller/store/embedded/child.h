/* One child process watched by the loop. */
#ifndef BROOM_STORE_EMBEDDED_CHILD_H
#define BROOM_STORE_EMBEDDED_CHILD_H

#include "controller/io/loop.h"

#include <sys/types.h>

/* Whom the child runs as. */
struct child_account {
    bool change;
    uid_t uid;
    gid_t gid;
};

struct child_params {
    char *const *argv;     /* argv[0] is a path; NULL at the end */
    const char *directory; /* its working directory */
    int output_fd;         /* its stdout and stderr */
    struct child_account account;
    int parent_death_signal; /* sent to it when this process dies; 0 none */
};

struct child;

/* wait_status as of waitpid. Called once, from the loop; free inside the call is allowed. */
typedef void child_fn(void *context, int wait_status);

/* ERR_IO. The child leads a session of its own, so that a terminal's ^C reaches only us. */
MUST_CHECK enum status child_start(struct loop *loop, const struct child_params *params,
                                   child_fn *fn, void *context, struct child **ret_child,
                                   struct error *reterr);
/* Stops watching; a child that still runs is left alone. */
void child_free(struct child *child);
void child_signal(const struct child *child, int signal);

#endif
