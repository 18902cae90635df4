/* The queue in front of the API server: token buckets, places among the calls under way, and
 * re-tries of what only reads. kube_answer.c says what answers mean.
 */
#include "controller/kube/kube_client.h"

#include "controller/kube/kube_answer.h"
#include "controller/sys/clock.h"
#include "controller/sys/file.h"

#include <assert.h>
#include <math.h>
#include <string.h>
#include <sys/queue.h>

enum { TIMEOUT_MS_DEFAULT = 10000, PLACES_FOR_ACTS = 4 };
static const int64_t RETRY_NS_FIRST = 250000000, RETRY_NS_MAX = 4000000000;
static const size_t TOKEN_BYTES_MAX = 1u << 20, LINE_BYTES_MAX = 8u << 20;

enum { BUCKET_ACT = 0, BUCKET_REST, BUCKET_COUNT };

struct kube_request {
    TAILQ_ENTRY(kube_request) entry; /* of `waiting` of its priority, or of `sent` */
    struct kube_client *client;
    const char *method; /* static text */
    char *path;
    char *body;
    size_t body_bytes;
    enum kube_patch patch;
    enum kube_priority priority;
    int64_t timeout_ns;
    int64_t queued_ns, due_ns; /* not before due_ns: a retry */
    int64_t deadline_ns;       /* 0: was not sent yet */
    int retries;
    struct http_transfer *transfer; /* NULL: waits */
    kube_answer_fn *fn;
    void *context;
    bool is_stream;
    struct kube_stream stream;
    struct text line; /* of a stream: what came of a line so far */
    bool has_opened, is_dropped, is_too_long;
    int depth; /* inside its callbacks: dropping waits for their end */
};
TAILQ_HEAD(request_list, kube_request);

struct bucket {
    double tokens, burst, per_s;
    int64_t filled_ns;
};

struct kube_client {
    struct loop *loop;
    struct http_client *http;
    const struct kube_config *config;
    struct kube_limits limits;
    int64_t wait_ns_max;
    struct bucket buckets[BUCKET_COUNT];
    struct request_list waiting[KUBE_PRIORITY_COUNT], sent;
    struct loop_timer *timer;
    int under_way, under_way_rest; /* rest: of other priorities than KUBE_ACT */
    struct kube_client_counts counts;
    int depth; /* inside a caller's function: freeing waits for its end */
    bool is_freed;
};

static const char *const METHODS[] = {"GET", "POST", "PATCH", "DELETE", "PUT"};
static const char *const PATCH_TYPES[] = {
    [KUBE_MERGE_PATCH] = "application/merge-patch+json",
    [KUBE_STRATEGIC_PATCH] = "application/strategic-merge-patch+json",
    [KUBE_JSON_PATCH] = "application/json-patch+json",
};

struct kube_limits kube_limits_default(void)
{
    return (struct kube_limits){
        .calls_per_s = 20,
        .burst = 40,
        .acts_per_s = 100,
        .act_burst = 200,
        .under_way = 16,
        .wait_ms = 30000,
    };
}

static int64_t now_ns(void)
{
    return clock_read().monotonic_ns;
}

static struct bucket bucket_full(double per_s, double burst)
{
    assert(per_s > 0 && burst >= 1);
    return (struct bucket){.tokens = burst, .burst = burst, .per_s = per_s, .filled_ns = now_ns()};
}

static void bucket_fill(struct bucket *bucket, int64_t at_ns)
{
    bucket->tokens += (double)(at_ns - bucket->filled_ns) / 1e9 * bucket->per_s;
    bucket->tokens = fmin(bucket->tokens, bucket->burst);
    bucket->filled_ns = at_ns;
}

static struct bucket *bucket_of(struct kube_client *client, enum kube_priority priority)
{
    return &client->buckets[priority == KUBE_ACT ? BUCKET_ACT : BUCKET_REST];
}

static bool has_place(const struct kube_client *client, enum kube_priority priority)
{
    if (client->under_way >= client->limits.under_way)
        return false;
    int rest = client->limits.under_way - PLACES_FOR_ACTS;
    return priority == KUBE_ACT || client->under_way_rest < (rest > 1 ? rest : 1);
}

static void take_place(struct kube_request *request, int count)
{
    if (request->is_stream)
        return;
    request->client->under_way += count;
    if (request->priority != KUBE_ACT)
        request->client->under_way_rest += count;
}

static void request_unlink(struct kube_request *request)
{
    struct kube_client *client = request->client;
    if (request->transfer == NULL) {
        TAILQ_REMOVE(&client->waiting[request->priority], request, entry);
        return;
    }
    TAILQ_REMOVE(&client->sent, request, entry);
    take_place(request, -1);
}

static void request_free(struct kube_request *request)
{
    xfree(request->path);
    xfree(request->body);
    text_done(&request->line);
    xfree(request);
}

static void client_destroy(struct kube_client *client);

static void client_enter(struct kube_client *client)
{
    client->depth++;
}

/* False when the client is gone. */
static bool client_leave(struct kube_client *client)
{
    if (--client->depth > 0 || !client->is_freed)
        return true;
    client_destroy(client);
    return false;
}

static void count_result(struct kube_client *client, enum kube_result result)
{
    struct kube_client_counts *counts = &client->counts;
    counts->busy += result == KUBE_BUSY;
    counts->conflicts += result == KUBE_CONFLICT;
    counts->denied += result == KUBE_DENIED;
    counts->unknown += result == KUBE_UNKNOWN;
    counts->unreachable += result == KUBE_UNREACHABLE;
}

static void wake(struct kube_client *client)
{
    loop_timer_set(client->timer, 0);
}

/* The request is off all lists; its owner hears of it and it is freed. False when the client is
 * gone. */
static bool answer_request(struct kube_request *request, const struct kube_answer *answer)
{
    struct kube_client *client = request->client;
    count_result(client, answer->result);
    client_enter(client);
    request->fn(request->context, answer);
    request_free(request);
    return client_leave(client);
}

/* A read that was not done is asked again while its time lasts. */
static bool retry_later(struct kube_request *request, const struct kube_answer *answer)
{
    bool is_transient = answer->result == KUBE_BUSY || answer->result == KUBE_UNREACHABLE;
    if (!is_transient || request->is_stream || strcmp(request->method, "GET") != 0)
        return false;
    int64_t wait_ns = answer->retry_after_ns;
    if (wait_ns == 0)
        wait_ns = request->retries < 4 ? RETRY_NS_FIRST << request->retries : RETRY_NS_MAX;
    int64_t due_ns = now_ns() + wait_ns;
    if (due_ns >= request->deadline_ns)
        return false;
    count_result(request->client, answer->result);
    request->retries++;
    request->due_ns = request->queued_ns = due_ns;
    request->transfer = NULL;
    TAILQ_INSERT_TAIL(&request->client->waiting[request->priority], request, entry);
    wake(request->client);
    return true;
}

/* False when the client is gone. What was never sent has no time of its own to be tried in. */
static bool fail_unsent(struct kube_request *request, const char *message)
{
    const struct kube_answer answer = {.result = KUBE_UNREACHABLE, .message = message};
    request_unlink(request);
    return retry_later(request, &answer) || answer_request(request, &answer);
}

static void on_http_answer(void *context, const struct http_answer *http)
{
    struct kube_request *request = context;
    struct kube_client *client = request->client;
    struct kube_meaning meaning;
    request_unlink(request);
    kube_answer_read(http, request->patch, request->is_stream, &meaning);
    if (request->is_too_long)
        meaning.answer.result = KUBE_UNKNOWN;
    bool is_here = retry_later(request, &meaning.answer) ||
                   answer_request(request, &meaning.answer);
    kube_answer_done(&meaning);
    if (is_here)
        wake(client);
}

/* True when the stream was dropped meanwhile; then it is gone. */
static bool stream_left(struct kube_request *request)
{
    request->depth--;
    if (!request->is_dropped || request->depth > 0)
        return request->is_dropped;
    request_free(request);
    return true;
}

/* A line that never ends is no JSON line: the stream is ended as a cut one is. */
static void end_too_long(struct kube_request *request)
{
    http_transfer_drop(request->transfer);
    request->is_too_long = true;
    on_http_answer(
        request, &(struct http_answer){.status = ERR_IO, .reason = "a line is longer than 8 MiB"});
}

/* Tells each whole line; false when there is one over the bound. */
static bool tell_lines(struct kube_request *request, struct view bytes)
{
    while (bytes.length > 0 && !request->is_dropped && !request->client->is_freed) {
        const char *end = memchr(bytes.bytes, '\n', bytes.length);
        size_t length = end != NULL ? (size_t)(end - bytes.bytes) : bytes.length;
        struct view line = {bytes.bytes, length};
        if (end == NULL || request->line.length > 0) {
            text_add_bytes(&request->line, line.bytes, line.length);
            line = (struct view){request->line.bytes, request->line.length};
        }
        if (line.length > LINE_BYTES_MAX)
            return false;
        if (end == NULL)
            return true;
        if (line.length > 0)
            request->stream.on_line(request->stream.context, line);
        text_clear(&request->line);
        bytes.bytes += length + 1;
        bytes.length -= length + 1;
    }
    return true;
}

static void on_stream_bytes(void *context, struct view bytes)
{
    struct kube_request *request = context;
    struct kube_client *client = request->client;
    client_enter(client);
    request->depth++;
    if (!request->has_opened && request->stream.on_open != NULL)
        request->stream.on_open(request->stream.context);
    request->has_opened = true;
    bool is_bounded = tell_lines(request, bytes);
    if (!stream_left(request) && !is_bounded)
        end_too_long(request);
    client_leave(client);
}

/* Credentials are read again for each call. */
static bool read_token(const struct kube_config *config, struct text *token, struct error *reterr)
{
    if (config->token_file[0] == '\0') {
        text_add(token, config->token);
        return true;
    }
    if (file_read(config->token_file, TOKEN_BYTES_MAX, token, reterr) != OK)
        return false;
    text_add(token, "");
    token->length = strcspn(token->bytes, "\r\n");
    token->bytes[token->length] = '\0';
    return true;
}

static const char *or_null(const char *text)
{
    return text[0] != '\0' ? text : NULL;
}

/* False when the client is gone. */
static bool send_request(struct kube_request *request)
{
    struct kube_client *client = request->client;
    const struct kube_config *config = client->config;
    static const char *const HEADERS[] = {"Accept: application/json", NULL};
    AUTO_TEXT url = {0};
    AUTO_TEXT token = {0};
    struct error error;
    if (request->deadline_ns == 0)
        request->deadline_ns = now_ns() + request->timeout_ns;
    if (!read_token(config, &token, &error))
        return fail_unsent(request, error.message);
    text_addf(&url, "%s%s", config->server, request->path);
    int64_t left_ms = (request->deadline_ns - now_ns()) / 1000000;
    struct http_call call = {
        .method = request->method,
        .url = url.bytes,
        .body = {request->body, request->body_bytes},
        .content_type = PATCH_TYPES[request->patch],
        .headers = HEADERS,
        .bearer_token = token.length > 0 ? token.bytes : NULL,
        .ca_file = or_null(config->ca_file),
        .certificate_file = or_null(config->certificate_file),
        .key_file = or_null(config->key_file),
        .timeout_ms = left_ms > 1 ? (int)left_ms : 1,
        .may_reuse = true,
    };
    TAILQ_REMOVE(&client->waiting[request->priority], request, entry);
    TAILQ_INSERT_TAIL(&client->sent, request, entry);
    take_place(request, 1);
    client->counts.calls++;
    request->transfer = request->is_stream
                            ? http_stream_start(client->http, &call, request->stream.idle_ms,
                                                on_stream_bytes, on_http_answer, request)
                            : http_client_start(client->http, &call, on_http_answer, request);
    return true;
}

static void sooner(int64_t *wait_ns, int64_t other_ns)
{
    if (other_ns < *wait_ns)
        *wait_ns = other_ns > 0 ? other_ns : 0;
}

static bool is_expired(const struct kube_request *request, int64_t at_ns)
{
    return at_ns - request->queued_ns >= request->client->wait_ns_max;
}

/* The first request of this priority that something is to be done with, or NULL; *wait_ns becomes
 * the time until that may change. */
static struct kube_request *next_of(struct kube_client *client, enum kube_priority priority,
                                    int64_t at_ns, int64_t *wait_ns)
{
    const struct bucket *bucket = bucket_of(client, priority);
    struct kube_request *request;
    TAILQ_FOREACH(request, &client->waiting[priority], entry)
    {
        if (request->due_ns > at_ns) {
            sooner(wait_ns, request->due_ns - at_ns);
            continue;
        }
        bool has_token = bucket->tokens >= 1;
        if (is_expired(request, at_ns) || (has_token && has_place(client, priority)))
            return request;
        sooner(wait_ns, request->queued_ns + client->wait_ns_max - at_ns);
        if (!has_token)
            sooner(wait_ns, (int64_t)((1 - bucket->tokens) / bucket->per_s * 1e9) + 1);
        return NULL;
    }
    return NULL;
}

static struct kube_request *next_request(struct kube_client *client, int64_t at_ns,
                                         int64_t *wait_ns)
{
    *wait_ns = INT64_MAX;
    for (int priority = 0; priority < KUBE_PRIORITY_COUNT; priority++) {
        struct kube_request *request = next_of(client, (enum kube_priority)priority, at_ns,
                                               wait_ns);
        if (request != NULL)
            return request;
    }
    return NULL;
}

/* False when the client is gone. */
static bool advance(struct kube_request *request, int64_t at_ns)
{
    struct kube_client *client = request->client;
    if (is_expired(request, at_ns))
        return fail_unsent(request, "not sent: the API server or the rate limit held it up too "
                                    "long");
    bucket_of(client, request->priority)->tokens -= 1;
    int64_t *longest = &client->counts.waited_ns_max[request->priority];
    if (at_ns - request->queued_ns > *longest)
        *longest = at_ns - request->queued_ns;
    return send_request(request);
}

static void pump(void *context)
{
    struct kube_client *client = context;
    int64_t at_ns = now_ns(), wait_ns;
    for (size_t i = 0; i < BUCKET_COUNT; i++)
        bucket_fill(&client->buckets[i], at_ns);
    for (struct kube_request *request; (request = next_request(client, at_ns, &wait_ns)) != NULL;)
        if (!advance(request, at_ns))
            return;
    if (wait_ns < INT64_MAX)
        loop_timer_set(client->timer, wait_ns);
}

struct kube_client *kube_client_new(struct loop *loop, struct http_client *http,
                                    const struct kube_config *config,
                                    const struct kube_limits *limits)
{
    struct kube_client *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->http = http;
    client->config = config;
    client->limits = *limits;
    client->wait_ns_max = (int64_t)limits->wait_ms * 1000000;
    client->buckets[BUCKET_ACT] = bucket_full(limits->acts_per_s, limits->act_burst);
    client->buckets[BUCKET_REST] = bucket_full(limits->calls_per_s, limits->burst);
    for (size_t i = 0; i < KUBE_PRIORITY_COUNT; i++)
        TAILQ_INIT(&client->waiting[i]);
    TAILQ_INIT(&client->sent);
    client->timer = loop_timer_new(loop, pump, client);
    return client;
}

static void client_destroy(struct kube_client *client)
{
    struct kube_request *request;
    for (size_t i = 0; i < KUBE_PRIORITY_COUNT; i++)
        while ((request = TAILQ_FIRST(&client->waiting[i])) != NULL)
            kube_request_drop(request);
    while ((request = TAILQ_FIRST(&client->sent)) != NULL)
        kube_request_drop(request);
    loop_timer_free(client->timer);
    xfree(client);
}

void kube_client_free(struct kube_client *client)
{
    if (client == NULL)
        return;
    client->is_freed = true;
    if (client->depth == 0)
        client_destroy(client);
}

struct loop *kube_client_loop(const struct kube_client *client)
{
    return client->loop;
}

static struct kube_request *enqueue(struct kube_client *client, struct kube_request request)
{
    struct kube_request *queued = xmalloc(sizeof *queued);
    *queued = request;
    queued->client = client;
    queued->queued_ns = now_ns();
    TAILQ_INSERT_TAIL(&client->waiting[queued->priority], queued, entry);
    wake(client);
    return queued;
}

static const char *method_of(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(METHODS); i++)
        if (strcmp(METHODS[i], name) == 0)
            return METHODS[i];
    assert(false);
    return NULL;
}

struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context)
{
    int64_t timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS_DEFAULT;
    return enqueue(
        client,
        (struct kube_request){
            .method = method_of(call->method),
            .path = xstrdup(call->path),
            .body = call->body.length > 0 ? xstrndup(call->body.bytes, call->body.length) : NULL,
            .body_bytes = call->body.length,
            .patch = call->patch,
            .priority = call->priority,
            .timeout_ns = timeout_ms * 1000000,
            .fn = fn,
            .context = context,
        });
}

struct kube_request *kube_stream_start(struct kube_client *client, const struct kube_stream *stream)
{
    return enqueue(client, (struct kube_request){
                               .method = "GET",
                               .path = xstrdup(stream->path),
                               .priority = KUBE_LIST,
                               .fn = stream->on_end,
                               .context = stream->context,
                               .is_stream = true,
                               .stream = *stream,
                           });
}

void kube_request_drop(struct kube_request *request)
{
    struct kube_client *client = request->client;
    request_unlink(request);
    if (request->transfer != NULL)
        http_transfer_drop(request->transfer);
    request->is_dropped = true;
    if (request->depth == 0)
        request_free(request);
    wake(client);
}

void kube_path_add(struct text *path, const char *segment)
{
    text_add(path, "/");
    text_add_percent(path, segment);
}

void kube_query_add(struct text *path, const char *key, const char *value)
{
    bool is_first = path->bytes == NULL || strchr(path->bytes, '?') == NULL;
    text_add(path, is_first ? "?" : "&");
    text_add_percent(path, key);
    text_add(path, "=");
    text_add_percent(path, value);
}

struct kube_client_counts kube_client_counts(const struct kube_client *client)
{
    struct kube_client_counts counts = client->counts;
    counts.under_way = client->under_way;
    const struct kube_request *request;
    for (size_t i = 0; i < KUBE_PRIORITY_COUNT; i++)
        TAILQ_FOREACH(request, &client->waiting[i], entry)
    counts.waiting++;
    return counts;
}
