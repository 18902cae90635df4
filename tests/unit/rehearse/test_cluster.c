#include "controller/rehearse/cluster_state.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

#define START_NS INT64_C(1780000000000000000)
#define SECOND   INT64_C(1000000000)

struct counts {
    int64_t hellos, steps, not_ready, ready;
    int64_t first_step_after_hello;
};

static void count(void *context, const struct sample *sample)
{
    struct counts *counts = context;
    if (sample->measurement == MEASUREMENT_HELLO) {
        counts->hellos++;
        counts->first_step_after_hello = -1;
    }
    if (sample->measurement == MEASUREMENT_STEP) {
        counts->steps++;
        if (counts->first_step_after_hello < 0)
            counts->first_step_after_hello = (int64_t)sample->values[FIELD_STEP];
    }
    counts->not_ready += view_equals(sample->kind, "node_not_ready");
    counts->ready += view_equals(sample->kind, "node_ready");
}

static struct cluster *small_cluster(void)
{
    struct cluster_config config = cluster_config_default();
    config.model.seed = test_seed();
    config.model.racks = 1;
    config.model.trays_used = 4;
    config.model.checkpoint_steps = 10;
    return cluster_new(&config);
}

static struct cluster_operation operate(struct cluster *cluster, const char *id, const char *body)
{
    AUTO(json_free) struct json *root = NULL;
    const struct cluster_operation *operation = NULL;
    struct error error = {0};
    CU_ASSERT_FATAL(json_parse(view_of(body), &root, &error) == OK);
    CU_ASSERT_FATAL(cluster_operate(cluster, id, root, 0, &operation, &error) == OK);
    return *operation;
}

static int64_t count_text(struct view text, const char *word)
{
    int64_t found = 0;
    for (const char *at = text.bytes; at != NULL && (at = strstr(at, word)) != NULL; at++)
        found++;
    return found;
}

static const char *name(struct cluster *cluster, int32_t tray)
{
    return model_tray_name(cluster_model(cluster), tray);
}

static void put_node(struct cluster *cluster, const char *id, const char *verb, int32_t tray,
                     struct cluster_operation *ret_operation)
{
    char body[256];
    const char *list = strcmp(verb, "promise_spare") == 0 ? "spares" : "nodes";
    snprintf(body, sizeof body,
             "{\"verb\":\"%s\",\"incident\":\"INC-1\",\"job\":\"default/llm\",\"%s\":[\"%s\"]}",
             verb, list, name(cluster, tray));
    *ret_operation = operate(cluster, id, body);
}

static struct cluster_operation restart_onto(struct cluster *cluster, const char *id, int32_t from,
                                             int32_t to)
{
    char body[256];
    snprintf(body, sizeof body,
             "{\"verb\":\"restart_job\",\"incident\":\"INC-1\",\"job\":\"default/"
             "llm\",\"nodes\":[\"%s\"],"
             "\"spares\":[\"%s\"]}",
             name(cluster, from), name(cluster, to));
    return operate(cluster, id, body);
}

TEST(a_dead_node_is_marked_after_its_grace_and_the_job_resumes_on_the_spare)
{
    struct counts counts = {0};
    struct cluster_operation operation;
    AUTO(cluster_free) struct cluster *cluster = small_cluster();
    struct model *model = cluster_model(cluster);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_TRAY_DEATH, .tray = 1, .from_step = 25});
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 110 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(model_info(model).phase, MODEL_STUCK);
    CU_ASSERT_EQUAL(counts.not_ready, 0);
    cluster_advance(cluster, START_NS + 160 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(counts.not_ready, 1);
    put_node(cluster, "INC-1/0/2/1", "cordon", 1, &operation);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_SUCCEEDED);
    put_node(cluster, "INC-1/0/3/1", "promise_spare", 4, &operation);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_SUCCEEDED);
    operation = restart_onto(cluster, "INC-1/0/4/1", 1, 4);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_SUCCEEDED);
    cluster_advance(cluster, START_NS + 400 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(counts.hellos, 32);
    CU_ASSERT_EQUAL(counts.first_step_after_hello, 20);
    CU_ASSERT(model_info(model).last_step > 40);
    CU_ASSERT_EQUAL(count_text(cluster_log(cluster), "\"what\":\"job_started\""), 2);
}

TEST(an_operation_asked_for_twice_is_done_once_and_both_stand_in_the_log)
{
    struct counts counts = {0};
    AUTO(cluster_free) struct cluster *cluster = small_cluster();
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 60 * SECOND, count, &counts);
    const char *body = "{\"verb\":\"restart_job\",\"incident\":\"INC-1\",\"job\":\"default/llm\"}";
    operate(cluster, "INC-1/0/4/1", body);
    struct cluster_operation again = operate(cluster, "INC-1/0/4/1", body);
    CU_ASSERT_EQUAL(again.asked, 2);
    CU_ASSERT_EQUAL(count_text(cluster_log(cluster), "\"what\":\"job_stopped\""), 1);
    CU_ASSERT_EQUAL(count_text(cluster_log(cluster), "\"repeated\":true"), 1);
    struct cluster_operation other = operate(cluster, "INC-1/0/4/2", body);
    CU_ASSERT_EQUAL(other.outcome, OUTCOME_TRANSIENT);
}

TEST(a_node_that_is_not_free_is_refused_as_a_spare)
{
    struct counts counts = {0};
    struct cluster_operation operation;
    AUTO(cluster_free) struct cluster *cluster = small_cluster();
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 60 * SECOND, count, &counts);
    put_node(cluster, "INC-1/0/1/1", "promise_spare", 0, &operation);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_REFUSED);
    put_node(cluster, "INC-1/0/2/1", "cordon", 5, &operation);
    put_node(cluster, "INC-1/0/3/1", "promise_spare", 5, &operation);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_REFUSED);
    operation = operate(
        cluster, "INC-1/0/5/1",
        "{\"verb\":\"promise_spare\",\"job\":\"default/llm\",\"spares\":[\"no-such\"]}");
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_REFUSED);
}

TEST(a_checkpoint_is_running_until_it_is_saved_and_refused_when_nothing_moves)
{
    struct counts counts = {0};
    AUTO(cluster_free) struct cluster *cluster = small_cluster();
    model_add_fault(
        cluster_model(cluster),
        &(struct model_fault){.kind = FAULT_HANG, .tray = 1, .gpu = 2, .from_step = 60});
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 75 * SECOND, count, &counts);
    const char *body =
        "{\"verb\":\"request_checkpoint\",\"incident\":\"INC-1\",\"job\":\"default/llm\"}";
    struct cluster_operation operation = operate(cluster, "INC-1/0/2/1", body);
    CU_ASSERT(operation.running);
    int64_t before = model_info(cluster_model(cluster)).checkpoint_step;
    cluster_advance(cluster, START_NS + 100 * SECOND, count, &counts);
    CU_ASSERT_FALSE(cluster_find_operation(cluster, "INC-1/0/2/1")->running);
    CU_ASSERT(model_info(cluster_model(cluster)).checkpoint_step > before);
    cluster_advance(cluster, START_NS + 400 * SECOND, count, &counts);
    operation = operate(cluster, "INC-1/0/2/2", body);
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_REFUSED);
}

TEST(a_swallowed_restart_is_accepted_and_changes_nothing)
{
    struct counts counts = {0};
    struct cluster_config config = cluster_config_default();
    config.swallow_restart = true;
    AUTO(cluster_free) struct cluster *cluster = cluster_new(&config);
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 60 * SECOND, count, &counts);
    struct cluster_operation operation = operate(
        cluster, "INC-1/0/4/1",
        "{\"verb\":\"restart_job\",\"incident\":\"INC-1\",\"job\":\"default/llm\"}");
    CU_ASSERT_EQUAL(operation.outcome, OUTCOME_SUCCEEDED);
    cluster_advance(cluster, START_NS + 300 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(counts.hellos, 128);
    CU_ASSERT_EQUAL(count_text(cluster_log(cluster), "\"what\":\"job_started\""), 1);
}

TEST(restarts_beyond_the_jobs_own_budget_are_refused)
{
    struct counts counts = {0};
    struct cluster_config config = cluster_config_default();
    config.restarts_max = 1;
    AUTO(cluster_free) struct cluster *cluster = cluster_new(&config);
    const char *body = "{\"verb\":\"restart_job\",\"incident\":\"INC-1\",\"job\":\"default/llm\"}";
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 60 * SECOND, count, &counts);
    operate(cluster, "a", body);
    cluster_advance(cluster, START_NS + 300 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(operate(cluster, "b", body).outcome, OUTCOME_REFUSED);
}

TEST(a_hidden_tray_joins_as_a_spare_and_a_blip_passes)
{
    struct counts counts = {0};
    struct cluster_config config = cluster_config_default();
    config.model.trays_spare = 1;
    config.hidden[0] = 16;
    config.hidden_count = 1;
    config.happenings[0] = (struct cluster_happening){
        .kind = NODE_APPEARS, .tray = 16, .after_ns = 100 * SECOND};
    config.happenings[1] = (struct cluster_happening){
        .kind = NODE_BLIPS, .tray = 3, .after_ns = 50 * SECOND, .for_ns = 90 * SECOND};
    config.happening_count = 2;
    AUTO(cluster_free) struct cluster *cluster = cluster_new(&config);
    AUTO_TEXT before = {0};
    AUTO_TEXT after = {0};
    cluster_start(cluster, START_NS);
    cluster_advance(cluster, START_NS + 60 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(counts.not_ready, 1);
    struct json_writer writer = json_writer(&before);
    cluster_write_world(cluster, &writer);
    cluster_advance(cluster, START_NS + 200 * SECOND, count, &counts);
    CU_ASSERT_EQUAL(counts.ready, 1);
    writer = json_writer(&after);
    cluster_write_world(cluster, &writer);
    char quoted[64];
    snprintf(quoted, sizeof quoted, "{\"name\":\"%s\"", name(cluster, 16));
    CU_ASSERT_PTR_NULL(strstr(before.bytes, quoted));
    CU_ASSERT_PTR_NOT_NULL(strstr(after.bytes, quoted));
}

TESTS(T(a_dead_node_is_marked_after_its_grace_and_the_job_resumes_on_the_spare),
      T(an_operation_asked_for_twice_is_done_once_and_both_stand_in_the_log),
      T(a_node_that_is_not_free_is_refused_as_a_spare),
      T(a_checkpoint_is_running_until_it_is_saved_and_refused_when_nothing_moves),
      T(a_swallowed_restart_is_accepted_and_changes_nothing),
      T(restarts_beyond_the_jobs_own_budget_are_refused),
      T(a_hidden_tray_joins_as_a_spare_and_a_blip_passes))
