/* List and watch. A watch is asked to end after half a minute, just before which the server tells
 * how far it is: so a live server is heard that often however quiet the kind is, and the version to
 * go on from is never old.
 */
#include "controller/kube/kube_watch.h"

#include "controller/kube/kube_objects.h"
#include "controller/sys/clock.h"

#include <stdio.h>
#include <string.h>

enum { STREAM_SECONDS = 30, EMPTY_MAX = 3, REASON_BYTES = 320 };
enum { IDLE_MS_DEFAULT = 45000, BACKOFF_MS_DEFAULT = 500, BACKOFF_GROWTH_MAX = 10 };
static const int64_t SECOND_NS = 1000000000;
static const int64_t ABSENT_NS = 300000000000;
/* A stream that lived this long without an error was no failure. */
static const int64_t LIVED_NS = 5000000000;

struct kube_watch {
    struct kube_client *client;
    struct kube_watch_params params;
    char *path;
    struct loop_timer *timer; /* runs while neither a list nor a stream does */
    struct kube_listing *listing;
    struct kube_request *stream;
    struct kube_objects objects;
    int64_t list_number;
    char *version;       /* newest seen; "" none */
    bool is_whole;       /* there was a list and nothing was missed since */
    bool is_absent;      /* the kind is not served, and may be so */
    bool is_list_stale;  /* the list under way was older than `version` */
    bool is_list_due;    /* the next thing is a list, not a stream */
    bool has_opened;     /* the stream under way was accepted */
    bool has_line;       /* it brought an event or a bookmark */
    bool is_told_synced; /* what on_state was told last */
    int failures, empties;
    int64_t heard_ns, stream_started_ns;
    char *reason; /* why it is not whole; REASON_BYTES */
    char *answer; /* of kube_watch_is_synced; REASON_BYTES */
    struct kube_watch_counts counts;
    int depth; /* inside its owner's functions: freeing waits for their end */
    bool is_freed;
};

static int64_t now_ns(void)
{
    return clock_read().monotonic_ns;
}

static void watch_destroy(struct kube_watch *watch)
{
    loop_timer_free(watch->timer);
    kube_objects_done(&watch->objects);
    xfree(watch->path);
    xfree(watch->version);
    xfree(watch->reason);
    xfree(watch->answer);
    xfree(watch);
}

static void leave(struct kube_watch *watch)
{
    if (--watch->depth == 0 && watch->is_freed)
        watch_destroy(watch);
}

static void tell_state(struct kube_watch *watch, bool is_synced)
{
    watch->is_told_synced = is_synced;
    if (watch->params.on_state != NULL && !watch->is_freed)
        watch->params.on_state(watch->params.context, is_synced, is_synced ? NULL : watch->reason);
}

/* Says why the picture is not to be relied on; the owner hears of each reason once. */
static void tell_trouble(struct kube_watch *watch, const char *what, const char *why)
{
    AUTO_TEXT reason = {0};
    text_addf(&reason, "%s %s: %s", what, watch->path, why);
    bool is_new = watch->is_told_synced ||
                  strncmp(watch->reason, reason.bytes, REASON_BYTES - 1) != 0;
    text_copy(watch->reason, REASON_BYTES, reason.bytes);
    if (is_new)
        tell_state(watch, false);
}

static int64_t backoff_ns(const struct kube_watch *watch)
{
    int64_t growth = watch->failures < 4 ? 1 << watch->failures : BACKOFF_GROWTH_MAX;
    return (int64_t)watch->params.backoff_ms * 1000000 * growth;
}

static void pause_for(struct kube_watch *watch, int64_t wait_ns)
{
    if (!watch->is_freed)
        loop_timer_set(watch->timer, wait_ns);
}

static void pause_failed(struct kube_watch *watch, int64_t at_least_ns)
{
    int64_t wait_ns = backoff_ns(watch);
    watch->failures++;
    pause_for(watch, wait_ns > at_least_ns ? wait_ns : at_least_ns);
}

static void note_version(struct kube_watch *watch, const char *version)
{
    if (version[0] == '\0' || kube_version_is_older(version, watch->version))
        return;
    xfree(watch->version);
    watch->version = xstrdup(version);
}

/* False when the object has no name: nothing that a server sends. */
static bool tell_object(struct kube_watch *watch, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    const char *name = json_get_string(metadata, "name", "");
    if (name[0] == '\0')
        return false;
    bool is_news = kube_objects_put(&watch->objects, json_get_string(metadata, "namespace", ""),
                                    name, json_get_string(metadata, "resourceVersion", ""),
                                    watch->list_number);
    if (is_news && !watch->is_freed)
        watch->params.on_object(watch->params.context, object);
    return true;
}

static bool tell_gone(struct kube_watch *watch, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    const char *name = json_get_string(metadata, "name", "");
    const char *namespace_name = json_get_string(metadata, "namespace", "");
    if (kube_objects_remove(&watch->objects, namespace_name, name))
        watch->params.on_gone(watch->params.context, namespace_name, name);
    return name[0] != '\0';
}

/* Objects that the newest list did not hold went away while nobody looked. */
static void tell_missing(struct kube_watch *watch)
{
    const struct kube_object *object;
    size_t cursor = 0;
    while (!watch->is_freed &&
           (object = kube_objects_other(&watch->objects, watch->list_number, &cursor)) != NULL) {
        AUTO_FREE char *key = xstrdup(object->key);
        char *slash = strchr(key, '/');
        *slash = '\0';
        kube_objects_remove(&watch->objects, key, slash + 1);
        watch->params.on_gone(watch->params.context, key, slash + 1);
    }
}

static void start_stream(struct kube_watch *watch);

static bool on_list_version(void *context, const char *version)
{
    struct kube_watch *watch = context;
    watch->is_list_stale = kube_version_is_older(version, watch->version);
    watch->heard_ns = now_ns();
    return !watch->is_list_stale;
}

static void on_list_item(void *context, const struct json *object)
{
    struct kube_watch *watch = context;
    watch->depth++;
    watch->heard_ns = now_ns();
    tell_object(watch, object);
    leave(watch);
}

static void on_list_restart(void *context)
{
    struct kube_watch *watch = context;
    watch->counts.expired++;
    watch->list_number++;
}

static void list_succeeded(struct kube_watch *watch, const char *version)
{
    tell_missing(watch);
    note_version(watch, version);
    watch->is_list_due = watch->is_absent = false;
    watch->is_whole = true;
    watch->heard_ns = now_ns();
    tell_state(watch, true);
    if (!watch->is_freed)
        start_stream(watch);
}

/* The kind is not there: nothing of it is. */
static void list_absent(struct kube_watch *watch)
{
    tell_missing(watch);
    watch->is_absent = watch->is_whole = true;
    watch->failures = 0;
    tell_state(watch, true);
    pause_for(watch, ABSENT_NS);
}

static void list_failed(struct kube_watch *watch, const struct kube_answer *answer)
{
    watch->is_whole = watch->is_absent = false;
    if (watch->is_list_stale) {
        watch->counts.stale_lists++;
        tell_trouble(watch, "cannot trust the list of",
                     "it is older than what was seen before; if etcd was restored from a backup, "
                     "restart broomd");
    } else {
        tell_trouble(watch, "cannot list", answer->message);
    }
    pause_failed(watch, answer->retry_after_ns);
}

static void on_list_done(void *context, const struct kube_answer *answer, const char *version)
{
    struct kube_watch *watch = context;
    watch->depth++;
    watch->listing = NULL;
    if (answer->result == KUBE_OK)
        list_succeeded(watch, version);
    else if (answer->no_such_kind && watch->params.is_optional)
        list_absent(watch);
    else
        list_failed(watch, answer);
    leave(watch);
}

static void start_list(struct kube_watch *watch)
{
    watch->counts.lists++;
    watch->list_number++;
    watch->is_list_due = true;
    watch->is_list_stale = false;
    watch->listing = kube_list_start(watch->client,
                                     &(struct kube_list){.path = watch->path,
                                                         .page_items = watch->params.page_items,
                                                         .priority = KUBE_LIST,
                                                         .on_version = on_list_version,
                                                         .on_item = on_list_item,
                                                         .on_restart = on_list_restart,
                                                         .on_done = on_list_done,
                                                         .context = watch});
}

/* Something was missed: what is known stays, and is not relied on until the next list. */
static void list_again(struct kube_watch *watch, const char *why)
{
    watch->is_whole = false;
    watch->is_list_due = true;
    tell_trouble(watch, "must list again", why);
}

static void drop_stream(struct kube_watch *watch)
{
    if (watch->stream != NULL)
        kube_request_drop(TAKE(watch->stream));
}

static void on_stream_open(void *context)
{
    struct kube_watch *watch = context;
    watch->depth++;
    watch->heard_ns = now_ns();
    watch->has_opened = true;
    if (watch->is_whole && !watch->is_told_synced)
        tell_state(watch, true);
    leave(watch);
}

static void on_error_event(struct kube_watch *watch, const struct json *status)
{
    bool is_expired = json_get_int(status, "code", 0) == 410;
    drop_stream(watch);
    watch->counts.expired += is_expired;
    list_again(watch, json_get_string(status, "message", "the server sent an error event"));
    if (is_expired && watch->failures++ == 0)
        pause_for(watch, 0);
    else
        pause_failed(watch, 0);
}

/* False when the line makes no sense. */
static bool take_event(struct kube_watch *watch, const struct json *event)
{
    const char *type = json_get_string(event, "type", "");
    const struct json *object = json_get(event, "object");
    if (strcmp(type, "ERROR") == 0) {
        on_error_event(watch, object);
        return true;
    }
    watch->has_line = true;
    watch->failures = watch->empties = 0;
    bool is_bookmark = strcmp(type, "BOOKMARK") == 0;
    watch->counts.bookmarks += is_bookmark;
    watch->counts.events += !is_bookmark;
    bool is_sense = is_bookmark;
    if (strcmp(type, "ADDED") == 0 || strcmp(type, "MODIFIED") == 0)
        is_sense = tell_object(watch, object);
    else if (strcmp(type, "DELETED") == 0)
        is_sense = tell_gone(watch, object);
    if (is_sense)
        note_version(watch, json_get_string(json_get(object, "metadata"), "resourceVersion", ""));
    return is_sense;
}

static void on_stream_line(void *context, struct view line)
{
    struct kube_watch *watch = context;
    AUTO(json_free) struct json *event = NULL;
    struct error error;
    watch->depth++;
    watch->heard_ns = now_ns();
    bool is_json = json_parse(line, &event, &error) == OK;
    if (!is_json || !take_event(watch, event)) {
        drop_stream(watch);
        list_again(watch, is_json ? "an event makes no sense" : error.message);
        pause_failed(watch, 0);
    }
    leave(watch);
}

/* The server closed a stream in good order. */
static void stream_ended(struct kube_watch *watch)
{
    int64_t lived_ns = now_ns() - watch->stream_started_ns;
    if (watch->has_line || lived_ns >= STREAM_SECONDS * SECOND_NS / 2) {
        watch->failures = watch->empties = 0;
        pause_for(watch, lived_ns >= SECOND_NS ? 0 : backoff_ns(watch));
        return;
    }
    watch->counts.empty_watches++;
    if (++watch->empties >= EMPTY_MAX) {
        watch->empties = 0;
        list_again(watch, "the server closes watches at once without an event");
    }
    pause_failed(watch, 0);
}

static void stream_failed(struct kube_watch *watch, const struct kube_answer *answer)
{
    if (watch->has_opened && now_ns() - watch->stream_started_ns >= LIVED_NS)
        watch->failures = 0;
    if (answer->result == KUBE_EXPIRED) {
        watch->counts.expired++;
        list_again(watch, answer->message);
        if (watch->failures++ == 0) {
            pause_for(watch, 0);
            return;
        }
    } else if (answer->no_such_kind) {
        list_again(watch, answer->message);
    } else if (watch->failures > 0) {
        tell_trouble(watch, "cannot watch", answer->message);
    }
    pause_failed(watch, answer->retry_after_ns);
}

static void on_stream_end(void *context, const struct kube_answer *answer)
{
    struct kube_watch *watch = context;
    watch->depth++;
    watch->stream = NULL;
    if (answer->result == KUBE_OK)
        stream_ended(watch);
    else
        stream_failed(watch, answer);
    leave(watch);
}

static void start_stream(struct kube_watch *watch)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT seconds = {0};
    text_add(&path, watch->path);
    text_addf(&seconds, "%d", STREAM_SECONDS);
    kube_query_add(&path, "watch", "1");
    kube_query_add(&path, "allowWatchBookmarks", "true");
    kube_query_add(&path, "resourceVersion", watch->version);
    kube_query_add(&path, "timeoutSeconds", seconds.bytes);
    watch->counts.watches++;
    watch->has_opened = watch->has_line = false;
    watch->stream_started_ns = now_ns();
    watch->stream = kube_stream_start(watch->client,
                                      &(struct kube_stream){.path = path.bytes,
                                                            .idle_ms = watch->params.idle_ms,
                                                            .on_open = on_stream_open,
                                                            .on_line = on_stream_line,
                                                            .on_end = on_stream_end,
                                                            .context = watch});
}

static void on_timer(void *context)
{
    struct kube_watch *watch = context;
    if (watch->is_list_due || !watch->is_whole)
        start_list(watch);
    else
        start_stream(watch);
}

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params)
{
    struct kube_watch *watch = xcalloc(1, sizeof *watch);
    watch->client = client;
    watch->params = *params;
    watch->params.path = watch->path = xstrdup(params->path);
    if (watch->params.backoff_ms <= 0)
        watch->params.backoff_ms = BACKOFF_MS_DEFAULT;
    if (watch->params.idle_ms <= 0)
        watch->params.idle_ms = IDLE_MS_DEFAULT;
    watch->version = xstrdup("");
    watch->reason = xcalloc(1, REASON_BYTES);
    watch->answer = xcalloc(1, REASON_BYTES);
    snprintf(watch->reason, REASON_BYTES, "%s was not listed yet", watch->path);
    watch->timer = loop_timer_new(kube_client_loop(client), on_timer, watch);
    start_list(watch);
    return watch;
}

void kube_watch_free(struct kube_watch *watch)
{
    if (watch == NULL || watch->is_freed)
        return;
    watch->is_freed = true;
    loop_timer_stop(watch->timer);
    if (watch->listing != NULL)
        kube_list_drop(TAKE(watch->listing));
    drop_stream(watch);
    if (watch->depth == 0)
        watch_destroy(watch);
}

bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns, const char **ret_reason)
{
    int64_t silent_ns = now_ns() - watch->heard_ns;
    *ret_reason = watch->reason;
    if (!watch->is_whole)
        return false;
    if (watch->is_absent || silent_ns <= fresh_ns)
        return true;
    snprintf(watch->answer, REASON_BYTES, "the API server was not heard of %s for %lld s",
             watch->path, (long long)(silent_ns / SECOND_NS));
    *ret_reason = watch->answer;
    return false;
}

struct kube_watch_counts kube_watch_counts(const struct kube_watch *watch)
{
    struct kube_watch_counts counts = watch->counts;
    counts.objects = watch->objects.count;
    counts.bytes = watch->objects.bytes + watch->objects.capacity * sizeof(struct kube_object);
    return counts;
}
