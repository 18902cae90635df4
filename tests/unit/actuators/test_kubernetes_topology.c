#include "remediation/actuators/kubernetes_hypernode.h"
#include "remediation/actuators/kubernetes_topology.h"
#include "tests/unit/actuators/fake_nodes.h"

#define HYPERNODES "/apis/topology.volcano.sh/v1alpha1/hypernodes"

static void run_once(void *context)
{
    loop_stop(context);
}

/* Lets timers of no time and calls go through. */
static void settle(struct bench *bench)
{
    struct loop_timer *timer = loop_timer_new(bench->loop, run_once, bench->loop);
    for (int i = 0; i < 40; i++) {
        loop_timer_set(timer, 0);
        loop_run(bench->loop);
    }
    loop_timer_free(timer);
}

static struct topology *open_topology(struct bench *bench, const char *rack_label, bool writes)
{
    bench_open(bench);
    node_cache_free(bench->cache);
    bench->cache = node_cache_new(&bench->client, bench->loop, rack_label);
    struct topology_params params = {.client = &bench->client,
                                     .loop = bench->loop,
                                     .nodes = bench->cache,
                                     .rack_label = rack_label,
                                     .write_labels = writes};
    return topology_new(&params);
}

static void close_topology(struct bench *bench, struct topology *topology)
{
    topology_free(topology);
    bench_close(bench);
}

static void tell_hypernode(struct bench *bench, const char *name, int tier, const char *members)
{
    AUTO_TEXT json = {0};
    text_addf(&json, "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"tier\":%d,\"members\":[%s]}}",
              name, tier, members);
    fake_tell(&bench->client, HYPERNODES, json.bytes);
}

static void hypernode_gone(struct bench *bench, const char *name)
{
    struct kube_watch *watch = fake_watch(&bench->client, HYPERNODES);
    watch->params.on_gone(watch->params.context, "", name);
}

TEST(hypernodes_of_the_first_tier_name_the_racks)
{
    struct bench bench;
    struct topology *topology = open_topology(&bench, "", false);
    fake_add(&bench.client, "a-1", "{\"metadata\":{\"labels\":{\"row\":\"7\"}}}");
    fake_add(&bench.client, "b-12", NULL);
    fake_add(&bench.client, "c-1", NULL);
    tell_hypernode(&bench, "rk-1", 1,
                   "{\"type\":\"Node\",\"selector\":{\"labelMatch\":{\"matchLabels\":{\"row\":"
                   "\"7\"}}}}");
    tell_hypernode(&bench, "rk-2", 1,
                   "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"^b-\\\\d+$\"}}}"
                   ",{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"c-1\"}}}");
    tell_hypernode(&bench, "pod-1", 2,
                   "{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"a-1\"}}}");
    settle(&bench);
    fake_sync(&bench.client);
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-1");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "b-12"), "rk-2");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "c-1"), "rk-2");
    CU_ASSERT_PTR_NULL(topology_rack(topology, "d-1"));
    /* The HyperNode is taken away: its nodes have not moved. */
    hypernode_gone(&bench, "rk-2");
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "c-1"), "rk-2");
    CU_ASSERT_EQUAL(bench.client.call_count, 0);
    close_topology(&bench, topology);
}

#define EXACT(name)   "{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"" name "\"}}}"
#define PATTERN(text) "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"" text "\"}}}"
#define ROW(value)                                                                                 \
    "{\"type\":\"Node\",\"selector\":{\"labelMatch\":{\"matchLabels\":{\"row\":\"" value "\"}}}}"

TEST(of_hypernodes_that_claim_one_node_the_first_by_name_has_it)
{
    struct bench bench;
    struct topology *topology = open_topology(&bench, "", false);
    static const char *const names[] = {"a-1", "a-2", "a-3", "b-1"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        fake_add(&bench.client, names[i], NULL);
    tell_hypernode(&bench, "rk-3", 1, EXACT("a-1") "," EXACT("a-3") "," PATTERN("^b?-1$"));
    tell_hypernode(&bench, "rk-1", 1, PATTERN("^a-1$"));
    tell_hypernode(&bench, "rk-2", 1, EXACT("a-2") "," EXACT("a-3"));
    tell_hypernode(&bench, "rk-4", 1, PATTERN("^a-") "," PATTERN("(x|b)-1") "," EXACT("a-2"));
    settle(&bench);
    fake_sync(&bench.client);
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-1");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-2"), "rk-2");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-3"), "rk-2");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "b-1"), "rk-3");
    hypernode_gone(&bench, "rk-2");
    tell_hypernode(&bench, "rk-1", 2, PATTERN("^a-1$")); /* of another tier now */
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-3");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-2"), "rk-4");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-3"), "rk-3");
    close_topology(&bench, topology);
}

TEST(a_node_whose_label_changes_moves_and_no_other)
{
    struct bench bench;
    struct topology *topology = open_topology(&bench, "", false);
    fake_add(&bench.client, "a-1", "{\"metadata\":{\"labels\":{\"row\":\"7\"}}}");
    fake_add(&bench.client, "a-2", "{\"metadata\":{\"labels\":{\"row\":\"7\"}}}");
    tell_hypernode(&bench, "rk-7", 1, ROW("7"));
    tell_hypernode(&bench, "rk-8", 1, ROW("8"));
    settle(&bench);
    fake_sync(&bench.client);
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-7");
    fake_change(&bench.client, "a-1", "{\"metadata\":{\"labels\":{\"row\":\"8\"}}}");
    fake_tell(&bench.client, "/api/v1/nodes", fake_json(&bench.client, "a-1"));
    topology_refresh(topology);
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-8");
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-2"), "rk-7");
    close_topology(&bench, topology);
}

TEST(the_site_s_label_goes_before_hypernodes_and_cliques_come_last)
{
    struct bench bench;
    struct topology *topology = open_topology(&bench, "site/rack", false);
    fake_add(&bench.client, "a-1",
             "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-9\",\"nvidia.com/gpu.clique\":\"c.1\"}}"
             "}");
    fake_add(&bench.client, "b-1",
             "{\"metadata\":{\"labels\":{\"nvidia.com/gpu.clique\":\"c.2\"}}}");
    tell_hypernode(&bench, "rk-1", 1,
                   "{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":\"a-1\"}}}");
    fake_sync(&bench.client);
    topology_refresh(topology);
    struct inventory_node place;
    CU_ASSERT_STRING_EQUAL(topology_rack(topology, "a-1"), "rk-9");
    CU_ASSERT_PTR_NOT_NULL(topology_rack(topology, "b-1"));
    CU_ASSERT(topology_find(topology, "a-1", &place));
    CU_ASSERT_STRING_EQUAL(place.nvlink_domain, "c.1");
    close_topology(&bench, topology);
}

TEST(without_a_label_the_world_waits_for_the_hypernodes)
{
    struct bench bench;
    const char *reason = NULL;
    struct topology *topology = open_topology(&bench, "", false);
    fake_unsynced = HYPERNODES;
    CU_ASSERT_FALSE(topology_is_synced(topology, &reason));
    CU_ASSERT_PTR_NOT_NULL(reason);
    close_topology(&bench, topology);
    topology = open_topology(&bench, "site/rack", false);
    fake_unsynced = HYPERNODES;
    CU_ASSERT(topology_is_synced(topology, &reason));
    close_topology(&bench, topology);
}

TEST(racks_are_written_to_nodes_only_where_the_site_asks_for_it)
{
    for (int writes = 0; writes < 2; writes++) {
        struct bench bench;
        struct topology *topology = open_topology(&bench, "site/rack", writes);
        for (int i = 0; i < 20; i++) {
            char name[16];
            snprintf(name, sizeof name, "n-%02d", i);
            fake_add(&bench.client, name, "{\"metadata\":{\"labels\":{\"site/rack\":\"rk-9\"}}}");
        }
        fake_add(&bench.client, "odd", NULL); /* nobody knows its rack */
        settle(&bench);
        fake_sync(&bench.client);
        topology_refresh(topology);
        settle(&bench);
        CU_ASSERT_EQUAL(bench.client.call_count, writes ? 20 : 0);
        for (size_t i = 0; i < bench.client.call_count; i++) {
            CU_ASSERT_STRING_EQUAL(bench.client.calls[i].body,
                                   "{\"metadata\":{\"labels\":{\"broomwagon.io/rack\":\"rk-9\"}}}");
            CU_ASSERT_EQUAL(bench.client.calls[i].priority, KUBE_LIST);
        }
        CU_ASSERT_EQUAL(fake_says(&bench.client, "n-07", "\"broomwagon.io/rack\":\"rk-9\""),
                        writes != 0);
        topology_refresh(topology);
        settle(&bench);
        CU_ASSERT_EQUAL(bench.client.call_count, writes ? 20 : 0);
        close_topology(&bench, topology);
    }
}

static enum rail_state told_rail;

static enum rail_state rail_of(void *context, const char *node)
{
    (void)context;
    bool others_unknown = told_rail != RAIL_UNREAD && strcmp(node, "n-1") != 0;
    return others_unknown ? RAIL_UNKNOWN : told_rail;
}

static void expect_rail(struct bench *bench, struct topology *topology, enum rail_state state,
                        size_t writes, const char *value)
{
    AUTO_TEXT label = {0};
    size_t before = bench->client.call_count;
    told_rail = state;
    topology_refresh(topology);
    settle(bench);
    text_addf(&label, "\"broomwagon.io/rail\":\"%s\"", value != NULL ? value : "");
    CU_ASSERT_EQUAL(bench->client.call_count - before, writes);
    CU_ASSERT_EQUAL(fake_says(&bench->client, "n-1", value != NULL ? label.bytes : "/rail\":"),
                    value != NULL);
    fake_tell(&bench->client, "/api/v1/nodes", fake_json(&bench->client, "n-1"));
}

TEST(the_rail_label_follows_what_is_known_and_goes_when_nothing_is)
{
    struct bench bench;
    struct topology *topology = open_topology(&bench, "", true);
    topology_free(topology);
    topology = topology_new(&(struct topology_params){.client = &bench.client,
                                                      .loop = bench.loop,
                                                      .nodes = bench.cache,
                                                      .rack_label = "",
                                                      .write_labels = true,
                                                      .rail = rail_of});
    fake_add(&bench.client, "n-1", NULL);
    fake_add(&bench.client, "n-2",
             "{\"metadata\":{\"labels\":{\"broomwagon.io/rail\":\"ready\"}}}");
    settle(&bench);
    fake_sync(&bench.client);
    expect_rail(&bench, topology, RAIL_UNREAD, 0, NULL);
    CU_ASSERT_TRUE(fake_says(&bench.client, "n-2", "broomwagon.io/rail\":\"ready\""));
    /* n-2 is nobody's word: what an earlier process said of it is taken back. */
    expect_rail(&bench, topology, RAIL_UNKNOWN, 1, NULL);
    CU_ASSERT_FALSE(fake_says(&bench.client, "n-2", "broomwagon.io/rail\":"));
    expect_rail(&bench, topology, RAIL_READY, 1, "ready");
    expect_rail(&bench, topology, RAIL_READY, 0, "ready");
    expect_rail(&bench, topology, RAIL_DEGRADED, 1, "degraded");
    expect_rail(&bench, topology, RAIL_READY, 1, "ready");
    fake_change(&bench.client, "n-1",
                "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\"}]}}");
    fake_tell(&bench.client, "/api/v1/nodes", fake_json(&bench.client, "n-1"));
    expect_rail(&bench, topology, RAIL_READY, 1, NULL);
    expect_rail(&bench, topology, RAIL_DEGRADED, 1, "degraded");
    for (size_t i = 0; i < bench.client.call_count; i++)
        CU_ASSERT_PTR_NULL(strstr(bench.client.calls[i].body, "broomwagon.io/rack"));
    close_topology(&bench, topology);
}

TEST(a_selector_that_is_not_understood_has_no_member)
{
    static const char *const members[] = {
        "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"(\"}}}",
        "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"\"}}}",
        "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"((a{9}){9}){9}\"}}}",
        "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":\"(a{9000}){9000}\"}}}",
        "{\"type\":\"Node\",\"selector\":{\"labelMatch\":{}}}",
        ("{\"type\":\"Node\",\"selector\":{\"labelMatch\":{\"matchExpressions\":[{\"key\":\"a\","
         "\"operator\":\"Gt\",\"values\":[\"1\"]}]}}}"),
        "{\"type\":\"HyperNode\",\"selector\":{\"exactMatch\":{\"name\":\"x\"}}}",
        "{\"type\":\"Node\"}",
    };
    for (size_t i = 0; i < ARRAY_LEN(members); i++) {
        AUTO(json_free) struct json *object = NULL;
        AUTO_TEXT text = {0};
        text_addf(&text, "{\"metadata\":{\"name\":\"h\"},\"spec\":{\"tier\":1,\"members\":[%s]}}",
                  members[i]);
        CU_ASSERT_FATAL(json_parse(view_of(text.bytes), &object, NULL) == OK);
        CU_ASSERT_PTR_NULL(hypernode_read(object));
    }
}

TESTS(T(hypernodes_of_the_first_tier_name_the_racks),
      T(of_hypernodes_that_claim_one_node_the_first_by_name_has_it),
      T(a_node_whose_label_changes_moves_and_no_other),
      T(the_site_s_label_goes_before_hypernodes_and_cliques_come_last),
      T(without_a_label_the_world_waits_for_the_hypernodes),
      T(racks_are_written_to_nodes_only_where_the_site_asks_for_it),
      T(the_rail_label_follows_what_is_known_and_goes_when_nothing_is),
      T(a_selector_that_is_not_understood_has_no_member))
