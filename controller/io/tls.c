/* OpenSSL contexts for listeners. Sessions are not resumed: a certificate is checked on each
 * connection. */
#include "controller/io/tls.h"

#include <event2/bufferevent_ssl.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <string.h>

struct tls_context {
    SSL_CTX *openssl;
};

static enum status openssl_error(struct error *reterr, const char *what, const char *file)
{
    unsigned long code = ERR_peek_last_error();
    const char *reason = code != 0 ? ERR_reason_error_string(code) : NULL;
    ERR_clear_error();
    return error_set(reterr, ERR_INVALID, "%s '%s': %s", what, file,
                     reason != NULL ? reason : "it cannot be read");
}

/* An encrypted key must not stop a daemon at a prompt. */
static int refuse_passphrase(char *buffer, int size, int is_writing, void *context)
{
    (void)buffer;
    (void)size;
    (void)is_writing;
    (void)context;
    return 0;
}

static enum status load_client_ca(SSL_CTX *openssl, const struct http_tls *files,
                                  struct error *reterr)
{
    if (files->client_ca_file == NULL)
        return OK;
    if (SSL_CTX_load_verify_locations(openssl, files->client_ca_file, NULL) != 1)
        return openssl_error(reterr, "client CA", files->client_ca_file);
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(files->client_ca_file);
    if (names == NULL)
        return openssl_error(reterr, "client CA", files->client_ca_file);
    SSL_CTX_set_client_CA_list(openssl, names);
    int mode = SSL_VERIFY_PEER | (files->client_required ? SSL_VERIFY_FAIL_IF_NO_PEER_CERT : 0);
    SSL_CTX_set_verify(openssl, mode, NULL);
    return OK;
}

enum status tls_context_new(const struct http_tls *files, struct tls_context **ret_context,
                            struct error *reterr)
{
    ERR_clear_error();
    AUTO(tls_context_free) struct tls_context *context = xcalloc(1, sizeof *context);
    SSL_CTX *openssl = context->openssl = SSL_CTX_new(TLS_server_method());
    if (openssl == NULL)
        return openssl_error(reterr, "OpenSSL context for", files->certificate_file);
    SSL_CTX_set_min_proto_version(openssl, TLS1_2_VERSION);
    SSL_CTX_set_options(openssl,
                        SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET);
    SSL_CTX_set_session_cache_mode(openssl, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_default_passwd_cb(openssl, refuse_passphrase);
    if (SSL_CTX_use_certificate_chain_file(openssl, files->certificate_file) != 1)
        return openssl_error(reterr, "certificate", files->certificate_file);
    if (SSL_CTX_use_PrivateKey_file(openssl, files->key_file, SSL_FILETYPE_PEM) != 1)
        return openssl_error(reterr, "key", files->key_file);
    if (SSL_CTX_check_private_key(openssl) != 1)
        return openssl_error(reterr, "key", files->key_file);
    TRY(load_client_ca(openssl, files, reterr));
    *ret_context = TAKE(context);
    return OK;
}

void tls_context_free(struct tls_context *context)
{
    if (context == NULL)
        return;
    SSL_CTX_free(context->openssl);
    xfree(context);
}

struct bufferevent *tls_accept(struct tls_context *context, struct event_base *base, int fd)
{
    SSL *ssl = SSL_new(context->openssl);
    if (ssl == NULL)
        return NULL;
    struct bufferevent *connection = bufferevent_openssl_socket_new(
        base, fd, ssl, BUFFEREVENT_SSL_ACCEPTING, BEV_OPT_CLOSE_ON_FREE);
    if (connection == NULL)
        SSL_free(ssl);
    return connection;
}

void tls_peer_name(struct bufferevent *connection, char *buffer, size_t bytes)
{
    buffer[0] = '\0';
    SSL *ssl = bufferevent_openssl_get_ssl(connection);
    X509 *certificate = SSL_get1_peer_certificate(ssl);
    if (certificate == NULL)
        return;
    if (SSL_get_verify_result(ssl) == X509_V_OK) {
        int length = X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName,
                                               buffer, (int)bytes);
        bool is_name = length > 0 && (size_t)length < bytes - 1 && strlen(buffer) == (size_t)length;
        for (int i = 0; is_name && i < length; i++)
            is_name = (unsigned char)buffer[i] >= ' ' && buffer[i] != 0x7f;
        if (!is_name)
            buffer[0] = '\0';
    }
    X509_free(certificate);
}

void tls_close_notify(struct bufferevent *connection)
{
    ERR_clear_error();
    SSL_shutdown(bufferevent_openssl_get_ssl(connection));
    ERR_clear_error();
}
