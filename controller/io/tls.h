/* TLS for listeners: OpenSSL, 1.2 and newer. tls.c is the only includer of openssl and of
 * libevent's bufferevent_ssl.h.
 */
#ifndef BROOM_IO_TLS_H
#define BROOM_IO_TLS_H

#include "controller/io/http_server.h"

struct tls_context;
struct bufferevent;

MUST_CHECK enum status tls_context_new(const struct http_tls *files,
                                       struct tls_context **ret_context, struct error *reterr);
void tls_context_free(struct tls_context *context); /* handshakes under way keep what they need */
DEFINE_AUTO(struct tls_context, tls_context_free)

/* A buffered connection over an accepted descriptor, which it owns; its CONNECTED event ends the
 * handshake. NULL when memory is short; the descriptor is then still the caller's. */
struct bufferevent *tls_accept(struct tls_context *context, struct event_base *base, int fd);

/* The subject CN of the client certificate that was verified, or "". A name with control bytes or
 * one that does not fit is no name. */
void tls_peer_name(struct bufferevent *connection, char *buffer, size_t bytes);

/* Tells the client that nothing more will come. */
void tls_close_notify(struct bufferevent *connection);

#endif
