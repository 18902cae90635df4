/* The Slurm actuator by itself: one JSON request a line on stdin, one answer a line on stdout.
 *
 *   {"call":"start","operation":"INC-1/1/2/1","verb":"cordon","incident":"INC-1","nodes":["r1n02"],
 *    "spares":[],"workload":{...},"params":{...},"reason":"..."}      also "poll"
 *   {"call":"describe","jobs":[{"job":"a","workload":{...},"world_size":8}]}
 * Usage: slurm_probe SLURM_CONF [TOKEN_FILE [REST_URL [CLUSTER]]]. Ends with its input.
 */
#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "remediation/actuators/slurm.h"
#include "remediation/names.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct probe {
    struct loop *loop;
    struct actuator *actuator;
    struct loop_fd *input;
    struct text line;
    bool may_act, requeue_always;
};

static bool may_act(void *context)
{
    return ((struct probe *)context)->may_act;
}

static void print_line(struct text *text)
{
    text_add(text, "\n");
    fputs(text->bytes, stdout);
    fflush(stdout);
}

static void on_done(void *context, const struct action_result *result)
{
    static const char *const POLLS[] = {"running", "done", "absent", "unreachable"};
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    (void)context;
    json_open_object(&writer);
    json_put_string(&writer, "outcome", outcome_name(result->outcome));
    json_put_string(&writer, "poll", POLLS[result->poll]);
    json_put_string(&writer, "reason", result->reason);
    json_put_string(&writer, "response", result->response);
    json_close(&writer);
    print_line(&text);
}

static void put_node(struct json_writer *writer, const struct world_node *node)
{
    json_add_key(writer, node->name);
    json_open_object(writer);
    json_put_string(writer, "rack", node->rack);
    json_put_bool(writer, "ready", node->ready);
    json_put_bool(writer, "cordoned", node->cordoned);
    json_put_string(writer, "cordoned_by", node->cordoned_by);
    json_put_bool(writer, "spare", node->spare);
    json_put_string(writer, "promised_to", node->promised_to);
    json_put_int(writer, "gpus", node->gpus_allocatable);
    json_close(writer);
}

static void put_job(struct json_writer *writer, const struct world_job *job)
{
    json_add_key(writer, job->name);
    json_open_object(writer);
    json_put_string(writer, "uid", job->uid);
    json_put_string(writer, "phase", job->phase);
    json_put_int(writer, "restarts", job->restarts);
    json_put_string(writer, "waiting_for", job->waiting_for);
    json_put_string(writer, "restart_refusal", job->restart_refusal);
    json_add_key(writer, "rank_nodes");
    json_open_array(writer);
    for (int32_t i = 0; i < job->rank_count; i++)
        json_add_string(writer, job->rank_nodes[i]);
    json_close(writer);
    json_close(writer);
}

static void on_world(void *context, const struct world *world)
{
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    (void)context;
    json_open_object(&writer);
    json_put_bool(&writer, "known", world->known);
    json_put_string(&writer, "reason", world->reason);
    json_add_key(&writer, "nodes");
    json_open_object(&writer);
    for (size_t i = 0; i < world->node_count; i++)
        put_node(&writer, &world->nodes[i]);
    json_close(&writer);
    json_add_key(&writer, "jobs");
    json_open_object(&writer);
    for (size_t i = 0; i < world->job_count; i++)
        put_job(&writer, &world->jobs[i]);
    json_close(&writer);
    json_close(&writer);
    print_line(&text);
}

static char *printed(const struct json *json)
{
    AUTO_TEXT text = {0};
    if (json == NULL)
        return NULL;
    json_print(json, &text);
    return text_take(&text);
}

static void act(struct probe *probe, const struct json *request, bool polls)
{
    struct names nodes = {0}, spares = {0};
    AUTO_FREE char *workload = printed(json_get(request, "workload"));
    AUTO_FREE char *params = printed(json_get(request, "params"));
    struct action action = {.incident_ref = json_get_string(request, "incident", "INC-1"),
                            .job = json_get_string(request, "job", NULL),
                            .workload_json = workload,
                            .reason = json_get_string(request, "reason", "a test"),
                            .params_json = params};
    names_parse(&nodes, json_get(request, "nodes"));
    names_parse(&spares, json_get(request, "spares"));
    action.nodes = (const char *const *)nodes.items;
    action.node_count = nodes.count;
    action.spares = (const char *const *)spares.items;
    action.spare_count = spares.count;
    text_copy(action.operation_id, sizeof action.operation_id,
              json_get_string(request, "operation", "INC-1/1/1/1"));
    if (!verb_parse(json_get_string(request, "verb", ""), &action.verb))
        fprintf(stderr, "no such verb\n");
    else if (polls)
        probe->actuator->poll(probe->actuator->self, &action, on_done, probe);
    else
        probe->actuator->start(probe->actuator->self, &action, on_done, probe);
    names_done(&nodes);
    names_done(&spares);
}

enum { JOBS_MAX = 16 };

static void describe(struct probe *probe, const struct json *request)
{
    struct job_question jobs[JOBS_MAX];
    char *workloads[JOBS_MAX];
    size_t count = 0;
    for (const struct json *job = json_first(json_get(request, "jobs"));
         job != NULL && count < JOBS_MAX; job = json_next(job)) {
        workloads[count] = printed(json_get(job, "workload"));
        jobs[count] = (struct job_question){json_get_string(job, "job", ""), workloads[count],
                                            (int32_t)json_get_int(job, "world_size", 0), 0};
        count++;
    }
    struct world_question question = {jobs, count};
    probe->actuator->describe(probe->actuator->self, &question, on_world, probe);
    for (size_t i = 0; i < count; i++)
        xfree(workloads[i]);
}

static void on_line(struct probe *probe, struct view line)
{
    AUTO(json_free) struct json *request = NULL;
    struct error error = {0};
    if (json_parse(line, &request, &error) != OK) {
        fprintf(stderr, "%s\n", error.message);
        return;
    }
    const char *call = json_get_string(request, "call", "");
    probe->may_act = json_get_bool(request, "may_act", true);
    if (strcmp(call, "describe") == 0)
        describe(probe, request);
    else
        act(probe, request, strcmp(call, "poll") == 0);
}

static void on_input(void *context, int fd, int events)
{
    struct probe *probe = context;
    char bytes[4096];
    ssize_t got = read(fd, bytes, sizeof bytes);
    (void)events;
    if (got <= 0) {
        loop_stop(probe->loop);
        return;
    }
    text_add_bytes(&probe->line, bytes, (size_t)got);
    for (char *end; (end = strchr(probe->line.bytes, '\n')) != NULL;) {
        size_t length = (size_t)(end - probe->line.bytes);
        AUTO_FREE char *rest = xstrdup(end + 1);
        on_line(probe, (struct view){probe->line.bytes, length});
        text_clear(&probe->line);
        text_add(&probe->line, rest);
    }
}

int main(int argc, char **argv)
{
    struct probe probe = {.may_act = true};
    struct slurm_params params = {.conf = argc > 1 ? argv[1] : NULL,
                                  .token_file = argc > 2 ? argv[2] : NULL,
                                  .rest_url = argc > 3 ? argv[3] : NULL,
                                  .cluster = argc > 4 ? argv[4] : NULL,
                                  .user = "root",
                                  .may_act = may_act,
                                  .may_act_context = &probe};
    clock_init(1, 0, 0);
    log_init(LOG_INFO);
    probe.loop = loop_new();
    AUTO(http_client_free) struct http_client *client = http_client_new(probe.loop);
    probe.actuator = slurm_new(probe.loop, client, &params);
    probe.input = loop_fd_new(probe.loop, STDIN_FILENO, LOOP_READ, on_input, &probe);
    loop_run(probe.loop);
    loop_fd_free(probe.input);
    http_client_free(TAKE(client)); /* first: its calls under way are dropped */
    probe.actuator->free(probe.actuator->self);
    loop_free(probe.loop);
    text_done(&probe.line);
    return 0;
}
