#include "tests/harness/temp_postgres.h"

#include "controller/store/embedded/cluster.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "tests/harness/test.h"

#include <assert.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { START_TIMEOUT_S = 60, ANSWER_TIMEOUT_S = 60 };

/* ---- directories ---- */

char *temp_dir(void)
{
    char *path = xstrdup("/tmp/broom-test-XXXXXX");
    if (mkdtemp(path) == NULL || chmod(path, 0711) != 0) {
        perror(path);
        exit(2);
    }
    return path;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

void remove_tree(char *take_path)
{
    (void)nftw(take_path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    xfree(take_path);
}

/* ---- the loop ---- */

struct waiting {
    struct loop *loop;
    struct loop_timer *timer;
    holds_fn *holds;
    void *context;
    int64_t deadline_ns;
    bool held;
};

static void on_look(void *context)
{
    struct waiting *waiting = context;
    waiting->held = waiting->holds(waiting->context);
    if (waiting->held || clock_read().monotonic_ns > waiting->deadline_ns)
        loop_stop(waiting->loop);
    else
        loop_timer_set(waiting->timer, 2000000);
}

bool run_until(struct loop *loop, holds_fn *holds, void *context, int timeout_s)
{
    struct waiting waiting = {.loop = loop, .holds = holds, .context = context};
    waiting.deadline_ns = clock_read().monotonic_ns + timeout_s * INT64_C(1000000000);
    waiting.timer = loop_timer_new(loop, on_look, &waiting);
    loop_timer_set(waiting.timer, 0);
    loop_run(loop);
    loop_timer_free(waiting.timer);
    return waiting.held;
}

static bool is_past(void *context)
{
    const int64_t *until_ns = context;
    return clock_read().monotonic_ns >= *until_ns;
}

void run_for_ms(struct loop *loop, int ms)
{
    int64_t until_ns = clock_read().monotonic_ns + ms * INT64_C(1000000);
    (void)run_until(loop, is_past, &until_ns, 3600);
}

/* ---- the server ---- */

static void on_embedded(void *context, bool ready, const char *reason)
{
    struct temp_postgres *temp = context;
    (void)reason;
    temp->ready = ready;
    temp->ready_count += ready;
}

static bool is_ready(void *context)
{
    const struct temp_postgres *temp = context;
    return temp->ready;
}

void temp_postgres_start_in(struct temp_postgres *temp, const char *dir, bool is_durable)
{
    struct error error = {0};
    clock_init(1, 0, 0);
    /* The tests make errors on purpose; TEST_LOG shows what is said of them. */
    log_init(getenv("TEST_LOG") != NULL ? LOG_DEBUG : LOG_ERROR + 1);
    *temp = (struct temp_postgres){.loop = loop_new(), .dir = xstrdup(dir)};
    struct embedded_params params = {.data_dir = temp->dir, .is_durable = is_durable};
    enum status status = embedded_new(temp->loop, &params, on_embedded, temp, &temp->embedded,
                                      &error);
    if (status == ERR_NOT_FOUND)
        test_skip_all(error.message);
    if (status != OK || !run_until(temp->loop, is_ready, temp, START_TIMEOUT_S)) {
        printf("no PostgreSQL for the test: %s\n", error.message);
        exit(2);
    }
}

void temp_postgres_start(struct temp_postgres *temp, bool is_durable)
{
    AUTO_FREE char *dir = temp_dir();
    temp_postgres_start_in(temp, dir, is_durable);
    temp->dir_is_ours = true;
}

static void on_stopped(void *context)
{
    bool *stopped = context;
    *stopped = true;
}

static bool is_true(void *context)
{
    const bool *flag = context;
    return *flag;
}

void temp_postgres_stop(struct temp_postgres *temp)
{
    bool stopped = false;
    embedded_stop(temp->embedded, INT64_C(15000000000), on_stopped, &stopped);
    if (!run_until(temp->loop, is_true, &stopped, 30))
        printf("PostgreSQL did not stop\n");
    embedded_free(temp->embedded);
    loop_free(temp->loop);
    if (temp->dir_is_ours)
        remove_tree(temp->dir);
    else
        xfree(temp->dir);
}

pid_t temp_postgres_pid(const struct temp_postgres *temp)
{
    struct cluster cluster;
    struct embedded_params params = {.data_dir = temp->dir};
    if (cluster_find(&params, &cluster, NULL) != OK)
        return 0;
    pid_t pid = cluster_postmaster(&cluster);
    cluster_done(&cluster);
    return pid;
}

void temp_postgres_kill(const struct temp_postgres *temp, int signal_number)
{
    pid_t pid = temp_postgres_pid(temp);
    assert(pid > 0);
    kill(pid, signal_number);
}

/* ---- one statement ---- */

struct asking {
    struct pg *pg;
    const char *sql;
    char *value;
};

static void on_value(void *context, const struct pg_answer *answer)
{
    struct asking *asking = context;
    struct text text = {0};
    const char *value = answer->rows > 0 ? pg_value(answer, 0, 0) : NULL;
    if (answer->status != OK)
        text_addf(&text, "ERROR %s", answer->sqlstate);
    else
        text_add(&text, value != NULL ? value : "");
    asking->value = text_take(&text);
}

static void on_sql_state(void *context, bool up, const char *reason)
{
    struct asking *asking = context;
    (void)reason;
    if (up)
        pg_query(asking->pg, asking->sql, NULL, 0, 0, on_value, asking);
}

static bool has_value(void *context)
{
    const struct asking *asking = context;
    return asking->value != NULL;
}

char *temp_sql(struct temp_postgres *temp, const char *sql)
{
    struct asking asking = {.sql = sql};
    asking.pg = pg_new(temp->loop, embedded_conninfo(temp->embedded), on_sql_state, &asking);
    (void)run_until(temp->loop, has_value, &asking, ANSWER_TIMEOUT_S);
    pg_free(asking.pg);
    return asking.value != NULL ? asking.value : xstrdup("ERROR no answer");
}

int64_t temp_sql_int(struct temp_postgres *temp, const char *sql)
{
    int64_t number = -1;
    AUTO_FREE char *text = temp_sql(temp, sql);
    if (!text_parse_int(view_of(text), &number)) {
        printf("'%s' gives '%s'\n", sql, text);
        return -1;
    }
    return number;
}

/* ---- a store ---- */

static void on_change(void *context)
{
    struct temp_store *at = context;
    at->changes++;
}

struct state_wait {
    const struct store *store;
    enum store_state state;
};

static bool has_state(void *context)
{
    const struct state_wait *wait = context;
    return store_status(wait->store).state == wait->state;
}

bool temp_store_wait(struct temp_store *at, enum store_state state, int timeout_s)
{
    struct state_wait wait = {.store = at->store, .state = state};
    bool held = run_until(at->temp->loop, has_state, &wait, timeout_s);
    if (!held)
        printf("the store is %s, not %s: %s\n", store_state_name(store_status(at->store).state),
               store_state_name(state), store_status(at->store).reason);
    return held;
}

void temp_store_open(struct temp_store *at, struct temp_postgres *temp, const char *name,
                     bool is_private)
{
    struct text dir = {0};
    struct error error = {0};
    text_addf(&dir, "%s/%s", temp->dir, name);
    *at = (struct temp_store){.temp = temp, .dir = text_take(&dir)};
    struct store_params params = {.conninfo = embedded_conninfo(temp->embedded),
                                  .dir = at->dir,
                                  .is_private = is_private,
                                  .lease_ns = INT64_C(2000000000)};
    if (store_new(temp->loop, &params, on_change, at, &at->store, &error) != OK) {
        printf("no store for the test: %s\n", error.message);
        exit(2);
    }
}

void temp_store_close(struct temp_store *at)
{
    store_free(TAKE(at->store));
    xfree(at->dir);
}

void temp_store_stop(struct temp_store *at)
{
    bool stopped = false;
    store_stop(at->store, INT64_C(10000000000), on_stopped, &stopped);
    if (!run_until(at->temp->loop, is_true, &stopped, 30))
        printf("the store did not stop\n");
    temp_store_close(at);
}

struct submitting {
    bool is_done;
    enum status status;
};

static void on_done(void *context, enum status status, const char *reason)
{
    struct submitting *submitting = context;
    submitting->is_done = true;
    submitting->status = status;
    if (status != OK && getenv("TEST_LOG") != NULL)
        printf("answer: %s: %s\n", status_name(status), reason);
}

static bool is_answered(void *context)
{
    const struct submitting *submitting = context;
    return submitting->is_done;
}

enum status temp_submit(struct temp_store *at, const char *records, unsigned flags)
{
    struct submitting submitting = {.status = ERR_TIMEOUT};
    store_submit(at->store, view_of(records), flags, on_done, &submitting);
    if (!run_until(at->temp->loop, is_answered, &submitting, ANSWER_TIMEOUT_S)) {
        printf("a batch was not answered\n");
        exit(2); /* the answer would be written to a dead frame */
    }
    return submitting.status;
}

struct reading_wait {
    bool is_done;
    char *json;
};

static void on_json(void *context, enum status status, const char *reason, struct view json)
{
    struct reading_wait *reading = context;
    reading->is_done = true;
    if (status == OK)
        reading->json = xstrndup(json.bytes, json.length);
    else
        printf("not read: %s\n", reason);
}

static bool is_read(void *context)
{
    const struct reading_wait *reading = context;
    return reading->is_done;
}

char *temp_query(struct temp_store *at, enum store_read read, const char *first_param)
{
    struct reading_wait reading = {0};
    const char *const params[STORE_PARAMS_MAX] = {first_param};
    store_query(at->store, read, params, on_json, &reading);
    if (!run_until(at->temp->loop, is_read, &reading, ANSWER_TIMEOUT_S)) {
        printf("a query was not answered\n");
        exit(2);
    }
    return reading.json;
}
