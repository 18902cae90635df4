/* fork, exec, wait. */
#include "controller/rehearse/child.h"

#include "controller/sys/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { POLL_MS = 10, NOT_STARTED = 127 };

static void redirect(int target, const char *path, int flags)
{
    int fd = open(path, flags, 0644);
    if (fd < 0 || dup2(fd, target) < 0)
        _exit(NOT_STARTED);
    close(fd);
}

static _Noreturn void become(const char *const *argv, const char *out_path, const char *err_path,
                             pid_t parent)
{
    union {
        const char *const *lent;
        char *const *argv;
    } words = {.lent = argv}; /* execv does not write to them */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    signal(SIGINT, SIG_IGN); /* the parent is told by the terminal, and ends us in order */
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent)
        _exit(NOT_STARTED);
    redirect(STDIN_FILENO, "/dev/null", O_RDONLY);
    redirect(STDOUT_FILENO, out_path != NULL ? out_path : "/dev/null",
             O_WRONLY | O_CREAT | O_TRUNC);
    if (err_path != NULL)
        redirect(STDERR_FILENO, err_path, O_WRONLY | O_CREAT | O_TRUNC);
    execv(argv[0], words.argv);
    _exit(NOT_STARTED);
}

enum status child_start(struct child *child, const char *name, const char *const *argv,
                        const char *out_path, const char *err_path, struct error *reterr)
{
    pid_t parent = getpid();
    *child = (struct child){.name = name};
    if (access(argv[0], X_OK) != 0)
        return error_set(reterr, ERR_NOT_FOUND, "cannot run '%s': %s", argv[0], strerror(errno));
    pid_t pid = fork();
    if (pid < 0)
        return error_set(reterr, ERR_IO, "cannot start %s: %s", name, strerror(errno));
    if (pid == 0)
        become(argv, out_path, err_path, parent);
    child->pid = pid;
    return OK;
}

bool child_is_alive(struct child *child)
{
    int status;
    if (child->pid == 0)
        return false;
    pid_t ended = waitpid(child->pid, &status, WNOHANG);
    if (ended == 0 || (ended < 0 && errno == EINTR))
        return true;
    child->pid = 0;
    child->code = NOT_STARTED;
    if (ended > 0)
        child->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    return false;
}

bool child_wait(struct child *child, int limit_ms)
{
    int64_t end_ns = clock_read().monotonic_ns + (int64_t)limit_ms * 1000000;
    while (child_is_alive(child)) {
        if (clock_read().monotonic_ns >= end_ns)
            return false;
        wait_ms(POLL_MS);
    }
    return true;
}

void child_stop(struct child *child, int limit_ms)
{
    if (!child_is_alive(child))
        return;
    kill(child->pid, SIGTERM);
    if (child_wait(child, limit_ms))
        return;
    child_kill(child, limit_ms);
}

void child_kill(struct child *child, int limit_ms)
{
    if (!child_is_alive(child))
        return;
    kill(child->pid, SIGKILL);
    (void)child_wait(child, limit_ms); /* nothing more can be done to it */
}

enum status free_port(int *ret_port, struct error *reterr)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    union {
        struct sockaddr_in *in;
        struct sockaddr *any;
    } pointer = {.in = &address};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool bound = fd >= 0 && bind(fd, pointer.any, length) == 0 &&
                 getsockname(fd, pointer.any, &length) == 0;
    if (fd >= 0)
        close(fd);
    if (!bound)
        return error_set(reterr, ERR_IO, "no free port on 127.0.0.1: %s", strerror(errno));
    *ret_port = ntohs(address.sin_port);
    return OK;
}

enum status program_folder(char *buffer, size_t bytes, struct error *reterr)
{
    ssize_t length = readlink("/proc/self/exe", buffer, bytes - 1);
    if (length <= 0)
        return error_set(reterr, ERR_IO, "cannot tell where this program lies: %s",
                         strerror(errno));
    buffer[length] = '\0';
    char *slash = strrchr(buffer, '/');
    if (slash != NULL)
        *slash = '\0';
    return OK;
}

void wait_ms(int milliseconds)
{
    poll(NULL, 0, milliseconds);
}
