/* Processes that a rehearsal starts and must end: by pid, on every way out. A child dies with its
 * parent.
 */
#ifndef BROOM_REHEARSE_CHILD_H
#define BROOM_REHEARSE_CHILD_H

#include "controller/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct child {
    pid_t pid;        /* 0: none */
    const char *name; /* for messages; static */
    int code;         /* exit code once it has ended, 128 + signal when killed */
};

/* Starts argv[0] (a path), NULL-terminated; stdin is /dev/null, stdout goes to out_path (NULL:
 * /dev/null), stderr to err_path (NULL: ours). */
MUST_CHECK enum status child_start(struct child *child, const char *name, const char *const *argv,
                                   const char *out_path, const char *err_path,
                                   struct error *reterr);
bool child_is_alive(struct child *child);
/* Waits for its end; false when it is not over after limit_ms. */
bool child_wait(struct child *child, int limit_ms);
/* SIGTERM, and SIGKILL after limit_ms. No-op for none and for ended ones. */
void child_stop(struct child *child, int limit_ms);
/* SIGKILL at once. */
void child_kill(struct child *child, int limit_ms);

/* A TCP port of 127.0.0.1 that is free now. */
MUST_CHECK enum status free_port(int *ret_port, struct error *reterr);
/* The folder that this program lies in, without the last slash; cut when too long. */
MUST_CHECK enum status program_folder(char *buffer, size_t bytes, struct error *reterr);
/* Real time; returns early on a signal. */
void wait_ms(int milliseconds);

#endif
