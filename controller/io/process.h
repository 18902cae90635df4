/* Programs run by argv on the loop: no shell, pipes, bounded output, a limit after which the
 * program and what it started are killed. Nothing here blocks: a program that cannot be killed (a
 * hung file system) is answered for at its limit and reaped whenever it ends. Each child is waited
 * for by its own pid, so that nobody else's children are disturbed.
 */
#ifndef BROOM_IO_PROCESS_H
#define BROOM_IO_PROCESS_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct process_runner;

struct process_call {
    const char *const *argv; /* argv[0]: path, or a name that is looked up on PATH; NULL at the end;
                                copied */
    const char *const *environment; /* further "NAME=value" lines, which win over our own; NULL at
                                       the end, or NULL; never logged; copied */
    struct view input;              /* what it reads from stdin; empty: /dev/null; copied */
    int timeout_ms;                 /* from the moment it is started; 0 means 10 s */
    size_t output_bytes_max;        /* of stdout and of stderr each; 0 means 64 MiB */
};

struct process_result {
    enum status status; /* OK: it ended by itself, whatever its exit code. ERR_UNREACHABLE: it was
                           never started. ERR_TIMEOUT, ERR_LIMIT (too much output): it was killed;
                           ERR_IO: a signal ended it. After these three it may have done its work */
    int exit_code;      /* when status is OK */
    struct view output, errors; /* lent for the call; NUL-terminated when not empty */
    const char *reason;         /* when status is not OK */
    int64_t took_ns;            /* real time */
};
typedef void process_done_fn(void *context, const struct process_result *result);

/* most: how many run at once; others wait for their turn in order. */
struct process_runner *process_runner_new(struct loop *loop, size_t most);
/* Not from inside an answer. Programs that run are killed and dropped without one. */
void process_runner_free(struct process_runner *runner);
DEFINE_AUTO(struct process_runner, process_runner_free)

/* fn is called exactly once, later, from the loop. */
void process_start(struct process_runner *runner, const struct process_call *call,
                   process_done_fn *fn, void *context);

#endif
