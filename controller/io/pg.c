/* libpq, only with its calls that never wait: PQconnectStart/Poll, PQsendQuery*, PQflush,
 * PQconsumeInput, PQisBusy, PQgetResult when not busy. One statement is on its way at a time; the
 * rest queue.
 */
#include "controller/io/pg.h"

#include "controller/io/pg_target.h"

#include <assert.h>
#include <libpq-fe.h>
#include <string.h>

enum {
    DEFAULT_TIMEOUT_MS = 30000,
    CONNECT_TIMEOUT_MS = 6000,
    BACKOFF_MS = 50,
    BACKOFF_MAX_MS = 5000,
    PARAMS_MAX = 8,
    KEYWORDS_MAX = 64
};

static const int64_t NS_PER_MS = 1000000;

struct statement {
    struct statement *next;
    char *sql;
    char *params[PARAMS_MAX];
    int param_count;
    int timeout_ms;
    pg_answer_fn *fn;
    void *context;
};

struct queue {
    struct statement *first, *last;
    size_t count;
};

enum pg_state { PG_AWAY = 0, PG_RESOLVING, PG_CONNECTING, PG_UP };

struct pg {
    struct loop *loop;
    char *conninfo;
    pg_state_fn *on_state;
    void *context;
    struct pg_target *target;
    PGconn *connection;
    struct loop_fd *watch;
    struct loop_timer *retry;    /* next connection attempt */
    struct loop_timer *deadline; /* of connecting or of the statement on its way */
    struct loop_timer *wake;     /* work that was asked for from outside the loop's callbacks */
    struct queue queue;
    struct queue refused; /* came while the connection was down */
    bool is_sent;         /* queue.first is on its way */
    PGresult *result;     /* of it: the first error, else the last */
    enum pg_state state;
    unsigned tries;
    char *drop_reason;
};

static void connect_start(void *context);
static void watch_connection(struct pg *pg, int events);

/* ---- statements ---- */

static void queue_add(struct queue *queue, struct statement *statement)
{
    if (queue->last != NULL)
        queue->last->next = statement;
    else
        queue->first = statement;
    queue->last = statement;
    queue->count++;
}

static struct statement *queue_take(struct queue *queue)
{
    struct statement *statement = queue->first;
    if (statement == NULL)
        return NULL;
    queue->first = statement->next;
    if (queue->first == NULL)
        queue->last = NULL;
    queue->count--;
    return statement;
}

static void statement_free(struct statement *statement)
{
    for (int i = 0; i < statement->param_count; i++)
        xfree(statement->params[i]);
    xfree(statement->sql);
    xfree(statement);
}

static void queue_clear(struct queue *queue)
{
    for (struct statement *item; (item = queue_take(queue)) != NULL;)
        statement_free(item);
}

static void queue_refuse(struct queue *queue, const char *reason)
{
    struct queue all = *queue;
    *queue = (struct queue){0};
    for (struct statement *item; (item = queue_take(&all)) != NULL;) {
        struct pg_answer answer = {.status = ERR_UNREACHABLE, .reason = reason, .sqlstate = ""};
        if (item->fn != NULL)
            item->fn(item->context, &answer);
        statement_free(item);
    }
}

/* ---- the connection's end ---- */

static int64_t backoff_ns(unsigned tries)
{
    int64_t ms = BACKOFF_MS;
    for (unsigned i = 0; i < tries && ms < BACKOFF_MAX_MS; i++)
        ms *= 2;
    return (ms < BACKOFF_MAX_MS ? ms : BACKOFF_MAX_MS) * NS_PER_MS;
}

static void lose(struct pg *pg, const char *reason)
{
    AUTO_FREE char *why = xstrndup(reason, strcspn(reason, "\n"));
    loop_timer_stop(pg->deadline);
    loop_fd_free(TAKE(pg->watch));
    if (pg->result != NULL)
        PQclear(TAKE(pg->result));
    if (pg->connection != NULL)
        PQfinish(TAKE(pg->connection));
    pg->tries = pg->state == PG_UP ? 0 : pg->tries + 1;
    pg->state = PG_AWAY;
    pg->is_sent = false;
    loop_timer_set(pg->retry, backoff_ns(pg->tries));
    pg->on_state(pg->context, false, why);
    queue_refuse(&pg->queue, why);
}

static void lose_with_message(struct pg *pg, const char *what)
{
    AUTO_TEXT reason = {0};
    const char *message = pg->connection != NULL ? PQerrorMessage(pg->connection) : "";
    text_add(&reason, message[0] != '\0' ? message : what);
    lose(pg, reason.bytes);
}

static void on_deadline(void *context)
{
    struct pg *pg = context;
    lose(pg, pg->state == PG_CONNECTING
                 ? "the server did not answer in time"
                 : "a statement passed its deadline; what it did is unknown");
}

/* ---- answers ---- */

static enum status status_of_sqlstate(const char *sqlstate)
{
    static const char *const away[] = {"08", "25", "53", "55", "57", "58", "XX"};
    if (strncmp(sqlstate, "40", 2) == 0 || strncmp(sqlstate, "P0", 2) == 0)
        return ERR_CONFLICT;
    for (size_t i = 0; i < ARRAY_LEN(away); i++)
        if (strncmp(sqlstate, away[i], 2) == 0)
            return ERR_UNREACHABLE;
    return ERR_INVALID;
}

static bool is_error(const PGresult *result)
{
    ExecStatusType status = PQresultStatus(result);
    return status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK && status != PGRES_EMPTY_QUERY;
}

static void answer(struct pg *pg)
{
    struct statement *statement = queue_take(&pg->queue);
    PGresult *result = TAKE(pg->result);
    AUTO_TEXT reason = {0};
    struct pg_answer given = {.status = OK, .sqlstate = "", .reason = ""};
    pg->is_sent = false;
    loop_timer_stop(pg->deadline);
    if (result != NULL && is_error(result)) {
        const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
        const char *message = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
        const char *detail = PQresultErrorField(result, PG_DIAG_MESSAGE_DETAIL);
        given.sqlstate = sqlstate != NULL ? sqlstate : "";
        given.status = status_of_sqlstate(given.sqlstate);
        text_add(&reason, message != NULL ? message : PQresultErrorMessage(result));
        if (detail != NULL)
            text_addf(&reason, " (%s)", detail);
        given.reason = reason.bytes;
    } else if (result != NULL) {
        given.rows = PQntuples(result);
        given.columns = PQnfields(result);
        given.result = result;
    }
    if (statement->fn != NULL)
        statement->fn(statement->context, &given);
    statement_free(statement);
    PQclear(result);
}

const char *pg_value(const struct pg_answer *answer, int row, int column)
{
    const PGresult *result = answer->result;
    if (result == NULL || row >= answer->rows || column >= answer->columns ||
        PQgetisnull(result, row, column))
        return NULL;
    return PQgetvalue(result, row, column);
}

static void keep_result(struct pg *pg, PGresult *result)
{
    if (pg->result != NULL && is_error(pg->result)) {
        PQclear(result);
        return;
    }
    PQclear(pg->result);
    pg->result = result;
}

/* Reads what has come; false when the connection was lost meanwhile. */
static bool read_results(struct pg *pg)
{
    while (pg->is_sent && !PQisBusy(pg->connection)) {
        PGresult *result = PQgetResult(pg->connection);
        if (result != NULL) {
            keep_result(pg, result);
            continue;
        }
        if (PQstatus(pg->connection) == CONNECTION_BAD) {
            lose_with_message(pg, "the server closed the connection");
            return false;
        }
        answer(pg);
        if (pg->state != PG_UP)
            return false;
    }
    return true;
}

/* ---- sending ---- */

static bool send_first(struct pg *pg)
{
    struct statement *statement = pg->queue.first;
    const char *values[PARAMS_MAX];
    for (int i = 0; i < statement->param_count; i++)
        values[i] = statement->params[i];
    int sent = statement->param_count == 0
                   ? PQsendQuery(pg->connection, statement->sql)
                   : PQsendQueryParams(pg->connection, statement->sql, statement->param_count, NULL,
                                       values, NULL, NULL, 0);
    pg->is_sent = true;
    loop_timer_set(pg->deadline, statement->timeout_ms * NS_PER_MS);
    return sent == 1;
}

static bool flush(struct pg *pg)
{
    int left = PQflush(pg->connection);
    if (left < 0) {
        lose_with_message(pg, "the connection broke");
        return false;
    }
    loop_fd_set(pg->watch, left > 0 ? LOOP_READ | LOOP_WRITE : LOOP_READ);
    return true;
}

static void pump(struct pg *pg)
{
    while (pg->state == PG_UP && !pg->is_sent && pg->queue.count > 0) {
        if (!send_first(pg)) {
            lose_with_message(pg, "the statement could not be sent");
            return;
        }
        if (!flush(pg) || !read_results(pg))
            return;
    }
}

static void on_up_event(struct pg *pg, int events)
{
    if ((events & LOOP_READ) != 0 && PQconsumeInput(pg->connection) == 0) {
        lose_with_message(pg, "the server closed the connection");
        return;
    }
    if (!flush(pg) || !read_results(pg))
        return;
    pump(pg);
}

/* ---- connecting ---- */

static void connect_step(struct pg *pg)
{
    /* libpq closes and opens sockets inside the poll when it goes on to the next host. */
    loop_fd_free(TAKE(pg->watch));
    int socket_before = PQsocket(pg->connection);
    PostgresPollingStatusType status = PQconnectPoll(pg->connection);
    if (status == PGRES_POLLING_FAILED) {
        lose_with_message(pg, "the server cannot be reached");
        return;
    }
    if (status != PGRES_POLLING_OK) {
        if (PQsocket(pg->connection) != socket_before)
            loop_timer_set(pg->deadline, CONNECT_TIMEOUT_MS * NS_PER_MS);
        watch_connection(pg, status == PGRES_POLLING_READING ? LOOP_READ : LOOP_WRITE);
        return;
    }
    loop_timer_stop(pg->deadline);
    PQsetnonblocking(pg->connection, 1);
    pg->state = PG_UP;
    watch_connection(pg, LOOP_READ);
    pg->on_state(pg->context, true, "");
    pump(pg);
}

static void on_socket(void *context, int fd, int events)
{
    struct pg *pg = context;
    (void)fd;
    if (pg->state == PG_UP)
        on_up_event(pg, events);
    else
        connect_step(pg);
}

static void watch_connection(struct pg *pg, int events)
{
    pg->watch = loop_fd_new(pg->loop, PQsocket(pg->connection), events, on_socket, pg);
}

/* The server's notices are for its own log. */
static void drop_notice(void *context, const char *message)
{
    (void)context;
    (void)message;
}

struct keywords {
    const char *names[KEYWORDS_MAX];
    const char *values[KEYWORDS_MAX];
    size_t count;
};

static void keywords_add(struct keywords *keywords, const char *name, const char *value)
{
    assert(keywords->count + 1 < KEYWORDS_MAX);
    keywords->names[keywords->count] = name;
    keywords->values[keywords->count++] = value;
}

static bool keywords_has(const struct keywords *keywords, const char *name)
{
    for (size_t i = 0; i < keywords->count; i++)
        if (strcmp(keywords->names[i], name) == 0)
            return true;
    return false;
}

static bool is_host_keyword(const char *name)
{
    return strcmp(name, "host") == 0 || strcmp(name, "hostaddr") == 0 || strcmp(name, "port") == 0;
}

/* What the string says, without its hosts, and what we want where it says nothing. GSS encryption
 * may look up names in the network, so it is only used when asked for. */
static void keywords_fill(struct keywords *keywords, const PQconninfoOption *options,
                          bool with_hosts)
{
    static const char *const ours[][2] = {
        {"application_name", "broomd"}, {"gssencmode", "disable"},
        {"keepalives_idle", "10"},      {"keepalives_interval", "5"},
        {"keepalives_count", "3"},      {"tcp_user_timeout", "15000"},
        {"client_encoding", "UTF8"},    {"target_session_attrs", "read-write"},
    };
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
        if (option->val != NULL && (with_hosts || !is_host_keyword(option->keyword)))
            keywords_add(keywords, option->keyword, option->val);
    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (!keywords_has(keywords, ours[i][0]))
            keywords_add(keywords, ours[i][0], ours[i][1]);
}

static const char *option_value(const PQconninfoOption *options, const char *name)
{
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
        if (strcmp(option->keyword, name) == 0)
            return option->val;
    return NULL;
}

static void connect_with(struct pg *pg, const PQconninfoOption *options)
{
    struct keywords keywords = {0};
    AUTO_TEXT host = {0}, hostaddr = {0}, port = {0}, reason = {0};
    bool is_default = pg_target_is_default(pg->target);
    keywords_fill(&keywords, options, is_default);
    if (!is_default) {
        if (!pg_target_lists(pg->target, pg->tries, &host, &hostaddr, &port, &reason)) {
            lose(pg, reason.bytes);
            return;
        }
        keywords_add(&keywords, "host", host.bytes);
        keywords_add(&keywords, "hostaddr", hostaddr.bytes);
        keywords_add(&keywords, "port", port.bytes);
    }
    pg->state = PG_CONNECTING;
    pg->connection = PQconnectStartParams(keywords.names, keywords.values, 0);
    if (pg->connection == NULL || PQstatus(pg->connection) == CONNECTION_BAD) {
        lose_with_message(pg, "the server cannot be reached");
        return;
    }
    PQsetNoticeProcessor(pg->connection, drop_notice, NULL);
    loop_timer_set(pg->deadline, CONNECT_TIMEOUT_MS * NS_PER_MS);
    watch_connection(pg, LOOP_WRITE);
}

static PQconninfoOption *parse(struct pg *pg)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(pg->conninfo, &message);
    if (options == NULL) {
        AUTO_TEXT reason = {0};
        text_addf(&reason, "the connection string cannot be read: %s",
                  message != NULL ? message : "?");
        PQfreemem(message);
        lose(pg, reason.bytes);
    }
    return options;
}

static void on_resolved(void *context)
{
    struct pg *pg = context;
    PQconninfoOption *options = parse(pg);
    if (options == NULL)
        return;
    connect_with(pg, options);
    PQconninfoFree(options);
}

static void connect_start(void *context)
{
    struct pg *pg = context;
    if (pg->state != PG_AWAY)
        return;
    pg->state = PG_RESOLVING;
    if (pg->target == NULL) {
        PQconninfoOption *options = parse(pg);
        if (options == NULL)
            return;
        pg->target = pg_target_new(pg->loop, option_value(options, "host"),
                                   option_value(options, "hostaddr"),
                                   option_value(options, "port"));
        PQconninfoFree(options);
    }
    pg_target_resolve(pg->target, on_resolved, pg);
}

/* ---- the interface ---- */

static void on_wake(void *context)
{
    struct pg *pg = context;
    queue_refuse(&pg->refused, "the database is away");
    AUTO_FREE char *drop = TAKE(pg->drop_reason);
    if (drop != NULL && pg->state == PG_UP)
        lose(pg, drop);
    pump(pg);
}

struct pg *pg_new(struct loop *loop, const char *conninfo, pg_state_fn *on_state, void *context)
{
    struct pg *pg = xcalloc(1, sizeof *pg);
    pg->loop = loop;
    pg->conninfo = xstrdup(conninfo);
    pg->on_state = on_state;
    pg->context = context;
    pg->retry = loop_timer_new(loop, connect_start, pg);
    pg->deadline = loop_timer_new(loop, on_deadline, pg);
    pg->wake = loop_timer_new(loop, on_wake, pg);
    loop_timer_set(pg->retry, 0);
    return pg;
}

void pg_free(struct pg *pg)
{
    if (pg == NULL)
        return;
    loop_fd_free(pg->watch);
    loop_timer_free(pg->retry);
    loop_timer_free(pg->deadline);
    loop_timer_free(pg->wake);
    PQclear(pg->result);
    PQfinish(pg->connection);
    pg_target_free(pg->target);
    queue_clear(&pg->queue);
    queue_clear(&pg->refused);
    xfree(pg->drop_reason);
    xfree(pg->conninfo);
    xfree(pg);
}

bool pg_is_up(const struct pg *pg)
{
    return pg->state == PG_UP;
}

void pg_try_now(struct pg *pg)
{
    if (pg->state == PG_AWAY)
        loop_timer_set(pg->retry, 0);
}

void pg_drop(struct pg *pg, const char *reason)
{
    xfree(pg->drop_reason);
    pg->drop_reason = xstrdup(reason);
    loop_timer_set(pg->wake, 0);
}

void pg_query(struct pg *pg, const char *sql, const char *const *params, int param_count,
              int timeout_ms, pg_answer_fn *fn, void *context)
{
    assert(param_count >= 0 && param_count <= PARAMS_MAX);
    struct statement *statement = xcalloc(1, sizeof *statement);
    statement->sql = xstrdup(sql);
    statement->param_count = param_count;
    for (int i = 0; i < param_count; i++)
        statement->params[i] = params[i] != NULL ? xstrdup(params[i]) : NULL;
    statement->timeout_ms = timeout_ms > 0 ? timeout_ms : DEFAULT_TIMEOUT_MS;
    statement->fn = fn;
    statement->context = context;
    queue_add(pg->state == PG_UP ? &pg->queue : &pg->refused, statement);
    loop_timer_set(pg->wake, 0);
}
