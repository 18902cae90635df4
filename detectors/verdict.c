/* Verdicts: names, ownership of their lists, and the JSON of formats.md section 3. */
#include "detectors/verdict.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static const char *const KIND_NAMES[VERDICT_KIND_COUNT] = {
    [VERDICT_SLOW] = "slow",   [VERDICT_HANG] = "hang",       [VERDICT_CRASH] = "crash",
    [VERDICT_FAULT] = "fault", [VERDICT_NUMERIC] = "numeric", [VERDICT_REGRESSION] = "regression",
    [VERDICT_CLEAR] = "clear", [VERDICT_INFO] = "info",
};

static const char *const SCOPE_NAMES[SCOPE_COUNT] = {
    [SCOPE_RANK] = "rank",       [SCOPE_TRAY] = "tray",
    [SCOPE_RACK] = "rack",       [SCOPE_SWITCH_TRAY] = "switch_tray",
    [SCOPE_RAIL] = "rail",       [SCOPE_STAGE] = "stage",
    [SCOPE_REPLICA] = "replica", [SCOPE_GROUP] = "group",
    [SCOPE_JOB] = "job",
};

static const char *const CAUSE_NAMES[CAUSE_COUNT] = {
    [CAUSE_GPU] = "gpu",         [CAUSE_HOST] = "host",       [CAUSE_NVLINK] = "nvlink",
    [CAUSE_NETWORK] = "network", [CAUSE_MEMORY] = "memory",   [CAUSE_DATA] = "data",
    [CAUSE_STORAGE] = "storage", [CAUSE_UNKNOWN] = "unknown",
};

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

const char *verdict_kind_name(enum verdict_kind kind)
{
    assert(kind < VERDICT_KIND_COUNT);
    return KIND_NAMES[kind];
}

const char *scope_name(enum scope scope)
{
    assert(scope < SCOPE_COUNT);
    return SCOPE_NAMES[scope];
}

const char *cause_name(enum cause cause)
{
    assert(cause < CAUSE_COUNT);
    return CAUSE_NAMES[cause];
}

bool verdict_kind_parse(const char *name, enum verdict_kind *ret_kind)
{
    int index = name_index(KIND_NAMES, VERDICT_KIND_COUNT, name);
    if (index >= 0)
        *ret_kind = (enum verdict_kind)index;
    return index >= 0;
}

bool scope_parse(const char *name, enum scope *ret_scope)
{
    int index = name_index(SCOPE_NAMES, SCOPE_COUNT, name);
    if (index >= 0)
        *ret_scope = (enum scope)index;
    return index >= 0;
}

bool cause_parse(const char *name, enum cause *ret_cause)
{
    int index = name_index(CAUSE_NAMES, CAUSE_COUNT, name);
    if (index >= 0)
        *ret_cause = (enum cause)index;
    return index >= 0;
}

void verdict_done(struct verdict *verdict)
{
    for (size_t i = 0; i < verdict->node_count; i++)
        xfree(verdict->nodes[i]);
    for (size_t i = 0; i < verdict->evidence_count; i++)
        xfree(verdict->evidence[i].text);
    xfree(verdict->nodes);
    xfree(verdict->ranks);
    xfree(verdict->victims);
    *verdict = (struct verdict){0};
}

struct verdict verdict_copy(const struct verdict *verdict)
{
    struct verdict copy = *verdict;
    copy.nodes = NULL;
    copy.ranks = copy.victims = NULL;
    copy.node_count = copy.rank_count = copy.victim_count = 0;
    for (size_t i = 0; i < verdict->node_count; i++)
        verdict_add_node(&copy, verdict->nodes[i]);
    if (verdict->rank_count > 0) {
        copy.ranks = xcalloc(verdict->rank_count, sizeof *copy.ranks);
        memcpy(copy.ranks, verdict->ranks, verdict->rank_count * sizeof *copy.ranks);
        copy.rank_count = verdict->rank_count;
    }
    if (verdict->victim_count > 0) {
        copy.victims = xcalloc(verdict->victim_count, sizeof *copy.victims);
        memcpy(copy.victims, verdict->victims, verdict->victim_count * sizeof *copy.victims);
        copy.victim_count = verdict->victim_count;
    }
    for (size_t i = 0; i < copy.evidence_count; i++)
        if (copy.evidence[i].text != NULL)
            copy.evidence[i].text = xstrdup(copy.evidence[i].text);
    return copy;
}

void verdict_add_node(struct verdict *verdict, const char *node)
{
    size_t at = verdict->node_count;
    while (at > 0 && strcmp(verdict->nodes[at - 1], node) > 0)
        at--;
    if (at > 0 && strcmp(verdict->nodes[at - 1], node) == 0)
        return;
    verdict->nodes = xrealloc(verdict->nodes, verdict->node_count + 1, sizeof *verdict->nodes);
    memmove(verdict->nodes + at + 1, verdict->nodes + at,
            (verdict->node_count - at) * sizeof *verdict->nodes);
    verdict->nodes[at] = xstrdup(node);
    verdict->node_count++;
}

static void add_sorted(int32_t **list, size_t *count, int32_t value)
{
    size_t at = *count;
    while (at > 0 && (*list)[at - 1] > value)
        at--;
    if (at > 0 && (*list)[at - 1] == value)
        return;
    /* Room doubles at powers of two, so that a job-wide list of 100,000 ranks is built in linear
     * time. */
    if ((*count & (*count - 1)) == 0)
        *list = xrealloc(*list, *count > 0 ? *count * 2 : 1, sizeof **list);
    memmove(*list + at + 1, *list + at, (*count - at) * sizeof **list);
    (*list)[at] = value;
    (*count)++;
}

void verdict_add_rank(struct verdict *verdict, int32_t rank)
{
    add_sorted(&verdict->ranks, &verdict->rank_count, rank);
}

void verdict_add_victim(struct verdict *verdict, int32_t rank)
{
    add_sorted(&verdict->victims, &verdict->victim_count, rank);
}

void verdict_add_evidence(struct verdict *verdict, const char *name, double value)
{
    if (verdict->evidence_count < VERDICT_EVIDENCE_MAX)
        verdict->evidence[verdict->evidence_count++] = (struct evidence){.name = name,
                                                                         .value = value};
}

void verdict_add_evidence_text(struct verdict *verdict, const char *name, const char *text)
{
    if (verdict->evidence_count < VERDICT_EVIDENCE_MAX)
        verdict->evidence[verdict->evidence_count++] = (struct evidence){.name = name,
                                                                         .text = xstrdup(text)};
}

static void write_ints(struct json_writer *writer, const char *key, const int32_t *values,
                       size_t count)
{
    json_add_key(writer, key);
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        json_add_int(writer, values[i]);
    json_close(writer);
}

void verdict_write(const struct verdict *verdict, struct json_writer *writer)
{
    json_open_object(writer);
    json_put_string(writer, "kind", verdict_kind_name(verdict->kind));
    json_put_string(writer, "scope", scope_name(verdict->scope));
    json_put_string(writer, "id", verdict->id);
    json_put_int(writer, "step", verdict->step);
    json_put_int(writer, "since_step", verdict->since_step);
    json_put_time(writer, "time", verdict->time_ns);
    if (verdict->since_ns > 0)
        json_put_time(writer, "since_time", verdict->since_ns);
    json_put_string(writer, "cause", cause_name(verdict->cause));
    json_put_rounded(writer, "slowdown", verdict->slowdown, 5);
    json_put_rounded(writer, "gain", verdict->gain, 4);
    json_put_rounded(writer, "confidence", verdict->confidence, 6);
    json_put_bool(writer, "evict", verdict->evict);
    if (verdict->kind == VERDICT_CLEAR)
        json_put_string(writer, "of_kind", verdict_kind_name(verdict->of_kind));
    json_add_key(writer, "nodes");
    json_open_array(writer);
    for (size_t i = 0; i < verdict->node_count; i++)
        json_add_string(writer, verdict->nodes[i]);
    json_close(writer);
    write_ints(writer, "ranks", verdict->ranks, verdict->rank_count);
    if (verdict->victim_count > 0)
        write_ints(writer, "victims", verdict->victims, verdict->victim_count);
    json_add_key(writer, "evidence");
    json_open_object(writer);
    for (size_t i = 0; i < verdict->evidence_count; i++) {
        const struct evidence *evidence = &verdict->evidence[i];
        if (evidence->text != NULL)
            json_put_string(writer, evidence->name, evidence->text);
        else
            json_put_rounded(writer, evidence->name, evidence->value, 5);
    }
    json_close(writer);
    json_close(writer);
}
