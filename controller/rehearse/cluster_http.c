/* Routes, the clock that drives the cluster, and the files that it leaves. */
#include "controller/rehearse/cluster_http.h"

#include "controller/io/compress.h"
#include "controller/io/http_server.h"
#include "controller/rehearse/sender.h"
#include "controller/sys/clock.h"

#include <stdio.h>
#include <string.h>

/* Real time between two steps of the clock. */
static const int64_t TICK_NS = INT64_C(10000000);
/* One step is at most as long as two ticks: a machine that stands still for a second has not let a
 * minute of the rehearsal pass. */
static const int64_t STEP_MAX_NS = 2 * TICK_NS;
/* Whoever is waited for in vain for so long (real time) is part of the play: hung, or stopped. */
static const int64_t PATIENCE_NS = INT64_C(3000000000);

enum { ZSTD_LEVEL = 3, OPERATION_PREFIX = 15 /* strlen("/v1/operations/") */ };

struct cluster_http {
    struct cluster_http_params params;
    struct http_server *server;
    struct http_client *client;
    struct sender *sender; /* NULL until the job has started */
    struct loop_timer *tick;
    int64_t stepped_ns;  /* real time of the clock's last step */
    int64_t followed_ns; /* real time at which nobody was last waited for */
    FILE *stream, *log;
    struct zstd_writer *packer;
    size_t logged_bytes;
    struct text line, packed;
    int64_t lose_answers, errors;
    enum verb hold_verb; /* VERB_COUNT: none */
    int64_t lines;
};

/* --- files
 * ---------------------------------------------------------------------------------------------- */

static enum status open_file(const char *path, FILE **ret_file, struct error *reterr)
{
    if (path == NULL)
        return OK;
    *ret_file = fopen(path, "wb");
    return *ret_file != NULL ? OK : error_set(reterr, ERR_IO, "cannot write '%s'", path);
}

static void write_out(FILE *file, const void *bytes, size_t length, const char *what)
{
    if (length > 0 && fwrite(bytes, 1, length, file) != length)
        fprintf(stderr, "cannot write '%s'\n", what);
}

static void keep_lines(struct cluster_http *http)
{
    if (http->stream == NULL)
        return;
    zstd_writer_add(http->packer, (struct view){http->line.bytes, http->line.length},
                    &http->packed);
    write_out(http->stream, http->packed.bytes, http->packed.length, http->params.stream_path);
    text_clear(&http->packed);
}

static void keep_log(struct cluster_http *http)
{
    struct view log = cluster_log(http->params.cluster);
    if (http->log == NULL || log.length == http->logged_bytes)
        return;
    write_out(http->log, log.bytes + http->logged_bytes, log.length - http->logged_bytes,
              http->params.log_path);
    http->logged_bytes = log.length;
    fflush(http->log);
}

static void close_files(struct cluster_http *http)
{
    if (http->stream != NULL) {
        zstd_writer_end(http->packer, &http->packed);
        write_out(http->stream, http->packed.bytes, http->packed.length, http->params.stream_path);
        fclose(http->stream);
    }
    keep_log(http);
    if (http->log != NULL)
        fclose(http->log);
    zstd_writer_free(http->packer);
}

/* --- time --- */

static void on_sample(void *context, const struct sample *sample)
{
    struct cluster_http *http = context;
    text_clear(&http->line);
    sample_add_line(sample, &http->line);
    http->lines++;
    keep_lines(http);
    sender_add(http->sender, (struct view){http->line.bytes, http->line.length});
}

static void add_hello(void *context, const struct sample *sample)
{
    sample_add_line(sample, context);
}

static void say_hello(void *context, struct text *lines)
{
    const struct cluster_http *http = context;
    struct model *model = cluster_model(http->params.cluster);
    model_send_hello(model, cluster_now_ns(http->params.cluster), add_hello, lines);
}

/* Broomd has what was sent, and is less than two steps behind. */
static bool is_followed(const struct cluster_http *http)
{
    return !sender_awaits_answer(http->sender) &&
           (double)clock_unfollowed_ns() < clock_scale() * (double)(2 * TICK_NS);
}

/* A rehearsal that plays minutes in a second must not let a busy machine pass for a slow cluster:
 * time goes on when all that it has brought so far is done. */
static void let_time_pass(struct cluster_http *http)
{
    int64_t real_ns = clock_read().monotonic_ns;
    int64_t step_ns = real_ns - http->stepped_ns;
    if (is_followed(http))
        http->followed_ns = real_ns;
    else if (real_ns - http->followed_ns < PATIENCE_NS)
        return;
    http->stepped_ns = real_ns;
    if (step_ns > STEP_MAX_NS)
        step_ns = STEP_MAX_NS;
    clock_advance((int64_t)((double)step_ns * clock_scale()));
}

static void tick(void *context)
{
    struct cluster_http *http = context;
    let_time_pass(http);
    cluster_advance(http->params.cluster, clock_now_ns(), on_sample, http);
    sender_flush(http->sender);
    keep_log(http);
    loop_timer_set(http->tick, TICK_NS);
}

/* --- routes
 * --------------------------------------------------------------------------------------------- */

static void reply_json(struct http_request *request, const struct text *json)
{
    http_reply(request, 200, "application/json", (struct view){json->bytes, json->length});
}

static void reply_operation(struct http_request *request, const struct cluster_operation *operation)
{
    AUTO_TEXT out = {0};
    struct json_writer writer = json_writer(&out);
    cluster_write_operation(operation, &writer);
    reply_json(request, &out);
}

static void get_operation(struct cluster_http *http, struct http_request *request)
{
    const char *id = http_request_path(request) + OPERATION_PREFIX;
    const struct cluster_operation *operation = cluster_find_operation(http->params.cluster, id);
    if (operation == NULL)
        http_reply_error(request, 404, "there is no operation '%s'", id);
    else
        reply_operation(request, operation);
}

static void on_given_up(void *context)
{
    (void)context; /* nothing of ours hangs on a request that is never answered */
}

static void put_operation(struct cluster_http *http, struct http_request *request)
{
    const char *id = http_request_path(request) + OPERATION_PREFIX;
    const struct cluster_operation *operation;
    AUTO(json_free) struct json *body = NULL;
    struct error error = {0};
    if (http->errors > 0) {
        http->errors--;
        http_reply_error(request, 500, "the cluster is in trouble");
        return;
    }
    if (json_parse(http_request_body(request), &body, &error) != OK ||
        cluster_operate(http->params.cluster, id, body, clock_now_ns(), &operation, &error) != OK) {
        http_reply_error(request, 400, "%s", error.message);
        return;
    }
    keep_log(http);
    bool held = operation->verb == http->hold_verb;
    if (held || http->lose_answers > 0) { /* the client waits in vain */
        http->lose_answers -= held ? 0 : 1;
        http->hold_verb = held ? VERB_COUNT : http->hold_verb;
        http_request_on_close(request, on_given_up, NULL);
    } else {
        reply_operation(request, operation);
    }
}

static void get_world(struct cluster_http *http, struct http_request *request)
{
    AUTO_TEXT out = {0};
    struct json_writer writer = json_writer(&out);
    cluster_write_world(http->params.cluster, &writer);
    reply_json(request, &out);
}

static void get_job(struct cluster_http *http, struct http_request *request)
{
    AUTO_TEXT out = {0};
    cluster_write_job(http->params.cluster, &out);
    reply_json(request, &out);
}

static void get_log(struct cluster_http *http, struct http_request *request)
{
    http_reply(request, 200, "application/x-ndjson", cluster_log(http->params.cluster));
}

static void post_start(struct cluster_http *http, struct http_request *request)
{
    AUTO(json_free) struct json *body = NULL;
    struct error error = {0};
    if (json_parse(http_request_body(request), &body, &error) != OK) {
        http_reply_error(request, 400, "%s", error.message);
        return;
    }
    if (http->sender != NULL) {
        http_reply_error(request, 409, "the job has started");
        return;
    }
    http->sender = sender_new(http->params.loop, http->client, json_get_string(body, "broomd", ""),
                              say_hello, http);
    cluster_start(http->params.cluster, clock_now_ns());
    http->stepped_ns = http->followed_ns = clock_read().monotonic_ns;
    http_reply(request, 204, NULL, view_of(NULL));
    loop_timer_set(http->tick, 0);
}

static void post_trouble(struct cluster_http *http, struct http_request *request)
{
    AUTO(json_free) struct json *body = NULL;
    struct error error = {0};
    if (json_parse(http_request_body(request), &body, &error) != OK) {
        http_reply_error(request, 400, "%s", error.message);
        return;
    }
    http->lose_answers = json_get_int(body, "lose_answers", http->lose_answers);
    http->errors = json_get_int(body, "errors", http->errors);
    if (!verb_parse(json_get_string(body, "hold", ""), &http->hold_verb))
        http->hold_verb = VERB_COUNT;
    http_reply(request, 204, NULL, view_of(NULL));
}

static const struct route {
    enum http_method method;
    const char *path;
    bool is_prefix;
    void (*answer)(struct cluster_http *http, struct http_request *request);
} ROUTES[] = {
    {HTTP_GET, "/v1/world", false, get_world},
    {HTTP_PUT, "/v1/operations/", true, put_operation},
    {HTTP_GET, "/v1/operations/", true, get_operation},
    {HTTP_GET, "/v1/job", false, get_job},
    {HTTP_GET, "/v1/log", false, get_log},
    {HTTP_POST, "/v1/start", false, post_start},
    {HTTP_POST, "/v1/trouble", false, post_trouble},
};

static void on_request(void *context, struct http_request *request)
{
    const char *path = http_request_path(request);
    for (size_t i = 0; i < ARRAY_LEN(ROUTES); i++) {
        const struct route *route = &ROUTES[i];
        bool matches = route->is_prefix ? strncmp(path, route->path, strlen(route->path)) == 0
                                        : strcmp(path, route->path) == 0;
        if (matches && http_request_method(request) == route->method) {
            route->answer(context, request);
            return;
        }
    }
    http_reply_error(request, 404, "there is no '%s'", path);
}

/* --- life
 * -------------------------------------------------------------------------------------------------
 */

enum status cluster_http_new(const struct cluster_http_params *params,
                             struct cluster_http **ret_http, struct error *reterr)
{
    struct http_limits limits = http_limits_default();
    AUTO(cluster_http_free) struct cluster_http *http = xcalloc(1, sizeof *http);
    http->params = *params;
    http->hold_verb = VERB_COUNT;
    TRY(open_file(params->stream_path, &http->stream, reterr));
    TRY(open_file(params->log_path, &http->log, reterr));
    if (http->stream != NULL)
        http->packer = zstd_writer_new(ZSTD_LEVEL);
    http->client = http_client_new(params->loop);
    http->server = http_server_new(params->loop, &limits, on_request, http);
    TRY(http_server_listen(http->server, "127.0.0.1:0", NULL, reterr));
    http->tick = loop_timer_new(params->loop, tick, http);
    *ret_http = TAKE(http);
    return OK;
}

void cluster_http_free(struct cluster_http *http)
{
    if (http == NULL)
        return;
    http_server_free(http->server);
    http_client_free(http->client);
    sender_free(http->sender);
    if (http->tick != NULL)
        loop_timer_free(http->tick);
    close_files(http);
    text_done(&http->line);
    text_done(&http->packed);
    xfree(http);
}

int cluster_http_port(const struct cluster_http *http)
{
    return http_server_port(http->server);
}

struct cluster_http_counts cluster_http_counts(const struct cluster_http *http)
{
    struct sender_counts sent = {0};
    if (http->sender != NULL)
        sent = sender_counts(http->sender);
    return (struct cluster_http_counts){http->lines, sent.batches, sent.retries, sent.dropped_bytes,
                                        sent.refused_batches};
}
