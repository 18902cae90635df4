/* The rehearsal's actuator against the rehearsal's cluster, over real HTTP. */
#include "controller/ingest/lineproto.h"
#include "controller/io/http_server.h"
#include "controller/rehearse/cluster_http.h"
#include "controller/sys/clock.h"
#include "remediation/actuators/rehearsal.h"
#include "tests/harness/test.h"
#include "tests/harness/world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SPEED = 100 };

struct bench {
    struct loop *loop;
    struct cluster *cluster;
    struct cluster_http *http;
    struct http_client *client;
    struct actuator *actuator;
    struct http_server *broomd; /* takes the lines */
    struct loop_timer *limit;
    int refuse_writes; /* answered 503 first */
    int64_t samples, bad, writes;
    int64_t wanted; /* samples that end the loop */
    char cluster_url[64];
    struct action_result result;
    int answers;
    struct world *world;
    char node[64];
};

static void on_line(void *context, const struct sample *sample)
{
    (void)sample;
    ((struct bench *)context)->samples++;
}

static void on_bad(void *context, int64_t line, const char *cause)
{
    (void)line;
    printf("%s\n", cause);
    ((struct bench *)context)->bad++;
}

static void on_write(void *context, struct http_request *request)
{
    struct bench *bench = context;
    struct lineproto parser = {.on_sample = on_line, .on_error = on_bad, .context = bench};
    bench->writes++;
    if (bench->refuse_writes > 0) {
        bench->refuse_writes--;
        http_reply_error(request, 503, "not now");
        return;
    }
    lineproto_parse(&parser, http_request_body(request));
    http_reply(request, 204, NULL, view_of(NULL));
    if (bench->samples >= bench->wanted)
        loop_stop(bench->loop);
}

static void stop(void *context)
{
    loop_stop(context);
}

static void on_done(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    bench->answers++;
    bench->result = *result;
    bench->result.reason = bench->result.response = NULL;
    loop_stop(bench->loop);
}

static void on_world(void *context, const struct world *world)
{
    struct bench *bench = context;
    bench->world = world_copy(world);
    loop_stop(bench->loop);
}

static void on_posted(void *context, const struct http_answer *answer)
{
    struct bench *bench = context;
    CU_ASSERT_EQUAL(answer->code, 204);
    loop_stop(bench->loop);
}

static void post(struct bench *bench, const char *path, const char *body)
{
    AUTO_TEXT url = {0};
    text_addf(&url, "%s%s", bench->cluster_url, path);
    struct http_call call = {.method = "POST", .url = url.bytes, .body = view_of(body)};
    http_client_start(bench->client, &call, on_posted, bench);
    loop_run(bench->loop);
}

static void open_on_this_clock(struct bench *bench)
{
    struct cluster_config config = cluster_config_default();
    struct http_limits limits = http_limits_default();
    AUTO_TEXT start = {0};
    *bench = (struct bench){.loop = loop_new()};
    config.model.racks = 1;
    config.model.trays_used = 4;
    bench->cluster = cluster_new(&config);
    struct cluster_http_params params = {.loop = bench->loop, .cluster = bench->cluster};
    CU_ASSERT_FATAL(cluster_http_new(&params, &bench->http, NULL) == OK);
    snprintf(bench->cluster_url, sizeof bench->cluster_url, "http://127.0.0.1:%d",
             cluster_http_port(bench->http));
    snprintf(bench->node, sizeof bench->node, "%s",
             model_tray_name(cluster_model(bench->cluster), 1));
    bench->client = http_client_new(bench->loop);
    bench->actuator = rehearsal_new(bench->loop, bench->client, bench->cluster_url);
    bench->broomd = http_server_new(bench->loop, &limits, on_write, bench);
    CU_ASSERT_FATAL(http_server_listen(bench->broomd, "127.0.0.1:0", NULL, NULL) == OK);
    bench->limit = loop_timer_new(bench->loop, stop, bench->loop);
    bench->wanted = INT64_MAX;
    text_addf(&start, "{\"broomd\":\"http://127.0.0.1:%d\"}", http_server_port(bench->broomd));
    post(bench, "/v1/start", start.bytes);
}

static void open_bench(struct bench *bench)
{
    clock_init(SPEED, clock_read().wall_ns, clock_read().wall_ns);
    open_on_this_clock(bench);
}

static void close_bench(struct bench *bench)
{
    http_client_free(bench->client);
    bench->actuator->free(bench->actuator->self);
    cluster_http_free(bench->http);
    http_server_free(bench->broomd);
    loop_timer_free(bench->limit);
    loop_free(bench->loop);
    cluster_free(bench->cluster);
    world_free(bench->world);
}

static void run_for(struct bench *bench, int64_t limit_ns)
{
    loop_timer_set(bench->limit, limit_ns);
    loop_run(bench->loop);
    loop_timer_stop(bench->limit);
}

static void begin(struct bench *bench, const char *id, bool poll)
{
    const char *nodes[] = {bench->node};
    struct action action = {.verb = VERB_CORDON,
                            .incident_ref = "INC-1",
                            .job = "default/llm",
                            .nodes = nodes,
                            .node_count = 1,
                            .reason = "broom:INC-1"};
    text_copy(action.operation_id, sizeof action.operation_id, id);
    if (poll)
        bench->actuator->poll(bench->actuator->self, &action, on_done, bench);
    else
        bench->actuator->start(bench->actuator->self, &action, on_done, bench);
}

static void describe(struct bench *bench)
{
    world_free(bench->world);
    bench->world = NULL;
    bench->actuator->describe(bench->actuator->self, &(struct world_question){0}, on_world, bench);
    loop_run(bench->loop);
}

TEST(ranks_stream_lines_that_parse_and_send_again_what_was_refused_for_now)
{
    struct bench bench;
    open_bench(&bench);
    bench.refuse_writes = 3;
    bench.wanted = 16 + 16 * 10;
    run_for(&bench, INT64_C(20000000000));
    CU_ASSERT(bench.samples >= bench.wanted);
    CU_ASSERT_EQUAL(bench.bad, 0);
    CU_ASSERT(cluster_http_counts(bench.http).retries >= 3);
    close_bench(&bench);
}

TEST(what_was_done_shows_in_the_world)
{
    struct bench bench;
    open_bench(&bench);
    begin(&bench, "INC-1/0/2/1", false);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    describe(&bench);
    CU_ASSERT_FATAL(bench.world->known);
    CU_ASSERT_EQUAL(bench.world->node_count, 6);
    CU_ASSERT_STRING_EQUAL(world_find_node(bench.world, bench.node)->cordoned_by, "INC-1");
    CU_ASSERT_EQUAL(world_find_job(bench.world, "default/llm")->rank_count, 16);
    CU_ASSERT_STRING_EQUAL(world_find_job(bench.world, "default/llm")->phase, "running");
    close_bench(&bench);
}

TEST(an_answer_that_is_lost_is_found_by_reading_and_the_action_happens_once)
{
    struct bench bench;
    open_bench(&bench);
    post(&bench, "/v1/trouble", "{\"lose_answers\":1}");
    begin(&bench, "INC-1/0/2/1", false);
    run_for(&bench, INT64_C(15000000000));
    CU_ASSERT_EQUAL(bench.answers, 1);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    begin(&bench, "INC-1/0/2/1", true);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_DONE);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(cluster_find_operation(bench.cluster, "INC-1/0/2/1")->asked, 1);
    close_bench(&bench);
}

TEST(a_cluster_in_trouble_leaves_the_outcome_unknown_and_reading_says_absent)
{
    struct bench bench;
    open_bench(&bench);
    post(&bench, "/v1/trouble", "{\"errors\":1}");
    begin(&bench, "INC-1/0/2/1", false);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    begin(&bench, "INC-1/0/2/1", true);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.result.poll, POLL_ABSENT);
    close_bench(&bench);
}

/* A daemon that takes the samples and never turns its loop: nothing that it would be late for
 * happens. */
TEST(shared_time_waits_until_it_is_followed)
{
    const int64_t wait_ns = INT64_C(400000000), origin_ns = INT64_C(1780000000000000000);
    struct bench bench;
    char path[] = "/tmp/broom-test-clock-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    CU_ASSERT_FATAL(clock_share(path, SPEED, origin_ns, NULL) == OK);
    open_on_this_clock(&bench);
    clock_follow();
    int64_t start_ns = clock_now_ns();
    run_for(&bench, wait_ns);
    int64_t held_ns = clock_now_ns() - start_ns;
    CU_ASSERT(held_ns > 0);
    CU_ASSERT(held_ns < SPEED * wait_ns / 4);
    clock_unfollow();
    run_for(&bench, wait_ns);
    CU_ASSERT(clock_now_ns() - start_ns > held_ns);
    close_bench(&bench);
    unlink(path);
}

TESTS(T(shared_time_waits_until_it_is_followed),
      T(ranks_stream_lines_that_parse_and_send_again_what_was_refused_for_now),
      T(what_was_done_shows_in_the_world),
      T(an_answer_that_is_lost_is_found_by_reading_and_the_action_happens_once),
      T(a_cluster_in_trouble_leaves_the_outcome_unknown_and_reading_says_absent))
