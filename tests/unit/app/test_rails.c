/* What is said of a node's rails, from samples and verdicts as they come. */
#include "controller/pipeline.h"
#include "controller/rails.h"
#include "tests/harness/test.h"

#define SECOND   INT64_C(1000000000)
#define START_NS (INT64_C(1800000000) * SECOND)

enum { RANKS = 24 };

struct bench {
    struct pipeline *pipeline;
    struct rails *rails;
    struct inventory *inventory; /* NULL: what the job says of itself is all */
    int64_t now_ns;
    int step;
};

static void submit(void *self, struct view records, bool spoolable, pipeline_durable_fn *done,
                   void *context)
{
    (void)self;
    (void)records;
    (void)spoolable;
    done(context, OK, NULL);
}

static struct remediation *make_core(void)
{
    struct remediation_params params = {
        .daemon_mode = MODE_ENFORCE, .actuator = "fake", .next_number = 1};
    return remediation_new(&params);
}

/* Six trays of four ranks in two racks. A replica is four ranks of one tray; with tensor groups of
 * 12 ranks each data group has a rank in both racks, with dp the slow dimension, or stays inside.
 */
static struct job *make_job(bool crosses)
{
    struct job *job = job_new("team/a", RANKS);
    for (int32_t r = 0; r < RANKS; r++) {
        char node[16], rack[16];
        (void)snprintf(node, sizeof node, "n%d", (int)(r / 4));
        (void)snprintf(rack, sizeof rack, "rk-%d", (int)(r / 12));
        job->ranks[r] = (struct job_rank){
            .tray = job_intern_tray(job, node, job_intern_rack(job, rack, rack)),
            .gpu = (int16_t)(r % 4),
            .rail = (int16_t)(r % 4)};
    }
    job_intern_tray(job, "spare", job_intern_rack(job, "rk-1", "rk-1"));
    job->size[DIMENSION_DP] = 2;
    job->size[crosses ? DIMENSION_TP : DIMENSION_PP] = 12;
    if (!crosses) {
        job->order[0] = DIMENSION_DP;
        job->order[1] = DIMENSION_TP;
        job->order[2] = DIMENSION_CP;
        job->order[3] = DIMENSION_EP;
        job->order[4] = DIMENSION_PP;
    }
    return job;
}

static void open_bench(struct bench *bench, bool crosses)
{
    struct pipeline_params params = {.limits = {.memory_bytes = 64 << 20,
                                                .series_bytes_per_job = 8 << 20,
                                                .jobs = 2,
                                                .ranks = 64},
                                     .detection = engine_params_default()};
    AUTO(job_free) struct job *job = make_job(crosses);
    struct pipeline_ports ports = {.self = bench, .submit = submit};
    bool created;
    *bench = (struct bench){.now_ns = START_NS};
    bench->pipeline = pipeline_new(&params, &ports, make_core());
    CU_ASSERT_EQUAL_FATAL(pipeline_put_job(bench->pipeline, job, bench->now_ns, &created, NULL),
                          OK);
}

static void close_bench(struct bench *bench)
{
    rails_free(bench->rails);
    inventory_free(bench->inventory);
    pipeline_free(bench->pipeline);
}

static void write_lines(struct bench *bench, const char *lines)
{
    struct pipeline_write write = {
        .body = view_of(lines), .default_time_ns = bench->now_ns, .source = "monitor"};
    struct pipeline_written written = pipeline_write(bench->pipeline, &write, bench->now_ns);
    CU_ASSERT_EQUAL(written.accepted, written.lines);
}

static void step_on(struct bench *bench, int steps)
{
    for (int i = 0; i < steps; i++) {
        AUTO_TEXT lines = {0};
        bench->now_ns += SECOND;
        bench->step++;
        for (int rank = 0; rank < RANKS; rank++)
            text_addf(&lines, "step,job=team/a,rank=%d step=%di,step_ms=1000,allreduce_ms=50\n",
                      rank, bench->step);
        write_lines(bench, lines.bytes);
        pipeline_tick(bench->pipeline, bench->now_ns);
    }
}

static enum rail_state ask(struct bench *bench, const char *node)
{
    rails_free(bench->rails);
    bench->rails = rails_read(pipeline_core(bench->pipeline), pipeline_jobs(bench->pipeline),
                              bench->inventory, bench->now_ns);
    return rails_of(bench->rails, node);
}

static const struct incident *accuse(struct bench *bench, enum verdict_kind kind, enum scope scope,
                                     const char *id, enum cause cause, const char *node)
{
    const struct job *job = engine_job(
        jobs_find(pipeline_jobs(bench->pipeline), view_of("team/a"))->engine);
    struct verdict verdict = {.kind = kind,
                              .scope = scope,
                              .cause = cause,
                              .step = bench->step,
                              .since_step = bench->step,
                              .time_ns = bench->now_ns,
                              .slowdown = 1.3,
                              .confidence = 0.999};
    struct remediation *core = pipeline_core(bench->pipeline);
    text_copy(verdict.id, sizeof verdict.id, id);
    if (node != NULL)
        verdict_add_node(&verdict, node);
    remediation_verdict(core, job, &verdict, "detector", bench->now_ns);
    verdict_done(&verdict);
    CU_ASSERT_FATAL(remediation_incident_count(core) > 0);
    return remediation_incident_at(core, remediation_incident_count(core) - 1);
}

TEST(what_carries_the_all_reduce_of_a_job_between_domains_is_ready)
{
    struct bench bench;
    open_bench(&bench, true);
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_UNKNOWN); /* no step yet */
    step_on(&bench, 5);
    for (int t = 0; t < 6; t++) {
        char node[16];
        (void)snprintf(node, sizeof node, "n%d", t);
        CU_ASSERT_EQUAL(ask(&bench, node), RAIL_READY);
    }
    CU_ASSERT_EQUAL(ask(&bench, "spare"), RAIL_UNKNOWN); /* nobody has used its NICs */
    CU_ASSERT_EQUAL(ask(&bench, "n"), RAIL_UNKNOWN);     /* names are compared whole */
    bench.now_ns += RAILS_SEEN_NS + 60 * SECOND;
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_UNKNOWN); /* that was long ago */
    close_bench(&bench);
}

TEST(of_what_stays_inside_an_nvlink_domain_nothing_is_known)
{
    struct bench bench;
    open_bench(&bench, false);
    step_on(&bench, 5);
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_UNKNOWN);
    close_bench(&bench);
}

static void say_domain(struct bench *bench, int tray, const char *domain)
{
    char node[16];
    (void)snprintf(node, sizeof node, "n%d", tray);
    inventory_observe(bench->inventory, &(struct inventory_observation){.source = INVENTORY_CLIQUE,
                                                                        .node = node,
                                                                        .nvlink_domain = domain,
                                                                        .tray = INVENTORY_UNKNOWN,
                                                                        .rails = INVENTORY_UNKNOWN,
                                                                        .time_ns = 1});
}

TEST(where_nodes_stand_is_the_inventory_s_word_when_it_knows_all_of_a_job)
{
    struct bench bench;
    open_bench(&bench, true);
    step_on(&bench, 5);
    bench.inventory = inventory_new();
    for (int t = 0; t < 5; t++)
        say_domain(&bench, t, "c.1");
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_READY); /* half of a word is none */
    say_domain(&bench, 5, "c.1");
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_UNKNOWN); /* it is one domain after all */
    for (int t = 3; t < 6; t++)
        say_domain(&bench, t, "c.2");
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_READY);
    close_bench(&bench);
}

TEST(nodes_that_a_job_was_moved_to_are_ready_with_its_first_step_there)
{
    struct bench bench;
    open_bench(&bench, true);
    step_on(&bench, 5);
    bench.now_ns += 10 * SECOND;
    for (int rank = 0; rank < RANKS; rank++) {
        AUTO_TEXT line = {0};
        if (rank / 4 == 5)
            text_addf(&line, "hello,job=team/a,rank=%d host=\"spare\",gpu=%di,attempt=1i", rank,
                      rank % 4);
        else
            text_addf(&line, "hello,job=team/a,rank=%d host=\"n%d\",gpu=%di,attempt=1i", rank,
                      rank / 4, rank % 4);
        write_lines(&bench, line.bytes);
    }
    pipeline_tick(bench.pipeline, bench.now_ns);
    CU_ASSERT_EQUAL(ask(&bench, "spare"), RAIL_UNKNOWN);
    step_on(&bench, 5);
    CU_ASSERT_EQUAL(ask(&bench, "spare"), RAIL_READY);
    CU_ASSERT_EQUAL(ask(&bench, "n5"), RAIL_UNKNOWN);
    close_bench(&bench);
}

TEST(an_open_incident_of_the_network_wins_until_it_is_over)
{
    struct bench bench;
    struct remediation_command decline = {
        .verb = COMMAND_DECLINE, .incident_ref = "INC-1", .actor = "alice", .text = "no"};
    open_bench(&bench, true);
    step_on(&bench, 5);
    accuse(&bench, VERDICT_FAULT, SCOPE_TRAY, "n1", CAUSE_NETWORK, "n1");
    CU_ASSERT_EQUAL(ask(&bench, "n1"), RAIL_READY); /* a suspicion that has not settled */
    step_on(&bench, 120);
    CU_ASSERT_NOT_EQUAL(remediation_find(pipeline_core(bench.pipeline), "INC-1")->phase,
                        PHASE_SUSPECTED);
    CU_ASSERT_EQUAL(ask(&bench, "n1"), RAIL_DEGRADED);
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_READY);
    CU_ASSERT_EQUAL(
        remediation_command(pipeline_core(bench.pipeline), &decline, bench.now_ns, NULL), OK);
    CU_ASSERT_EQUAL(ask(&bench, "n1"), RAIL_READY);
    close_bench(&bench);
}

TEST(a_rail_that_is_accused_concerns_every_tray_of_its_job)
{
    struct bench bench;
    open_bench(&bench, true);
    step_on(&bench, 5);
    accuse(&bench, VERDICT_SLOW, SCOPE_RAIL, "2", CAUSE_NETWORK, NULL);
    step_on(&bench, 120);
    CU_ASSERT_EQUAL(ask(&bench, "n0"), RAIL_DEGRADED);
    CU_ASSERT_EQUAL(ask(&bench, "n5"), RAIL_DEGRADED);
    CU_ASSERT_EQUAL(ask(&bench, "spare"), RAIL_UNKNOWN);
    close_bench(&bench);
}

TEST(a_slow_gpu_says_nothing_of_the_rails)
{
    struct bench bench;
    open_bench(&bench, true);
    step_on(&bench, 5);
    accuse(&bench, VERDICT_SLOW, SCOPE_TRAY, "n1", CAUSE_GPU, "n1");
    step_on(&bench, 120);
    CU_ASSERT_EQUAL(ask(&bench, "n1"), RAIL_READY);
    close_bench(&bench);
}

TESTS(T(what_carries_the_all_reduce_of_a_job_between_domains_is_ready),
      T(of_what_stays_inside_an_nvlink_domain_nothing_is_known),
      T(where_nodes_stand_is_the_inventory_s_word_when_it_knows_all_of_a_job),
      T(nodes_that_a_job_was_moved_to_are_ready_with_its_first_step_there),
      T(an_open_incident_of_the_network_wins_until_it_is_over),
      T(a_rail_that_is_accused_concerns_every_tray_of_its_job),
      T(a_slow_gpu_says_nothing_of_the_rails))
