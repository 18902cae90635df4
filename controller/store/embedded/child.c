/* fork, exec, and a pidfd that becomes readable when the child ends. */
#include "controller/store/embedded/child.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_NOT_STARTED = 126 };

struct child {
    pid_t pid;
    int pidfd;
    struct loop_fd *watch;
    child_fn *fn;
    void *context;
};

static void say(const char *what)
{
    const char *reason = strerror(errno);
    /* Nobody is left to tell when this fails. */
    if (write(STDERR_FILENO, what, strlen(what)) < 0 || write(STDERR_FILENO, ": ", 2) < 0 ||
        write(STDERR_FILENO, reason, strlen(reason)) < 0 || write(STDERR_FILENO, "\n", 1) < 0)
        return;
}

static bool become(const struct child_account *account)
{
    return !account->change ||
           (setgroups(0, NULL) == 0 && setgid(account->gid) == 0 && setuid(account->uid) == 0);
}

_Noreturn static void run(const struct child_params *params, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    setsid();
    if (dup2(params->output_fd, STDOUT_FILENO) < 0 || dup2(params->output_fd, STDERR_FILENO) < 0)
        _exit(EXIT_NOT_STARTED);
    int null = open("/dev/null", O_RDONLY);
    if (null < 0 || dup2(null, STDIN_FILENO) < 0)
        say("/dev/null");
    if (!become(&params->account))
        say("the account cannot be taken");
    else if (chdir(params->directory) != 0)
        say(params->directory);
    /* After the change of account, which clears it. */
    else if (params->parent_death_signal != 0 &&
             prctl(PR_SET_PDEATHSIG, params->parent_death_signal) != 0)
        say("prctl");
    else if (getppid() == parent) {
        close_range(STDERR_FILENO + 1, ~0U, 0);
        execv(params->argv[0], params->argv);
        say(params->argv[0]);
    }
    _exit(EXIT_NOT_STARTED);
}

static void on_end(void *context, int fd, int events)
{
    struct child *child = context;
    int wait_status = 0;
    (void)fd;
    (void)events;
    pid_t got = waitpid(child->pid, &wait_status, WNOHANG);
    if (got == 0 || (got < 0 && errno == EINTR))
        return;
    child->pid = 0;
    loop_fd_free(TAKE(child->watch));
    child->fn(child->context, got < 0 ? 0 : wait_status);
}

enum status child_start(struct loop *loop, const struct child_params *params, child_fn *fn,
                        void *context, struct child **ret_child, struct error *reterr)
{
    pid_t parent = getpid();
    pid_t pid = fork();
    if (pid < 0)
        return error_set(reterr, ERR_IO, "'%s' cannot be started: %s", params->argv[0],
                         strerror(errno));
    if (pid == 0)
        run(params, parent);
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0) {
        enum status status = error_set(reterr, ERR_IO, "'%s' cannot be watched: %s",
                                       params->argv[0], strerror(errno));
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        return status;
    }
    struct child *child = xcalloc(1, sizeof *child);
    child->pid = pid;
    child->pidfd = pidfd;
    child->fn = fn;
    child->context = context;
    child->watch = loop_fd_new(loop, pidfd, LOOP_READ, on_end, child);
    *ret_child = child;
    return OK;
}

void child_free(struct child *child)
{
    if (child == NULL)
        return;
    loop_fd_free(child->watch);
    close(child->pidfd);
    xfree(child);
}

void child_signal(const struct child *child, int signal)
{
    if (child != NULL && child->pid > 0)
        kill(child->pid, signal);
}
