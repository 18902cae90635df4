/* See slurm_rest.h. */
#include "remediation/actuators/slurm_rest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int slurm_rest_version(const struct json *openapi)
{
    static const char HEAD[] = "/slurm/v0.0.", TAIL[] = "/nodes";
    int newest = 0;
    for (const struct json *path = json_first(json_get(openapi, "paths")); path != NULL;
         path = json_next(path)) {
        const char *key = json_key(path);
        int64_t version;
        if (strncmp(key, HEAD, strlen(HEAD)) != 0)
            continue;
        key += strlen(HEAD);
        size_t digits = strspn(key, "0123456789");
        bool is_nodes = strcmp(key + digits, TAIL) == 0 || strcmp(key + digits, "/nodes/") == 0;
        if (is_nodes && text_parse_int((struct view){key, digits}, &version) &&
            version >= SLURM_REST_OLDEST && version <= SLURM_REST_NEWEST && version > newest)
            newest = (int)version;
    }
    return newest;
}

/* The key differs by who says it. */
static int64_t error_number(const struct json *error)
{
    static const char *const KEYS[] = {"error_number", "error_code", "errno"};
    for (size_t i = 0; i < ARRAY_LEN(KEYS); i++)
        if (json_get(error, KEYS[i]) != NULL)
            return json_get_int(error, KEYS[i], -1);
    return -1;
}

enum { INVALID_JOB = 2017, INVALID_NODE = 2018 };

enum status slurm_rest_judge(int code, const struct json *root, char *message, size_t bytes)
{
    const struct json *error = json_first(json_get(root, "errors"));
    if (root == NULL) {
        snprintf(message, bytes, "slurmrestd answered HTTP %d with a body that is no JSON", code);
        return ERR_IO;
    }
    if (error != NULL) {
        int64_t number = error_number(error);
        snprintf(message, bytes, "slurmrestd says: %s: %s (%lld)",
                 json_get_string(error, "error", "an error"),
                 json_get_string(error, "description", json_get_string(error, "source", "")),
                 (long long)number);
        return number == INVALID_JOB || number == INVALID_NODE ? ERR_NOT_FOUND : ERR_IO;
    }
    if (code == 200)
        return OK;
    snprintf(message, bytes, "slurmrestd answered HTTP %d", code);
    return ERR_IO;
}

/* --- values of either shape --- */

/* 4, or {"set": true, "infinite": false, "number": 4}. */
static int64_t number_of(const struct json *object, const char *key, int64_t fallback)
{
    const struct json *value = json_get(object, key);
    if (json_kind(value) == JSON_OBJECT)
        return json_get_bool(value, "set", false) ? json_get_int(value, "number", fallback)
                                                  : fallback;
    return json_int(value, fallback);
}

/* "a,b", or ["a", "b"]. */
static char *list_of(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    AUTO_TEXT text = {0};
    if (json_kind(value) != JSON_ARRAY)
        return xstrdup(json_string(value, ""));
    for (const struct json *item = json_first(value); item != NULL; item = json_next(item))
        text_addf(&text, "%s%s", text.length > 0 ? "," : "", json_string(item, ""));
    return text_take(&text);
}

static void add_words(struct slurm_state *state, const struct json *words)
{
    if (json_kind(words) == JSON_STRING)
        slurm_state_add(state, view_of(json_string(words, "")));
    for (const struct json *word = json_kind(words) == JSON_ARRAY ? json_first(words) : NULL;
         word != NULL; word = json_next(word))
        slurm_state_add(state, view_of(json_string(word, "")));
}

void slurm_rest_read_node(const struct json *node, struct slurm_node *ret_node)
{
    const char *reason = json_get_string(node, "reason", "");
    *ret_node = (struct slurm_node){
        .name = xstrdup(json_get_string(node, "name", "")),
        .reason = xstrndup(reason, strcspn(reason, "\r\n")),
        .features = list_of(node, "active_features"),
        .gpus = slurm_count_gpus(view_of(json_get_string(node, "gres", ""))),
    };
    if (json_size(json_get(node, "state")) == 0 &&
        json_kind(json_get(node, "state")) != JSON_STRING)
        ret_node->state.flags = SLURM_STRANGE;
    add_words(&ret_node->state, json_get(node, "state"));
    add_words(&ret_node->state, json_get(node, "state_flags"));
}

/* One word as scontrol says it: a flag that changes what may be done goes before the base. */
static const char *job_state(const struct json *state)
{
    static const char *const FLAGS[] = {"COMPLETING", "CONFIGURING", "REQUEUE_HOLD",
                                        "SPECIAL_EXIT"};
    if (json_kind(state) != JSON_ARRAY)
        return json_string(state, "");
    for (const struct json *word = json_first(state); word != NULL; word = json_next(word))
        for (size_t i = 0; i < ARRAY_LEN(FLAGS); i++)
            if (strcmp(json_string(word, ""), FLAGS[i]) == 0)
                return FLAGS[i];
    return json_string(json_first(state), "");
}

static char *text_of(const struct json *object, const char *key)
{
    return xstrdup(json_get_string(object, key, ""));
}

void slurm_rest_read_job(const struct json *job, struct slurm_job *ret_job)
{
    char id[24], submitted[24];
    snprintf(id, sizeof id, "%lld", (long long)number_of(job, "job_id", 0));
    snprintf(submitted, sizeof submitted, "%lld", (long long)number_of(job, "submit_time", 0));
    *ret_job = (struct slurm_job){
        .id = xstrdup(id),
        .state = xstrdup(job_state(json_get(job, "job_state"))),
        .reason = text_of(job, "state_reason"),
        .user = text_of(job, "user_name"),
        .nodes = text_of(job, "nodes"),
        .required_nodes = list_of(job, "required_nodes"),
        .excluded_nodes = list_of(job, "excluded_nodes"),
        .reservation = text_of(job, "resv_name"),
        .admin_comment = text_of(job, "admin_comment"),
        .submit_time = xstrdup(submitted),
        .restarts = number_of(job, "restart_cnt", -1),
        .tasks = number_of(job, "tasks", 0),
        .node_count = number_of(job, "node_count", 0),
        .is_batch = json_get_bool(job, "batch_flag", false),
        .may_requeue = json_get_bool(job, "requeue", false),
    };
}
