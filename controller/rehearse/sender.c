/* One batch under way a connection; the next one gathers meanwhile. */
#include "controller/rehearse/sender.h"

#include "controller/io/compress.h"

#include <stdio.h>

enum { CONNECTIONS = 4, BUFFER_MAX_BYTES = 32 << 20, CALL_TIMEOUT_MS = 10000, CAUSE_BYTES = 200 };
static const int64_t RETRY_NS = INT64_C(200000000);

struct connection {
    struct sender *owner;
    struct text gathering;
    struct text under_way; /* empty: the connection is free */
    struct loop_timer *retry;
    bool zipped;
};

struct sender {
    struct loop *loop;
    struct http_client *client;
    struct text url;
    struct connection connections[CONNECTIONS];
    struct sender_counts counts;
};

static void send_batch(void *context);

struct sender *sender_new(struct loop *loop, struct http_client *client, const char *url)
{
    struct sender *sender = xcalloc(1, sizeof *sender);
    sender->loop = loop;
    sender->client = client;
    text_addf(&sender->url, "%s/write?precision=ns", url);
    for (int i = 0; i < CONNECTIONS; i++) {
        sender->connections[i].owner = sender;
        sender->connections[i].zipped = i % 2 == 1;
        sender->connections[i].retry = loop_timer_new(loop, send_batch, &sender->connections[i]);
    }
    return sender;
}

void sender_free(struct sender *sender)
{
    if (sender == NULL)
        return;
    for (int i = 0; i < CONNECTIONS; i++) {
        loop_timer_free(sender->connections[i].retry);
        text_done(&sender->connections[i].gathering);
        text_done(&sender->connections[i].under_way);
    }
    text_done(&sender->url);
    xfree(sender);
}

void sender_add(struct sender *sender, uint32_t source, struct view lines)
{
    struct connection *connection = &sender->connections[source % CONNECTIONS];
    if (connection->gathering.length + lines.length > BUFFER_MAX_BYTES) {
        sender->counts.dropped_bytes += (int64_t)connection->gathering.length;
        text_clear(&connection->gathering);
    }
    text_add_bytes(&connection->gathering, lines.bytes, lines.length);
}

static bool is_for_later(const struct http_answer *answer)
{
    return answer->status != OK || answer->code == 429 || answer->code == 503;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct connection *connection = context;
    struct sender *sender = connection->owner;
    if (is_for_later(answer)) {
        sender->counts.retries++;
        loop_timer_set(connection->retry, RETRY_NS);
        return;
    }
    if (answer->code / 100 != 2) {
        sender->counts.refused_batches++;
        size_t length = answer->body.length < CAUSE_BYTES ? answer->body.length : CAUSE_BYTES;
        AUTO_FREE char *body = xstrndup(answer->body.bytes != NULL ? answer->body.bytes : "",
                                        length);
        fprintf(stderr, "a batch was refused with HTTP %d: %s\n", answer->code, body);
    }
    sender->counts.batches++;
    text_clear(&connection->under_way);
}

static void send_batch(void *context)
{
    struct connection *connection = context;
    struct sender *sender = connection->owner;
    static const char *const ZIPPED[] = {"Content-Encoding: gzip", NULL};
    AUTO_TEXT packed = {0};
    struct view body = {connection->under_way.bytes, connection->under_way.length};
    bool zipped = connection->zipped && gzip_deflate(body, &packed, NULL) == OK;
    if (zipped)
        body = (struct view){packed.bytes, packed.length};
    struct http_call call = {.method = "POST",
                             .url = sender->url.bytes,
                             .body = body,
                             .content_type = "text/plain",
                             .headers = zipped ? ZIPPED : NULL,
                             .timeout_ms = CALL_TIMEOUT_MS};
    http_client_start(sender->client, &call, on_answer, connection);
}

void sender_flush(struct sender *sender)
{
    for (int i = 0; i < CONNECTIONS; i++) {
        struct connection *connection = &sender->connections[i];
        if (connection->under_way.length > 0 || connection->gathering.length == 0)
            continue;
        struct text free_buffer = connection->under_way;
        connection->under_way = connection->gathering;
        connection->gathering = free_buffer;
        text_clear(&connection->gathering);
        send_batch(connection);
    }
}

struct sender_counts sender_counts(const struct sender *sender)
{
    return sender->counts;
}
