/* curl's multi interface on the loop. Name look-ups do not block: Debian's libcurl resolves in a
 * thread of its own. Proxies from the environment are ignored and redirects are not followed: a
 * command goes to the address that the configuration names, or nowhere. HTTP/1.1 alone: a call has
 * a connection to itself, so that one that hangs takes no other with it, and 18 patches over kept
 * connections are as fast as over one HTTP/2 connection.
 */
#include "controller/io/http_client.h"

#include "controller/sys/clock.h"

#include <assert.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { TIMEOUT_MS_DEFAULT = 10000, CONNECT_TIMEOUT_MS = 5000 };
/* A server that closes idle connections does so after a minute or more: a call that is sent once
 * takes none that is old enough to be closed under it. After a time-out none of them is trusted for
 * as long: what stands between may have forgotten them all. */
enum { KEPT_SECONDS_MAX = 30 };
static const size_t ANSWER_BYTES_DEFAULT = 64u << 20;

struct http_transfer {
    struct http_client *client; /* NULL in http_call_wait */
    struct http_transfer *previous, *next;
    CURL *easy;
    struct curl_slist *headers;
    char *body;
    struct text answer;
    size_t answer_bytes_max;
    bool answer_too_big;
    char reason[CURL_ERROR_SIZE];
    int64_t started_ns;
    bool sent_once; /* what changes the world: a second sending is refused */
    int sendings;
    http_answer_fn *fn;
    void *context;
    struct stream *stream; /* NULL: the answer comes whole */
};

struct stream {
    http_bytes_fn *on_bytes;
    struct loop_timer *idle_timer;
    int64_t idle_ns;
    bool has_news; /* bytes in transfer->answer, or the headers, that on_bytes has not seen */
    bool is_good;  /* the answer is a 2xx */
};

struct http_client {
    struct loop *loop;
    CURLM *multi;
    CURLSH *sessions; /* of TLS: a further connection to a server costs half of the first one */
    struct loop_timer *timer;
    struct http_transfer *transfers;
    int64_t distrust_until_ns; /* of kept connections */
    struct text delivered;     /* what on_bytes is shown: the stream may go away meanwhile */
    int depth;                 /* inside on_progress: freeing waits for its end */
    bool freed;
};

static void curl_start_once(void)
{
    static bool started;
    if (started)
        return;
    CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
    assert(code == CURLE_OK);
    (void)code;
    /* Without its resolver thread a name look-up would stop the loop. */
    assert((curl_version_info(CURLVERSION_NOW)->features & CURL_VERSION_ASYNCHDNS) != 0);
    started = true;
}

static size_t on_answer_bytes(char *bytes, size_t one, size_t length, void *context)
{
    struct http_transfer *transfer = context;
    (void)one;
    if (length > transfer->answer_bytes_max - transfer->answer.length) {
        transfer->answer_too_big = true;
        return 0;
    }
    text_add_bytes(&transfer->answer, bytes, length);
    if (transfer->stream != NULL) {
        transfer->stream->has_news = transfer->stream->is_good;
        loop_timer_set(transfer->stream->idle_timer, transfer->stream->idle_ns);
    }
    return length;
}

/* Called for each header line; the empty one ends them. */
static size_t on_header_line(char *bytes, size_t one, size_t length, void *context)
{
    struct http_transfer *transfer = context;
    long code = 0;
    (void)one;
    if (length > 2 || bytes[0] != '\r')
        return length;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &code);
    transfer->stream->is_good = transfer->stream->has_news = code / 100 == 2;
    loop_timer_set(transfer->stream->idle_timer, transfer->stream->idle_ns);
    return length;
}

/* curl repeats a request that dies on a kept connection, whatever its method. This is asked before
 * each sending. */
static int on_sending(void *context, char *to, char *from, int to_port, int from_port)
{
    struct http_transfer *transfer = context;
    (void)to;
    (void)from;
    (void)to_port;
    (void)from_port;
    if (transfer->sent_once && transfer->sendings > 0)
        return CURL_PREREQFUNC_ABORT;
    transfer->sendings++;
    return CURL_PREREQFUNC_OK;
}

static curl_socket_t open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address)
{
    (void)context;
    (void)purpose;
    return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}

static void add_header(struct http_transfer *transfer, const char *name, const char *value)
{
    AUTO_TEXT line = {0};
    text_addf(&line, "%s: %s", name, value);
    transfer->headers = curl_slist_append(transfer->headers, line.bytes);
    assert(transfer->headers != NULL);
}

static void set_headers(struct http_transfer *transfer, const struct http_call *call)
{
    /* Without this curl waits a second for "100 Continue" before a large body. */
    transfer->headers = curl_slist_append(transfer->headers, "Expect:");
    assert(transfer->headers != NULL);
    if (call->body.length > 0)
        add_header(transfer, "Content-Type",
                   call->content_type != NULL ? call->content_type : "application/json");
    if (call->bearer_token != NULL) {
        AUTO_TEXT value = {0};
        text_addf(&value, "Bearer %s", call->bearer_token);
        add_header(transfer, "Authorization", value.bytes);
    }
    for (const char *const *line = call->headers; line != NULL && *line != NULL; line++) {
        transfer->headers = curl_slist_append(transfer->headers, *line);
        assert(transfer->headers != NULL);
    }
    curl_easy_setopt(transfer->easy, CURLOPT_HTTPHEADER, transfer->headers);
}

static void set_method(struct http_transfer *transfer, const struct http_call *call)
{
    CURL *easy = transfer->easy;
    bool reads = strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
    transfer->sent_once = !reads;
    curl_easy_setopt(easy, CURLOPT_FRESH_CONNECT, reads || call->may_reuse ? 0L : 1L);
    curl_easy_setopt(easy, CURLOPT_MAXAGE_CONN, (long)KEPT_SECONDS_MAX);
    if (strcmp(call->method, "HEAD") == 0)
        curl_easy_setopt(easy, CURLOPT_NOBODY, 1L);
    else
        curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, call->method);
    if (call->body.length == 0 && (reads || strcmp(call->method, "DELETE") == 0))
        return;
    transfer->body = xmalloc(call->body.length + 1);
    if (call->body.length > 0)
        memcpy(transfer->body, call->body.bytes, call->body.length);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, transfer->body);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)call->body.length);
}

static void set_tls(CURL *easy, const struct http_call *call)
{
    if (call->ca_file != NULL)
        curl_easy_setopt(easy, CURLOPT_CAINFO, call->ca_file);
    if (call->certificate_file != NULL)
        curl_easy_setopt(easy, CURLOPT_SSLCERT, call->certificate_file);
    if (call->key_file != NULL)
        curl_easy_setopt(easy, CURLOPT_SSLKEY, call->key_file);
    curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
}

static struct http_transfer *transfer_new(const struct http_call *call)
{
    curl_start_once();
    struct http_transfer *transfer = xcalloc(1, sizeof *transfer);
    CURL *easy = transfer->easy = curl_easy_init();
    assert(easy != NULL);
    transfer->answer_bytes_max = call->answer_bytes_max > 0 ? call->answer_bytes_max
                                                            : ANSWER_BYTES_DEFAULT;
    int timeout_ms = call->timeout_ms > 0 ? call->timeout_ms : TIMEOUT_MS_DEFAULT;
    curl_easy_setopt(easy, CURLOPT_URL, call->url);
    curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(easy, CURLOPT_PROXY, "");
    curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
    /* A call that ends while its name is still looked up leaves that thread behind instead of
     * waiting. */
    curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
    curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, transfer->reason);
    curl_easy_setopt(easy, CURLOPT_PRIVATE, transfer);
    curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, on_sending);
    curl_easy_setopt(easy, CURLOPT_PREREQDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, open_socket);
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_answer_bytes);
    curl_easy_setopt(easy, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(easy, CURLOPT_USERAGENT, "broomwagon/" BROOM_VERSION);
    if (call->unix_socket != NULL)
        curl_easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, call->unix_socket);
    set_tls(easy, call);
    set_method(transfer, call);
    set_headers(transfer, call);
    transfer->started_ns = clock_read().monotonic_ns;
    return transfer;
}

static void transfer_free(struct http_transfer *transfer)
{
    curl_easy_cleanup(transfer->easy);
    if (transfer->stream != NULL)
        loop_timer_free(transfer->stream->idle_timer);
    xfree(transfer->stream);
    curl_slist_free_all(transfer->headers);
    text_done(&transfer->answer);
    xfree(transfer->body);
    xfree(transfer);
}
DEFINE_AUTO(struct http_transfer, transfer_free)

static enum status status_of(const struct http_transfer *transfer, CURLcode code)
{
    if (code == CURLE_OK)
        return OK;
    if (transfer->sendings == 0)
        return ERR_UNREACHABLE;
    return code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT : ERR_IO;
}

static struct http_answer answer_of(struct http_transfer *transfer, CURLcode code)
{
    struct http_answer answer = {
        .status = status_of(transfer, code),
        .body = {transfer->answer.bytes, transfer->answer.length},
        .took_ns = clock_read().monotonic_ns - transfer->started_ns,
    };
    long http_code = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RESPONSE_CODE, &http_code);
    answer.code = (int)http_code;
    curl_off_t retry_after_s = 0;
    curl_easy_getinfo(transfer->easy, CURLINFO_RETRY_AFTER, &retry_after_s);
    answer.retry_after_s = retry_after_s;
    if (code == CURLE_ABORTED_BY_CALLBACK)
        answer.reason = "the connection closed before an answer came; not sent again";
    else if (transfer->answer_too_big)
        answer.reason = "the answer is larger than this call allows";
    else if (answer.status != OK)
        answer.reason = transfer->reason[0] != '\0' ? transfer->reason : curl_easy_strerror(code);
    return answer;
}

static void unlink_transfer(struct http_transfer *transfer)
{
    if (transfer->previous != NULL)
        transfer->previous->next = transfer->next;
    else
        transfer->client->transfers = transfer->next;
    if (transfer->next != NULL)
        transfer->next->previous = transfer->previous;
    curl_multi_remove_handle(transfer->client->multi, transfer->easy);
}

static void finish_transfer(struct http_transfer *transfer, CURLcode code)
{
    unlink_transfer(transfer);
    if (code == CURLE_OPERATION_TIMEDOUT)
        transfer->client->distrust_until_ns = clock_read().monotonic_ns +
                                              KEPT_SECONDS_MAX * INT64_C(1000000000);
    struct http_answer answer = answer_of(transfer, code);
    transfer->fn(transfer->context, &answer);
    transfer_free(transfer);
}

static void client_destroy(struct http_client *client)
{
    while (client->transfers != NULL) {
        struct http_transfer *transfer = client->transfers;
        unlink_transfer(transfer);
        transfer_free(transfer);
    }
    curl_multi_cleanup(client->multi);
    curl_share_cleanup(client->sessions);
    loop_timer_free(client->timer);
    text_done(&client->delivered);
    xfree(client);
}

/* curl may not be called from within its own callbacks, and the owner of a stream will: so its
 * bytes are kept until curl has returned. */
static void deliver_news(struct http_client *client)
{
    struct http_transfer *next;
    for (struct http_transfer *transfer = client->transfers; transfer != NULL && !client->freed;
         transfer = next) {
        next = transfer->next;
        if (transfer->stream == NULL || !transfer->stream->has_news)
            continue;
        struct text bytes = transfer->answer;
        transfer->answer = client->delivered;
        text_clear(&transfer->answer);
        client->delivered = bytes;
        transfer->stream->has_news = false;
        transfer->stream->on_bytes(transfer->context, (struct view){bytes.bytes, bytes.length});
        /* Who was called may have ended any transfer. */
        next = client->transfers;
    }
}

/* Lets curl work, then answers what has ended. An answer may start calls or free the client. */
static void on_progress(struct http_client *client, curl_socket_t socket, int what)
{
    int running;
    client->depth++;
    curl_multi_socket_action(client->multi, socket, what, &running);
    deliver_news(client);
    int left;
    for (CURLMsg *message;
         !client->freed && (message = curl_multi_info_read(client->multi, &left)) != NULL;) {
        char *owner = NULL;
        CURLcode code = message->data.result;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &owner);
        finish_transfer((struct http_transfer *)(void *)owner, code);
    }
    if (--client->depth == 0 && client->freed)
        client_destroy(client);
}

static void on_timer(void *context)
{
    on_progress(context, CURL_SOCKET_TIMEOUT, 0);
}

static void on_socket(void *context, int fd, int events)
{
    int what = ((events & LOOP_READ) != 0 ? CURL_CSELECT_IN : 0) |
               ((events & LOOP_WRITE) != 0 ? CURL_CSELECT_OUT : 0);
    on_progress(context, fd, what);
}

static int on_curl_timer(CURLM *multi, long after_ms, void *context)
{
    struct http_client *client = context;
    (void)multi;
    if (after_ms < 0)
        loop_timer_stop(client->timer);
    else
        loop_timer_set(client->timer, (int64_t)after_ms * 1000000);
    return 0;
}

static int on_curl_socket(CURL *easy, curl_socket_t socket, int what, void *context, void *watch)
{
    struct http_client *client = context;
    struct loop_fd *fd = watch;
    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        loop_fd_free(fd);
        curl_multi_assign(client->multi, socket, NULL);
        return 0;
    }
    int events = (what != CURL_POLL_OUT ? LOOP_READ : 0) | (what != CURL_POLL_IN ? LOOP_WRITE : 0);
    if (fd != NULL)
        loop_fd_set(fd, events);
    else
        curl_multi_assign(client->multi, socket,
                          loop_fd_new(client->loop, socket, events, on_socket, client));
    return 0;
}

/* curl's own wake-up descriptors would live on in programs that this process starts; there is no
 * option for it, so what is new and small is marked. */
static CURLM *multi_new(void)
{
    enum { LOOKED_AT = 1024 };
    bool was_open[LOOKED_AT];
    for (int fd = 0; fd < LOOKED_AT; fd++)
        was_open[fd] = fcntl(fd, F_GETFD) >= 0;
    CURLM *multi = curl_multi_init();
    assert(multi != NULL);
    for (int fd = 0; fd < LOOKED_AT; fd++)
        if (!was_open[fd] && fcntl(fd, F_GETFD) >= 0)
            fcntl(fd, F_SETFD, FD_CLOEXEC);
    return multi;
}

struct http_client *http_client_new(struct loop *loop)
{
    curl_start_once();
    struct http_client *client = xcalloc(1, sizeof *client);
    client->loop = loop;
    client->multi = multi_new();
    client->sessions = curl_share_init();
    assert(client->sessions != NULL);
    curl_share_setopt(client->sessions, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
    client->timer = loop_timer_new(loop, on_timer, client);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETFUNCTION, on_curl_socket);
    curl_multi_setopt(client->multi, CURLMOPT_SOCKETDATA, client);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERFUNCTION, on_curl_timer);
    curl_multi_setopt(client->multi, CURLMOPT_TIMERDATA, client);
    return client;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL)
        return;
    client->freed = true;
    if (client->depth == 0)
        client_destroy(client);
}

static struct http_transfer *client_transfer(struct http_client *client,
                                             const struct http_call *call, http_answer_fn *fn,
                                             void *context)
{
    struct http_transfer *transfer = transfer_new(call);
    transfer->client = client;
    transfer->fn = fn;
    transfer->context = context;
    /* A session remembers the certificate that it was made with, and that may have been replaced.
     */
    if (call->certificate_file == NULL)
        curl_easy_setopt(transfer->easy, CURLOPT_SHARE, client->sessions);
    if (transfer->started_ns < client->distrust_until_ns)
        curl_easy_setopt(transfer->easy, CURLOPT_FRESH_CONNECT, 1L);
    return transfer;
}

static void link_transfer(struct http_client *client, struct http_transfer *transfer)
{
    transfer->next = client->transfers;
    if (transfer->next != NULL)
        transfer->next->previous = transfer;
    client->transfers = transfer;
    CURLMcode code = curl_multi_add_handle(client->multi, transfer->easy);
    assert(code == CURLM_OK);
    (void)code;
}

struct http_transfer *http_client_start(struct http_client *client, const struct http_call *call,
                                        http_answer_fn *fn, void *context)
{
    struct http_transfer *transfer = client_transfer(client, call, fn, context);
    link_transfer(client, transfer);
    return transfer;
}

static void on_idle(void *context)
{
    struct http_transfer *transfer = context;
    struct http_client *client = transfer->client;
    client->depth++;
    finish_transfer(transfer, CURLE_OPERATION_TIMEDOUT);
    if (--client->depth == 0 && client->freed)
        client_destroy(client);
}

struct http_transfer *http_stream_start(struct http_client *client, const struct http_call *call,
                                        int idle_ms, http_bytes_fn *on_bytes,
                                        http_answer_fn *on_end, void *context)
{
    struct http_transfer *transfer = client_transfer(client, call, on_end, context);
    struct stream *stream = transfer->stream = xcalloc(1, sizeof *stream);
    stream->on_bytes = on_bytes;
    stream->idle_ns = (int64_t)idle_ms * 1000000;
    stream->idle_timer = loop_timer_new(client->loop, on_idle, transfer);
    loop_timer_set(stream->idle_timer, stream->idle_ns);
    curl_easy_setopt(transfer->easy, CURLOPT_TIMEOUT_MS, 0L);
    curl_easy_setopt(transfer->easy, CURLOPT_HEADERFUNCTION, on_header_line);
    curl_easy_setopt(transfer->easy, CURLOPT_HEADERDATA, transfer);
    link_transfer(client, transfer);
    return transfer;
}

void http_transfer_drop(struct http_transfer *transfer)
{
    unlink_transfer(transfer);
    transfer_free(transfer);
}

enum status http_call_wait(const struct http_call *call, int *ret_code, char **ret_body,
                           size_t *ret_bytes, struct error *reterr)
{
    AUTO(transfer_free) struct http_transfer *transfer = transfer_new(call);
    CURLcode code = curl_easy_perform(transfer->easy);
    struct http_answer answer = answer_of(transfer, code);
    if (answer.status != OK)
        return error_set(reterr, answer.status, "%s", answer.reason);
    *ret_code = answer.code;
    *ret_bytes = transfer->answer.length;
    *ret_body = text_take(&transfer->answer);
    return OK;
}
