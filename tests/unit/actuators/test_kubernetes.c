#include "remediation/actuators/kubernetes.h"
#include "tests/harness/world.h"
#include "tests/unit/actuators/fake_nodes.h"

#include <stdlib.h>
#include <unistd.h>

#define SPARE   "{\"key\":\"broomwagon.io/spare\",\"effect\":\"NoSchedule\"}"
#define VOLCANO "/apis/batch.volcano.sh/v1alpha1/jobs"
#define LLM     "{\"kind\":\"volcano\",\"namespace\":\"default\",\"name\":\"llm\"}"

struct port_bench {
    struct bench bench; /* its cache is not used */
    struct actuator *actuator;
    struct world *world;
};

static struct kube_client *the_client;

struct kube_client *kube_client_new(struct loop *loop, struct http_client *http,
                                    const struct kube_config *config,
                                    const struct kube_limits *limits)
{
    (void)http;
    (void)limits;
    CU_ASSERT_STRING_EQUAL(config->server, "https://127.0.0.1:6443");
    the_client->loop = loop;
    return the_client;
}

void kube_client_free(struct kube_client *client)
{
    while (client->requests != NULL)
        kube_request_drop(client->requests);
}

static bool is_leading = true;
static bool may_act(void *context)
{
    (void)context;
    return is_leading;
}

static void open_port(struct port_bench *test, bool reads_only)
{
    char path[] = "/tmp/kubeconfig-XXXXXX";
    static const char TEXT[] = "{\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":"
                               "\"https://127.0.0.1:6443\"}}],\"users\":[{\"name\":\"u\",\"user\":"
                               "{\"token\":\"t\"}}],\"contexts\":[{\"name\":\"x\",\"context\":{"
                               "\"cluster\":\"c\",\"user\":\"u\"}}],\"current-context\":\"x\"}";
    clock_init(1, 0, 0);
    *test = (struct port_bench){.bench.loop = loop_new()};
    test->bench.client.version = 100;
    fake_unsynced = NULL;
    fake_is_quiet = true;
    the_client = &test->bench.client;
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0 && write(fd, TEXT, sizeof TEXT - 1) == (ssize_t)sizeof TEXT - 1);
    close(fd);
    struct kubernetes_params params = {.kubeconfig = path,
                                       .context = "",
                                       .rack_label = "site/rack",
                                       .write_topology_labels = true,
                                       .reads_only = reads_only,
                                       .may_act = may_act};
    struct error error = {0};
    enum status status = kubernetes_new(test->bench.loop, NULL, &params, &test->actuator, &error);
    unlink(path);
    if (status != OK)
        printf("%s\n", error.message);
    CU_ASSERT_FATAL(status == OK);
}

static void stop(void *context)
{
    loop_stop(context);
}

/* Timers of no time go through: wanted labels begin the watch of nodes anew. */
static void let_run(struct port_bench *test)
{
    struct loop_timer *timer = loop_timer_new(test->bench.loop, stop, test->bench.loop);
    loop_timer_set(timer, 1000000);
    loop_run(test->bench.loop);
    loop_timer_free(timer);
}

static void close_port(struct port_bench *test)
{
    test->actuator->free(test->actuator->self);
    world_free(test->world);
    for (size_t i = 0; i < FAKE_NODES; i++)
        xfree(test->bench.client.nodes[i].json);
    loop_free(test->bench.loop);
}

/* A job whose pods bear the promise of a spare, or do not. */
static void tell_job(struct port_bench *test, bool bears)
{
    AUTO_TEXT json = {0};
    text_addf(
        &json,
        "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm\",\"uid\":\"job-1\"},"
        "\"spec\":{\"minAvailable\":1,\"tasks\":[{\"name\":\"w\",\"replicas\":1,\"template\":"
        "{\"spec\":{%s\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"4\"}}}]"
        "}}}]},\"status\":{\"state\":{\"phase\":\"Running\"}}}",
        bears ? "\"tolerations\":[{\"key\":\"broomwagon.io/spare\",\"operator\":\"Equal\","
                "\"value\":\"default.llm\",\"effect\":\"NoSchedule\"}],"
              : "");
    fake_tell(&test->bench.client, VOLCANO, json.bytes);
}

static void tell_pod(struct port_bench *test, const char *node)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm-w-0\",\"uid\":\"p0\","
              "\"labels\":{\"volcano.sh/job-name\":\"llm\",\"volcano.sh/task-spec\":\"w\","
              "\"volcano.sh/task-index\":\"0\"},\"ownerReferences\":[{\"kind\":\"Job\",\"uid\":"
              "\"job-1\",\"controller\":true,\"apiVersion\":\"batch.volcano.sh/v1alpha1\"}]},"
              "\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"resources\":{\"limits\":{"
              "\"nvidia.com/gpu\":\"4\"}}}]},\"status\":{\"phase\":\"Running\"}}",
              node);
    fake_tell(&test->bench.client, "/api/v1/pods", json.bytes);
}

static void add_rack(struct port_bench *test)
{
    struct kube_client *client = &test->bench.client;
    fake_add(client, "gb-1", "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-1\"}}}");
    fake_add(client, "gb-2", "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-1\"}}}");
    fake_add(client, "s-1",
             "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-1\"}},\"spec\":{\"taints\":[" SPARE
             "]}}");
    let_run(test);
    fake_sync(client);
    tell_pod(test, "gb-1");
}

static void on_world(void *context, const struct world *world)
{
    struct port_bench *test = context;
    world_free(test->world);
    test->world = world_copy(world);
    loop_stop(test->bench.loop);
}

static void describe(struct port_bench *test)
{
    struct job_question job = {"default/llm", LLM, 4, 4};
    struct world_question question = {&job, 1};
    test->actuator->describe(test->actuator->self, &question, on_world, test);
    loop_run(test->bench.loop);
}

static enum outcome run_verb(struct port_bench *test, enum verb verb, const char *params)
{
    bool is_of_spares = verb == VERB_PROMISE_SPARE || verb == VERB_RELEASE_SPARE;
    const char *const nodes[] = {is_of_spares ? "s-1" : "gb-1"};
    struct action action = action_of(verb, "INC-3/0/3/1", nodes, 1);
    action.workload_json = LLM;
    action.params_json = params;
    int answers = test->bench.answers;
    test->actuator->start(test->actuator->self, &action, on_result, &test->bench);
    CU_ASSERT_EQUAL(test->bench.answers, answers);
    loop_run(test->bench.loop);
    return test->bench.result.outcome;
}

/* Until the Events have gone out: they hold back half a second. */
static void wait_for_events(struct port_bench *test, size_t count)
{
    struct loop_timer *timer = loop_timer_new(test->bench.loop, stop, test->bench.loop);
    for (int i = 0; i < 500 && fake_count(&test->bench.client, "POST", "/events") < count; i++) {
        loop_timer_set(timer, 10000000);
        loop_run(test->bench.loop);
    }
    loop_timer_free(timer);
    CU_ASSERT_EQUAL(fake_count(&test->bench.client, "POST", "/events"), count);
}

TEST(the_world_is_known_only_when_every_picture_is_whole)
{
    static const char *const watches[] = {"/api/v1/nodes", "/api/v1/pods"};
    struct port_bench test;
    open_port(&test, true);
    add_rack(&test);
    tell_job(&test, true);
    for (size_t i = 0; i < ARRAY_LEN(watches); i++) {
        fake_unsynced = watches[i];
        describe(&test);
        CU_ASSERT_FALSE(test.world->known);
        CU_ASSERT(test.world->reason != NULL && test.world->reason[0] != '\0');
    }
    fake_unsynced = NULL;
    describe(&test);
    CU_ASSERT(test.world->known);
    CU_ASSERT_EQUAL(test.world->node_count, 3);
    CU_ASSERT_STRING_EQUAL(world_find_node(test.world, "gb-1")->rack, "rk-1");
    CU_ASSERT_STRING_EQUAL(world_find_job(test.world, "default/llm")->uid, "job-1");
    fake_delete(&test.bench.client, "gb-1"); /* the node that the server is asked about */
    describe(&test);
    CU_ASSERT(test.world->known);
    fake_unsynced = VOLCANO; /* the jobs of this kind alone */
    describe(&test);
    CU_ASSERT(test.world->known);
    CU_ASSERT_STRING_EQUAL(world_find_job(test.world, "default/llm")->phase, "unknown");
    close_port(&test);
}

TEST(a_job_that_is_not_seen_is_promised_nothing_for_now)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_PROMISE_SPARE, NULL), OUTCOME_TRANSIENT);
    CU_ASSERT_FALSE(fake_says(&test.bench.client, "s-1", "default.llm"));
    close_port(&test);
}

static bool stand_still(struct kube_client *client, const struct fake_call *call,
                        struct kube_answer *answer)
{
    (void)client;
    if (strcmp(call->method, "GET") != 0)
        return false;
    *answer = (struct kube_answer){.result = KUBE_UNKNOWN, .message = "no answer within 5 s"};
    return true;
}

TEST(a_server_that_stands_still_makes_the_world_unknown)
{
    struct port_bench test;
    open_port(&test, true);
    add_rack(&test);
    tell_job(&test, true);
    test.bench.client.script = stand_still;
    describe(&test);
    CU_ASSERT_FALSE(test.world->known);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.world->reason, "no answer within 5 s"));
    fake_is_quiet = false; /* heard a moment ago: nothing has to be asked */
    size_t calls = test.bench.client.call_count;
    describe(&test);
    CU_ASSERT(test.world->known);
    CU_ASSERT_EQUAL(test.bench.client.call_count, calls);
    close_port(&test);
}

TEST(a_spare_is_promised_only_to_a_job_that_bears_its_taint)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, false);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_PROMISE_SPARE, NULL), OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "broomwagon.io/spare"));
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "value of it is default.llm"));
    tell_job(&test, true);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_PROMISE_SPARE, NULL), OUTCOME_SUCCEEDED);
    describe(&test);
    CU_ASSERT_STRING_EQUAL(world_find_node(test.world, "s-1")->promised_to, "default/llm");
    fake_change(&test.bench.client, "s-1",
                "{\"spec\":{\"taints\":[{\"key\":\"broomwagon.io/spare\",\"value\":\"else\"}]}}");
    fake_sync(&test.bench.client);
    describe(&test);
    CU_ASSERT_STRING_EQUAL(world_find_node(test.world, "s-1")->promised_to, "else");
    close_port(&test);
}

TEST(trays_that_stand_free_are_held_where_the_plan_wants_its_spares)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, true);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_PROMISE_SPARE, "{\"hold_others\":true}"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&test.bench.client, "gb-2", "broomwagon.io/held"));
    CU_ASSERT_FALSE(fake_says(&test.bench.client, "gb-1", "broomwagon.io/held"));
    CU_ASSERT_FALSE(fake_says(&test.bench.client, "s-1", "broomwagon.io/held"));
    close_port(&test);
}

TEST(beginning_and_end_are_told_once_on_the_node_and_on_the_job)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, true);
    struct kube_client *client = &test.bench.client;
    CU_ASSERT_EQUAL(run_verb(&test, VERB_CORDON, NULL), OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(fake_count(client, "POST", "/events"), 0); /* the action goes first */
    wait_for_events(&test, 4);
    const char *node = NULL, *job = NULL;
    for (size_t i = 0; i < client->call_count; i++) {
        const char *body = client->calls[i].body;
        if (strstr(body, "\"NodeQuarantined\"") != NULL)
            *(strstr(body, "\"kind\":\"Node\"") != NULL ? &node : &job) = body;
    }
    CU_ASSERT_FATAL(node != NULL && job != NULL);
    CU_ASSERT_PTR_NOT_NULL(strstr(node, "\"uid\":\"uid-gb-1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(node, "\"name\":\"gb-1\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(node, "[INC-3/0/3/1]"));
    CU_ASSERT_PTR_NOT_NULL(strstr(job, "\"kind\":\"Job\",\"namespace\":\"default\""));
    CU_ASSERT_PTR_NOT_NULL(strstr(job, "\"uid\":\"job-1\""));
    /* The same said again has the same name: the server takes it once. */
    size_t first = client->call_count;
    run_verb(&test, VERB_CORDON, NULL);
    wait_for_events(&test, 8);
    size_t same = 0;
    for (size_t i = 0; i < first; i++)
        for (size_t j = first; j < client->call_count; j++) {
            const char *a = strstr(client->calls[i].body, "\"QuarantineStarted\"");
            same += a != NULL && memcmp(client->calls[i].body, client->calls[j].body, 90) == 0;
        }
    CU_ASSERT(same > 0);
    close_port(&test);
}

TEST(a_failure_is_a_warning)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, false);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_PROMISE_SPARE, NULL), OUTCOME_REFUSED);
    wait_for_events(&test, 4);
    size_t warnings = 0;
    for (size_t i = 0; i < test.bench.client.call_count; i++)
        warnings += strstr(test.bench.client.calls[i].body, "\"type\":\"Warning\"") != NULL;
    CU_ASSERT_EQUAL(warnings, 2);
    close_port(&test);
}

TEST(in_mode_observe_nothing_is_written_of_its_own_accord)
{
    struct port_bench test;
    open_port(&test, true);
    add_rack(&test);
    tell_job(&test, true);
    describe(&test);
    describe(&test);
    for (size_t i = 0; i < test.bench.client.call_count; i++)
        CU_ASSERT_STRING_EQUAL(test.bench.client.calls[i].method, "GET");
    CU_ASSERT_EQUAL(run_verb(&test, VERB_CORDON, NULL), OUTCOME_REFUSED);
    CU_ASSERT_EQUAL(fake_count(&test.bench.client, "PATCH", ""), 0);
    kubernetes_set_reads_only(test.actuator, false);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_CORDON, NULL), OUTCOME_SUCCEEDED);
    is_leading = false; /* another broomd acts, or a person paused this one */
    describe(&test);
    describe(&test);
    CU_ASSERT_FALSE(fake_says(&test.bench.client, "gb-2", "broomwagon.io/rack"));
    is_leading = true;
    describe(&test);
    describe(&test);
    CU_ASSERT(fake_says(&test.bench.client, "gb-2", "broomwagon.io/rack"));
    close_port(&test);
}

TEST(events_that_wait_to_be_told_when_the_mode_becomes_observe_are_not)
{
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, true);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_CORDON, NULL), OUTCOME_SUCCEEDED);
    kubernetes_set_reads_only(test.actuator, true);
    struct loop_timer *timer = loop_timer_new(test.bench.loop, stop, test.bench.loop);
    loop_timer_set(timer, 700000000); /* they would hold back half a second */
    loop_run(test.bench.loop);
    loop_timer_free(timer);
    CU_ASSERT_EQUAL(fake_count(&test.bench.client, "POST", "/events"), 0);
    close_port(&test);
}

TEST(what_kubernetes_cannot_do_is_refused)
{
    struct port_bench test;
    open_port(&test, false);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_FENCE, NULL), OUTCOME_REFUSED);
    CU_ASSERT_EQUAL(run_verb(&test, VERB_HAND_OVER, NULL), OUTCOME_REFUSED);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.bench.reason, "webhook"));
    close_port(&test);
}

static void never(void *context, const struct action_result *result)
{
    (void)context;
    (void)result;
    CU_FAIL("answered after its end");
}

TEST(what_is_under_way_at_the_end_is_dropped)
{
    static const char *const nodes[] = {"gb-1"};
    struct port_bench test;
    open_port(&test, false);
    add_rack(&test);
    tell_job(&test, true);
    struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, 1);
    test.actuator->start(test.actuator->self, &action, never, NULL);
    action = action_of(VERB_PROMISE_SPARE, "INC-3/0/3/1", nodes, 1);
    test.actuator->start(test.actuator->self, &action, never, NULL);
    test.actuator->poll(test.actuator->self, &action, never, NULL);
    test.actuator->describe(test.actuator->self, NULL, on_world, &test);
    close_port(&test);
}

static void free_actuator(struct port_bench *test)
{
    test->actuator->free(test->actuator->self);
    test->actuator = NULL;
    loop_stop(test->bench.loop);
}

static void free_when_told(void *context, const struct world *world)
{
    struct port_bench *test = context;
    test->world = world_copy(world);
    free_actuator(test);
}

static void free_when_answered(void *context, const struct action_result *result)
{
    struct port_bench *test = context;
    text_copy(test->bench.reason, sizeof test->bench.reason, result->reason);
    free_actuator(test);
    CU_ASSERT_STRING_EQUAL(result->reason, test->bench.reason);
}

TEST(whoever_is_answered_may_free_the_actuator)
{
    static const char *const nodes[] = {"gb-1"};
    static const enum verb verbs[] = {VERB_CORDON, VERB_FENCE, VERB_COUNT};
    for (size_t i = 0; i < ARRAY_LEN(verbs) + 1; i++) {
        struct port_bench test;
        open_port(&test, false);
        add_rack(&test);
        struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, 1);
        action.verb = i < ARRAY_LEN(verbs) ? verbs[i] : VERB_CORDON;
        if (i == ARRAY_LEN(verbs))
            test.actuator->poll(test.actuator->self, &action, free_when_answered, &test);
        else if (verbs[i] == VERB_COUNT)
            test.actuator->describe(test.actuator->self, NULL, free_when_told, &test);
        else
            test.actuator->start(test.actuator->self, &action, free_when_answered, &test);
        loop_run(test.bench.loop);
        CU_ASSERT_PTR_NULL_FATAL(test.actuator);
        world_free(test.world);
        for (size_t j = 0; j < FAKE_NODES; j++)
            xfree(test.bench.client.nodes[j].json);
        loop_free(test.bench.loop);
    }
}

TESTS(T(the_world_is_known_only_when_every_picture_is_whole),
      T(a_job_that_is_not_seen_is_promised_nothing_for_now),
      T(a_server_that_stands_still_makes_the_world_unknown),
      T(a_spare_is_promised_only_to_a_job_that_bears_its_taint),
      T(trays_that_stand_free_are_held_where_the_plan_wants_its_spares),
      T(beginning_and_end_are_told_once_on_the_node_and_on_the_job), T(a_failure_is_a_warning),
      T(in_mode_observe_nothing_is_written_of_its_own_accord),
      T(events_that_wait_to_be_told_when_the_mode_becomes_observe_are_not),
      T(what_kubernetes_cannot_do_is_refused), T(what_is_under_way_at_the_end_is_dropped),
      T(whoever_is_answered_may_free_the_actuator))
