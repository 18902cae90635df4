#include "tests/unit/actuators/fake_nodes.h"

#define SPARE "{\"key\":\"broomwagon.io/spare\",\"effect\":\"NoSchedule\"}"
#define RACK  "\"site/rack\":\"rk-1\""
#define OF(clique, taints)                                                                         \
    "{\"metadata\":{\"labels\":{" RACK ",\"nvidia.com/gpu.clique\":\"" clique "\"}},"              \
    "\"spec\":{\"taints\":[" taints "]}}"

/* A rack of one clique with two spares, s-1 and s-2. */
static void open_rack(struct bench *bench)
{
    bench_open(bench);
    fake_add(&bench->client, "gb-1", OF("c.1", ""));
    fake_add(&bench->client, "gb-2", OF("c.1", ""));
    fake_add(&bench->client, "s-1", OF("c.1", SPARE));
    fake_add(&bench->client, "s-2", OF("c.1", SPARE));
    fake_sync(&bench->client);
}

TEST(a_spare_is_promised_to_one_job_and_given_back)
{
    struct bench bench;
    open_rack(&bench);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "s-1",
                        "{\"key\":\"broomwagon.io/spare\",\"value\":\"default.llm\","
                        "\"effect\":\"NoSchedule\"}"));
    CU_ASSERT(fake_says(&bench.client, "s-1", "\"broomwagon.io/promised-by\":\"INC-3\""));
    CU_ASSERT_STRING_EQUAL(told(&bench, "s-1").promised_to, "default.llm");
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1"), POLL_DONE);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", "s-1"),
                    POLL_ABSENT);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", "s-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "s-1", "[" SPARE "]"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "s-1", "promised-by"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "s-1", "broomwagon.io/operation"));
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", "s-1"),
                    POLL_DONE);
    bench_close(&bench);
}

TEST(a_spare_that_the_job_runs_on_is_a_spare_no_more)
{
    static const char *const nodes[] = {"s-1"};
    struct bench bench;
    open_rack(&bench);
    run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1");
    struct action action = action_of(VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", nodes, 1);
    action.params_json = "{\"used\":true}";
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "s-1", "broomwagon.io/"));
    CU_ASSERT_FALSE(told(&bench, "s-1").spare);
    bench_close(&bench);
}

TEST(only_what_this_incident_was_promised_is_given_back)
{
    struct bench bench;
    open_rack(&bench);
    run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_RELEASE_SPARE, "INC-4/0/release_spare/1", "s-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "s-1 is not promised by us"));
    CU_ASSERT(fake_says(&bench.client, "s-1", "default.llm"));
    bench_close(&bench);
}

TEST(each_spare_is_looked_at_again_at_the_moment_of_its_promise)
{
    static const struct {
        const char *change, *words;
    } cases[] = {
        {"{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}",
         "s-1 is not Ready"},
        {"{\"spec\":{\"unschedulable\":true}}", "s-1 is cordoned"},
        {"{\"metadata\":{\"annotations\":{\"broomwagon.io/incident\":\"INC-9\"}}}",
         "s-1 is under quarantine for INC-9"},
        {"{\"spec\":{\"taints\":[]}}", "s-1 is no spare: taint broomwagon.io/spare is not there"},
        {"{\"spec\":{\"taints\":[{\"key\":\"broomwagon.io/spare\",\"value\":\"default.other\","
         "\"effect\":\"NoSchedule\"}]}}",
         "s-1 is promised to default.other"},
        {"{\"metadata\":{\"annotations\":{\"broomwagon.io/promised-by\":\"INC-8\"}},\"spec\":{"
         "\"taints\":[{\"key\":\"broomwagon.io/spare\",\"value\":\"default.llm\",\"effect\":"
         "\"NoSchedule\"}]}}",
         "s-1 is promised for INC-8"},
        {"{\"spec\":{\"taints\":[" SPARE ",{\"key\":\"broomwagon.io/held\",\"value\":\"inc-7\","
         "\"effect\":\"NoSchedule\"}]}}",
         "s-1 is held for inc-7"},
        {"{\"spec\":{\"taints\":[" SPARE ",{\"key\":\"node.kubernetes.io/disk-pressure\","
         "\"effect\":\"NoSchedule\"}]}}",
         "s-1 carries taint node.kubernetes.io/disk-pressure"},
        {"{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"3\"}}}", "s-1 offers 3 of 4 GPUs"},
        {"{\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"3\"},\"capacity\":{\"nvidia.com/gpu\":"
         "\"3\"}}}",
         "s-1 offers 3 of 4 GPUs"},
        {"{\"metadata\":{\"labels\":{\"nvidia.com/gpu.clique\":null}}}",
         "s-1 has no label nvidia.com/gpu.clique, the others of rack rk-1 have"},
        {"{\"metadata\":{\"labels\":{\"nvidia.com/gpu.clique\":\"c.10\"}}}",
         "s-1 is of clique c.10, the others of rack rk-1 are of c.1"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        open_rack(&bench);
        fake_change(&bench.client, "s-1", cases[i].change);
        fake_sync(&bench.client);
        CU_ASSERT_EQUAL(run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1"),
                        OUTCOME_TRANSIENT);
        if (strstr(bench.reason, cases[i].words) == NULL)
            printf("\n%s\n", bench.reason);
        CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, cases[i].words));
        CU_ASSERT_EQUAL(bench.client.call_count, 0);
        bench_close(&bench);
    }
}

TEST(a_cluster_without_cliques_has_spares_too)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", "{\"metadata\":{\"labels\":{" RACK "}}}");
    fake_add(&bench.client, "s-1",
             "{\"metadata\":{\"labels\":{" RACK "}},\"spec\":{\"taints\":[" SPARE "]}}");
    fake_sync(&bench.client);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1"), OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(spares_are_promised_all_of_them_or_none)
{
    static const char *const nodes[] = {"s-1", "s-2"};
    struct bench bench;
    open_rack(&bench);
    fake_change(&bench.client, "s-2", "{\"spec\":{\"unschedulable\":true}}");
    fake_sync(&bench.client);
    struct action action = action_of(VERB_PROMISE_SPARE, "INC-3/0/3/1", nodes, 2);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_TRANSIENT);
    CU_ASSERT_STRING_EQUAL(bench.reason, "s-2 is cordoned");
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.response, "\"s-1\":\"taken back\""));
    CU_ASSERT(fake_says(&bench.client, "s-1", "[" SPARE "]"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "s-1", "promised-by"));
    /* One that stood already, since its answer was lost, goes too. */
    CU_ASSERT_EQUAL(run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_TRANSIENT);
    CU_ASSERT(fake_says(&bench.client, "s-1", "[" SPARE "]"));
    /* Nothing is held for a promise that does not stand. */
    static const char *const hold[] = {"gb-2"};
    nodes_start(bench.cache, &action, hold, 1, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-2", "broomwagon.io/held"));
    bench_close(&bench);
}

static bool fail_second_patch_of_s_1(struct kube_client *client, const struct fake_call *call,
                                     struct kube_answer *answer)
{
    if (strcmp(call->method, "PATCH") != 0 || strstr(call->path, "s-1") == NULL ||
        client->scripted++ == 0)
        return false;
    *answer = (struct kube_answer){.result = KUBE_UNREACHABLE, .message = "connection refused"};
    return true;
}

TEST(a_promise_that_could_not_be_taken_back_is_unknown_and_read_again)
{
    static const char *const nodes[] = {"s-1", "s-2"};
    struct bench bench;
    open_rack(&bench);
    fake_change(&bench.client, "s-2", "{\"spec\":{\"unschedulable\":true}}");
    fake_sync(&bench.client);
    bench.client.script = fail_second_patch_of_s_1;
    struct action action = action_of(VERB_PROMISE_SPARE, "INC-3/0/3/1", nodes, 2);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_UNKNOWN);
    nodes_poll(bench.cache, &action, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    bench_close(&bench);
}

TEST(trays_that_are_held_are_free_again_after_the_release)
{
    static const char *const nodes[] = {"s-1"};
    static const char *const hold[] = {"gb-2", "gone", "s-1"};
    struct bench bench;
    open_rack(&bench);
    struct action action = action_of(VERB_PROMISE_SPARE, "INC-3/0/3/1", nodes, 1);
    nodes_start(bench.cache, &action, hold, 3, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-2",
                        "{\"key\":\"broomwagon.io/held\",\"value\":\"inc-3\","
                        "\"effect\":\"NoSchedule\"}"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "1 node promised, 1 more kept free meanwhile"));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_RELEASE_SPARE, "INC-4/0/release_spare/1", "s-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-2", "broomwagon.io/held"));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", "s-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-2", "broomwagon.io/"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "1 more free again"));
    bench_close(&bench);
}

TEST(a_promise_survives_a_cordon_and_its_end)
{
    struct bench bench;
    open_rack(&bench);
    run_one(&bench, VERB_PROMISE_SPARE, "INC-3/0/3/1", "s-1");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-4/0/1/1", "s-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(told(&bench, "s-1").promised_to, "default.llm");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_RELEASE_SPARE, "INC-3/0/release_spare/1", "s-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "s-1", "\"broomwagon.io/operation\":\"INC-4/0/1/1\""));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-4/0/uncordon/1", "s-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "s-1", "[" SPARE "]"));
    bench_close(&bench);
}

static bool is_label_value(const char *value)
{
    size_t length = strlen(value);
    for (size_t i = 0; i < length; i++) {
        char c = value[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool is_inner = i > 0 && i + 1 < length && strchr("-_.", c) != NULL;
        if (!is_letter && !is_inner)
            return false;
    }
    return length > 0 && length <= 63;
}

TEST(every_job_has_a_label_value_of_its_own)
{
    static const char *const jobs[] = {
        "default/llm",
        "llm",
        "default.llm",
        "default-llm",
        "default/llm.v2",
        "default.llm/v2",
        "a/b/c",
        "a.b",
        "a b",
        "a/b/",
        "-a",
        "",
        "ümlaut",
        "default/llm 17",
        "default/llm_17",
        "a-very-long-namespace-name-that-goes-on/and-a-job-name-that-goes-on-as-well-1",
        "a-very-long-namespace-name-that-goes-on/and-a-job-name-that-goes-on-as-well-2"};
    char values[ARRAY_LEN(jobs)][64];
    for (size_t i = 0; i < ARRAY_LEN(jobs); i++) {
        node_spare_value(jobs[i], values[i]);
        CU_ASSERT(is_label_value(values[i]));
        for (size_t j = 0; j < i; j++)
            CU_ASSERT_STRING_NOT_EQUAL(values[i], values[j]);
    }
    CU_ASSERT_STRING_EQUAL(values[0], "default.llm");
    CU_ASSERT_STRING_EQUAL(values[1], "llm-487b91042c7cf27a");
    for (size_t i = 1; i < ARRAY_LEN(jobs); i++) {
        /* A job that is called like another one's value. */
        char value[64], named[80];
        snprintf(named, sizeof named, "default/%s", values[i]);
        node_spare_value(values[i], value);
        CU_ASSERT_STRING_NOT_EQUAL(values[i], value);
        node_spare_value(named, value);
        CU_ASSERT_STRING_NOT_EQUAL(values[i], value);
    }
    uint64_t seed = test_seed();
    for (int round = 0; round < test_rounds(2000); round++) {
        char job[128] = "", value[64];
        size_t length = test_random(&seed) % (sizeof job - 1);
        for (size_t i = 0; i < length; i++)
            job[i] = (char)(1 + test_random(&seed) % 255);
        node_spare_value(job, value);
        CU_ASSERT(is_label_value(value));
    }
}

TESTS(T(a_spare_is_promised_to_one_job_and_given_back),
      T(a_spare_that_the_job_runs_on_is_a_spare_no_more),
      T(only_what_this_incident_was_promised_is_given_back),
      T(each_spare_is_looked_at_again_at_the_moment_of_its_promise),
      T(a_cluster_without_cliques_has_spares_too), T(spares_are_promised_all_of_them_or_none),
      T(a_promise_that_could_not_be_taken_back_is_unknown_and_read_again),
      T(trays_that_are_held_are_free_again_after_the_release),
      T(a_promise_survives_a_cordon_and_its_end), T(every_job_has_a_label_value_of_its_own))
