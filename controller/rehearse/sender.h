/* Ranks as senders: lines in a buffer, batches to POST /write in order, every other one gzipped; a
 * batch that was refused for now is sent again. What does not fit is dropped, oldest first, and
 * counted.
 */
#ifndef BROOM_REHEARSE_SENDER_H
#define BROOM_REHEARSE_SENDER_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"

struct sender;

/* What the ranks say to a server that was away: it may have lost who they are, whatever it had
 * taken. Adds lines. */
typedef void sender_hello_fn(void *context, struct text *lines);

/* loop and client are lent. url is the server, without a path. Free it after the client. */
struct sender *sender_new(struct loop *loop, struct http_client *client, const char *url,
                          sender_hello_fn *hello, void *context);
void sender_free(struct sender *sender);
DEFINE_AUTO(struct sender, sender_free)

void sender_add(struct sender *sender, struct view lines);
/* Sends what has come together unless a batch is under way; that one's answer sends the rest. */
void sender_flush(struct sender *sender);

/* A batch is with the server, which has not answered. */
bool sender_awaits_answer(const struct sender *sender);

struct sender_counts {
    int64_t batches, retries, refused_batches, dropped_bytes;
};
struct sender_counts sender_counts(const struct sender *sender);

#endif
