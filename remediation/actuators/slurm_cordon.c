/* Cordon, uncordon and drain: the reason is the record of who owns a drain. Slurm has no way to
 * write a state only if nobody else has written one, so each change is read before and after.
 */
#include "controller/sys/clock.h"
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_hostlist.h"
#include "remediation/actuators/slurm_text.h"

#include <string.h>

enum { NOTE_NODES = 3, REASON_BYTES_MAX = 400 };
static const unsigned NODES_AND_BOOT = 1u << SLURM_READ_NODES | 1u << SLURM_READ_CONFIG;
static const unsigned NODES_ALONE = 1u << SLURM_READ_NODES;

static struct view boot_time(const struct slurm_call *call)
{
    const struct text *config = &call->readings[SLURM_READ_CONFIG].text;
    return slurm_config_value((struct view){config->bytes, config->length}, "BOOT_TIME");
}

/* False: the call is ended, since Slurm did not answer. */
static bool has_nodes(struct slurm_call *call, unsigned mask)
{
    const struct slurm_reading *failed = slurm_failed_reading(call, mask);
    if (failed != NULL)
        slurm_finish_unread(call, failed->status == ERR_NOT_FOUND ? ERR_IO : failed->status,
                            failed->message);
    else if (!slurm_take_nodes(call))
        slurm_finish_unread(call, ERR_IO, "Slurm named no nodes");
    else
        return true;
    return false;
}

static bool is_of_incident(const struct slurm_call *call, const struct slurm_node *node)
{
    return (node->state.flags & SLURM_DRAIN) != 0 &&
           view_equals(slurm_reason_incident(node->reason), call->incident_ref);
}

/* "; kept r1n03: 'fan swap'". */
static void note_kept(struct slurm_call *call, const struct slurm_node *node, size_t so_far)
{
    if (so_far < NOTE_NODES)
        text_addf(&call->kept, "; kept %s: '%s'", node->name,
                  node->reason[0] != '\0' ? node->reason : "no reason");
    else if (so_far == NOTE_NODES)
        text_add(&call->kept, "; kept others too");
}

static const char *kept(const struct slurm_call *call)
{
    return call->kept.length > 0 ? call->kept.bytes : "";
}

/* --- cordon --- */

struct tally {
    size_t ours, theirs, missing;
};

/* call->todo: nodes that nobody has taken out. */
static struct tally sort_nodes(struct slurm_call *call)
{
    struct tally tally = {0};
    names_done(&call->todo);
    text_clear(&call->kept);
    for (size_t i = 0; i < call->nodes_wanted.count; i++) {
        const char *name = call->nodes_wanted.items[i];
        const struct slurm_node *node = slurm_find_node(&call->nodes, name);
        if (node == NULL) {
            if (tally.missing++ < NOTE_NODES)
                text_addf(&call->kept, "; Slurm knows no node '%s'", name);
        } else if (is_of_incident(call, node)) {
            tally.ours++;
        } else if (slurm_is_cordoned(node)) {
            note_kept(call, node, tally.theirs++);
        } else {
            names_add(&call->todo, name);
        }
    }
    return tally;
}

/* "broom:INC-3 ...", one line; what Slurm itself had said of the node stays behind it. */
static void write_reason(const struct slurm_call *call, const char *before, struct text *out)
{
    AUTO_TEXT head = {0};
    text_addf(&head, SLURM_REASON_PREFIX "%s ", call->incident_ref);
    bool has_head = strncmp(call->reason, head.bytes, head.length) == 0;
    text_addf(out, "%s%s", has_head ? "" : head.bytes, call->reason);
    if (before[0] != '\0')
        text_addf(out, "; before: %s", before);
    if (out->length > REASON_BYTES_MAX)
        out->bytes[out->length = REASON_BYTES_MAX] = '\0';
    for (size_t i = 0; i < out->length; i++)
        if ((unsigned char)out->bytes[i] < ' ' || out->bytes[i] == '"')
            out->bytes[i] = ' ';
}

static void finish_cordon(struct slurm_call *call, struct tally tally)
{
    size_t wanted = call->nodes_wanted.count;
    if (tally.ours > 0)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE, "%zu of %zu drained by this incident%s",
                     tally.ours, wanted, kept(call));
    else if (tally.theirs > 0)
        slurm_finish(call, OUTCOME_SUPERSEDED, POLL_DONE, "taken out by somebody else already%s",
                     kept(call));
    else
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE, "nothing to drain%s", kept(call));
}

static void cordon_checked(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_AND_BOOT))
        return;
    struct tally tally = sort_nodes(call);
    for (size_t i = 0; i < call->nodes_wanted.count; i++) {
        const struct slurm_node *node = slurm_find_node(&call->nodes, call->nodes_wanted.items[i]);
        if (node != NULL && is_of_incident(call, node))
            slurm_drains_add(&call->owner->drains, node->name, node->reason, boot_time(call));
    }
    if (call->todo.count > 0 && tally.ours == 0)
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_ABSENT,
                     "Slurm took the drain and shows none: taken off at once, or slurmctld was "
                     "restarted");
    else
        finish_cordon(call, tally);
}

static void cordon_next(struct slurm_call *call);

static void cordon_written(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status != OK)
        slurm_finish_failed(call, answer);
    else if (call->todo.count > 0)
        cordon_next(call);
    else
        slurm_read_all(call, NODES_AND_BOOT, cordon_checked);
}

/* The nodes that had the same words of Slurm's own before go in one call. */
static void cordon_next(struct slurm_call *call)
{
    AUTO_TEXT nodes = {0};
    AUTO_TEXT reason = {0};
    struct names now = {0}, later = {0};
    const char *before = slurm_find_node(&call->nodes, call->todo.items[0])->reason;
    for (size_t i = 0; i < call->todo.count; i++) {
        const char *name = call->todo.items[i];
        bool is_same = strcmp(slurm_find_node(&call->nodes, name)->reason, before) == 0;
        names_add(is_same ? &now : &later, name);
    }
    text_add(&nodes, "NodeName=");
    hostlist_add(&nodes, (const char *const *)now.items, now.count);
    text_add(&reason, "Reason=");
    AUTO_TEXT words = {0};
    write_reason(call, before, &words);
    text_add(&reason, words.bytes);
    names_copy(&call->todo, &later);
    names_done(&now);
    names_done(&later);
    slurm_change(call, cordon_written, "update", nodes.bytes, "State=DRAIN", reason.bytes, NULL);
}

static void cordon_read(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_AND_BOOT))
        return;
    struct tally tally = sort_nodes(call);
    if (call->todo.count > 0)
        cordon_next(call);
    else
        finish_cordon(call, tally);
}

void slurm_cordon_start(struct slurm_call *call)
{
    slurm_read_all(call, NODES_AND_BOOT, cordon_read);
}

static void cordon_polled(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_ALONE))
        return;
    struct tally tally = sort_nodes(call);
    if (call->todo.count > 0)
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT, "%zu of %zu nodes are not drained",
                     call->todo.count, call->nodes_wanted.count);
    else
        finish_cordon(call, tally);
}

void slurm_cordon_poll(struct slurm_call *call)
{
    slurm_read_all(call, NODES_ALONE, cordon_polled);
}

/* --- uncordon --- */

/* call->todo: what this incident has drained. What others drained keeps its reason. */
static void sort_for_uncordon(struct slurm_call *call)
{
    size_t theirs = 0;
    names_done(&call->todo);
    text_clear(&call->kept);
    for (size_t i = 0; i < call->nodes_wanted.count; i++) {
        const struct slurm_node *node = slurm_find_node(&call->nodes, call->nodes_wanted.items[i]);
        if (node != NULL && is_of_incident(call, node))
            names_add(&call->todo, node->name);
        else if (node != NULL && slurm_is_cordoned(node))
            note_kept(call, node, theirs++);
    }
}

static void finish_uncordon(struct slurm_call *call)
{
    if (call->any_ours || call->kept.length == 0)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE,
                     call->any_ours ? "this incident's drains are taken off%s"
                                    : "no node is drained by this incident%s",
                     kept(call));
    else
        slurm_finish(call, OUTCOME_SUPERSEDED, POLL_DONE, "no node is drained by this incident%s",
                     kept(call));
}

static void uncordon_checked(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_ALONE))
        return;
    sort_for_uncordon(call);
    if (call->todo.count > 0)
        slurm_finish(call, OUTCOME_TRANSIENT, POLL_ABSENT, "%zu nodes are drained still",
                     call->todo.count);
    else
        finish_uncordon(call);
}

static void uncordon_written(struct slurm_call *call, const struct slurm_answer *answer)
{
    if (answer->status != OK)
        slurm_finish_failed(call, answer);
    else
        slurm_read_all(call, NODES_ALONE, uncordon_checked);
}

static void uncordon_read(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_ALONE))
        return;
    sort_for_uncordon(call);
    for (size_t i = 0; i < call->nodes_wanted.count; i++)
        slurm_drains_remove(&call->owner->drains, call->nodes_wanted.items[i]);
    if (call->todo.count == 0) {
        finish_uncordon(call);
        return;
    }
    AUTO_TEXT nodes = {0};
    text_add(&nodes, "NodeName=");
    hostlist_add(&nodes, (const char *const *)call->todo.items, call->todo.count);
    call->any_ours = true;
    slurm_change(call, uncordon_written, "update", nodes.bytes, "State=UNDRAIN", NULL);
}

void slurm_uncordon_start(struct slurm_call *call)
{
    slurm_read_all(call, NODES_ALONE, uncordon_read);
}

static void uncordon_polled(struct slurm_call *call)
{
    if (!has_nodes(call, NODES_ALONE))
        return;
    sort_for_uncordon(call);
    if (call->todo.count > 0)
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_ABSENT, "%zu nodes are drained still",
                     call->todo.count);
    else
        finish_uncordon(call);
}

void slurm_uncordon_poll(struct slurm_call *call)
{
    slurm_read_all(call, NODES_ALONE, uncordon_polled);
}

/* --- drain --- */

enum { DRAIN_LOOK_MS = 2000, DRAIN_LIMIT_S = 300 };

static void drain_look(struct slurm_call *call);

static void drain_read(struct slurm_call *call)
{
    size_t busy = 0, open = 0;
    if (!has_nodes(call, NODES_ALONE))
        return;
    text_clear(&call->kept);
    for (size_t i = 0; i < call->nodes_wanted.count; i++) {
        const struct slurm_node *node = slurm_find_node(&call->nodes, call->nodes_wanted.items[i]);
        open += node != NULL && !slurm_is_cordoned(node) ? 1 : 0;
        if (node == NULL || slurm_is_drained(node->state))
            continue;
        if (busy++ < NOTE_NODES)
            text_addf(&call->kept, " %s", node->name);
    }
    bool is_over = clock_read().monotonic_ns >= call->deadline_ns;
    if (open > 0)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE,
                     "%zu nodes are not drained: jobs may still start there", open);
    else if (busy == 0)
        slurm_finish(call, OUTCOME_SUCCEEDED, POLL_DONE,
                     "all nodes are drained and idle; Slurm let their jobs end");
    else if (call->kind == SLURM_POLL)
        slurm_finish(call, OUTCOME_UNKNOWN, POLL_RUNNING, "jobs still run on%s", kept(call));
    else if (is_over)
        slurm_finish(call, OUTCOME_REFUSED, POLL_DONE,
                     "jobs still run on%s; Slurm evicts nothing: they end by themselves or by "
                     "scancel",
                     kept(call));
    else
        slurm_wait(call, DRAIN_LOOK_MS, drain_look);
}

static void drain_look(struct slurm_call *call)
{
    slurm_read_all(call, NODES_ALONE, drain_read);
}

void slurm_drain_start(struct slurm_call *call)
{
    int64_t limit_ns = json_get_int(call->params, "timeout_ns",
                                    DRAIN_LIMIT_S * INT64_C(1000000000));
    call->deadline_ns = clock_read().monotonic_ns + limit_ns;
    drain_look(call);
}
