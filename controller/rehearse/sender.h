/* Ranks as senders: lines in a buffer, batches to POST /write, some of them gzipped, several
 * connections, a batch that was refused for now is sent again. What does not fit is dropped, oldest
 * first, and counted.
 */
#ifndef BROOM_REHEARSE_SENDER_H
#define BROOM_REHEARSE_SENDER_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"

struct sender;

/* loop and client are lent. url is the server, without a path. Free it after the client. */
struct sender *sender_new(struct loop *loop, struct http_client *client, const char *url);
void sender_free(struct sender *sender);
DEFINE_AUTO(struct sender, sender_free)

/* Lines of one source stay in order; sources are spread over the connections. */
void sender_add(struct sender *sender, uint32_t source, struct view lines);
/* Sends what has come together on every connection that is free. */
void sender_flush(struct sender *sender);

struct sender_counts {
    int64_t batches, retries, refused_batches, dropped_bytes;
};
struct sender_counts sender_counts(const struct sender *sender);

#endif
