#include "controller/topology/job_file.h"
#include "controller/topology/layout.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

enum { NODES_MAX = 64 };

/* Racks "ra", "rb" ... of `trays` nodes "a0", "a1" ... each; ranks are placed by counting. */
struct cluster {
    struct job *job;
    char names[NODES_MAX][8];
    const char *pointers[NODES_MAX];
    int count;
};

static void cluster_open(struct cluster *cluster, int world, const char *parallel, int racks,
                         int trays)
{
    AUTO_TEXT text = {0};
    struct error error = {0};
    *cluster = (struct cluster){0};
    text_addf(&text,
              "{\"job\":\"default/x\",\"world_size\":%d,\"parallel\":%s,\"topology\":{"
              "\"racks\":[",
              world, parallel);
    for (int r = 0; r < racks; r++) {
        text_addf(&text, "%s{\"rack\":\"r%c\",\"trays\":[", r > 0 ? "," : "", 'a' + r);
        for (int t = 0; t < trays; t++) {
            snprintf(cluster->names[cluster->count], 8, "%c%d", 'a' + r, t);
            cluster->pointers[cluster->count] = cluster->names[cluster->count];
            text_addf(&text, "%s\"%s\"", t > 0 ? "," : "", cluster->names[cluster->count++]);
        }
        text_add(&text, "]}");
    }
    text_add(&text, "]},\"ranks\":[");
    for (int r = 0; r < world; r++)
        text_addf(&text, "%s{\"rank\":%d,\"node\":\"%s\",\"gpu\":%d}", r > 0 ? "," : "", r,
                  cluster->names[r / 4], r % 4);
    text_add(&text, "]}");
    CU_ASSERT_EQUAL_FATAL(job_file_parse(view_of(text.bytes), &cluster->job, &error), OK);
}

static struct layout *plan_nodes(const struct cluster *cluster, struct layout_nodes *nodes,
                                 bool by_counting, struct error *error)
{
    struct layout *layout = NULL;
    enum status status = layout_plan(&(struct layout_request){.job = cluster->job,
                                                              .nodes = nodes->items,
                                                              .node_count = nodes->count,
                                                              .by_counting = by_counting,
                                                              .wanted = nodes->wanted},
                                     &layout, error);
    CU_ASSERT_EQUAL(status == OK, layout != NULL);
    xfree(nodes->items);
    xfree(nodes->wanted);
    return layout;
}

static struct layout *plan_after(const struct cluster *cluster, const char *leaving,
                                 const char *spare)
{
    struct layout_nodes nodes = layout_nodes_after(
        cluster->job, &(struct layout_swap){.leaving = &leaving,
                                            .leaving_count = leaving != NULL,
                                            .spares = &spare,
                                            .spare_count = spare != NULL});
    return plan_nodes(cluster, &nodes, false, NULL);
}

static const char *node_of(const struct layout *layout, int rank)
{
    return layout->nodes[layout->ranks[rank].node];
}

TEST(nothing_moves_where_today_is_as_good_as_it_gets)
{
    struct cluster cluster;
    cluster_open(&cluster, 64, "{\"tp\":4,\"pp\":1,\"dp\":16,\"order\":\"tp-dp-pp\"}", 1, 18);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, NULL, NULL);
    CU_ASSERT_EQUAL(layout->moved, 0);
    CU_ASSERT(layout->is_by_counting && layout->is_in_order);
    CU_ASSERT_STRING_EQUAL(node_of(layout, 63), "a15");
    CU_ASSERT_EQUAL(layout->violations.length, 0);
    job_free(cluster.job);
}

TEST(a_spare_of_the_rack_takes_the_ranks_of_the_tray_that_leaves)
{
    struct cluster cluster;
    cluster_open(&cluster, 64, "{\"tp\":4,\"pp\":2,\"dp\":8,\"order\":\"tp-dp-pp\"}", 1, 18);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, "a3", "a17");
    for (int r = 12; r < 16; r++) {
        CU_ASSERT_STRING_EQUAL(node_of(layout, r), "a17");
        CU_ASSERT_EQUAL(layout->ranks[r].gpu, r - 12);
    }
    CU_ASSERT_STRING_EQUAL(node_of(layout, 16), "a4");
    CU_ASSERT_EQUAL(layout->moved, 0);
    job_free(cluster.job);
}

TEST(replicas_move_so_that_each_lies_in_one_rack)
{
    /* Stages 0 of all eight replicas fill rack a today, stages 1 rack b. */
    struct cluster cluster;
    cluster_open(&cluster, 64, "{\"tp\":4,\"pp\":2,\"dp\":8,\"order\":\"tp-dp-pp\"}", 2, 8);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, NULL, NULL);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_REPLICA], 0);
    CU_ASSERT(layout->is_by_counting);
    for (int r = 0; r < 64; r++) {
        int peer = (r + 32) % 64; /* the other stage of the same replica */
        CU_ASSERT_EQUAL(node_of(layout, r)[0], node_of(layout, peer)[0]);
    }
    CU_ASSERT_EQUAL(layout->moved, 32);
    job_free(cluster.job);
}

TEST(groups_that_counting_would_split_are_put_together)
{
    /* tp changes slowest: ranks 0 and 8 are a group, and so on. */
    struct cluster cluster;
    cluster_open(&cluster, 16, "{\"tp\":2,\"pp\":1,\"dp\":8,\"order\":\"dp-tp-pp\"}", 1, 4);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, NULL, NULL);
    for (int r = 0; r < 8; r++)
        CU_ASSERT_STRING_EQUAL(node_of(layout, r), node_of(layout, r + 8));
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_TENSOR], 0);
    CU_ASSERT_FALSE(layout->is_by_counting);
    CU_ASSERT(layout->is_in_order);
    job_free(cluster.job);
}

TEST(a_group_wider_than_a_tray_stays_in_one_domain)
{
    /* Three racks of three trays: a group of 8 needs two, so one tray of each rack stays empty. */
    struct cluster cluster;
    cluster_open(&cluster, 24, "{\"tp\":8,\"pp\":1,\"dp\":3,\"order\":\"tp-dp-pp\"}", 3, 3);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, cluster.pointers, 9);
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_TENSOR], 0);
    for (int g = 0; g < 3; g++)
        for (int i = 1; i < 8; i++)
            CU_ASSERT_EQUAL(node_of(layout, g * 8)[0], node_of(layout, g * 8 + i)[0]);
    job_free(cluster.job);
}

TEST(experts_that_are_shared_by_replicas_stay_in_one_domain)
{
    /* ep cuts eight replicas into two runs of four; each run has its own rack's worth of ranks. */
    struct cluster cluster;
    cluster_open(&cluster, 32, "{\"tp\":4,\"pp\":1,\"dp\":8,\"ep\":4,\"order\":\"tp-dp-pp\"}", 2,
                 5);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, cluster.pointers, 10);
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_EXPERT], 0);
    for (int r = 0; r < 16; r++)
        CU_ASSERT_EQUAL(node_of(layout, r)[0], node_of(layout, 0)[0]);
    for (int r = 16; r < 32; r++)
        CU_ASSERT_EQUAL(node_of(layout, r)[0], node_of(layout, 16)[0]);
    job_free(cluster.job);
}

TEST(what_does_not_fit_is_said_with_what_is_missing)
{
    struct cluster cluster;
    struct error error = {0};
    cluster_open(&cluster, 64, "{\"tp\":4,\"pp\":1,\"dp\":16,\"order\":\"tp-dp-pp\"}", 1, 18);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, cluster.pointers, 15);
    CU_ASSERT_PTR_NULL(plan_nodes(&cluster, &nodes, false, &error));
    CU_ASSERT_EQUAL(error.status, ERR_REFUSED);
    CU_ASSERT_STRING_EQUAL(error.message, "64 ranks need 64 GPUs, the 15 nodes have 60; GPUs "
                                          "missing: 4, trays of 4 missing: 1");
    job_free(cluster.job);
}

TEST(a_group_that_no_tray_can_hold_is_split_and_named)
{
    struct cluster cluster;
    cluster_open(&cluster, 8, "{\"tp\":4,\"pp\":1,\"dp\":2,\"order\":\"tp-dp-pp\"}", 1, 4);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, cluster.pointers, 3);
    nodes.items[1].gpus = 3; /* one of its GPUs is gone */
    nodes.items[2].gpus = 3;
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_TENSOR], 1);
    CU_ASSERT_STRING_EQUAL(
        layout->violations.bytes,
        "tensor group tp:1 (ranks 4, 5, 6, 7) is on 2 trays: 3 on a1, 1 on a2; GPUs missing in one "
        "tray: 1\n");
    job_free(cluster.job);
}

TEST(a_replica_in_two_racks_says_how_many_gpus_one_of_them_lacks)
{
    struct cluster cluster;
    cluster_open(&cluster, 16, "{\"tp\":4,\"pp\":2,\"dp\":2,\"order\":\"tp-pp-dp\"}", 2, 3);
    static const char *const names[] = {"a0", "a1", "a2", "b0"};
    struct layout_nodes nodes = layout_nodes_named(cluster.job, names, 4);
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_REPLICA], 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(layout->violations.bytes,
                                  "is on 2 NVLink domains: 4 on ra, 4 on rb; GPUs missing in one "
                                  "domain: 4"));
    job_free(cluster.job);
}

TEST(peers_that_do_not_meet_on_a_rail_are_told)
{
    /* Three ranks a replica on trays of four: their places drift from tray to tray. */
    struct cluster cluster;
    cluster_open(&cluster, 12, "{\"tp\":1,\"pp\":3,\"dp\":4,\"order\":\"pp-dp-tp\"}", 3, 1);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, NULL, NULL);
    CU_ASSERT(layout->broken[LAYOUT_RAILS] > 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(layout->violations.bytes, "do not meet on one rail"));
    job_free(cluster.job);
}

TEST(a_list_of_hosts_is_only_given_where_counting_is_right)
{
    struct cluster cluster;
    struct error error = {0};
    AUTO_TEXT out = {0};
    cluster_open(&cluster, 16, "{\"tp\":2,\"pp\":1,\"dp\":8,\"order\":\"dp-tp-pp\"}", 1, 4);
    AUTO(layout_free) struct layout *best = plan_after(&cluster, NULL, NULL);
    CU_ASSERT_EQUAL(layout_write(best, LAYOUT_HOSTFILE, &out, &error), ERR_REFUSED);
    CU_ASSERT_EQUAL(out.length, 0);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, cluster.pointers, 4);
    AUTO(layout_free) struct layout *counted = plan_nodes(&cluster, &nodes, true, NULL);
    CU_ASSERT_EQUAL(counted->broken[LAYOUT_TENSOR], 8);
    CU_ASSERT_EQUAL(layout_write(counted, LAYOUT_HOSTFILE, &out, &error), OK);
    CU_ASSERT_STRING_EQUAL(out.bytes, "a0 slots=4\na1 slots=4\na2 slots=4\na3 slots=4\n");
    struct layout_nodes short_nodes = layout_nodes_named(cluster.job, cluster.pointers, 4);
    short_nodes.items[2].gpus = 3;
    CU_ASSERT_PTR_NULL(plan_nodes(&cluster, &short_nodes, true, &error));
    job_free(cluster.job);
}

TEST(the_rail_of_a_gpu_is_what_the_job_says)
{
    struct cluster cluster;
    cluster_open(&cluster, 8, "{\"tp\":4,\"pp\":1,\"dp\":2,\"order\":\"tp-dp-pp\"}", 1, 3);
    for (int r = 0; r < 8; r++)
        cluster.job->ranks[r].rail = (int16_t)((r % 4) ^ 1);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, "a1", "a2");
    for (int r = 0; r < 8; r++)
        CU_ASSERT_EQUAL(layout->ranks[r].rail, (r % 4) ^ 1);
    job_free(cluster.job);
}

TEST(without_known_racks_only_trays_are_looked_after)
{
    AUTO(job_free) struct job *job = job_new("j", 8);
    job->size[DIMENSION_TP] = 4;
    job->size[DIMENSION_DP] = 1;
    job->size[DIMENSION_PP] = 2;
    static const char *const names[] = {"n1", "n2"};
    struct layout_nodes nodes = layout_nodes_named(job, names, 2);
    const struct cluster cluster = {.job = job};
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    CU_ASSERT(layout->domains_unknown);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_REPLICA], 0);
    CU_ASSERT_EQUAL(layout->broken[LAYOUT_TENSOR], 0);
}

TEST(a_node_that_is_named_twice_or_breaks_a_list_is_refused)
{
    struct cluster cluster;
    struct error error = {0};
    static const char *const names[] = {"a0", "a1", "a0"};
    cluster_open(&cluster, 8, "{\"tp\":4,\"pp\":1,\"dp\":2,\"order\":\"tp-dp-pp\"}", 1, 2);
    struct layout_nodes nodes = layout_nodes_named(cluster.job, names, 3);
    CU_ASSERT_PTR_NULL(plan_nodes(&cluster, &nodes, false, &error));
    CU_ASSERT_STRING_EQUAL(error.message, "node 'a0' is named twice");
    static const char *const odd[] = {"a0", "a1 slots=99\nevil"};
    struct layout_nodes odd_nodes = layout_nodes_named(cluster.job, odd, 2);
    CU_ASSERT_PTR_NULL(plan_nodes(&cluster, &odd_nodes, false, &error));
    CU_ASSERT_EQUAL(error.status, ERR_INVALID);
    job_free(cluster.job);
}

TEST(json_comes_back_as_the_same_layout)
{
    struct cluster cluster;
    cluster_open(&cluster, 16, "{\"tp\":4,\"pp\":2,\"dp\":2,\"order\":\"tp-pp-dp\"}", 2, 3);
    static const char *const names[] = {"a0", "a1", "a2", "b0"};
    struct layout_nodes nodes = layout_nodes_named(cluster.job, names, 4);
    AUTO(layout_free) struct layout *layout = plan_nodes(&cluster, &nodes, false, NULL);
    AUTO(layout_free) struct layout *again = NULL;
    AUTO(json_free) struct json *root = NULL;
    AUTO_TEXT first = {0};
    AUTO_TEXT second = {0};
    CU_ASSERT_EQUAL(layout_write(layout, LAYOUT_JSON, &first, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(first.bytes), &root, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(layout_read(root, &again, NULL), OK);
    CU_ASSERT_EQUAL(layout_write(again, LAYOUT_JSON, &second, NULL), OK);
    CU_ASSERT_STRING_EQUAL(first.bytes, second.bytes);
    job_free(cluster.job);
}

TEST(what_is_no_layout_is_not_read_as_one)
{
    static const char *const documents[] = {"{}", "[]",
                                            "{\"gpus_per_node\":4,\"ranks\":[{\"rank\":1}]}",
                                            "{\"gpus_per_node\":4,\"nodes\":[{\"node\":\"a\"}],"
                                            "\"ranks\":[{\"rank\":0,\"node\":\"b\",\"gpu\":0}]}",
                                            "{\"gpus_per_node\":4,\"nodes\":[{\"node\":\"a\"}],"
                                            "\"ranks\":[{\"rank\":0,\"node\":\"a\",\"gpu\":900}]"
                                            "}"};
    for (size_t i = 0; i < ARRAY_LEN(documents); i++) {
        AUTO(json_free) struct json *root = NULL;
        AUTO(layout_free) struct layout *layout = NULL;
        struct error error = {0};
        CU_ASSERT_EQUAL_FATAL(json_parse(view_of(documents[i]), &root, NULL), OK);
        CU_ASSERT_EQUAL(layout_read(root, &layout, &error), ERR_INVALID);
    }
}

TEST(forms_are_what_their_readers_take)
{
    struct cluster cluster;
    cluster_open(&cluster, 8, "{\"tp\":4,\"pp\":1,\"dp\":2,\"order\":\"tp-dp-pp\"}", 1, 3);
    AUTO(layout_free) struct layout *layout = plan_after(&cluster, "a0", "a2");
    AUTO_TEXT rankfile = {0}, slurm = {0}, nccl = {0};
    CU_ASSERT_EQUAL(layout_write(layout, LAYOUT_RANKFILE, &rankfile, NULL), OK);
    CU_ASSERT_STRING_EQUAL(rankfile.bytes, "rank 0=a2 slot=0:0-35\n"
                                           "rank 1=a2 slot=0:36-71\n"
                                           "rank 2=a2 slot=1:0-35\n"
                                           "rank 3=a2 slot=1:36-71\n"
                                           "rank 4=a1 slot=0:0-35\n"
                                           "rank 5=a1 slot=0:36-71\n"
                                           "rank 6=a1 slot=1:0-35\n"
                                           "rank 7=a1 slot=1:36-71\n");
    CU_ASSERT_EQUAL(layout_write(layout, LAYOUT_SLURM, &slurm, NULL), OK);
    CU_ASSERT_STRING_EQUAL(slurm.bytes, "a2\na2\na2\na2\na1\na1\na1\na1\n");
    CU_ASSERT_EQUAL(layout_write(layout, LAYOUT_NCCL, &nccl, NULL), OK);
    CU_ASSERT_PTR_NULL(strstr(nccl.bytes, "<?xml"));
    CU_ASSERT_PTR_NULL(strchr(nccl.bytes, '\t'));
    layout->gpus_per_node = 8;
    CU_ASSERT_EQUAL(layout_write(layout, LAYOUT_NCCL, &nccl, NULL), ERR_REFUSED);
    job_free(cluster.job);
}

TESTS(T(nothing_moves_where_today_is_as_good_as_it_gets),
      T(a_spare_of_the_rack_takes_the_ranks_of_the_tray_that_leaves),
      T(replicas_move_so_that_each_lies_in_one_rack),
      T(groups_that_counting_would_split_are_put_together),
      T(a_group_wider_than_a_tray_stays_in_one_domain),
      T(experts_that_are_shared_by_replicas_stay_in_one_domain),
      T(what_does_not_fit_is_said_with_what_is_missing),
      T(a_group_that_no_tray_can_hold_is_split_and_named),
      T(a_replica_in_two_racks_says_how_many_gpus_one_of_them_lacks),
      T(peers_that_do_not_meet_on_a_rail_are_told),
      T(a_list_of_hosts_is_only_given_where_counting_is_right),
      T(the_rail_of_a_gpu_is_what_the_job_says), T(without_known_racks_only_trays_are_looked_after),
      T(a_node_that_is_named_twice_or_breaks_a_list_is_refused),
      T(json_comes_back_as_the_same_layout), T(what_is_no_layout_is_not_read_as_one),
      T(forms_are_what_their_readers_take))
