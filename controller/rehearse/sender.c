/* One batch under way at a time; the next one gathers meanwhile. The order of lines is kept over
 * all sources: while the server is away, minutes of the rehearsal pass in a moment, and lines of
 * one rank that overtake those of another by a minute would be a fault that nobody played.
 */
#include "controller/rehearse/sender.h"

#include "controller/io/compress.h"

#include <stdio.h>

enum { BUFFER_MAX_BYTES = 128 << 20, CALL_TIMEOUT_MS = 10000, CAUSE_BYTES = 200 };
static const int64_t RETRY_NS = INT64_C(200000000);

struct sender {
    struct http_client *client;
    struct text url;
    struct text gathering;
    struct text under_way; /* empty: nothing is under way */
    struct loop_timer *retry;
    bool zips;     /* every other batch */
    bool was_away; /* the next batch begins with hello */
    bool awaits_answer;
    size_t greeting_bytes; /* of the batch under way */
    sender_hello_fn *hello;
    void *context;
    struct sender_counts counts;
};

static void send_batch(void *context);

struct sender *sender_new(struct loop *loop, struct http_client *client, const char *url,
                          sender_hello_fn *hello, void *context)
{
    struct sender *sender = xcalloc(1, sizeof *sender);
    sender->hello = hello;
    sender->context = context;
    sender->client = client;
    sender->retry = loop_timer_new(loop, send_batch, sender);
    text_addf(&sender->url, "%s/write?precision=ns", url);
    return sender;
}

void sender_free(struct sender *sender)
{
    if (sender == NULL)
        return;
    loop_timer_free(sender->retry);
    text_done(&sender->gathering);
    text_done(&sender->under_way);
    text_done(&sender->url);
    xfree(sender);
}

void sender_add(struct sender *sender, struct view lines)
{
    if (sender->gathering.length + lines.length > BUFFER_MAX_BYTES) {
        sender->counts.dropped_bytes += (int64_t)sender->gathering.length;
        text_clear(&sender->gathering);
    }
    text_add_bytes(&sender->gathering, lines.bytes, lines.length);
}

static bool is_for_later(const struct http_answer *answer)
{
    return answer->status != OK || answer->code == 429 || answer->code == 503;
}

static void on_answer(void *context, const struct http_answer *answer)
{
    struct sender *sender = context;
    sender->awaits_answer = false;
    if (is_for_later(answer)) {
        sender->counts.retries++;
        sender->was_away = sender->was_away || answer->status != OK;
        loop_timer_set(sender->retry, RETRY_NS);
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
    sender->greeting_bytes = 0;
    text_clear(&sender->under_way);
    sender_flush(sender); /* what came together meanwhile does not wait for the next tick */
}

static void greet(struct sender *sender)
{
    struct text lines = {0};
    sender->hello(sender->context, &lines);
    size_t greeting_bytes = lines.length;
    text_add_bytes(&lines, sender->under_way.bytes + sender->greeting_bytes,
                   sender->under_way.length - sender->greeting_bytes);
    sender->greeting_bytes = greeting_bytes;
    text_done(&sender->under_way);
    sender->under_way = lines;
    sender->was_away = false;
}

static void send_batch(void *context)
{
    struct sender *sender = context;
    if (sender->was_away)
        greet(sender);
    static const char *const ZIPPED[] = {"Content-Encoding: gzip", NULL};
    AUTO_TEXT packed = {0};
    struct view body = {sender->under_way.bytes, sender->under_way.length};
    bool zipped = sender->zips && gzip_deflate(body, &packed, NULL) == OK;
    if (zipped)
        body = (struct view){packed.bytes, packed.length};
    struct http_call call = {.method = "POST",
                             .url = sender->url.bytes,
                             .body = body,
                             .content_type = "text/plain",
                             .headers = zipped ? ZIPPED : NULL,
                             .timeout_ms = CALL_TIMEOUT_MS};
    sender->awaits_answer = true;
    http_client_start(sender->client, &call, on_answer, sender);
}

bool sender_awaits_answer(const struct sender *sender)
{
    return sender->awaits_answer;
}

void sender_flush(struct sender *sender)
{
    if (sender->under_way.length > 0 || sender->gathering.length == 0)
        return;
    struct text free_buffer = sender->under_way;
    sender->under_way = sender->gathering;
    sender->gathering = free_buffer;
    text_clear(&sender->gathering);
    sender->zips = !sender->zips;
    send_batch(sender);
}

struct sender_counts sender_counts(const struct sender *sender)
{
    return sender->counts;
}
