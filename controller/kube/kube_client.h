/* Calls to a Kubernetes API server, one JSON answer each: credentials, a client-side rate limit
 * with priorities, time-outs, and one meaning for what comes back. Nothing that changes the cluster
 * is ever sent twice by this layer: the caller re-reads and decides.
 */
#ifndef BROOM_KUBE_CLIENT_H
#define BROOM_KUBE_CLIENT_H

#include "controller/base/json.h"
#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "controller/kube/kube_config.h"

struct kube_client;

/* Waiting calls are let go in this order: a cordon is never behind a relist. */
enum kube_priority { KUBE_ACT = 0, KUBE_READ, KUBE_LIST, KUBE_PRIORITY_COUNT };

struct kube_limits {
    double calls_per_s; /* of KUBE_READ and KUBE_LIST together; default 20 */
    double burst;       /* default 40 */
    double acts_per_s;  /* of KUBE_ACT, a bucket of its own; default 100 */
    double act_burst;   /* default 200: eleven racks at once */
    int under_way; /* calls at the server at a time; default 16, of which KUBE_ACT may use all and
                      the others all but 4 */
    int wait_ms;   /* longest wait for both; default 30 s */
};
struct kube_limits kube_limits_default(void);

/* client, config and loop are lent and must outlive it. */
struct kube_client *kube_client_new(struct loop *loop, struct http_client *http,
                                    const struct kube_config *config,
                                    const struct kube_limits *limits);
void kube_client_free(
    struct kube_client *client); /* calls under way are dropped without an answer */
DEFINE_AUTO(struct kube_client, kube_client_free)
struct loop *kube_client_loop(const struct kube_client *client);

enum kube_patch { KUBE_NO_PATCH = 0, KUBE_MERGE_PATCH, KUBE_STRATEGIC_PATCH, KUBE_JSON_PATCH };

struct kube_call {
    const char *method; /* GET, POST, PATCH, DELETE, PUT */
    const char *path;   /* "/api/v1/nodes/gb-1?limit=100": already escaped, see kube_path_add */
    struct view body;   /* JSON, copied */
    enum kube_patch patch;
    enum kube_priority priority;
    int timeout_ms; /* 0: 10 s, from when it is first sent; a call that is not sent within
                       kube_limits.wait_ms ends KUBE_UNREACHABLE */
};

/* What an answer means. */
enum kube_result {
    KUBE_OK = 0,      /* 2xx */
    KUBE_NOT_FOUND,   /* 404: the object; see `no_such_kind` for the API group that is not installed
                       */
    KUBE_CONFLICT,    /* 409, and 422 of a failed json-patch test: read again and decide again */
    KUBE_EXISTS,      /* 409 AlreadyExists */
    KUBE_EXPIRED,     /* 410 */
    KUBE_BLOCKED,     /* 429 with cause DisruptionBudget (an eviction) */
    KUBE_BUSY,        /* 429, 503: not done; retry_after_ns says when */
    KUBE_DENIED,      /* 401, 403: RBAC or credentials; message names the verb and resource */
    KUBE_REFUSED,     /* other 4xx: the request is wrong, it was not done */
    KUBE_UNREACHABLE, /* nothing was sent: not done */
    KUBE_UNKNOWN, /* a time-out, a cut answer, 5xx, 2xx that is not JSON: it may have been done */
    KUBE_RESULT_COUNT
};

struct kube_answer {
    enum kube_result result;
    int code;                /* of HTTP; 0 none */
    bool no_such_kind;       /* with KUBE_NOT_FOUND: the server does not serve this resource */
    const struct json *body; /* lent for the call; NULL when there is none */
    struct view bytes;       /* the same as text, lent */
    const char *message;     /* one line for people, never NULL; lent */
    int64_t retry_after_ns;  /* with KUBE_BUSY; at least 1 s */
    int64_t took_ns;
};
typedef void kube_answer_fn(void *context, const struct kube_answer *answer);

/* fn is called exactly once, later, from the loop. GETs that end KUBE_BUSY or KUBE_UNREACHABLE are
 * tried again inside their time-out; nothing else is. The result may be ignored: it is for
 * kube_request_drop. */
struct kube_request;
struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context);
/* Ends a call or a stream without an answer (it may have been done); not after its answer. */
void kube_request_drop(struct kube_request *request);

/* An answer of many lines that is taken as it comes: a watch. It waits for its turn as KUBE_LIST
 * and then holds no place among the calls under way. idle_ms without a byte ends it. Every function
 * may drop the stream; on_end is called once, KUBE_OK when the server ended it. */
struct kube_stream {
    const char *path;
    int idle_ms;
    void (*on_open)(void *context); /* the server said 200 */
    void (*on_line)(void *context, struct view line);
    kube_answer_fn *on_end;
    void *context;
};
struct kube_request *kube_stream_start(struct kube_client *client,
                                       const struct kube_stream *stream);

/* Every page of a list (limit / continue, page_items a page), one item at a time; done is called
 * once at the end with the list's resourceVersion, or with why it failed. 410 in mid-list starts
 * again from the first page: on_restart tells the caller to drop what it has; a third time is
 * KUBE_EXPIRED. on_item may be called for items whose metadata has no resourceVersion of their own.
 * Pages are parsed one by one: memory is that of one page. A 2xx without items is KUBE_UNKNOWN. */
struct kube_list {
    const char *path; /* "/api/v1/nodes", may hold ?labelSelector=... */
    int page_items;   /* 0: 100 */
    enum kube_priority priority;
    /* Before the items of the first page; false ends the list there with KUBE_EXPIRED. May be NULL.
     */
    bool (*on_version)(void *context, const char *resource_version);
    void (*on_item)(void *context, const struct json *object);
    void (*on_restart)(void *context); /* may be NULL */
    void (*on_done)(void *context, const struct kube_answer *answer, const char *resource_version);
    void *context;
};
struct kube_listing;
struct kube_listing *kube_list_start(struct kube_client *client, const struct kube_list *list);
/* Ends it without on_done; not after on_done, but fine inside the others. No callback of a list may
 * free the client. */
void kube_list_drop(struct kube_listing *listing);

/* Adds "/" and the percent-encoded segment. */
void kube_path_add(struct text *path, const char *segment);
/* Adds "?key=value" or "&key=value", encoded. */
void kube_query_add(struct text *path, const char *key, const char *value);

struct kube_client_counts {
    int64_t calls, busy, conflicts, denied, unknown, unreachable;
    int64_t waited_ns_max[KUBE_PRIORITY_COUNT]; /* longest wait for the rate limit */
    int32_t under_way, waiting;
};
struct kube_client_counts kube_client_counts(const struct kube_client *client);

#endif
