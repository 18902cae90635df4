/* The life of the private server: an old one of ours is stopped, the cluster is made once, the
 * server is started, watched, started again after a crash, stopped.
 */
#include "controller/store/embedded/embedded.h"

#include "controller/store/dir_lock.h"
#include "controller/store/embedded/cluster.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    ARGS_MAX = 48,
    OLD_FAST_MS = 10000,
    OLD_IMMEDIATE_MS = 15000,
    POLL_MS = 20,
    BACKOFF_MS = 200,
    BACKOFF_MAX_MS = 10000,
    STEADY_S = 60
};

static const int64_t NS_PER_MS = 1000000;

enum embedded_state {
    EMBEDDED_BEGINNING = 0, /* also between two tries */
    EMBEDDED_STOPPING_OLD,
    EMBEDDED_MAKING,
    EMBEDDED_STARTING,
    EMBEDDED_READY,
    EMBEDDED_STOPPING,
    EMBEDDED_DOWN,
};

struct embedded {
    struct loop *loop;
    struct cluster cluster;
    struct dir_lock *lock;
    bool is_durable;
    embedded_fn *fn;
    void *context;
    enum embedded_state state;
    struct child *child;
    struct loop_timer *timer; /* the next step, or the next look at the server */
    int64_t since_ns;         /* monotonic: of the state */
    int64_t backoff_ms;
    int64_t restarts;
    struct loop_timer *stop_timer;
    int stop_signal; /* sent when stop_timer rings */
    int64_t stop_rest_ns;
    loop_fn *on_stopped;
    void *stop_context;
};

static void enter(struct embedded *embedded, enum embedded_state state)
{
    embedded->state = state;
    embedded->since_ns = clock_read().monotonic_ns;
}

static int64_t in_state_ms(const struct embedded *embedded)
{
    return (clock_read().monotonic_ns - embedded->since_ns) / NS_PER_MS;
}

static void look_again(struct embedded *embedded, int64_t after_ms)
{
    loop_timer_set(embedded->timer, after_ms * NS_PER_MS);
}

/* ---- down ---- */

static void went_down(struct embedded *embedded)
{
    loop_fn *fn = TAKE(embedded->on_stopped);
    enter(embedded, EMBEDDED_DOWN);
    loop_timer_stop(embedded->timer);
    loop_timer_stop(embedded->stop_timer);
    if (fn != NULL)
        fn(embedded->stop_context);
}

/* Something failed: told, and tried again later. */
static void fail(struct embedded *embedded, const char *what)
{
    char line[256];
    AUTO_TEXT reason = {0};
    cluster_last_log_line(&embedded->cluster, line, sizeof line);
    text_addf(&reason, "%s; its log ends: %s", what, line);
    log_event(LOG_ERROR, "postgres_failed", kv_str("reason", reason.bytes),
              kv_int("retry_ms", embedded->backoff_ms), kv_str("log", embedded->cluster.log));
    enter(embedded, EMBEDDED_BEGINNING);
    look_again(embedded, embedded->backoff_ms);
    embedded->backoff_ms *= 2;
    if (embedded->backoff_ms > BACKOFF_MAX_MS)
        embedded->backoff_ms = BACKOFF_MAX_MS;
    embedded->fn(embedded->context, false, reason.bytes);
}

static void describe_end(int wait_status, const char *name, char *buffer, size_t bytes)
{
    if (WIFSIGNALED(wait_status))
        snprintf(buffer, bytes, "%s was ended by signal %d", name, WTERMSIG(wait_status));
    else
        snprintf(buffer, bytes, "%s ended with code %d", name, WEXITSTATUS(wait_status));
}

/* ---- programs ---- */

struct args {
    char *items[ARGS_MAX + 1];
    size_t count;
};

static void add_arg(struct args *args, const char *format, ...) PRINTF_LIKE(2, 3);
static void add_arg(struct args *args, const char *format, ...)
{
    struct text text = {0};
    va_list list;
    assert(args->count < ARGS_MAX);
    va_start(list, format);
    text_addv(&text, format, list);
    va_end(list);
    args->items[args->count++] = text_take(&text);
}

static void add_setting(struct args *args, const char *setting)
{
    add_arg(args, "-c");
    add_arg(args, "%s", setting);
}

static enum status start_program(struct embedded *embedded, const struct args *args,
                                 int death_signal, child_fn *fn, struct error *reterr)
{
    int log = cluster_open_log(&embedded->cluster);
    if (log < 0)
        return error_set(reterr, ERR_IO, "'%s' cannot be opened: %s", embedded->cluster.log,
                         strerror(errno));
    struct child_params params = {.argv = args->items,
                                  .directory = embedded->cluster.root,
                                  .output_fd = log,
                                  .account = embedded->cluster.account,
                                  .parent_death_signal = death_signal};
    enum status status = child_start(embedded->loop, &params, fn, embedded, &embedded->child,
                                     reterr);
    close(log);
    return status;
}

static void args_done(struct args *args)
{
    for (size_t i = 0; i < args->count; i++)
        xfree(args->items[i]);
}

/* ---- the server ---- */

static void on_server_end(void *context, int wait_status)
{
    struct embedded *embedded = context;
    char what[64];
    child_free(TAKE(embedded->child));
    if (embedded->state == EMBEDDED_STOPPING) {
        log_event(LOG_INFO, "postgres_stopped", kv_int("took_ms", in_state_ms(embedded)));
        went_down(embedded);
        return;
    }
    describe_end(wait_status, "postgres", what, sizeof what);
    if (embedded->state == EMBEDDED_READY && in_state_ms(embedded) > STEADY_S * INT64_C(1000))
        embedded->backoff_ms = BACKOFF_MS;
    embedded->restarts++;
    fail(embedded, what);
}

static void add_durability(struct args *args, bool is_durable)
{
    add_setting(args, is_durable ? "fsync=on" : "fsync=off");
    add_setting(args, is_durable ? "full_page_writes=on" : "full_page_writes=off");
    add_setting(args, is_durable ? "synchronous_commit=on" : "synchronous_commit=off");
}

/* On the command line, where they win over the files: what this program relies on. The rest is the
 * site's to tune in data/postgresql.conf. */
static void server_args(const struct embedded *embedded, struct args *args)
{
    const struct cluster *cluster = &embedded->cluster;
    static const char *const settings[] = {
        "listen_addresses=",
        "unix_socket_permissions=0700",
        "shared_buffers=64MB",
        "max_connections=20",
        "max_wal_size=512MB",
        "jit=off",
        "timezone=UTC",
        "log_timezone=UTC",
        "logging_collector=off",
        "log_destination=stderr",
        "log_line_prefix=%m [%p] ",
        "log_checkpoints=off",
        "autovacuum=on",
        "max_wal_senders=0",
        "wal_level=minimal",
        "archive_mode=off",
    };
    add_arg(args, "%s", cluster->postgres);
    add_arg(args, "-D");
    add_arg(args, "%s", cluster->data);
    for (size_t i = 0; i < ARRAY_LEN(settings); i++)
        add_setting(args, settings[i]);
    add_arg(args, "-c");
    add_arg(args, "unix_socket_directories=\"%s\"", cluster->socket);
    add_arg(args, "-c");
    add_arg(args, "hba_file=%s/pg_hba.conf", cluster->conf);
    add_arg(args, "-c");
    add_arg(args, "ident_file=%s/pg_ident.conf", cluster->conf);
    add_durability(args, embedded->is_durable);
}

static void start_server(struct embedded *embedded)
{
    struct args args = {0};
    struct error error = {0};
    server_args(embedded, &args);
    enter(embedded, EMBEDDED_STARTING);
    /* SIGINT is its fast shutdown: a server does not outlive a broomd that was killed. */
    enum status status = start_program(embedded, &args, SIGINT, on_server_end, &error);
    args_done(&args);
    if (status != OK)
        fail(embedded, error.message);
    else
        look_again(embedded, POLL_MS);
}

static void look_for_ready(struct embedded *embedded)
{
    if (!cluster_is_ready(&embedded->cluster)) {
        look_again(embedded, POLL_MS);
        return;
    }
    log_event(LOG_INFO, "postgres_ready", kv_int("took_ms", in_state_ms(embedded)),
              kv_str("socket", embedded->cluster.socket), kv_int("restarts", embedded->restarts));
    enter(embedded, EMBEDDED_READY);
    embedded->fn(embedded->context, true, "");
}

/* ---- the cluster ---- */

static void on_made(void *context, int wait_status)
{
    struct embedded *embedded = context;
    struct error error = {0};
    char what[64];
    child_free(TAKE(embedded->child));
    if (embedded->state == EMBEDDED_STOPPING) {
        went_down(embedded);
        return;
    }
    describe_end(wait_status, "initdb", what, sizeof what);
    if (wait_status != 0)
        fail(embedded, what);
    else if (cluster_keep_made(&embedded->cluster, &error) != OK)
        fail(embedded, error.message);
    else
        start_server(embedded);
}

static void make_cluster(struct embedded *embedded)
{
    struct args args = {0};
    struct error error = {0};
    if (cluster_clear_making(&embedded->cluster, &error) != OK) {
        fail(embedded, error.message);
        return;
    }
    add_arg(&args, "%s", embedded->cluster.initdb);
    add_arg(&args, "--pgdata=%s", embedded->cluster.making);
    add_arg(&args, "--username=postgres");
    add_arg(&args, "--auth=peer");
    add_arg(&args, "--auth-host=reject");
    add_arg(&args, "--encoding=UTF8");
    add_arg(&args, "--locale=C.UTF-8");
    add_arg(&args, "--no-instructions");
    add_arg(&args, "--data-checksums");
    if (!embedded->is_durable)
        add_arg(&args, "--no-sync");
    enter(embedded, EMBEDDED_MAKING);
    enum status status = start_program(embedded, &args, SIGTERM, on_made, &error);
    args_done(&args);
    if (status != OK)
        fail(embedded, error.message);
}

/* ---- a server that an earlier daemon left ---- */

static void go_on(struct embedded *embedded)
{
    if (cluster_is_made(&embedded->cluster))
        start_server(embedded);
    else
        make_cluster(embedded);
}

static void look_for_old_end(struct embedded *embedded)
{
    pid_t old = cluster_postmaster(&embedded->cluster);
    if (old == 0) {
        go_on(embedded);
        return;
    }
    int64_t waited_ms = in_state_ms(embedded);
    if (waited_ms > OLD_IMMEDIATE_MS)
        kill(old, SIGKILL);
    else if (waited_ms > OLD_FAST_MS)
        kill(old, SIGQUIT);
    look_again(embedded, POLL_MS);
}

static void begin(struct embedded *embedded)
{
    pid_t old = cluster_postmaster(&embedded->cluster);
    if (old == 0) {
        go_on(embedded);
        return;
    }
    log_event(LOG_WARN, "postgres_left_behind", kv_int("pid", old),
              kv_str("then", "it is stopped first"));
    enter(embedded, EMBEDDED_STOPPING_OLD);
    kill(old, SIGINT);
    look_again(embedded, POLL_MS);
}

static void on_timer(void *context)
{
    struct embedded *embedded = context;
    switch (embedded->state) {
    case EMBEDDED_BEGINNING:
        begin(embedded);
        break;
    case EMBEDDED_STOPPING_OLD:
        look_for_old_end(embedded);
        break;
    case EMBEDDED_STARTING:
        look_for_ready(embedded);
        break;
    case EMBEDDED_STOPPING:
        if (embedded->child == NULL)
            went_down(embedded);
        break;
    case EMBEDDED_MAKING:
    case EMBEDDED_READY:
    case EMBEDDED_DOWN:
        break;
    }
}

/* ---- the interface ---- */

static void on_stop_timer(void *context);

enum status embedded_new(struct loop *loop, const struct embedded_params *params, embedded_fn *fn,
                         void *context, struct embedded **ret_embedded, struct error *reterr)
{
    AUTO(embedded_free) struct embedded *embedded = xcalloc(1, sizeof *embedded);
    embedded->loop = loop;
    embedded->is_durable = params->is_durable;
    embedded->fn = fn;
    embedded->context = context;
    embedded->backoff_ms = BACKOFF_MS;
    embedded->timer = loop_timer_new(loop, on_timer, embedded);
    embedded->stop_timer = loop_timer_new(loop, on_stop_timer, embedded);
    enter(embedded, EMBEDDED_BEGINNING);
    TRY(cluster_find(params, &embedded->cluster, reterr));
    TRY(cluster_make_root(&embedded->cluster, reterr));
    TRY(dir_lock_take(embedded->cluster.root, &embedded->lock, reterr));
    TRY(cluster_prepare(&embedded->cluster, reterr));
    loop_timer_set(embedded->timer, 0);
    *ret_embedded = TAKE(embedded);
    return OK;
}

void embedded_free(struct embedded *embedded)
{
    if (embedded == NULL)
        return;
    child_signal(embedded->child, SIGINT);
    child_free(embedded->child);
    loop_timer_free(embedded->timer);
    loop_timer_free(embedded->stop_timer);
    cluster_done(&embedded->cluster);
    dir_lock_free(embedded->lock);
    xfree(embedded);
}

const char *embedded_conninfo(const struct embedded *embedded)
{
    return embedded->cluster.conninfo;
}

int64_t embedded_restarts(const struct embedded *embedded)
{
    return embedded->restarts;
}

static void on_stop_timer(void *context)
{
    struct embedded *embedded = context;
    log_event(LOG_WARN, "postgres_slow_to_stop", kv_int("signal", embedded->stop_signal));
    child_signal(embedded->child, embedded->stop_signal);
    embedded->stop_signal = SIGKILL;
    loop_timer_set(embedded->stop_timer, embedded->stop_rest_ns);
}

void embedded_stop(struct embedded *embedded, int64_t timeout_ns, loop_fn *done, void *context)
{
    bool is_making = embedded->state == EMBEDDED_MAKING;
    embedded->on_stopped = done;
    embedded->stop_context = context;
    embedded->stop_signal = SIGQUIT;
    embedded->stop_rest_ns = timeout_ns / 3;
    enter(embedded, EMBEDDED_STOPPING);
    if (embedded->child == NULL) {
        loop_timer_set(embedded->timer, 0);
        return;
    }
    child_signal(embedded->child, is_making ? SIGTERM : SIGINT);
    loop_timer_set(embedded->stop_timer, timeout_ns - embedded->stop_rest_ns);
}
