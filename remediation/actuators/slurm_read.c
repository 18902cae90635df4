/* Reads: nodes and jobs from slurmrestd where one is configured and answers, everything else from
 * scontrol. slurmrestd being away is not Slurm being away: then scontrol is asked.
 */
#include "remediation/actuators/slurm_call.h"
#include "remediation/actuators/slurm_rest.h"
#include "remediation/actuators/slurm_text.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { REST_LIMIT_MS = 10000 };

/* One request to slurmrestd. */
struct slurm_get {
    struct slurm_call *call;
    struct slurm_get *next;
    struct slurm_reading *reading; /* NULL: the discovery of versions */
    const char *what;              /* for scontrol, should it come to that */
    char *id;                      /* NULL: all nodes */
};

static void get_free(struct slurm_get *get)
{
    struct slurm_get **place = &get->call->gets;
    while (*place != get)
        place = &(*place)->next;
    *place = get->next;
    xfree(get->id);
    xfree(get);
}

void slurm_drop_gets(struct slurm_call *call)
{
    while (call->gets != NULL)
        get_free(call->gets);
}

void slurm_reading_done(struct slurm_reading *reading)
{
    text_done(&reading->text);
    json_free(reading->json);
    reading->json = NULL;
}

static void read_ended(struct slurm_call *call)
{
    if (--call->reads_left == 0)
        call->after_reads(call);
}

static void on_tool(struct slurm_call *call, const struct slurm_answer *answer)
{
    (void)answer;
    read_ended(call);
}

/* --- slurmrestd --- */

static void get(struct slurm_call *call, struct slurm_reading *reading, const char *what,
                const char *id, http_answer_fn *fn)
{
    const struct slurm *slurm = call->owner;
    struct slurm_get *get = xcalloc(1, sizeof *get);
    AUTO_TEXT url = {0};
    AUTO_TEXT token = {0};
    AUTO_TEXT user_header = {0};
    AUTO_TEXT token_header = {0};
    get->call = call;
    get->reading = reading;
    get->what = what;
    get->id = id != NULL ? xstrdup(id) : NULL;
    get->next = call->gets;
    call->gets = get;
    if (reading == NULL)
        text_addf(&url, "%s/openapi/v3", slurm->rest_url);
    else if (id != NULL)
        text_addf(&url, "%s/slurm/v0.0.%d/job/%s", slurm->rest_url, slurm->rest_version, id);
    else
        text_addf(&url, "%s/slurm/v0.0.%d/nodes", slurm->rest_url, slurm->rest_version);
    if (slurm->token_file[0] != '\0')
        ignore_status(slurm_token(slurm, &token, NULL)); /* slurmrestd says 401 without it */
    text_addf(&user_header, "X-SLURM-USER-NAME: %s", slurm->user);
    text_addf(&token_header, "X-SLURM-USER-TOKEN: %s", token.length > 0 ? token.bytes : "");
    const char *headers[] = {user_header.bytes, token_header.bytes, NULL};
    struct http_call http = {
        .method = "GET", .url = url.bytes, .headers = headers, .timeout_ms = REST_LIMIT_MS};
    http_client_start(call->owner->client, &http, fn, get);
}

static bool is_no_such_path(const struct http_answer *answer)
{
    return answer->status == OK && (answer->code == 404 || answer->code == 405);
}

static void on_got(void *context, const struct http_answer *answer)
{
    struct slurm_get *get = context;
    struct slurm_call *call = get->call;
    struct slurm_reading *reading = get->reading;
    if (answer->status == ERR_UNREACHABLE || is_no_such_path(answer)) {
        call->owner->rest_version = 0; /* another slurmrestd may be there the next time */
        slurm_read_by_tool(call, reading, get->what, get->id, on_tool);
        get_free(get);
        return;
    }
    get_free(get);
    if (answer->status != OK) {
        reading->status = answer->status;
        snprintf(reading->message, sizeof reading->message, "slurmrestd: %s", answer->reason);
    } else {
        ignore_status(json_parse(answer->body, &reading->json, NULL)); /* then it is NULL */
        reading->status = slurm_rest_judge(answer->code, reading->json, reading->message,
                                           sizeof reading->message);
    }
    read_ended(call);
}

/* --- which way --- */

static bool is_digits(const char *id)
{
    return id[strspn(id, "0123456789")] == '\0';
}

static void start_read(struct slurm_call *call, struct slurm_reading *reading, const char *what,
                       const char *id)
{
    bool is_node = strcmp(what, "node") == 0;
    bool is_plain_job = strcmp(what, "job") == 0 && is_digits(id);
    slurm_reading_done(reading);
    reading->status = OK;
    reading->message[0] = '\0';
    call->reads_left++;
    if (call->owner->rest_version > 0 && (is_node || is_plain_job))
        get(call, reading, what, id, on_got);
    else
        slurm_read_by_tool(call, reading, what, id, on_tool);
}

static void start_reads(struct slurm_call *call)
{
    static const char *const WHAT[SLURM_READ_COUNT] = {
        [SLURM_READ_CONFIG] = "config",     [SLURM_READ_NODES] = "node",
        [SLURM_READ_TOPOLOGY] = "topology", [SLURM_READ_RESERVATIONS] = "reservation",
        [SLURM_READ_JOB] = "job",
    };
    for (unsigned i = 0; i < SLURM_READ_COUNT; i++)
        if ((call->read_mask & (1u << i)) != 0)
            start_read(call, &call->readings[i], WHAT[i],
                       i == SLURM_READ_JOB ? call->job_id : NULL);
    for (size_t i = 0; i < call->asked_count; i++)
        if (call->asked[i].id[0] != '\0')
            start_read(call, &call->asked[i].reading, "job", call->asked[i].id);
}

static void on_versions(void *context, const struct http_answer *answer)
{
    struct slurm_get *get = context;
    struct slurm_call *call = get->call;
    AUTO(json_free) struct json *root = NULL;
    get_free(get);
    if (answer->status == OK && answer->code == 200)
        ignore_status(json_parse(answer->body, &root, NULL)); /* no version then */
    call->owner->rest_version = slurm_rest_version(root);
    start_reads(call);
}

void slurm_read_all(struct slurm_call *call, unsigned mask, slurm_step_fn *fn)
{
    bool has_rest = call->owner->rest_url[0] != '\0' && call->owner->client != NULL;
    call->after_reads = fn;
    call->read_mask = mask;
    if (has_rest && call->owner->rest_version == 0)
        get(call, NULL, NULL, NULL, on_versions);
    else
        start_reads(call);
}

const struct slurm_reading *slurm_failed_reading(const struct slurm_call *call, unsigned mask)
{
    for (unsigned i = 0; i < SLURM_READ_COUNT; i++)
        if ((mask & (1u << i)) != 0 && call->readings[i].status != OK)
            return &call->readings[i];
    return NULL;
}

/* --- what was read --- */

void slurm_nodes_done(struct slurm_nodes *nodes)
{
    for (size_t i = 0; i < nodes->count; i++)
        slurm_node_done(&nodes->items[i]);
    xfree(nodes->items);
    *nodes = (struct slurm_nodes){0};
}

static int compare_nodes(const void *a, const void *b)
{
    return strcmp(((const struct slurm_node *)a)->name, ((const struct slurm_node *)b)->name);
}

static struct slurm_node *add_node(struct slurm_nodes *nodes)
{
    nodes->items = array_grow(nodes->items, nodes->count, &nodes->capacity, sizeof *nodes->items);
    return &nodes->items[nodes->count++];
}

/* A cut answer of scontrol ends within a record; one of slurmrestd is no JSON. */
static bool is_whole(const struct slurm_reading *reading)
{
    return reading->json != NULL ||
           (reading->text.length > 1 &&
            memcmp(reading->text.bytes + reading->text.length - 2, "\n\n", 2) == 0);
}

bool slurm_take_nodes(struct slurm_call *call)
{
    const struct slurm_reading *reading = &call->readings[SLURM_READ_NODES];
    struct slurm_nodes *nodes = &call->nodes;
    struct view rest = {reading->text.bytes, reading->text.length}, record;
    slurm_nodes_done(nodes);
    if (!is_whole(reading))
        return false;
    for (const struct json *node = json_first(json_get(reading->json, "nodes")); node != NULL;
         node = json_next(node))
        slurm_rest_read_node(node, add_node(nodes));
    while (slurm_next_record(&rest, "NodeName=", &record))
        slurm_node_read(record, add_node(nodes));
    if (nodes->count > 0)
        qsort(nodes->items, nodes->count, sizeof *nodes->items, compare_nodes);
    return nodes->count > 0;
}

struct slurm_node *slurm_find_node(const struct slurm_nodes *nodes, const char *name)
{
    size_t low = 0, high = nodes->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(nodes->items[middle].name, name);
        if (order == 0)
            return &nodes->items[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

bool slurm_reading_job(const struct slurm_reading *reading, struct slurm_job *ret_job)
{
    struct view rest = {reading->text.bytes, reading->text.length}, record;
    const struct json *job = json_first(json_get(reading->json, "jobs"));
    if (job != NULL)
        slurm_rest_read_job(job, ret_job);
    else if (slurm_next_record(&rest, "JobId=", &record))
        slurm_job_read(record, ret_job);
    else
        return false;
    if (ret_job->state[0] != '\0')
        return true;
    slurm_job_done(ret_job);
    return false;
}

bool slurm_take_job(struct slurm_call *call)
{
    if (call->has_job)
        slurm_job_done(&call->job);
    call->has_job = slurm_reading_job(&call->readings[SLURM_READ_JOB], &call->job);
    return call->has_job;
}
