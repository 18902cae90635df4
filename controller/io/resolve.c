/* getaddrinfo_a, asked for its progress by a timer: its other notifications are a signal or a
 * thread of its own, and neither may touch the loop.
 */
#include "controller/io/resolve.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <string.h>
#include <sys/socket.h>

enum { POLL_MS = 10, ADDRESS_BYTES = 64 };

/* What the resolver thread works on; it outlives us when it cannot be cancelled. */
struct lookup {
    struct gaicb request;
    struct addrinfo hints;
    char *name;
};

struct resolve {
    struct loop_timer *timer;
    struct lookup *lookup;
    resolve_fn *fn;
    void *context;
};

static void lookup_free(struct lookup *lookup)
{
    if (lookup->request.ar_result != NULL)
        freeaddrinfo(lookup->request.ar_result);
    xfree(lookup->name);
    xfree(lookup);
}

static void tell(struct resolve *resolve, int error)
{
    char texts[RESOLVE_ADDRESSES_MAX][ADDRESS_BYTES];
    const char *addresses[RESOLVE_ADDRESSES_MAX];
    size_t count = 0;
    const struct addrinfo *item = error == 0 ? resolve->lookup->request.ar_result : NULL;
    for (; item != NULL && count < RESOLVE_ADDRESSES_MAX; item = item->ai_next) {
        if (getnameinfo(item->ai_addr, item->ai_addrlen, texts[count], ADDRESS_BYTES, NULL, 0,
                        NI_NUMERICHOST) != 0)
            continue;
        addresses[count] = texts[count];
        count++;
    }
    resolve->fn(resolve->context, addresses, count, count > 0 ? "" : gai_strerror(error));
}

static void on_poll(void *context)
{
    struct resolve *resolve = context;
    int error = gai_error(&resolve->lookup->request);
    if (error == EAI_INPROGRESS)
        loop_timer_set(resolve->timer, POLL_MS * INT64_C(1000000));
    else
        tell(resolve, error);
}

struct resolve *resolve_new(struct loop *loop, const char *name, resolve_fn *fn, void *context)
{
    struct resolve *resolve = xcalloc(1, sizeof *resolve);
    resolve->fn = fn;
    resolve->context = context;
    resolve->timer = loop_timer_new(loop, on_poll, resolve);
    resolve->lookup = xcalloc(1, sizeof *resolve->lookup);
    resolve->lookup->name = xstrdup(name);
    resolve->lookup->hints.ai_socktype = SOCK_STREAM;
    resolve->lookup->request.ar_name = resolve->lookup->name;
    resolve->lookup->request.ar_request = &resolve->lookup->hints;
    struct gaicb *list[] = {&resolve->lookup->request};
    /* A failure to queue shows as the request's own error when the timer asks. */
    (void)getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
    loop_timer_set(resolve->timer, 0);
    return resolve;
}

void resolve_free(struct resolve *resolve)
{
    if (resolve == NULL)
        return;
    loop_timer_free(resolve->timer);
    bool is_running = gai_error(&resolve->lookup->request) == EAI_INPROGRESS;
    /* A look-up that cannot be cancelled keeps its memory: the thread still writes to it. */
    if (!is_running || gai_cancel(&resolve->lookup->request) == EAI_CANCELED)
        lookup_free(resolve->lookup);
    xfree(resolve);
}

bool resolve_is_address(const char *host)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    char plain[ADDRESS_BYTES];
    size_t length = strcspn(host, "%"); /* a zone: fe80::1%eth0 */
    if (length >= sizeof plain)
        return false;
    memcpy(plain, host, length);
    plain[length] = '\0';
    return inet_pton(AF_INET, plain, bytes) == 1 || inet_pton(AF_INET6, plain, bytes) == 1;
}
