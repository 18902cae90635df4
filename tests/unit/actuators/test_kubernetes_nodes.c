#include "remediation/actuators/kubernetes_nodes_inside.h"
#include "tests/unit/actuators/fake_nodes.h"

static const char GPU_FULL[] = "{\"key\":\"team\",\"value\":\"gpu\",\"effect\":\"NoSchedule\","
                               "\"timeAdded\":\"2026-01-01T00:00:00Z\"}";

static void cordon_gb_1(struct bench *bench)
{
    AUTO_TEXT taint = {0};
    bench_open(bench);
    text_addf(&taint, "{\"spec\":{\"taints\":[%s]}}", GPU_FULL);
    fake_add(&bench->client, "gb-1", taint.bytes);
    fake_sync(&bench->client);
    CU_ASSERT_EQUAL(run_one(bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
}

TEST(a_cordon_is_one_patch_of_our_own_keys_and_then_the_condition)
{
    struct bench bench;
    cordon_gb_1(&bench);
    struct kube_client *client = &bench.client;
    CU_ASSERT_EQUAL(client->call_count, 2);
    CU_ASSERT_STRING_EQUAL(client->calls[0].path, "/api/v1/nodes/gb-1?fieldManager=broomd");
    CU_ASSERT_EQUAL(client->calls[0].priority, KUBE_ACT);
    CU_ASSERT_STRING_EQUAL(client->calls[1].path, "/api/v1/nodes/gb-1/status?fieldManager=broomd");
    CU_ASSERT_PTR_NULL(strstr(client->calls[0].body, "somebody.example"));
    CU_ASSERT(fake_says(client, "gb-1", "\"somebody.example/note\":\"keep \xc3\xa9\""));
    CU_ASSERT(fake_says(client, "gb-1", GPU_FULL));
    CU_ASSERT(fake_says(client, "gb-1", "\"unschedulable\":true"));
    CU_ASSERT(fake_says(client, "gb-1",
                        "{\"key\":\"broomwagon.io/quarantine\",\"value\":\"inc-3\","
                        "\"effect\":\"NoSchedule\"}"));
    CU_ASSERT(fake_says(client, "gb-1", "\"broomwagon.io/state\":\"quarantined\""));
    CU_ASSERT(fake_says(client, "gb-1", "\"broomwagon.io/operation\":\"INC-3/0/2/1\""));
    CU_ASSERT(fake_says(client, "gb-1", "\"broomwagon.io/was-unschedulable\":\"false\""));
    CU_ASSERT(fake_says(client, "gb-1", "\"type\":\"BroomwagonFault\",\"status\":\"True\""));
    CU_ASSERT_STRING_EQUAL(told(&bench, "gb-1").cordoned_by, "INC-3");
    CU_ASSERT_STRING_EQUAL(bench.reason, "1 node cordoned");
    bench_close(&bench);
}

TEST(an_uncordon_leaves_the_node_as_it_was)
{
    struct bench bench;
    cordon_gb_1(&bench);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-3/0/uncordon/1", "gb-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "unschedulable"));
    CU_ASSERT(fake_says(&bench.client, "gb-1", GPU_FULL));
    CU_ASSERT(fake_says(&bench.client, "gb-1", "somebody.example/note"));
    CU_ASSERT(
        fake_says(&bench.client, "gb-1", "\"type\":\"BroomwagonFault\",\"status\":\"False\""));
    CU_ASSERT_FALSE(told(&bench, "gb-1").cordoned);
    bench_close(&bench);
}

static bool taint_before_first_patch(struct kube_client *client, const struct fake_call *call,
                                     struct kube_answer *answer)
{
    (void)answer;
    if (client->scripted++ == 0 && strcmp(call->method, "PATCH") == 0)
        fake_change(client, "gb-1",
                    "{\"spec\":{\"taints\":[{\"key\":\"new\",\"effect\":\"NoExecute\"}]}}");
    return false;
}

TEST(a_node_that_changed_meanwhile_is_read_and_decided_again)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    bench.client.script = taint_before_first_patch;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[1].method, "GET");
    CU_ASSERT(fake_says(&bench.client, "gb-1", "{\"key\":\"new\",\"effect\":\"NoExecute\"}"));
    CU_ASSERT(fake_says(&bench.client, "gb-1", "broomwagon.io/quarantine"));
    bench_close(&bench);
}

static bool always_conflict(struct kube_client *client, const struct fake_call *call,
                            struct kube_answer *answer)
{
    (void)client;
    if (strcmp(call->method, "PATCH") != 0)
        return false;
    *answer = (struct kube_answer){.result = KUBE_CONFLICT, .message = "modified"};
    return true;
}

TEST(a_node_that_never_stands_still_is_tried_five_times)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    bench.client.script = always_conflict;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_TRANSIENT);
    CU_ASSERT_EQUAL(fake_count(&bench.client, "PATCH", "gb-1"), 5);
    CU_ASSERT_STRING_EQUAL(bench.reason, "gb-1 modified");
    bench_close(&bench);
}

TEST(a_picture_that_is_not_fresh_is_not_patched_from)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    fake_unsynced = "/api/v1/nodes";
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.client.calls[0].method, "GET");
    bench_close(&bench);
}

TEST(a_cordon_of_somebody_else_is_remembered_and_stays_after_ours)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", "{\"spec\":{\"unschedulable\":true}}");
    fake_sync(&bench.client);
    CU_ASSERT_STRING_EQUAL(told(&bench, "gb-1").cordoned_by, "");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "gb-1 was cordoned by somebody before"));
    CU_ASSERT(fake_says(&bench.client, "gb-1", "\"broomwagon.io/was-unschedulable\":\"true\""));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-3/0/uncordon/1", "gb-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-1", "\"unschedulable\":true"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "stays cordoned"));
    bench_close(&bench);
}

TEST(a_cordon_that_somebody_set_after_taking_ours_off_stays)
{
    struct bench bench;
    cordon_gb_1(&bench);
    fake_change(
        &bench.client, "gb-1",
        "{\"metadata\":{\"managedFields\":["
        "{\"manager\":\"broomd\",\"time\":\"2026-01-01T00:00:00Z\",\"fieldsV1\":{\"f:spec\":"
        "{}}},{\"manager\":\"kubectl-cordon\",\"time\":\"2026-01-01T00:01:00Z\","
        "\"fieldsV1\":{\"f:spec\":{\"f:unschedulable\":{}}}}]}}");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-3/0/uncordon/1", "gb-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-1", "\"unschedulable\":true"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/incident"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "kubectl-cordon did that too"));
    bench_close(&bench);
}

TEST(an_uncordon_leaves_alone_what_another_incident_has_cordoned)
{
    struct bench bench;
    cordon_gb_1(&bench);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-4/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "is cordoned for INC-3 already"));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-4/0/uncordon/1", "gb-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT(told(&bench, "gb-1").cordoned);
    CU_ASSERT(fake_says(&bench.client, "gb-1", "\"type\":\"BroomwagonFault\",\"status\":\"True\""));
    CU_ASSERT_EQUAL(fake_count(&bench.client, "PATCH", "gb-1"), 2);
    bench_close(&bench);
}

TEST(a_person_s_uncordon_is_seen_and_not_undone)
{
    struct bench bench;
    cordon_gb_1(&bench);
    fake_change(&bench.client, "gb-1", "{\"spec\":{\"unschedulable\":null}}");
    fake_sync(&bench.client);
    CU_ASSERT_FALSE(told(&bench, "gb-1").cordoned);
    CU_ASSERT_STRING_EQUAL(told(&bench, "gb-1").marked_by, "INC-3");
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_DONE);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "unschedulable\":true"));
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "then uncordoned by somebody"));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_UNCORDON, "INC-3/0/uncordon/1", "gb-1"),
                    OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    bench_close(&bench);
}

TEST(who_uncordoned_is_told_where_the_api_knows)
{
    struct bench bench;
    cordon_gb_1(&bench);
    fake_change(&bench.client, "gb-1",
                "{\"spec\":{\"unschedulable\":false},\"metadata\":{\"managedFields\":[{\"manager\":"
                "\"rack-operator\",\"time\":\"2026-01-01T00:01:00Z\",\"fieldsV1\":{\"f:spec\":{"
                "\"f:unschedulable\":{}}}}]}}");
    fake_sync(&bench.client);
    node_cache_ask_uncordoned(bench.cache);
    node_cache_ask_uncordoned(bench.cache); /* asked once */
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_DONE);
    CU_ASSERT_EQUAL(fake_count(&bench.client, "GET", "gb-1"), 2);
    CU_ASSERT_STRING_EQUAL(told(&bench, "gb-1").uncordoned_by, "rack-operator");
    bench_close(&bench);
}

/* The world has a node of that name. */
static bool is_told(const struct bench *bench, const char *name)
{
    for (size_t i = 0; i < node_cache_count(bench->cache); i++)
        if (strcmp(node_cache_name(bench->cache, i), name) == 0)
            return true;
    return false;
}

TEST(a_node_that_is_gone_holds_up_nobody)
{
    static const char *const nodes[] = {"gone", "gb-1"};
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_add(&bench.client, "gone", NULL);
    fake_sync(&bench.client);
    fake_delete(&bench.client, "gone");
    struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, 2);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.reason, "1 node cordoned; gone is gone");
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/2", "gone"), OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/2", "gone"), POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_FALSE(is_told(&bench, "gone"));
    bench_close(&bench);
}

TEST(a_rack_is_cordoned_at_once_and_not_one_after_the_other)
{
    static const char *const nodes[] = {"n00", "n01", "n02", "n03", "n04", "n05",
                                        "n06", "n07", "n08", "n09", "n10", "n11",
                                        "n12", "n13", "n14", "n15", "n16", "n17"};
    struct bench bench;
    bench_open(&bench);
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
        fake_add(&bench.client, nodes[i], NULL);
    fake_sync(&bench.client);
    struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, ARRAY_LEN(nodes));
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.client.sent_before_answer, ARRAY_LEN(nodes));
    CU_ASSERT_EQUAL(fake_count(&bench.client, "GET", ""), 0);
    CU_ASSERT_STRING_EQUAL(bench.reason, "18 nodes cordoned");
    for (size_t i = 0; i < ARRAY_LEN(nodes); i++) /* conditions come after the last cordon */
        CU_ASSERT_PTR_NULL(strstr(bench.client.calls[i].path, "/status"));
    bench_close(&bench);
}

static enum kube_result said;
static bool say(struct kube_client *client, const struct fake_call *call,
                struct kube_answer *answer)
{
    (void)client;
    if (strcmp(call->method, "PATCH") != 0 || strstr(call->path, "gb-2") == NULL ||
        strstr(call->path, "status") != NULL)
        return false;
    *answer = (struct kube_answer){.result = said, .message = "as the test says"};
    return true;
}

TEST(each_answer_of_the_api_has_one_meaning)
{
    static const char *const nodes[] = {"gb-1", "gb-2"};
    static const struct {
        enum kube_result result;
        enum outcome outcome;
    } cases[] = {{KUBE_DENIED, OUTCOME_REFUSED},      {KUBE_REFUSED, OUTCOME_REFUSED},
                 {KUBE_BUSY, OUTCOME_TRANSIENT},      {KUBE_UNREACHABLE, OUTCOME_TRANSIENT},
                 {KUBE_UNKNOWN, OUTCOME_UNKNOWN},     {KUBE_EXPIRED, OUTCOME_TRANSIENT},
                 {KUBE_NOT_FOUND, OUTCOME_SUCCEEDED}, {KUBE_CONFLICT, OUTCOME_TRANSIENT}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        bench_open(&bench);
        fake_add(&bench.client, "gb-1", NULL);
        fake_add(&bench.client, "gb-2", NULL);
        fake_sync(&bench.client);
        bench.client.script = say;
        said = cases[i].result;
        struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, 2);
        CU_ASSERT_EQUAL(run_action(&bench, &action), cases[i].outcome);
        CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "gb-2"));
        CU_ASSERT_PTR_NOT_NULL(strstr(bench.response, "\"gb-1\":\"changed\""));
        /* The next try leaves alone what is done. */
        bench.client.script = NULL;
        action = action_of(VERB_CORDON, "INC-3/0/2/2", nodes, 2);
        CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_SUCCEEDED);
        CU_ASSERT_EQUAL(fake_count(&bench.client, "PATCH", "gb-1?"), 1);
        bench_close(&bench);
    }
}

static bool lose_answer(struct kube_client *client, const struct fake_call *call,
                        struct kube_answer *answer)
{
    bool is_status = strstr(call->path, "/status") != NULL;
    if (strcmp(call->method, "PATCH") != 0 || is_status)
        return false;
    fake_usual(client, call, answer);
    *answer = (struct kube_answer){.result = KUBE_UNKNOWN, .message = "timed out"};
    return true;
}

TEST(a_lost_answer_is_found_out_by_reading)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_ABSENT);
    bench.client.script = lose_answer;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    /* Its condition was not reached: a start that finds the cordon there sets it. */
    bench.client.script = NULL;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-1", "BroomwagonFault"));
    CU_ASSERT_EQUAL(fake_count(&bench.client, "PATCH", "gb-1?"), 1);
    bench_close(&bench);
}

static bool is_made_anew_before_the_patch(struct kube_client *client, const struct fake_call *call,
                                          struct kube_answer *answer)
{
    if (strcmp(call->method, "PATCH") != 0 || strstr(call->path, "gb-1") == NULL ||
        client->scripted++ > 0)
        return false;
    fake_delete(client, "gb-1");
    fake_add(client, "gb-1", "{\"metadata\":{\"uid\":\"another\"}}");
    *answer = (struct kube_answer){.result = KUBE_UNKNOWN, .message = "timed out"};
    return true;
}

/* Its cordon was on its way when the node was made anew: the accusation is of the old one. */
TEST(a_node_that_is_made_anew_is_not_cordoned_for_the_old_one)
{
    static const char *const nodes[] = {"gb-1", "gb-2"};
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_add(&bench.client, "gb-2", NULL);
    fake_sync(&bench.client);
    bench.client.script = is_made_anew_before_the_patch;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUPERSEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    /* A new decision of the core has an id of its own, and means the node that is there. */
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT(fake_says(&bench.client, "gb-1", "broomwagon.io/quarantine"));
    /* Begun again under its id, for another node that was not reached: the same. */
    fake_sync(&bench.client);
    bench.client.scripted = 0;
    fake_change(&bench.client, "gb-1",
                "{\"metadata\":{\"uid\":\"third\",\"annotations\":null},\"spec\":null}");
    fake_sync(&bench.client);
    struct action action = action_of(VERB_CORDON, "INC-3/0/2/3", nodes, 2);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_UNKNOWN);
    CU_ASSERT_EQUAL(run_action(&bench, &action), OUTCOME_SUCCEEDED);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "gb-1 is gone: another node has its name now"));
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    CU_ASSERT(fake_says(&bench.client, "gb-2", "broomwagon.io/quarantine"));
    bench_close(&bench);
}

static bool is_made_anew_and_conflicts(struct kube_client *client, const struct fake_call *call,
                                       struct kube_answer *answer)
{
    bool changed = is_made_anew_before_the_patch(client, call, answer);
    answer->result = changed ? KUBE_CONFLICT : answer->result;
    return changed;
}

TEST(a_node_that_is_made_anew_before_a_conflict_is_left_alone)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    bench.client.script = is_made_anew_and_conflicts;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUPERSEDED);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    bench_close(&bench);
}

/* broomd was started anew and knows no uid: absent, and the core decides whether it still wants it.
 */
TEST(after_a_restart_a_node_that_was_made_anew_is_absent_to_the_poll)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    bench.client.script = is_made_anew_before_the_patch;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_UNKNOWN);
    node_cache_free(bench.cache);
    bench.cache = node_cache_new(&bench.client, bench.loop, "site/rack");
    fake_sync(&bench.client);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_ABSENT);
    CU_ASSERT_FALSE(fake_says(&bench.client, "gb-1", "broomwagon.io/"));
    bench_close(&bench);
}

TEST(of_very_many_cordons_without_an_end_the_oldest_are_followed_no_further)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    const struct node *node = node_find(bench.cache, "gb-1");
    for (int i = 0; i < 2 * NODES_FOLLOWED_MAX; i++) {
        struct action action = {.verb = VERB_CORDON};
        snprintf(action.operation_id, sizeof action.operation_id, "INC-%d/0/2/1", i);
        CU_ASSERT(nodes_follow(bench.cache, &action, node));
    }
    size_t count = 0;
    for (struct followed *each = bench.cache->followed; each != NULL; each = each->next)
        count++;
    CU_ASSERT_EQUAL(count, NODES_FOLLOWED_MAX);
    bench_close(&bench);
}

static bool answer_nothing(struct kube_client *client, const struct fake_call *call,
                           struct kube_answer *answer)
{
    (void)client;
    (void)call;
    *answer = (struct kube_answer){.result = KUBE_UNREACHABLE, .message = "connection refused"};
    return true;
}

TEST(a_poll_without_an_api_server_says_so)
{
    struct bench bench;
    cordon_gb_1(&bench);
    bench.client.script = answer_nothing;
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_UNREACHABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "connection refused"));
    bench_close(&bench);
}

TEST(an_operation_that_is_under_way_is_polled_as_running)
{
    static const char *const nodes[] = {"gb-1"};
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    struct action action = action_of(VERB_CORDON, "INC-3/0/2/1", nodes, 1);
    nodes_start(bench.cache, &action, NULL, 0, on_result, &bench);
    nodes_poll(bench.cache, &action, on_result, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_RUNNING);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TEST(the_world_is_told_as_it_is_in_the_cluster)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(
        &bench.client, "a",
        "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-1\",\"nvidia.com/gpu.clique\":\"c.1\"}},"
        "\"spec\":{\"taints\":[{\"key\":\"broomwagon.io/spare\",\"effect\":\"NoSchedule\"}]}}");
    fake_add(&bench.client, "b",
             "{\"spec\":{\"taints\":[{\"key\":\"node.kubernetes.io/unreachable\",\"effect\":"
             "\"NoExecute\"},{\"key\":\"node.kubernetes.io/out-of-service\",\"effect\":"
             "\"NoExecute\"}]}}");
    fake_add(&bench.client, "c",
             "{\"metadata\":{\"annotations\":{\"broomwagon.io/fenced-by\":\"ann\"}},\"status\":{"
             "\"allocatable\":{\"nvidia.com/gpu\":\"lots\"},\"conditions\":[{\"type\":\"Ready\","
             "\"status\":\"Unknown\"}]}}");
    fake_sync(&bench.client);
    struct world_node a = told(&bench, "a"), b = told(&bench, "b"), c = told(&bench, "c");
    CU_ASSERT_STRING_EQUAL(a.rack, "rk-1");
    CU_ASSERT_STRING_EQUAL(a.nvlink_domain, "c.1");
    CU_ASSERT(a.ready && a.spare && !a.cordoned && a.gpus_allocatable == 4);
    CU_ASSERT_PTR_NULL(a.promised_to);
    CU_ASSERT_FALSE(b.ready);
    CU_ASSERT_PTR_NOT_NULL(strstr(b.fenced_by, "out-of-service"));
    CU_ASSERT_PTR_NULL(b.rack);
    CU_ASSERT_FALSE(c.ready);
    CU_ASSERT_STRING_EQUAL(c.fenced_by, "ann");
    CU_ASSERT_EQUAL(c.gpus_allocatable, 0);
    /* A spare that somebody cordons is none for the time being. */
    fake_change(&bench.client, "a", "{\"spec\":{\"unschedulable\":true}}");
    fake_sync(&bench.client);
    CU_ASSERT(told(&bench, "a").cordoned && !told(&bench, "a").spare);
    /* The clique's label goes while the fabric is built anew: the tray has not moved. */
    fake_change(&bench.client, "a", "{\"metadata\":{\"labels\":{\"nvidia.com/gpu.clique\":null}}}");
    fake_sync(&bench.client);
    CU_ASSERT_STRING_EQUAL(told(&bench, "a").nvlink_domain, "c.1");
    CU_ASSERT(!a.domain_is_past && told(&bench, "a").domain_is_past);
    bench_close(&bench);
}

TEST(an_event_of_the_watch_that_is_older_than_our_patch_is_not_taken)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    AUTO_FREE char *old = xstrdup(fake_json(&bench.client, "gb-1"));
    fake_sync(&bench.client);
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    fake_tell(&bench.client, "/api/v1/nodes", old);
    CU_ASSERT(told(&bench, "gb-1").cordoned);
    bench_close(&bench);
}

TEST(nodes_that_went_while_the_labels_were_read_anew_are_forgotten)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", "{\"metadata\":{\"labels\":{\"zone\":\"a\"}}}");
    fake_add(&bench.client, "gb-2", NULL);
    fake_sync(&bench.client);
    const char *reason = NULL;
    CU_ASSERT(node_cache_is_synced(bench.cache, &reason));
    node_cache_want_label(bench.cache, "zone");
    CU_ASSERT_FALSE(node_cache_is_synced(bench.cache, &reason));
    fake_delete(&bench.client, "gb-2");
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), POLL_ABSENT);
    fake_sync(&bench.client);
    CU_ASSERT_EQUAL(node_cache_count(bench.cache), 1);
    CU_ASSERT_STRING_EQUAL(node_cache_label(bench.cache, 0, "zone"), "a");
    bench_close(&bench);
}

static bool goes_before_the_answer(struct kube_client *client, const struct fake_call *call,
                                   struct kube_answer *answer)
{
    struct kube_watch *watch = fake_watch(client, "/api/v1/nodes");
    (void)answer;
    if (strcmp(call->method, "PATCH") == 0 && strstr(call->path, "/status") == NULL)
        watch->params.on_gone(watch->params.context, "", "gb-1");
    return false;
}

TEST(an_answer_that_is_late_does_not_bring_a_node_back)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_add(&bench.client, "gb-2", NULL);
    fake_sync(&bench.client);
    bench.client.script = goes_before_the_answer;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    CU_ASSERT_FALSE(is_told(&bench, "gb-1"));
    CU_ASSERT_EQUAL(node_cache_count(bench.cache), 1);
    /* Nor does a read that was answered before it went. */
    bench.client.script = NULL;
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), OUTCOME_SUPERSEDED);
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), POLL_DONE);
    CU_ASSERT_FALSE(is_told(&bench, "gb-1"));
    /* One that is made anew under its name is another one. */
    fake_change(&bench.client, "gb-1", "{\"metadata\":{\"uid\":\"another\"}}");
    CU_ASSERT_EQUAL(run_poll(&bench, VERB_CORDON, "INC-3/0/2/2", "gb-1"), POLL_DONE);
    CU_ASSERT(is_told(&bench, "gb-1"));
    bench_close(&bench);
}

TEST(the_watch_is_believed_when_it_shows_a_node_that_went)
{
    struct bench bench;
    bench_open(&bench);
    fake_add(&bench.client, "gb-1", NULL);
    fake_sync(&bench.client);
    struct kube_watch *watch = fake_watch(&bench.client, "/api/v1/nodes");
    watch->params.on_gone(watch->params.context, "", "gb-1");
    CU_ASSERT_FALSE(is_told(&bench, "gb-1"));
    fake_sync(&bench.client);
    CU_ASSERT(is_told(&bench, "gb-1"));
    CU_ASSERT_EQUAL(run_one(&bench, VERB_CORDON, "INC-3/0/2/1", "gb-1"), OUTCOME_SUCCEEDED);
    bench_close(&bench);
}

TESTS(T(a_cordon_is_one_patch_of_our_own_keys_and_then_the_condition),
      T(an_uncordon_leaves_the_node_as_it_was),
      T(a_node_that_changed_meanwhile_is_read_and_decided_again),
      T(a_node_that_never_stands_still_is_tried_five_times),
      T(a_picture_that_is_not_fresh_is_not_patched_from),
      T(a_cordon_of_somebody_else_is_remembered_and_stays_after_ours),
      T(a_cordon_that_somebody_set_after_taking_ours_off_stays),
      T(an_uncordon_leaves_alone_what_another_incident_has_cordoned),
      T(a_person_s_uncordon_is_seen_and_not_undone), T(who_uncordoned_is_told_where_the_api_knows),
      T(a_node_that_is_gone_holds_up_nobody),
      T(a_rack_is_cordoned_at_once_and_not_one_after_the_other),
      T(each_answer_of_the_api_has_one_meaning), T(a_lost_answer_is_found_out_by_reading),
      T(a_node_that_is_made_anew_is_not_cordoned_for_the_old_one),
      T(a_node_that_is_made_anew_before_a_conflict_is_left_alone),
      T(after_a_restart_a_node_that_was_made_anew_is_absent_to_the_poll),
      T(of_very_many_cordons_without_an_end_the_oldest_are_followed_no_further),
      T(a_poll_without_an_api_server_says_so),
      T(an_operation_that_is_under_way_is_polled_as_running),
      T(the_world_is_told_as_it_is_in_the_cluster),
      T(an_event_of_the_watch_that_is_older_than_our_patch_is_not_taken),
      T(nodes_that_went_while_the_labels_were_read_anew_are_forgotten),
      T(an_answer_that_is_late_does_not_bring_a_node_back),
      T(the_watch_is_believed_when_it_shows_a_node_that_went))
