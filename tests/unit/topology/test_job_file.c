#include "controller/topology/job_file.h"
#include "tests/harness/test.h"

#include <string.h>

#define RACKS                                                                                      \
    "\"topology\":{\"racks\":[{\"rack\":\"r1\",\"nvlink_domain\":\"r1.0\",\"trays\":[\"n1\","      \
    "\"n2\"]}]}"

static enum status parse(const char *text, struct job **ret, struct error *error)
{
    return job_file_parse(view_of(text), ret, error);
}

TEST(a_document_comes_back_with_the_same_meaning)
{
    AUTO(job_free) struct job *job = NULL;
    AUTO(job_free) struct job *again = NULL;
    AUTO_TEXT text = {0};
    AUTO_TEXT text_again = {0};
    struct json_writer writer = json_writer(&text);
    CU_ASSERT_EQUAL_FATAL(
        parse("{\"job\":\"default/"
              "x\",\"world_size\":4,\"workload\":{\"kind\":\"volcano\",\"uid\":\"u\"},"
              "\"checkpoint\":{\"step\":1200,\"time\":\"2026-05-28T20:29:02Z\"},"
              "\"parallel\":{\"tp\":2,\"pp\":1,\"dp\":2,\"order\":\"tp-dp-pp\"},\"compute_ms\":"
              "\"inclusive\"," RACKS
              ",\"ranks\":[{\"rank\":3,\"node\":\"n2\",\"gpu\":1,\"rail\":0}],\"unknown\":1}",
              &job, NULL),
        OK);
    CU_ASSERT_EQUAL(job->compute, COMPUTE_INCLUSIVE);
    CU_ASSERT_EQUAL(job->checkpoint_step, 1200);
    CU_ASSERT_EQUAL(job->ranks[3].gpu, 1);
    CU_ASSERT_EQUAL(job->ranks[0].tray, JOB_NONE);
    job_file_write(job, &writer);
    CU_ASSERT_EQUAL_FATAL(parse(text.bytes, &again, NULL), OK);
    writer = json_writer(&text_again);
    job_file_write(again, &writer);
    CU_ASSERT_STRING_EQUAL(text.bytes, text_again.bytes);
}

TEST(every_mistake_is_told_with_its_place)
{
    static const struct {
        const char *document, *place;
    } rows[] = {
        {"[]", "object"},
        {"{\"world_size\":4}", "job"},
        {"{\"job\":\"j\",\"world_size\":0}", "world_size"},
        {"{\"job\":\"j\",\"world_size\":2.5}", "world_size"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"tp\":3}}", "world_size=4"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"tp\":2,\"dp\":3}}", "tp*cp*dp*pp=6"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"tp\":2,\"dp\":2,\"order\":\"dp\"}}",
         "order"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"dp\":4,\"order\":\"dp-dp\"}}", "order"},
        {"{\"job\":\"j\",\"world_size\":4,\"compute_ms\":\"maybe\"}", "compute_ms"},
        {"{\"job\":\"j\",\"world_size\":4," RACKS ",\"ranks\":[{\"rank\":4,\"node\":\"n1\"}]}",
         "ranks[0].rank"},
        {"{\"job\":\"j\",\"world_size\":4," RACKS
         ",\"ranks\":[{\"rank\":0,\"node\":\"n1\"},{\"rank\":0,\"node\":\"n1\"}]}",
         "ranks[1].rank: 0 stands twice"},
        {"{\"job\":\"j\",\"world_size\":4," RACKS ",\"ranks\":[{\"rank\":0,\"node\":\"n9\"}]}",
         "'n9' is in no rack"},
        {"{\"job\":\"j\",\"world_size\":4,\"topology\":{\"racks\":[{\"rack\":\"a\",\"trays\":["
         "\"n\"]},{\"rack\":\"b\",\"trays\":[\"n\"]}]}}",
         "already"},
        {"{\"job\":\"j\",\"world_size\":4,\"checkpoint\":{\"step\":1,\"time\":\"yesterday\"}}",
         "checkpoint.time"},
        {"{\"job\":\"j\",\"world_size\":4,\"workload\":{}}", "workload.kind"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"tp\":131072,\"cp\":131072,\"pp\":131072,"
         "\"dp\":131072}}",
         "over world_size=4"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"tp\":\"4\"}}", "parallel.tp"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"pp\":1.5}}", "parallel.pp"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"dp\":0}}", "parallel.dp"},
        {"{\"job\":\"j\",\"world_size\":4,\"parallel\":{\"order\":7}}", "parallel.order"},
        {"{\"job\":\"j\",\"world_size\":4,\"compute_ms\":true}", "compute_ms"},
        {"{\"job\":\"j\",\"world_size\":4,\"topology\":[]}", "topology"},
        {"{\"job\":\"j\",\"world_size\":4,\"topology\":{\"racks\":{}}}", "topology.racks"},
        {"{\"job\":\"j\",\"world_size\":4,\"topology\":{\"racks\":[{\"rack\":\"a\",\"trays\":"
         "\"n1\"}]}}",
         "topology.racks[0].trays"},
        {"{\"job\":\"j\",\"world_size\":4,\"topology\":{\"racks\":[{\"rack\":\"a\"},{\"rack\":"
         "\"a\"}]}}",
         "topology.racks[1].rack"},
        {"{\"job\":\"j\",\"world_size\":4,\"ranks\":{\"0\":\"n1\"}}", "ranks: must be an array"},
        {"{\"job\":\"j\",\"world_size\":4,\"ranks\":[{\"node\":\"n1\"}]}", "ranks[0].rank"},
        {"{\"job\":\"j\",\"world_size\":4,\"ranks\":[{\"rank\":\"0\",\"node\":\"n1\"}]}",
         "ranks[0].rank"},
        {"{\"job\":\"j\",\"world_size\":4,\"ranks\":[{\"rank\":0,\"node\":\"n1\",\"gpu\":\"0\"}]}",
         "ranks[0].gpu"},
        {"{\"job\":\"j\",\"world_size\":4,\"ranks\":[{\"rank\":0,\"node\":\"n1\",\"rail\":-7}]}",
         "ranks[0].rail"},
        {"{\"job\":\"j\",\"world_size\":4,\"checkpoint\":{\"step\":\"7\"}}", "checkpoint.step"},
        {"{\"job\":\"j\",\"world_size\":4,\"checkpoint\":1200}", "checkpoint: must be an object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct job *job = NULL;
        struct error error = {0};
        CU_ASSERT_EQUAL(parse(rows[i].document, &job, &error), ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, rows[i].place));
    }
}

TEST(nodes_without_any_rack_are_taken_where_no_rack_is_named)
{
    AUTO(job_free) struct job *job = NULL;
    CU_ASSERT_EQUAL_FATAL(
        parse("{\"job\":\"j\",\"world_size\":2,\"ranks\":[{\"rank\":0,\"node\":\"n9\"}]}", &job,
              NULL),
        OK);
    CU_ASSERT_EQUAL(job->trays[job->ranks[0].tray].rack, JOB_NONE);
}

TEST(experts_may_cut_the_replicas_or_multiply_the_world)
{
    AUTO(job_free) struct job *inside = NULL;
    AUTO(job_free) struct job *own = NULL;
    CU_ASSERT_EQUAL(
        parse("{\"job\":\"j\",\"world_size\":16,\"parallel\":{\"tp\":2,\"ep\":4,\"dp\":8}}",
              &inside, NULL),
        OK);
    CU_ASSERT_EQUAL(
        parse("{\"job\":\"j\",\"world_size\":16,\"parallel\":{\"tp\":2,\"ep\":4,\"dp\":2}}", &own,
              NULL),
        OK);
}

TEST(a_workload_that_could_not_be_read_again_is_refused)
{
    AUTO_TEXT text = {0};
    struct job *job = NULL;
    struct error error;
    text_add(&text, "{\"job\":\"x\",\"world_size\":1,\"workload\":{\"kind\":\"k\",\"more\":");
    for (int i = 0; i < 80; i++)
        text_add(&text, i < 40 ? "[" : "]");
    text_add(&text, "}}");
    CU_ASSERT_EQUAL(parse(text.bytes, &job, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "nested deeper"));
    text_clear(&text);
    text_add(&text, "{\"job\":\"x\",\"world_size\":1,\"workload\":{\"kind\":\"k\",\"more\":\"");
    for (int i = 0; i < 70000; i++)
        text_add(&text, "x");
    text_add(&text, "\"}}");
    CU_ASSERT_EQUAL(parse(text.bytes, &job, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "65536"));
}

TEST(sizes_whose_product_is_beyond_all_numbers_are_refused)
{
    struct job *job = NULL;
    struct error error;
    CU_ASSERT_EQUAL(
        parse("{\"job\":\"x\",\"world_size\":8,\"parallel\":{\"tp\":131072,\"cp\":131072,"
              "\"pp\":131072,\"dp\":131072,\"ep\":131072}}",
              &job, &error),
        ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "parallel"));
}

TESTS(T(a_document_comes_back_with_the_same_meaning), T(every_mistake_is_told_with_its_place),
      T(nodes_without_any_rack_are_taken_where_no_rack_is_named),
      T(experts_may_cut_the_replicas_or_multiply_the_world),
      T(a_workload_that_could_not_be_read_again_is_refused),
      T(sizes_whose_product_is_beyond_all_numbers_are_refused))
