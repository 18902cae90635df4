/* The private server: never two on one directory, back after any kind of death, down in bounded
 * time. */
#include "controller/store/embedded/cluster.h"
#include "controller/sys/clock.h"
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static struct temp_postgres temp;

static bool is_ready_again(void *context)
{
    const struct temp_postgres *one = context;
    return one->ready;
}

static bool is_not_ready(void *context)
{
    const struct temp_postgres *one = context;
    return !one->ready;
}

TEST(a_second_one_on_the_directory_is_refused_by_name)
{
    struct error error = {0};
    struct embedded *second = NULL;
    temp_postgres_start(&temp, true);
    struct embedded_params params = {.data_dir = temp.dir, .is_durable = true};
    CU_ASSERT_EQUAL(embedded_new(temp.loop, &params, NULL, NULL, &second, &error), ERR_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "in use by process"));
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT 1"), 1);
}

TEST(it_keeps_to_itself)
{
    struct stat info;
    AUTO_TEXT path = {0};
    AUTO_FREE char *listens = temp_sql(&temp, "SHOW listen_addresses");
    CU_ASSERT_STRING_EQUAL(listens, "");
    AUTO_FREE char *fsync = temp_sql(&temp, "SHOW fsync");
    CU_ASSERT_STRING_EQUAL(fsync, "on");
    AUTO_FREE char *pages = temp_sql(&temp, "SHOW full_page_writes");
    CU_ASSERT_STRING_EQUAL(pages, "on");
    text_addf(&path, "%s/postgres/socket", temp.dir);
    CU_ASSERT_EQUAL(stat(path.bytes, &info), 0);
    CU_ASSERT_EQUAL(info.st_mode & 0777, 0700);
    text_clear(&path);
    text_addf(&path, "/proc/%ld", (long)temp_postgres_pid(&temp));
    CU_ASSERT_EQUAL(stat(path.bytes, &info), 0);
    CU_ASSERT_NOT_EQUAL(info.st_uid, 0);
}

TEST(it_is_started_again_after_a_crash)
{
    AUTO_FREE char *made = temp_sql(&temp, "CREATE TABLE kept AS SELECT 42 AS n");
    CU_ASSERT_STRING_EQUAL(made, "");
    temp_postgres_kill(&temp, SIGKILL);
    CU_ASSERT_TRUE(run_until(temp.loop, is_not_ready, &temp, 10));
    CU_ASSERT_TRUE(run_until(temp.loop, is_ready_again, &temp, 30));
    CU_ASSERT_EQUAL(embedded_restarts(temp.embedded), 1);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT n FROM kept"), 42);
}

TEST(it_stops_in_bounded_time_and_lets_go)
{
    int64_t begun_ns = clock_read().monotonic_ns;
    pid_t pid = temp_postgres_pid(&temp);
    temp_postgres_stop(&temp);
    CU_ASSERT_TRUE(clock_read().monotonic_ns - begun_ns < INT64_C(10000000000));
    CU_ASSERT_NOT_EQUAL(kill(pid, 0), 0);
}

/* A daemon as a process of its own: tells through the pipe when its server is ready, then goes on
 * for ever. */
static pid_t start_daemon(const char *dir)
{
    int ends[2];
    char byte;
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        struct temp_postgres own;
        close(ends[0]);
        temp_postgres_start_in(&own, dir, true);
        if (write(ends[1], "r", 1) != 1)
            _exit(1);
        run_for_ms(own.loop, 600000);
        _exit(0);
    }
    close(ends[1]);
    CU_ASSERT_EQUAL(read(ends[0], &byte, 1), 1);
    close(ends[0]);
    return pid;
}

static void kill_daemon(pid_t pid)
{
    kill(pid, SIGKILL);
    CU_ASSERT_EQUAL(waitpid(pid, NULL, 0), pid);
}

TEST(after_a_killed_daemon_the_next_one_starts_at_once)
{
    char *dir = temp_dir();
    for (int i = 0; i < 3; i++)
        kill_daemon(start_daemon(dir));
    temp_postgres_start_in(&temp, dir, true);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT 1"), 1);
    temp_postgres_stop(&temp);
    remove_tree(dir);
}

struct old_server {
    struct temp_postgres *temp;
    pid_t pid;
    bool was_ready_beside_it;
};

static bool old_server_has_gone(void *context)
{
    struct old_server *old = context;
    struct stat info;
    char cwd[64];
    snprintf(cwd, sizeof cwd, "/proc/%ld/cwd", (long)old->pid);
    bool is_alive = stat(cwd, &info) == 0; /* a dead one that nobody has reaped has none */
    old->was_ready_beside_it |= is_alive && old->temp->ready;
    return !is_alive;
}

static void on_told(void *context, bool ready, const char *reason)
{
    struct temp_postgres *one = context;
    (void)reason;
    one->ready = ready;
}

TEST(a_server_that_was_left_behind_is_stopped_first)
{
    char *dir = temp_dir();
    pid_t daemon = start_daemon(dir);
    struct temp_postgres view = {.dir = dir};
    struct old_server old = {.temp = &temp, .pid = temp_postgres_pid(&view)};
    CU_ASSERT_TRUE_FATAL(old.pid > 0);
    kill(old.pid, SIGSTOP); /* so that it does not notice its daemon's death */
    kill_daemon(daemon);

    temp = (struct temp_postgres){.loop = loop_new(), .dir = xstrdup(dir)};
    struct embedded_params params = {.data_dir = dir, .is_durable = true};
    CU_ASSERT_EQUAL_FATAL(embedded_new(temp.loop, &params, on_told, &temp, &temp.embedded, NULL),
                          OK);
    run_for_ms(temp.loop, 400);
    CU_ASSERT_FALSE(temp.ready);
    kill(old.pid, SIGCONT);
    CU_ASSERT_TRUE(run_until(temp.loop, old_server_has_gone, &old, 20));
    CU_ASSERT_FALSE(old.was_ready_beside_it);
    CU_ASSERT_TRUE(run_until(temp.loop, is_ready_again, &temp, 20));
    CU_ASSERT_NOT_EQUAL(temp_postgres_pid(&temp), old.pid);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT 1"), 1);
    temp_postgres_stop(&temp);
    remove_tree(dir);
}

TEST(an_initdb_that_was_interrupted_is_begun_anew)
{
    AUTO_TEXT path = {0};
    char *dir = temp_dir();
    text_addf(&path, "%s/postgres", dir);
    CU_ASSERT_EQUAL(mkdir(path.bytes, 0711), 0);
    text_add(&path, "/data.new");
    CU_ASSERT_EQUAL(mkdir(path.bytes, 0700), 0);
    text_add(&path, "/half");
    FILE *half = fopen(path.bytes, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(half);
    fclose(half);
    temp_postgres_start_in(&temp, dir, false);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT 1"), 1);
    temp_postgres_stop(&temp);
    remove_tree(dir);
}

TEST(a_deep_directory_gets_a_short_socket)
{
    AUTO_TEXT path = {0};
    struct cluster cluster;
    char *dir = temp_dir();
    text_addf(&path, "%s/%0100d", dir, 7);
    struct embedded_params params = {.data_dir = path.bytes};
    CU_ASSERT_EQUAL_FATAL(cluster_find(&params, &cluster, NULL), OK);
    AUTO_FREE char *socket = xstrdup(cluster.socket);
    cluster_done(&cluster);
    CU_ASSERT_TRUE(strlen(socket) < 60);
    temp_postgres_start_in(&temp, path.bytes, false);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT 1"), 1);
    temp_postgres_stop(&temp);
    remove_tree(dir);
    remove_tree(TAKE(socket));
}

TEST(data_of_another_major_version_is_named)
{
    struct error error = {0};
    struct embedded *none = NULL;
    struct loop *loop = loop_new();
    AUTO_TEXT path = {0};
    char *dir = temp_dir();
    text_addf(&path, "%s/postgres", dir);
    CU_ASSERT_EQUAL(mkdir(path.bytes, 0711), 0);
    text_add(&path, "/data");
    CU_ASSERT_EQUAL(mkdir(path.bytes, 0700), 0);
    text_add(&path, "/PG_VERSION");
    FILE *version = fopen(path.bytes, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(version);
    fputs("7\n", version);
    fclose(version);
    struct embedded_params params = {.data_dir = dir};
    CU_ASSERT_EQUAL(embedded_new(loop, &params, NULL, NULL, &none, &error), ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "made by PostgreSQL 7"));
    loop_free(loop);
    remove_tree(dir);
}

TEST(what_is_missing_is_named)
{
    struct error error = {0};
    struct embedded *none = NULL;
    struct loop *loop = loop_new();
    char *dir = temp_dir();
    struct embedded_params no_server = {.data_dir = dir, .bin_dir = "/nowhere"};
    CU_ASSERT_EQUAL(embedded_new(loop, &no_server, NULL, NULL, &none, &error), ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "/nowhere"));
    struct embedded_params no_account = {.data_dir = dir, .account = "nobody-of-that-name"};
    struct embedded_params root = {.data_dir = dir, .account = "root"};
    if (geteuid() == 0) {
        CU_ASSERT_EQUAL(embedded_new(loop, &no_account, NULL, NULL, &none, &error), ERR_REFUSED);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "nobody-of-that-name"));
        CU_ASSERT_EQUAL(embedded_new(loop, &root, NULL, NULL, &none, &error), ERR_REFUSED);
    }
    loop_free(loop);
    remove_tree(dir);
}

TESTS(T(a_second_one_on_the_directory_is_refused_by_name), T(it_keeps_to_itself),
      T(it_is_started_again_after_a_crash), T(it_stops_in_bounded_time_and_lets_go),
      T(after_a_killed_daemon_the_next_one_starts_at_once),
      T(a_server_that_was_left_behind_is_stopped_first),
      T(an_initdb_that_was_interrupted_is_begun_anew), T(a_deep_directory_gets_a_short_socket),
      T(data_of_another_major_version_is_named), T(what_is_missing_is_named))
