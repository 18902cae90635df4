/* Lists in pages: each page is one call of its own turn, so that a list of thousands holds nothing
 * up and its memory is that of one page.
 */
#include "controller/kube/kube_client.h"

#include <string.h>

enum { PAGE_ITEMS_DEFAULT = 100, PAGE_TIMEOUT_MS = 30000, RESTARTS_MAX = 2 };

struct kube_listing {
    struct kube_client *client;
    struct kube_list list;
    char *path;
    char *version; /* of the first page; NULL before it */
    struct kube_request *request;
    int restarts;
    int depth; /* inside its owner's functions: dropping waits for their end */
    bool is_dropped;
};

static void listing_free(struct kube_listing *listing)
{
    xfree(listing->path);
    xfree(listing->version);
    xfree(listing);
}

static void finish(struct kube_listing *listing, const struct kube_answer *answer)
{
    const char *version = listing->version != NULL ? listing->version : "";
    listing->is_dropped = true; /* on_page frees it */
    listing->list.on_done(listing->list.context, answer, version);
}

static void finish_as(struct kube_listing *listing, const struct kube_answer *answer,
                      enum kube_result result, const char *message)
{
    struct kube_answer changed = *answer;
    changed.result = result;
    changed.message = message;
    finish(listing, &changed);
}

static void on_page(void *context, const struct kube_answer *answer);

static void ask_page(struct kube_listing *listing, const char *next)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT items = {0};
    text_add(&path, listing->path);
    text_addf(&items, "%d", listing->list.page_items);
    kube_query_add(&path, "limit", items.bytes);
    if (next[0] != '\0')
        kube_query_add(&path, "continue", next);
    listing->request = kube_call_start(listing->client,
                                       &(struct kube_call){.method = "GET",
                                                           .path = path.bytes,
                                                           .priority = listing->list.priority,
                                                           .timeout_ms = PAGE_TIMEOUT_MS},
                                       on_page, listing);
}

/* The server has forgotten where we were: from the first page again. */
static void restart(struct kube_listing *listing, const struct kube_answer *answer)
{
    if (listing->version == NULL || listing->restarts++ >= RESTARTS_MAX) {
        finish(listing, answer);
        return;
    }
    xfree(TAKE(listing->version));
    if (listing->list.on_restart != NULL)
        listing->list.on_restart(listing->list.context);
    if (!listing->is_dropped)
        ask_page(listing, "");
}

static void tell_items(struct kube_listing *listing, const struct json *items)
{
    for (const struct json *item = json_first(items); item != NULL && !listing->is_dropped;
         item = json_next(item))
        listing->list.on_item(listing->list.context, item);
}

/* False when the owner does not want a list of this version. */
static bool take_version(struct kube_listing *listing, const char *version)
{
    if (listing->version != NULL)
        return true;
    listing->version = xstrdup(version);
    return listing->list.on_version == NULL ||
           listing->list.on_version(listing->list.context, version);
}

static void read_page(struct kube_listing *listing, const struct kube_answer *answer)
{
    const struct json *metadata = json_get(answer->body, "metadata");
    const struct json *items = json_get(answer->body, "items");
    const char *version = json_get_string(metadata, "resourceVersion", "");
    /* A list without an object is `"items": []`, or null from some servers; without the key it is
     * none. */
    if (items == NULL || version[0] == '\0') {
        finish_as(listing, answer, KUBE_UNKNOWN, "the answer is not a list");
        return;
    }
    bool is_wanted = take_version(listing, version);
    if (is_wanted)
        tell_items(listing, items);
    if (listing->is_dropped)
        return;
    const char *next = json_get_string(metadata, "continue", "");
    if (!is_wanted)
        finish_as(listing, answer, KUBE_EXPIRED, "the list is older than what was seen before");
    else if (next[0] != '\0')
        ask_page(listing, next);
    else
        finish(listing, answer);
}

static void on_page(void *context, const struct kube_answer *answer)
{
    struct kube_listing *listing = context;
    listing->request = NULL;
    listing->depth++;
    if (answer->result == KUBE_EXPIRED)
        restart(listing, answer);
    else if (answer->result == KUBE_OK)
        read_page(listing, answer);
    else
        finish(listing, answer);
    if (--listing->depth == 0 && listing->is_dropped)
        listing_free(listing);
}

struct kube_listing *kube_list_start(struct kube_client *client, const struct kube_list *list)
{
    struct kube_listing *listing = xcalloc(1, sizeof *listing);
    listing->client = client;
    listing->list = *list;
    listing->path = xstrdup(list->path);
    if (listing->list.page_items <= 0)
        listing->list.page_items = PAGE_ITEMS_DEFAULT;
    ask_page(listing, "");
    return listing;
}

void kube_list_drop(struct kube_listing *listing)
{
    if (listing->request != NULL)
        kube_request_drop(listing->request);
    listing->is_dropped = true;
    if (listing->depth == 0)
        listing_free(listing);
}
