#include "controller/io/http_server.h"
#include "controller/sys/clock.h"
#include "remediation/actuators/dry_run.h"
#include "remediation/actuators/rehearsal.h"
#include "tests/harness/test.h"
#include "tests/harness/world.h"

#include <stdio.h>
#include <string.h>

/* A cluster that answers as told: one row a request, the last one stays. */
struct reply {
    int code; /* 0: no answer */
    const char *body;
};

struct bench {
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    struct actuator *actuator;
    const struct reply *replies;
    int asked;
    char methods[16][8];
    char last_path[128];
    char last_body[512];
    struct action_result result;
    char reason[256];
    bool answered;
    struct world *world;
};

static const char *const METHODS[HTTP_METHOD_COUNT] = {"GET", "HEAD", "POST", "PUT", "DELETE"};

static void on_request(void *context, struct http_request *request)
{
    struct bench *bench = context;
    const struct reply *reply = bench->replies;
    if (bench->asked < 16)
        text_copy(bench->methods[bench->asked], 8, METHODS[http_request_method(request)]);
    bench->asked++;
    text_copy(bench->last_path, sizeof bench->last_path, http_request_path(request));
    text_copy(bench->last_body, sizeof bench->last_body, http_request_body(request).bytes);
    if (reply[1].body != NULL)
        bench->replies++;
    if (reply->code != 0)
        http_reply(request, reply->code, "application/json", view_of(reply->body));
}

static void on_done(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    CU_ASSERT_FALSE(bench->answered);
    bench->answered = true;
    bench->result = *result;
    text_copy(bench->reason, sizeof bench->reason, result->reason != NULL ? result->reason : "");
    if (bench->loop != NULL)
        loop_stop(bench->loop);
}

static void on_world(void *context, const struct world *world)
{
    struct bench *bench = context;
    bench->world = world_copy(world);
    loop_stop(bench->loop);
}

static void bench_open(struct bench *bench, const struct reply *replies)
{
    struct http_limits limits = http_limits_default();
    char url[64];
    clock_init(100, clock_read().wall_ns, clock_read().wall_ns);
    *bench = (struct bench){.loop = loop_new(), .replies = replies};
    bench->server = http_server_new(bench->loop, &limits, on_request, bench);
    CU_ASSERT_FATAL(http_server_listen(bench->server, "127.0.0.1:0", NULL, NULL) == OK);
    snprintf(url, sizeof url, "http://127.0.0.1:%d", http_server_port(bench->server));
    bench->client = http_client_new(bench->loop);
    bench->actuator = rehearsal_new(bench->loop, bench->client, url);
}

static void bench_close(struct bench *bench)
{
    http_client_free(bench->client);
    bench->actuator->free(bench->actuator->self);
    http_server_free(bench->server);
    loop_free(bench->loop);
    world_free(bench->world);
}

static const char *const NODES[] = {"gb-1", "gb-2"};

static struct action cordon(void)
{
    struct action action = {.verb = VERB_CORDON,
                            .incident_ref = "INC-3",
                            .job = "default/llm",
                            .nodes = NODES,
                            .node_count = 2,
                            .reason = "broom:INC-3 \"slow\"",
                            .params_json = "{\"timeout_ns\":20000000000}"};
    text_copy(action.operation_id, sizeof action.operation_id, "INC-3/0/2/1");
    return action;
}

static void start(struct bench *bench, const struct reply *replies)
{
    struct action action = cordon();
    bench_open(bench, replies);
    bench->actuator->start(bench->actuator->self, &action, on_done, bench);
    loop_run(bench->loop);
}

TEST(an_action_is_put_under_its_operation_id_and_its_outcome_comes_back)
{
    struct bench bench;
    start(&bench,
          (const struct reply[]){
              {200, "{\"state\":\"done\",\"outcome\":\"superseded\",\"reason\":\"somebody did\"}"},
              {0, NULL}});
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_STRING_EQUAL(bench.reason, "somebody did");
    CU_ASSERT_STRING_EQUAL(bench.methods[0], "PUT");
    CU_ASSERT_STRING_EQUAL(bench.last_path, "/v1/operations/INC-3/0/2/1");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.last_body, "\"nodes\":[\"gb-1\",\"gb-2\"]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.last_body, "\"verb\":\"cordon\""));
    bench_close(&bench);
}

TEST(a_running_operation_is_asked_for_again_and_never_put_twice)
{
    struct bench bench;
    start(&bench, (const struct reply[]){{200, "{\"state\":\"running\",\"reason\":\"waits\"}"},
                                         {200, "{\"state\":\"running\",\"reason\":\"waits\"}"},
                                         {200, "{\"state\":\"done\",\"outcome\":\"succeeded\"}"},
                                         {0, NULL}});
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.asked, 3);
    CU_ASSERT_STRING_EQUAL(bench.methods[0], "PUT");
    CU_ASSERT_STRING_EQUAL(bench.methods[1], "GET");
    CU_ASSERT_STRING_EQUAL(bench.methods[2], "GET");
    bench_close(&bench);
}

TEST(an_operation_that_does_not_end_in_its_time_is_unknown)
{
    struct bench bench;
    start(&bench, (const struct reply[]){{200, "{\"state\":\"running\"}"}, {0, NULL}});
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    CU_ASSERT(bench.asked > 2);
    bench_close(&bench);
}

TEST(errors_and_answers_without_sense_are_unknown_and_refusals_are_final)
{
    static const struct {
        struct reply reply;
        enum outcome outcome;
    } cases[] = {
        {{500, "{\"error\":\"in trouble\"}"}, OUTCOME_UNKNOWN},
        {{503, "<html>"}, OUTCOME_UNKNOWN},
        {{200, "<html>"}, OUTCOME_UNKNOWN},
        {{200, ""}, OUTCOME_UNKNOWN},
        {{200, "{}"}, OUTCOME_UNKNOWN},
        {{200, "{\"state\":\"done\",\"outcome\":\"hm\"}"}, OUTCOME_UNKNOWN},
        {{200, "{\"error\":\"an error behind a 200\"}"}, OUTCOME_UNKNOWN},
        {{404, "{\"error\":\"not here\"}"}, OUTCOME_UNKNOWN},
        {{400, "{\"error\":\"no such verb\"}"}, OUTCOME_REFUSED},
        {{403, "{\"error\":\"not you\"}"}, OUTCOME_REFUSED},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        start(&bench, replies);
        CU_ASSERT_EQUAL(bench.result.outcome, cases[i].outcome);
        bench_close(&bench);
    }
}

TEST(a_cluster_that_cannot_be_reached_has_done_nothing)
{
    struct bench bench;
    struct action action = cordon();
    bench_open(&bench, NULL);
    http_server_free(bench.server);
    bench.server = NULL;
    bench.actuator->start(bench.actuator->self, &action, on_done, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    bench_close(&bench);
}

TEST(poll_only_reads_and_tells_absent_from_unreachable)
{
    static const struct {
        struct reply reply;
        enum poll_state poll;
    } cases[] = {
        {{404, "{\"error\":\"none\"}"}, POLL_ABSENT},
        {{200, "{\"state\":\"running\"}"}, POLL_RUNNING},
        {{200, "{\"state\":\"done\",\"outcome\":\"succeeded\"}"}, POLL_DONE},
        {{500, "{\"error\":\"in trouble\"}"}, POLL_UNREACHABLE},
        {{200, "[]"}, POLL_UNREACHABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        struct action action = cordon();
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        bench_open(&bench, replies);
        bench.actuator->poll(bench.actuator->self, &action, on_done, &bench);
        loop_run(bench.loop);
        CU_ASSERT_EQUAL(bench.result.poll, cases[i].poll);
        CU_ASSERT_STRING_EQUAL(bench.methods[0], "GET");
        bench_close(&bench);
    }
}

static struct world *describe(const char *body, int code)
{
    struct bench bench;
    const struct reply replies[] = {{code, body}, {0, NULL}};
    bench_open(&bench, replies);
    bench.actuator->describe(bench.actuator->self, &(struct world_question){0}, on_world, &bench);
    loop_run(bench.loop);
    struct world *world = TAKE(bench.world);
    bench_close(&bench);
    return world;
}

TEST(a_description_is_the_world_and_what_it_leaves_out_is_not_assumed)
{
    AUTO(world_free)
    struct world *world = describe("{\"nodes\":[{\"name\":\"gb-1\",\"rack\":\"rk-1\",\"ready\":"
                                   "true,\"cordoned\":false,\"spare\":true,"
                                   "\"gpus\":4},{\"name\":\"gb-2\"}],\"jobs\":[{\"name\":\"default/"
                                   "llm\",\"rank_nodes\":[\"gb-2\"]}]}",
                                   200);
    CU_ASSERT(world->known);
    CU_ASSERT_EQUAL(world->node_count, 2);
    CU_ASSERT(world_find_node(world, "gb-1")->spare);
    CU_ASSERT_FALSE(world_find_node(world, "gb-2")->ready);
    CU_ASSERT(world_find_node(world, "gb-2")->cordoned);
    CU_ASSERT_STRING_EQUAL(world_find_job(world, "default/llm")->phase, "unknown");
    CU_ASSERT_STRING_EQUAL(world_find_job(world, "default/llm")->rank_nodes[0], "gb-2");
    CU_ASSERT_EQUAL(world_find_job(world, "default/llm")->restarts_max, -1);
}

TEST(an_error_or_an_empty_list_is_no_world)
{
    static const struct reply replies[] = {
        {500, "{}"}, {200, "{\"nodes\":[]}"}, {200, "nonsense"}, {200, "{\"error\":\"x\"}"}};
    for (size_t i = 0; i < ARRAY_LEN(replies); i++) {
        AUTO(world_free) struct world *world = describe(replies[i].body, replies[i].code);
        CU_ASSERT_FALSE(world->known);
        CU_ASSERT_PTR_NOT_NULL(world->reason);
    }
}

TEST(freeing_drops_calls_that_are_under_way)
{
    struct bench bench;
    struct action action = cordon();
    const struct reply silence[] = {{0, ""}, {0, NULL}};
    bench_open(&bench, silence);
    bench.actuator->start(bench.actuator->self, &action, on_done, &bench);
    bench_close(&bench);
    CU_ASSERT_FALSE(bench.answered);
}

TEST(a_dry_run_says_what_it_would_have_done)
{
    struct bench bench = {0};
    struct action action = cordon();
    struct actuator actuator = dry_run_actuator();
    actuator.start(actuator.self, &action, on_done, &bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.reason, "dry run: would have done cordon of gb-1, gb-2");
    CU_ASSERT_FALSE(actuator.changes_world);
    bench.answered = false;
    actuator.poll(actuator.self, &action, on_done, &bench);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
}

TESTS(T(an_action_is_put_under_its_operation_id_and_its_outcome_comes_back),
      T(a_running_operation_is_asked_for_again_and_never_put_twice),
      T(an_operation_that_does_not_end_in_its_time_is_unknown),
      T(errors_and_answers_without_sense_are_unknown_and_refusals_are_final),
      T(a_cluster_that_cannot_be_reached_has_done_nothing),
      T(poll_only_reads_and_tells_absent_from_unreachable),
      T(a_description_is_the_world_and_what_it_leaves_out_is_not_assumed),
      T(an_error_or_an_empty_list_is_no_world), T(freeing_drops_calls_that_are_under_way),
      T(a_dry_run_says_what_it_would_have_done))
