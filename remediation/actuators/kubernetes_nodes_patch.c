/* What one node needs, and the merge-patch that makes it so: our own keys, the whole list of
 * taints, and the resourceVersion that was looked at.
 */
#include "remediation/actuators/kubernetes_nodes_inside.h"

#include "controller/io/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { REASON_BYTES = 512, VALUE_BYTES = 64 };

/* ---- bodies ---- */

struct taint {
    const char *key;
    const char *value; /* NULL: the taint goes; "" without a value */
};

static void put_taint(struct json_writer *w, const struct taint *taint)
{
    json_open_object(w);
    json_put_string(w, "key", taint->key);
    if (taint->value[0] != '\0')
        json_put_string(w, "value", taint->value);
    json_put_string(w, "effect", "NoSchedule");
    json_close(w);
}

/* All taints as they were, but for the one that is changed. */
static void put_taints(struct json_writer *w, const struct node *node, const struct taint *taint)
{
    AUTO(json_free) struct json *old = NULL;
    if (node->taints != NULL)
        ignore_status(json_parse(view_of(node->taints), &old, NULL)); /* we wrote it */
    json_add_key(w, "taints");
    json_open_array(w);
    for (const struct json *each = json_first(old); each != NULL; each = json_next(each)) {
        AUTO_TEXT text = {0};
        if (strcmp(json_get_string(each, "key", ""), taint->key) == 0)
            continue;
        json_print(each, &text);
        json_add_raw(w, (struct view){text.bytes, text.length});
    }
    if (taint->value != NULL)
        put_taint(w, taint);
    json_close(w);
}

struct member {
    const char *key, *value; /* value NULL: the member goes */
};

static void put_members(struct json_writer *w, const char *name, const struct member *members,
                        size_t count)
{
    json_add_key(w, name);
    json_open_object(w);
    for (size_t i = 0; i < count; i++)
        json_put_string(w, members[i].key, members[i].value);
    json_close(w);
}

struct patch {
    const struct member *labels, *notes;
    size_t label_count, note_count;
    struct taint taint;
    enum { LEAVE = 0, SET, CLEAR } unschedulable;
};

static void write_patch(const struct node *node, const struct patch *patch, struct text *body)
{
    struct json_writer w = json_writer(body);
    json_open_object(&w);
    json_add_key(&w, "metadata");
    json_open_object(&w);
    json_put_string(&w, "resourceVersion", node->version);
    if (patch->label_count > 0)
        put_members(&w, "labels", patch->labels, patch->label_count);
    if (patch->note_count > 0)
        put_members(&w, "annotations", patch->notes, patch->note_count);
    json_close(&w);
    json_add_key(&w, "spec");
    json_open_object(&w);
    if (patch->unschedulable != LEAVE) {
        json_add_key(&w, "unschedulable");
        if (patch->unschedulable == SET)
            json_add_bool(&w, true);
        else
            json_add_null(&w);
    }
    put_taints(&w, node, &patch->taint);
    json_close(&w);
    json_close(&w);
}

void node_condition_body(const struct action *action, bool is_fault, int64_t now_ns,
                         struct text *body)
{
    struct json_writer w = json_writer(body);
    char message[REASON_BYTES];
    if (is_fault)
        text_copy(message, sizeof message, action->reason);
    else
        snprintf(message, sizeof message, "%s took its cordon off", action->incident_ref);
    json_open_object(&w);
    json_add_key(&w, "status");
    json_open_object(&w);
    json_add_key(&w, "conditions");
    json_open_array(&w);
    json_open_object(&w);
    json_put_string(&w, "type", NODE_CONDITION);
    json_put_string(&w, "status", is_fault ? "True" : "False");
    json_put_string(&w, "reason", is_fault ? "Quarantined" : "Released");
    json_put_string(&w, "message", message);
    json_put_time(&w, "lastTransitionTime", now_ns);
    json_put_time(&w, "lastHeartbeatTime", now_ns);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    json_close(&w);
}

/* ---- cordon ---- */

static bool is_incident(const char *note, const struct action *action)
{
    return note != NULL && strcmp(note, action->incident_ref) == 0;
}

enum node_decision node_decide_cordon(const struct node_wish *wish, const struct node *node,
                                      struct text *body, struct text *note)
{
    const struct action *action = wish->action;
    char value[VALUE_BYTES], reason[REASON_BYTES];
    if (is_incident(node->incident, action)) {
        if (!node->is_unschedulable)
            text_add(note, "was cordoned and then uncordoned by somebody");
        return NODE_IS_SO;
    }
    if (node->incident != NULL && node->is_unschedulable) {
        text_addf(note, "is cordoned for %s already", node->incident);
        return NODE_IS_SO;
    }
    AUTO_TEXT now = {0};
    text_add_time(&now, wish->now_ns);
    node_incident_value(action->incident_ref, value);
    text_copy(reason, sizeof reason, action->reason);
    const struct member labels[] = {{NODE_LABEL_STATE, "quarantined"}};
    const struct member notes[] = {
        {NODE_NOTE_INCIDENT, action->incident_ref},
        {NODE_NOTE_OPERATION, action->operation_id},
        {NODE_NOTE_REASON, reason},
        {NODE_NOTE_WAS_UNSCHEDULABLE, node->is_unschedulable ? "true" : "false"},
        {NODE_NOTE_CORDONED_AT, now.bytes}};
    struct patch patch = {
        labels, notes, ARRAY_LEN(labels), ARRAY_LEN(notes), {NODE_TAINT_QUARANTINE, value}, SET};
    if (node->is_unschedulable)
        text_add(note, "was cordoned by somebody before: that cordon is kept");
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

enum node_decision node_decide_uncordon(const struct node_wish *wish, const struct node *node,
                                        struct text *body, struct text *note)
{
    char value[VALUE_BYTES];
    node_incident_value(wish->action->incident_ref, value);
    bool has_notes = is_incident(node->incident, wish->action);
    bool has_taint = node->quarantine != NULL && strcmp(node->quarantine, value) == 0;
    if (!has_notes && !has_taint) {
        text_add(note, "carries no cordon of ours");
        return NODE_IS_SO;
    }
    const struct member labels[] = {{NODE_LABEL_STATE, NULL}};
    const struct member notes[] = {{NODE_NOTE_INCIDENT, NULL},
                                   {NODE_NOTE_OPERATION, NULL},
                                   {NODE_NOTE_REASON, NULL},
                                   {NODE_NOTE_WAS_UNSCHEDULABLE, NULL},
                                   {NODE_NOTE_CORDONED_AT, NULL}};
    /* Without our notes nobody knows whose the cordon is. */
    bool is_theirs = !has_notes || node->was_unschedulable || wish->unschedulable_owner != NULL;
    struct patch patch = {labels,
                          notes,
                          ARRAY_LEN(labels),
                          has_notes ? ARRAY_LEN(notes) : 0,
                          {NODE_TAINT_QUARANTINE, has_taint ? NULL : node->quarantine},
                          is_theirs || !node->is_unschedulable ? LEAVE : CLEAR};
    if (node->is_unschedulable && wish->unschedulable_owner != NULL)
        text_addf(note, "stays cordoned: %s did that too", wish->unschedulable_owner);
    else if (node->is_unschedulable && is_theirs)
        text_add(note, "stays cordoned: it was so before us");
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

/* ---- spares ---- */

static bool is_promised_to(const struct node_wish *wish, const struct node *node)
{
    return node->spare != NULL && strcmp(node->spare, wish->spare_value) == 0;
}

/* The clique that the other nodes of its rack agree on: NULL when none of them has one. */
static const char *clique_of_rack(const struct node_wish *wish, const struct node *node,
                                  const char *rack, int32_t *ret_gpus)
{
    const struct node_cache *cache = wish->cache;
    const char *common = NULL;
    size_t most = 0;
    *ret_gpus = node->gpus_capacity;
    for (size_t i = 0; i < cache->count; i++) {
        const struct node *each = cache->nodes[i];
        const char *its_rack = node_rack(cache, each);
        const char *clique = node_label(cache, each, NODE_LABEL_CLIQUE);
        size_t votes = 0;
        if (each == node || its_rack == NULL || strcmp(its_rack, rack) != 0)
            continue;
        *ret_gpus = each->gpus_capacity > *ret_gpus ? each->gpus_capacity : *ret_gpus;
        if (clique == NULL || (common != NULL && strcmp(common, clique) == 0))
            continue;
        for (size_t j = 0; j < cache->count; j++) {
            const char *other = node_label(cache, cache->nodes[j], NODE_LABEL_CLIQUE);
            const char *other_rack = node_rack(cache, cache->nodes[j]);
            votes += cache->nodes[j] != node && other != NULL && other_rack != NULL &&
                     strcmp(other, clique) == 0 && strcmp(other_rack, rack) == 0;
        }
        if (votes > most) {
            most = votes;
            common = clique;
        }
    }
    return common;
}

static bool is_whole(const struct node_wish *wish, const struct node *node, struct text *note)
{
    const char *rack = node_rack(wish->cache, node);
    const char *clique = node_label(wish->cache, node, NODE_LABEL_CLIQUE);
    int32_t gpus = node->gpus_capacity;
    const char *common = rack != NULL ? clique_of_rack(wish, node, rack, &gpus) : NULL;
    if (node->gpus <= 0 || node->gpus < gpus) {
        text_addf(note, "offers %" PRId32 " of %" PRId32 " GPUs", node->gpus, gpus);
        return false;
    }
    if (common != NULL && clique == NULL) {
        text_addf(note, "has no label %s, the others of rack %s have: its NVLink fabric is not up",
                  NODE_LABEL_CLIQUE, rack);
        return false;
    }
    if (common != NULL && strcmp(common, clique) != 0) {
        text_addf(note, "is of clique %s, the others of rack %s are of %s", clique, rack, common);
        return false;
    }
    return true;
}

static bool is_free(const struct node_wish *wish, const struct node *node, struct text *note)
{
    char held_value[VALUE_BYTES];
    node_incident_value(wish->action->incident_ref, held_value);
    if (!node->is_ready)
        text_add(note, "is not Ready");
    else if (node->quarantine != NULL || node->incident != NULL)
        text_addf(note, "is under quarantine for %s",
                  node->incident != NULL ? node->incident : node->quarantine);
    else if (node->is_unschedulable)
        text_add(note, "is cordoned");
    else if (node->spare == NULL)
        text_addf(note, "is no spare: taint %s is not there", NODE_TAINT_SPARE);
    else if (node->spare[0] != '\0' && !is_promised_to(wish, node))
        text_addf(note, "is promised to %s", node->spare);
    else if (node->promised_by != NULL && !is_incident(node->promised_by, wish->action))
        text_addf(note, "is promised for %s", node->promised_by);
    else if (node->trouble != NULL)
        text_addf(note, "carries taint %s", node->trouble);
    else if (node->held != NULL && strcmp(node->held, held_value) != 0)
        text_addf(note, "is held for %s", node->held);
    else
        return is_whole(wish, node, note);
    return false;
}

enum node_decision node_decide_promise(const struct node_wish *wish, const struct node *node,
                                       struct text *body, struct text *note)
{
    const struct action *action = wish->action;
    if (!is_free(wish, node, note))
        return NODE_NOT_NOW;
    if (is_promised_to(wish, node) && is_incident(node->promised_by, action))
        return NODE_IS_SO;
    const struct member notes[] = {{NODE_NOTE_PROMISED_BY, action->incident_ref},
                                   {NODE_NOTE_OPERATION, action->operation_id}};
    struct patch patch = {.notes = notes,
                          .note_count = ARRAY_LEN(notes),
                          .taint = {NODE_TAINT_SPARE, wish->spare_value}};
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

enum node_decision node_decide_release(const struct node_wish *wish, const struct node *node,
                                       struct text *body, struct text *note)
{
    /* The operation that stands there may be that of a cordon. */
    bool is_cordoned = node->incident != NULL;
    if (!is_incident(node->promised_by, wish->action)) {
        text_add(note, "is not promised by us");
        return NODE_IS_SO;
    }
    const struct member notes[] = {{NODE_NOTE_PROMISED_BY, NULL}, {NODE_NOTE_OPERATION, NULL}};
    /* Somebody may have taken the taint off, or given it to another one: that stays. */
    const char *value = is_promised_to(wish, node) ? (wish->is_used ? NULL : "") : node->spare;
    struct patch patch = {
        .notes = notes, .note_count = is_cordoned ? 1 : 2, .taint = {NODE_TAINT_SPARE, value}};
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

enum node_decision node_decide_hold(const struct node_wish *wish, const struct node *node,
                                    struct text *body, struct text *note)
{
    char value[VALUE_BYTES];
    if (node->held != NULL || node->is_unschedulable || node->spare != NULL || !node->is_ready)
        return NODE_IS_SO;
    (void)note;
    node_incident_value(wish->action->incident_ref, value);
    struct patch patch = {.taint = {NODE_TAINT_HELD, value}};
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

enum node_decision node_decide_unhold(const struct node_wish *wish, const struct node *node,
                                      struct text *body, struct text *note)
{
    char value[VALUE_BYTES];
    node_incident_value(wish->action->incident_ref, value);
    (void)note;
    if (node->held == NULL || strcmp(node->held, value) != 0)
        return NODE_IS_SO;
    struct patch patch = {.taint = {NODE_TAINT_HELD, NULL}};
    write_patch(node, &patch, body);
    return NODE_PATCH;
}

/* ---- looking back ---- */

bool node_shows_effect(const struct action *action, const char *spare_value,
                       const struct node *node)
{
    char value[VALUE_BYTES];
    node_incident_value(action->incident_ref, value);
    switch (action->verb) {
    case VERB_CORDON:
        return is_incident(node->incident, action) ||
               (node->incident != NULL && node->is_unschedulable);
    case VERB_UNCORDON:
        return !is_incident(node->incident, action) &&
               (node->quarantine == NULL || strcmp(node->quarantine, value) != 0);
    case VERB_PROMISE_SPARE:
        return node->spare != NULL && strcmp(node->spare, spare_value) == 0 &&
               is_incident(node->promised_by, action);
    case VERB_RELEASE_SPARE:
        return !is_incident(node->promised_by, action) &&
               (node->held == NULL || strcmp(node->held, value) != 0);
    case VERB_NOTIFY:
    case VERB_CAPTURE:
    case VERB_REQUEST_CHECKPOINT:
    case VERB_RESTART_JOB:
    case VERB_HAND_OVER:
    case VERB_FENCE:
    case VERB_DRAIN:
    case VERB_FORCE_DELETE:
    case VERB_COUNT:
        break;
    }
    return false;
}

/* RFC 3339 in UTC without fractions, as the API writes it: the order of texts is that of time. */
const char *node_unschedulable_owner(const struct json *object)
{
    const struct json *entries = json_get(json_get(object, "metadata"), "managedFields");
    const char *owner = NULL, *newest = "";
    for (const struct json *each = json_first(entries); each != NULL; each = json_next(each)) {
        const struct json *spec = json_get(json_get(each, "fieldsV1"), "f:spec");
        const char *manager = json_get_string(each, "manager", "");
        const char *time = json_get_string(each, "time", "");
        if (json_get(spec, "f:unschedulable") == NULL || manager[0] == '\0' ||
            strcmp(manager, NODE_FIELD_MANAGER) == 0 || strcmp(time, newest) < 0)
            continue;
        owner = manager;
        newest = time;
    }
    return owner;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits, '-' and '_' with one '/' between them, letter or digit at either end. */
static bool is_namespace_and_name(const char *job)
{
    size_t length = strlen(job), slashes = 0;
    for (const char *c = job; *c != '\0'; c++) {
        slashes += *c == '/';
        if (!is_letter(*c) && *c != '-' && *c != '_' && *c != '/')
            return false;
    }
    return slashes == 1 && length < VALUE_BYTES && is_letter(job[0]) && is_letter(job[length - 1]);
}

/* What is readable holds one dot, all else none: neither is ever taken for the other. */
void node_spare_value(const char *job, char buffer[VALUE_BYTES])
{
    enum { KEPT = 46, HASH_DIGITS = 16 };
    char hash[DIGEST_HEX_BYTES] = "0";
    if (is_namespace_and_name(job)) {
        text_copy(buffer, VALUE_BYTES, job);
        *strchr(buffer, '/') = '.';
        return;
    }
    ignore_status(digest_sha256(view_of(job), hash, NULL)); /* ERR_BUG alone: every build has it */
    size_t kept = strlen(job) < KEPT ? strlen(job) : KEPT;
    for (size_t i = 0; i < kept; i++)
        buffer[i] = job[i] == '_' || is_letter(job[i]) ? job[i] : '-';
    if (kept == 0 || !is_letter(buffer[0])) {
        buffer[0] = 'x'; /* a value begins with a letter or a digit */
        kept += kept == 0;
    }
    snprintf(buffer + kept, VALUE_BYTES - kept, "-%.*s", HASH_DIGITS, hash);
}
