/* The daemon itself, with a token file: who is heard, that no secret reaches its output, that a bad
 * reload keeps the last good configuration, and that SIGTERM ends it. Its database is away, which
 * none of that needs.
 */
#include "controller/io/http_client.h"
#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char OPERATOR_TOKEN[] = "operator-secret-token-1";
static const char JOB_TOKEN[] = "job-secret-token-0001";

struct daemon {
    char folder[32];
    char yaml[64], tokens[64], log[64], socket[64];
    pid_t pid;
};

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

static void write_config(const struct daemon *daemon, const char *more)
{
    AUTO_TEXT yaml = {0};
    text_addf(
        &yaml,
        "data_dir: %s/data\nrun_dir: %s/run\ndatabase: host=127.0.0.1 port=1 user=nobody\n"
        "log: {level: debug}\nlisten: {api: '127.0.0.1:0', health: ''}\nauth: {tokens: %s}\n%s",
        daemon->folder, daemon->folder, daemon->tokens, more);
    write_file(daemon->yaml, yaml.bytes, 0600);
}

/* The code of the answer over the Unix socket; 0 when nobody answers. */
static int ask(const struct daemon *daemon, const char *method, const char *path, const char *token,
               const char *body)
{
    AUTO_TEXT url = {0};
    AUTO_FREE char *answer = NULL;
    size_t bytes;
    int code = 0;
    text_addf(&url, "http://broomd%s", path);
    struct http_call call = {.method = method,
                             .url = url.bytes,
                             .unix_socket = daemon->socket,
                             .bearer_token = token,
                             .body = view_of(body)};
    return http_call_wait(&call, &code, &answer, &bytes, NULL) == OK ? code : 0;
}

static void poll_pause(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL); /* between two looks at a condition */
}

static void wait_until_heard(const struct daemon *daemon)
{
    int64_t end_ns = clock_read().monotonic_ns + INT64_C(20000000000);
    while (ask(daemon, "GET", "/api/v1/status", NULL, NULL) == 0 &&
           clock_read().monotonic_ns < end_ns)
        poll_pause();
}

static void daemon_start(struct daemon *daemon)
{
    *daemon = (struct daemon){.folder = "/tmp/broom_test_XXXXXX"};
    if (access(BROOM_BINARY_DIR "/broomd", X_OK) != 0)
        test_skip_all("broomd is not built");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(daemon->folder));
    snprintf(daemon->yaml, sizeof daemon->yaml, "%s/broomd.yaml", daemon->folder);
    snprintf(daemon->tokens, sizeof daemon->tokens, "%s/tokens", daemon->folder);
    snprintf(daemon->log, sizeof daemon->log, "%s/log", daemon->folder);
    snprintf(daemon->socket, sizeof daemon->socket, "%s/run/broomd.sock", daemon->folder);
    AUTO_TEXT tokens = {0};
    text_addf(&tokens, "%s alice operator\n%s sender job:default/llm-17\n", OPERATOR_TOKEN,
              JOB_TOKEN);
    write_file(daemon->tokens, tokens.bytes, 0600);
    write_config(daemon, "");
    daemon->pid = fork();
    if (daemon->pid == 0) {
        int log = open(daemon->log, O_WRONLY | O_CREAT | O_APPEND, 0600);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        execl(BROOM_BINARY_DIR "/broomd", "broomd", "--config", daemon->yaml, (char *)NULL);
        _exit(127);
    }
    wait_until_heard(daemon);
}

static char *read_log(const struct daemon *daemon)
{
    char *log = test_read_file(daemon->log);
    CU_ASSERT_PTR_NOT_NULL_FATAL(log);
    return log;
}

/* Waits until the daemon has logged this event. */
static bool logged(const struct daemon *daemon, const char *event)
{
    int64_t end_ns = clock_read().monotonic_ns + INT64_C(20000000000);
    while (clock_read().monotonic_ns < end_ns) {
        AUTO_FREE char *log = read_log(daemon);
        if (strstr(log, event) != NULL)
            return true;
        poll_pause();
    }
    return false;
}

/* The exit code after SIGTERM. */
static int daemon_stop(struct daemon *daemon)
{
    int result = 0;
    kill(daemon->pid, SIGTERM);
    CU_ASSERT_EQUAL(waitpid(daemon->pid, &result, 0), daemon->pid);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

static void daemon_remove(const struct daemon *daemon)
{
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/rm", "rm", "-rf", daemon->folder, (char *)NULL);
        _exit(127);
    }
    waitpid(child, NULL, 0);
}

TEST(each_speaker_may_what_its_token_says_and_no_secret_is_logged)
{
    struct daemon daemon;
    daemon_start(&daemon);
    static const char line[] = "hello,job=default/llm-18,rank=0 host=\"a\",world=1i\n";
    CU_ASSERT_EQUAL(ask(&daemon, "GET", "/api/v1/status", NULL, NULL), 200);
    CU_ASSERT_EQUAL(ask(&daemon, "GET", "/api/v1/status", OPERATOR_TOKEN, NULL), 200);
    CU_ASSERT_EQUAL(ask(&daemon, "GET", "/api/v1/status", "operator-secret-token-2", NULL), 401);
    CU_ASSERT_EQUAL(ask(&daemon, "POST", "/write", OPERATOR_TOKEN, line), 403);
    CU_ASSERT_EQUAL(ask(&daemon, "POST", "/write", JOB_TOKEN, line), 400);
    CU_ASSERT_EQUAL(ask(&daemon, "GET", "/api/v1/jobs", JOB_TOKEN, NULL), 403);
    CU_ASSERT_EQUAL(ask(&daemon, "POST", "/api/v1/pause", JOB_TOKEN, "{\"text\":\"x\"}"), 403);
    kill(daemon.pid, SIGHUP);
    CU_ASSERT(logged(&daemon, "event=config_reloaded"));
    CU_ASSERT_EQUAL(daemon_stop(&daemon), 0);
    AUTO_FREE char *log = read_log(&daemon);
    CU_ASSERT_PTR_NULL(strstr(log, "secret"));
    CU_ASSERT_PTR_NULL(strstr(log, "Bearer"));
    daemon_remove(&daemon);
}

TEST(a_bad_reload_keeps_the_last_good_configuration_and_tokens)
{
    struct daemon daemon;
    daemon_start(&daemon);
    write_config(&daemon, "mod: enforce\n");
    kill(daemon.pid, SIGHUP);
    CU_ASSERT(logged(&daemon, "event=config_refused"));
    write_config(&daemon, "");
    write_file(daemon.tokens, "a-secret-that-is-alone\n", 0600);
    kill(daemon.pid, SIGHUP);
    CU_ASSERT(logged(&daemon, "event=auth_refused"));
    CU_ASSERT_EQUAL(ask(&daemon, "GET", "/api/v1/status", OPERATOR_TOKEN, NULL), 200);
    CU_ASSERT_EQUAL(daemon_stop(&daemon), 0);
    AUTO_FREE char *log = read_log(&daemon);
    CU_ASSERT(strstr(log, "did you mean 'mode'") != NULL);
    CU_ASSERT_PTR_NULL(strstr(log, "secret"));
    daemon_remove(&daemon);
}

TESTS(T(each_speaker_may_what_its_token_says_and_no_secret_is_logged),
      T(a_bad_reload_keeps_the_last_good_configuration_and_tokens))
