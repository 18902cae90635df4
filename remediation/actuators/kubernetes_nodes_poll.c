/* What became of an action on nodes: each is read, nothing is changed. */
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include <string.h>

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
    if (answer->result == KUBE_NOT_FOUND || went) {
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
