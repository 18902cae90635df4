/* posix_spawn, three pipes' worth of plumbing, and a pidfd that becomes readable at the end. */
#include "controller/io/process.h"

#include "controller/sys/clock.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { TIMEOUT_MS_DEFAULT = 10000, READ_BYTES = 65536 };
static const size_t OUTPUT_BYTES_DEFAULT = 64u << 20;

struct stream {
    struct process *process;
    int fd; /* -1: closed */
    struct loop_fd *watch;
    struct text text;
};

enum process_state { PROCESS_WAITING = 0, PROCESS_RUNNING, PROCESS_ANSWERED };

struct process {
    struct process_runner *runner;
    struct process *next, *previous;
    enum process_state state;
    char **argv, **environment;
    char *input;
    size_t input_bytes;
    int timeout_ms;
    size_t output_bytes_max;
    pid_t pid; /* 0: not started, or reaped */
    int pidfd; /* -1: none */
    struct loop_fd *end_watch;
    struct stream output, errors;
    struct loop_timer *timer; /* of the limit; before the start: of the turn */
    int64_t started_ns;
    process_done_fn *fn;
    void *context;
};

struct process_runner {
    struct loop *loop;
    size_t most, running;
    struct process *first, *last; /* in order of arrival */
};

/* --- memory --- */

static char **copy_lines(const char *const *lines)
{
    size_t count = 0;
    while (lines != NULL && lines[count] != NULL)
        count++;
    char **copy = xcalloc(count + 1, sizeof *copy);
    for (size_t i = 0; i < count; i++)
        copy[i] = xstrdup(lines[i]);
    return copy;
}

static void free_lines(char **lines)
{
    for (size_t i = 0; lines[i] != NULL; i++)
        xfree(lines[i]);
    xfree(lines);
}

static void stream_close(struct stream *stream)
{
    loop_fd_free(TAKE(stream->watch));
    if (stream->fd >= 0)
        close(stream->fd);
    stream->fd = -1;
}

static void unlink_process(struct process *process)
{
    struct process_runner *runner = process->runner;
    *(process->previous != NULL ? &process->previous->next : &runner->first) = process->next;
    *(process->next != NULL ? &process->next->previous : &runner->last) = process->previous;
}

static void process_free(struct process *process)
{
    unlink_process(process);
    stream_close(&process->output);
    stream_close(&process->errors);
    text_done(&process->output.text);
    text_done(&process->errors.text);
    loop_fd_free(process->end_watch);
    if (process->pidfd >= 0)
        close(process->pidfd);
    loop_timer_free(process->timer);
    free_lines(process->argv);
    free_lines(process->environment);
    xfree(process->input);
    xfree(process);
}

/* --- the answer --- */

static void start_waiting(struct process_runner *runner);

static struct view view_of_text(const struct text *text)
{
    return (struct view){text->bytes, text->length};
}

/* Answers once. What is left of a process that does not end waits for its pidfd alone. */
static void answer(struct process *process, enum status status, int exit_code, const char *reason)
{
    struct process_runner *runner = process->runner;
    struct process_result result = {.status = status,
                                    .exit_code = exit_code,
                                    .output = view_of_text(&process->output.text),
                                    .errors = view_of_text(&process->errors.text),
                                    .reason = reason,
                                    .took_ns = clock_read().monotonic_ns - process->started_ns};
    stream_close(&process->output);
    stream_close(&process->errors);
    loop_timer_stop(process->timer);
    if (process->state == PROCESS_RUNNING)
        runner->running--;
    process->state = PROCESS_ANSWERED;
    process->fn(process->context, &result);
    if (process->pid == 0)
        process_free(process);
}

/* The whole session: what it started goes with it. Only while its leader is not reaped, so that the
 * number can be nobody else's. */
static void kill_session(const struct process *process)
{
    if (process->pid == 0)
        return;
    kill(-process->pid, SIGKILL);
    kill(process->pid, SIGKILL);
}

static void give_up(struct process *process, enum status status, const char *reason)
{
    struct process_runner *runner = process->runner;
    kill_session(process);
    answer(process, status, 0, reason);
    start_waiting(runner);
}

/* --- output --- */

/* False: nothing more can be read now. */
static bool read_some(struct stream *stream)
{
    char bytes[READ_BYTES];
    ssize_t got = read(stream->fd, bytes, sizeof bytes);
    if (got > 0) {
        text_add_bytes(&stream->text, bytes, (size_t)got);
        return stream->text.length <= stream->process->output_bytes_max;
    }
    if (got == 0 || (errno != EAGAIN && errno != EINTR))
        stream_close(stream);
    return got < 0 && errno == EINTR;
}

static bool is_too_much(const struct process *process)
{
    return process->output.text.length > process->output_bytes_max ||
           process->errors.text.length > process->output_bytes_max;
}

static void on_output(void *context, int fd, int events)
{
    struct stream *stream = context;
    (void)fd;
    (void)events;
    read_some(stream);
    if (is_too_much(stream->process))
        give_up(stream->process, ERR_LIMIT, "it wrote more than this call allows");
}

/* --- the end --- */

static void say_signal(struct process *process, int wait_status)
{
    char reason[64];
    snprintf(reason, sizeof reason, "signal %d ended it", WTERMSIG(wait_status));
    answer(process, ERR_IO, 0, reason);
}

static void on_end(void *context, int fd, int events)
{
    struct process *process = context;
    struct process_runner *runner = process->runner;
    int wait_status = 0;
    (void)fd;
    (void)events;
    pid_t got = waitpid(process->pid, &wait_status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    process->pid = 0;
    loop_fd_free(TAKE(process->end_watch));
    if (process->state == PROCESS_ANSWERED) {
        process_free(process);
        return;
    }
    /* Its own output is in the pipes already; what a child of its own may still write is not. */
    while (process->output.fd >= 0 && read_some(&process->output))
        ;
    while (process->errors.fd >= 0 && read_some(&process->errors))
        ;
    if (is_too_much(process))
        answer(process, ERR_LIMIT, 0, "it wrote more than this call allows");
    else if (got > 0 && WIFEXITED(wait_status))
        answer(process, OK, WEXITSTATUS(wait_status), NULL);
    else if (got > 0)
        say_signal(process, wait_status);
    else
        answer(process, ERR_IO, 0, "its end was taken by somebody else");
    start_waiting(runner);
}

/* --- the start --- */

/* A line of the call wins over one of ours with the same name. The lines are borrowed. */
static const char **environment_of(const struct process *process)
{
    size_t ours = 0, more = 0, used = 0;
    while (environ[ours] != NULL)
        ours++;
    while (process->environment[more] != NULL)
        more++;
    const char **lines = xcalloc(ours + more + 1, sizeof *lines);
    for (size_t i = 0; i < ours; i++) {
        size_t name = strcspn(environ[i], "=") + 1;
        bool replaced = false;
        for (size_t j = 0; j < more; j++)
            replaced = replaced || strncmp(environ[i], process->environment[j], name) == 0;
        if (!replaced)
            lines[used++] = environ[i];
    }
    for (size_t j = 0; j < more; j++)
        lines[used++] = process->environment[j];
    return lines;
}

/* A file in memory, so that a large input needs no writing on the loop. */
static int open_input(const struct process *process)
{
    if (process->input_bytes == 0)
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
    int fd = memfd_create("input", MFD_CLOEXEC);
    size_t written = 0;
    while (fd >= 0 && written < process->input_bytes) {
        ssize_t put = write(fd, process->input + written, process->input_bytes - written);
        if (put < 0 && errno != EINTR) {
            close(fd);
            return -1;
        }
        written += put > 0 ? (size_t)put : 0;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

/* A session of its own, signals as a fresh program expects them, no descriptor but three. */
static int spawn(struct process *process, int input, int output, int errors)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, errors, STDERR_FILENO);
    posix_spawn_file_actions_addclosefrom_np(&files, STDERR_FILENO + 1);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    AUTO_FREE const char **environment = environment_of(process);
    int failure = posix_spawnp(&process->pid, process->argv[0], &files, &attributes, process->argv,
                               (char **)(uintptr_t)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    if (failure != 0)
        process->pid = 0;
    return failure;
}

static void watch_stream(struct process *process, struct stream *stream, int fd)
{
    stream->process = process;
    stream->fd = fd;
    int flags = fcntl(fd, F_GETFL);
    fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    stream->watch = loop_fd_new(process->runner->loop, fd, LOOP_READ, on_output, stream);
}

static void close_pair(const int pair[2])
{
    for (int i = 0; i < 2; i++)
        if (pair[i] >= 0)
            close(pair[i]);
}

/* 0, or an errno: then nothing was started. */
static int launch(struct process *process)
{
    int output[2] = {-1, -1}, errors[2] = {-1, -1};
    int input = open_input(process);
    int failure = 0;
    if (input < 0 || pipe2(output, O_CLOEXEC) != 0 || pipe2(errors, O_CLOEXEC) != 0)
        failure = errno;
    else
        failure = spawn(process, input, output[1], errors[1]);
    if (failure == 0) {
        process->pidfd = (int)syscall(SYS_pidfd_open, process->pid, 0);
        failure = process->pidfd < 0 ? errno : 0;
        if (failure != 0) {
            kill_session(process);
            waitpid(process->pid, NULL, 0);
            process->pid = 0;
        }
    }
    if (input >= 0)
        close(input);
    if (failure != 0) {
        close_pair(output);
        close_pair(errors);
        return failure;
    }
    close(output[1]);
    close(errors[1]);
    watch_stream(process, &process->output, output[0]);
    watch_stream(process, &process->errors, errors[0]);
    process->end_watch = loop_fd_new(process->runner->loop, process->pidfd, LOOP_READ, on_end,
                                     process);
    return 0;
}

static void on_timer(void *context)
{
    struct process *process = context;
    struct process_runner *runner = process->runner;
    if (process->state == PROCESS_RUNNING && process->pid != 0) {
        char reason[64];
        snprintf(reason, sizeof reason, "no end within %d ms: killed", process->timeout_ms);
        give_up(process, ERR_TIMEOUT, reason);
        return;
    }
    process->started_ns = clock_read().monotonic_ns;
    int failure = launch(process);
    if (failure == 0) {
        loop_timer_set(process->timer, (int64_t)process->timeout_ms * 1000000);
        return;
    }
    char reason[256];
    snprintf(reason, sizeof reason, "'%s' cannot be started: %s", process->argv[0],
             strerror(failure));
    answer(process, ERR_UNREACHABLE, 0, reason);
    start_waiting(runner);
}

static void start_waiting(struct process_runner *runner)
{
    for (struct process *next = runner->first; next != NULL && runner->running < runner->most;
         next = next->next) {
        if (next->state != PROCESS_WAITING)
            continue;
        next->state = PROCESS_RUNNING;
        runner->running++;
        loop_timer_set(next->timer, 0);
    }
}

struct process_runner *process_runner_new(struct loop *loop, size_t most)
{
    assert(most > 0);
    struct process_runner *runner = xcalloc(1, sizeof *runner);
    runner->loop = loop;
    runner->most = most;
    return runner;
}

void process_runner_free(struct process_runner *runner)
{
    if (runner == NULL)
        return;
    while (runner->first != NULL) {
        struct process *process = runner->first;
        kill_session(process);
        /* One that cannot be killed now is init's once this process has ended. */
        if (process->pid != 0)
            waitpid(process->pid, NULL, WNOHANG);
        process_free(process);
    }
    xfree(runner);
}

void process_start(struct process_runner *runner, const struct process_call *call,
                   process_done_fn *fn, void *context)
{
    assert(call->argv != NULL && call->argv[0] != NULL);
    struct process *process = xcalloc(1, sizeof *process);
    process->runner = runner;
    process->argv = copy_lines(call->argv);
    process->environment = copy_lines(call->environment);
    process->input = xmalloc(call->input.length + 1);
    if (call->input.length > 0)
        memcpy(process->input, call->input.bytes, call->input.length);
    process->input_bytes = call->input.length;
    process->timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS_DEFAULT;
    process->output_bytes_max = call->output_bytes_max > 0 ? call->output_bytes_max
                                                           : OUTPUT_BYTES_DEFAULT;
    process->pidfd = process->output.fd = process->errors.fd = -1;
    process->started_ns = clock_read().monotonic_ns;
    process->timer = loop_timer_new(runner->loop, on_timer, process);
    process->fn = fn;
    process->context = context;
    process->previous = runner->last;
    *(runner->last != NULL ? &runner->last->next : &runner->first) = process;
    runner->last = process;
    start_waiting(runner);
}
