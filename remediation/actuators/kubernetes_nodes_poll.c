/* What became of an action on nodes: each is read, nothing is changed. */
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include <string.h>

/* --- which node was meant --- */

static struct followed **followed_of(struct node_cache *cache, const char *operation_id)
{
    struct followed **link = &cache->followed;
    while (*link != NULL && strcmp((*link)->operation_id, operation_id) != 0)
        link = &(*link)->next;
    return link;
}

static void followed_drop(struct followed **link)
{
    struct followed *followed = *link;
    if (followed == NULL)
        return;
    *link = followed->next;
    names_done(&followed->nodes);
    names_done(&followed->uids);
    xfree(followed);
}

static struct followed *followed_add(struct node_cache *cache, const char *operation_id)
{
    struct followed *followed = xcalloc(1, sizeof *followed);
    text_copy(followed->operation_id, sizeof followed->operation_id, operation_id);
    followed->next = cache->followed;
    cache->followed = followed;
    struct followed **last = &cache->followed;
    for (int i = 0; *last != NULL && i < NODES_FOLLOWED_MAX; i++)
        last = &(*last)->next;
    followed_drop(last);
    return followed;
}

static const char *uid_of(const struct followed *followed, const char *node)
{
    for (size_t i = 0; followed != NULL && i < followed->nodes.count; i++)
        if (strcmp(followed->nodes.items[i], node) == 0)
            return followed->uids.items[i];
    return NULL;
}

bool nodes_is_another(const struct node_cache *cache, const char *operation_id,
                      const struct node *node)
{
    const struct followed *followed = cache->followed;
    while (followed != NULL && strcmp(followed->operation_id, operation_id) != 0)
        followed = followed->next;
    const char *uid = uid_of(followed, node->name);
    return uid != NULL && node->uid != NULL && strcmp(uid, node->uid) != 0;
}

bool nodes_follow(struct node_cache *cache, const struct action *action, const struct node *node)
{
    struct followed *followed = *followed_of(cache, action->operation_id);
    if (action->verb != VERB_CORDON || node->uid == NULL)
        return true;
    if (followed == NULL)
        followed = followed_add(cache, action->operation_id);
    if (uid_of(followed, node->name) == NULL) {
        names_add(&followed->nodes, node->name);
        names_add(&followed->uids, node->uid);
    }
    return !nodes_is_another(cache, action->operation_id, node);
}

void nodes_unfollow(struct node_cache *cache, const char *operation_id)
{
    followed_drop(followed_of(cache, operation_id));
}

/* --- looking --- */

struct look {
    struct nodes_poll *poll;
    const char *node;
};

struct nodes_poll {
    struct operation base;
    struct node_cache *cache;
    char spare_value[64];
    struct look *looks;
    size_t count, running, shown, gone, unread;
};

static void poll_release(struct operation *base)
{
    struct nodes_poll *poll = (struct nodes_poll *)(void *)base;
    xfree(poll->looks);
    xfree(poll);
}

/* All of them, or it is asked for again: start leaves alone what is done. */
static void end_poll(struct nodes_poll *poll)
{
    struct operation *base = &poll->base;
    if (poll->unread > 0) {
        operation_end(base, OUTCOME_UNKNOWN, POLL_UNREACHABLE);
    } else if (poll->shown + poll->gone < poll->count || poll->count == 0) {
        text_addf(&base->reason, "done on %zu of %zu nodes", poll->shown, poll->count);
        operation_end(base, OUTCOME_UNKNOWN, POLL_ABSENT);
    } else {
        text_addf(&base->reason, "read back from %zu node%s", poll->shown,
                  poll->shown == 1 ? "" : "s");
        if (poll->gone > 0)
            text_addf(&base->reason, "; %zu gone", poll->gone);
        nodes_unfollow(poll->cache, base->action.operation_id);
        operation_end(base, poll->shown == 0 ? OUTCOME_SUPERSEDED : OUTCOME_SUCCEEDED, POLL_DONE);
    }
}

static void on_looked(void *context, const struct kube_answer *answer)
{
    struct look *look = context;
    struct nodes_poll *poll = look->poll;
    const struct node *node = answer->result == KUBE_OK ? node_take(poll->cache, answer->body)
                                                        : NULL;
    bool went = answer->result == KUBE_OK && node == NULL && node_has_name(answer->body);
    if (node != NULL && nodes_is_another(poll->cache, poll->base.action.operation_id, node)) {
        poll->gone++;
    } else if (answer->result == KUBE_NOT_FOUND || went) {
        poll->gone++;
        node_forget(poll->cache, look->node);
    } else if (node == NULL) {
        if (poll->unread++ == 0)
            text_addf(&poll->base.reason, "node %s: %s", look->node, answer->message);
    } else if (node_shows_effect(&poll->base.action, poll->spare_value, node)) {
        poll->shown++;
    }
    if (--poll->running == 0)
        end_poll(poll);
}

void nodes_poll(struct node_cache *cache, const struct action *action, action_done_fn *done,
                void *context)
{
    if (operations_are_starting(&cache->operations, action->operation_id)) {
        operation_refuse(&cache->operations, action, OUTCOME_UNKNOWN, POLL_RUNNING,
                         "it is under way here", done, context);
        return;
    }
    struct nodes_poll *poll = xcalloc(1, sizeof *poll);
    operation_begin(&cache->operations, &poll->base, action, done, context, poll_release);
    poll->base.is_poll = true;
    poll->cache = cache;
    bool is_of_spares = action->verb == VERB_PROMISE_SPARE || action->verb == VERB_RELEASE_SPARE;
    const struct names *names = is_of_spares ? &poll->base.spares : &poll->base.nodes;
    if (action->job != NULL)
        node_spare_value(action->job, poll->spare_value);
    poll->count = poll->running = names->count;
    poll->looks = xcalloc(names->count + 1, sizeof *poll->looks);
    for (size_t i = 0; i < names->count; i++) {
        AUTO_TEXT path = {0};
        poll->looks[i] = (struct look){poll, names->items[i]};
        node_path(names->items[i], &path);
        struct kube_call call = {.method = "GET", .path = path.bytes, .priority = KUBE_READ};
        kube_call_start(cache->client, &call, on_looked, &poll->looks[i]);
    }
    if (names->count == 0)
        end_poll(poll);
}
