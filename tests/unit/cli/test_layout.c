/* `broom layout` and `broom topology`, word for word. */
#include "tests/unit/cli/fake.h"

#define JOB_FILE "tests/golden/cli/layout_job.json"

/* One tray of eight ranks: tensor groups of two lie apart, whatever one does with one GPU missing.
 */
static const char split_layout[] =
    "{\"job\":\"j\",\"world_size\":2,\"gpus_per_node\":1,\"by_counting\":true,\"in_order\":false,"
    "\"domains_known\":false,\"moved\":1,\"broken\":{\"tensor_groups\":1,\"expert_sets\":0,"
    "\"replicas\":0,\"rails\":0},\"violations\":[\"tensor group tp:0 (ranks 0, 1) is on 2 trays: 1 "
    "on a, 1 on b\\u001b[2J\"],\"nodes\":[{\"node\":\"a\",\"nvlink_domain\":null},{\"node\":\"b\","
    "\"nvlink_domain\":null}],\"ranks\":[{\"rank\":0,\"node\":\"a\",\"gpu\":0,\"rail\":0},{"
    "\"rank\":"
    "1,\"node\":\"b\",\"gpu\":0,\"rail\":0}]}";

static const struct fake_answer answers[] = {
    {"/api/v1/jobs/default%2Fllm-17/layout", 200, "layout.json", NULL},
    {"/api/v1/jobs/default%2Fllm-17/layout?nodes=a%2Cb&incident=INC-3&by_counting=1", 200, NULL,
     split_layout},
    {"/api/v1/jobs/full/layout", 422, NULL, "{\"error\":\"64 ranks need 64 GPUs\"}"},
    {"/api/v1/jobs/odd/layout", 200, NULL, "{\"jobs\":[]}"},
    {"/api/v1/topology", 200, "topology.json", NULL},
};

static struct fake fake_new(void)
{
    return (struct fake){.answers = answers, .count = ARRAY_LEN(answers)};
}

TEST(a_layout_is_a_table_of_nodes_and_what_it_costs_stands_beside_it)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "layout --job " JOB_FILE, 0, "layout_table.txt");
    CU_ASSERT_EQUAL(fake.requests, 0);
}

TEST(each_form_is_printed_as_its_reader_takes_it)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "layout --job " JOB_FILE " -f hostfile", 0, "layout_hostfile.txt");
    assert_run_golden(&fake, "layout --job " JOB_FILE " -f rankfile", 0, "layout_rankfile.txt");
    assert_run_golden(&fake, "layout --job " JOB_FILE " -f slurm", 0, "layout_slurm.txt");
    assert_run_golden(&fake, "layout --job " JOB_FILE " -f nccl-topology", 0, "layout_nccl.txt");
    assert_run_golden(&fake, "layout --job " JOB_FILE " -f json", 0, "layout_json.txt");
}

TEST(other_nodes_may_be_named_and_too_few_are_refused)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "layout --job " JOB_FILE " --nodes gb-1,gb-2,gb-3,gb-4", 0,
                      "layout_nodes.txt");
    assert_run_golden(&fake, "layout --job " JOB_FILE " --nodes gb-1,gb-2,gb-5", 7,
                      "layout_few.txt");
}

TEST(broomd_is_asked_with_every_wish)
{
    struct fake fake = fake_new();
    struct run whole = fake_run(&fake, "layout default/llm-17 --format hostfile");
    CU_ASSERT_EQUAL(whole.code, 0);
    CU_ASSERT_STRING_EQUAL(whole.out, "gb-1 slots=4\ngb-5 slots=4\ngb-2 slots=4\ngb-6 slots=4\n");
    run_done(&whole);
    struct run json = fake_run(&fake, "layout default/llm-17 -o json");
    CU_ASSERT_PTR_NOT_NULL(strstr(json.out, "{\"rank\":15,"));
    run_done(&json);
    assert_run_golden(&fake, "layout default/llm-17 --nodes a,b --incident INC-3 --by-counting", 3,
                      "layout_split.txt");
}

TEST(what_broomd_refuses_or_does_not_know_is_said)
{
    struct fake fake = fake_new();
    struct run full = fake_run(&fake, "layout full");
    struct run odd = fake_run(&fake, "layout odd");
    struct run neither = fake_run(&fake, "layout");
    struct run both = fake_run(&fake, "layout default/llm-17 --job " JOB_FILE);
    struct run file = fake_run(&fake, "layout --job no-such-file.json");
    struct run form = fake_run(&fake, "layout full -f poem");
    CU_ASSERT_EQUAL(full.code, 7);
    CU_ASSERT_PTR_NOT_NULL(strstr(full.err, "64 ranks need 64 GPUs"));
    CU_ASSERT_EQUAL(odd.code, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(odd.err, "is not a layout"));
    CU_ASSERT_EQUAL(neither.code, 2);
    CU_ASSERT_EQUAL(both.code, 2);
    CU_ASSERT_EQUAL(file.code, 4);
    CU_ASSERT_EQUAL(form.code, 2);
    run_done(&full);
    run_done(&odd);
    run_done(&neither);
    run_done(&both);
    run_done(&file);
    run_done(&form);
}

TEST(topology_lists_racks_nodes_and_what_each_source_says)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "topology", 3, "topology.txt");
    assert_run_golden(&fake, "topology --nodes -o wide", 3, "topology_nodes.txt");
    assert_run_golden(&fake, "topology gb-1", 0, "topology_node.txt");
    struct run unknown = fake_run(&fake, "topology gb-9");
    CU_ASSERT_EQUAL(unknown.code, 4);
    run_done(&unknown);
}

TESTS(T(a_layout_is_a_table_of_nodes_and_what_it_costs_stands_beside_it),
      T(each_form_is_printed_as_its_reader_takes_it),
      T(other_nodes_may_be_named_and_too_few_are_refused), T(broomd_is_asked_with_every_wish),
      T(what_broomd_refuses_or_does_not_know_is_said),
      T(topology_lists_racks_nodes_and_what_each_source_says))
