#include "controller/io/digest.h"
#include "controller/io/http_server.h"
#include "controller/sys/clock.h"
#include "controller/sys/file.h"
#include "remediation/actuators/webhook.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A service that answers as told: one row a request, the last one stays. */
struct reply {
    int code;
    const char *body;
};

enum { ASKED_MAX = 32 };

struct bench {
    struct loop *loop;
    struct http_server *server;
    struct http_client *client;
    struct actuator *actuator;
    const struct reply *replies;
    char secret_path[64];
    int asked, well_signed;
    char methods[ASKED_MAX][8];
    char paths[ASKED_MAX][96];
    char operations[ASKED_MAX][64];
    char last_body[1024];
    struct action_result result;
    char reason[256];
    bool answered;
    struct world *world;
};

static const char *const METHODS[HTTP_METHOD_COUNT] = {"GET", "HEAD", "POST", "PUT", "DELETE"};

/* The check that runbooks/hand-over.md tells receivers to make. */
static bool is_well_signed(const struct http_request *request, const char *secret)
{
    const char *timestamp = http_request_header(request, "Broom-Timestamp");
    const char *signature = http_request_header(request, "Broom-Signature");
    struct view body = http_request_body(request);
    AUTO_TEXT signed_text = {0};
    char hex[DIGEST_HEX_BYTES];
    int64_t seconds = 0;
    if (timestamp == NULL || signature == NULL || !text_parse_int(view_of(timestamp), &seconds) ||
        llabs(seconds - clock_read().wall_ns / 1000000000) > 300)
        return false;
    text_addf(&signed_text, "%s.", timestamp);
    text_add_bytes(&signed_text, body.length > 0 ? body.bytes : "", body.length);
    CU_ASSERT_EQUAL(digest_hmac_sha256(view_of(secret),
                                       (struct view){signed_text.bytes, signed_text.length}, hex,
                                       NULL),
                    OK);
    return strncmp(signature, "v1=", 3) == 0 && strcmp(signature + 3, hex) == 0;
}

static void on_request(void *context, struct http_request *request)
{
    struct bench *bench = context;
    const struct reply *reply = bench->replies;
    const char *operation = http_request_header(request, "Broom-Operation");
    if (bench->asked < ASKED_MAX) {
        text_copy(bench->methods[bench->asked], 8, METHODS[http_request_method(request)]);
        text_copy(bench->paths[bench->asked], 96, http_request_path(request));
        text_copy(bench->operations[bench->asked], 64, operation != NULL ? operation : "");
    }
    bench->asked++;
    bench->well_signed += is_well_signed(request, "correct horse");
    if (http_request_method(request) == HTTP_POST)
        text_copy(bench->last_body, sizeof bench->last_body, http_request_body(request).bytes);
    if (reply[1].body != NULL)
        bench->replies++;
    http_reply(request, reply->code, "application/json", view_of(reply->body));
}

static void on_done(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    CU_ASSERT_FALSE(bench->answered);
    bench->answered = true;
    bench->result = *result;
    text_copy(bench->reason, sizeof bench->reason, result->reason != NULL ? result->reason : "");
    loop_stop(bench->loop);
}

static void on_world(void *context, const struct world *world)
{
    struct bench *bench = context;
    bench->world = world_copy(world);
    loop_stop(bench->loop);
}

static void write_secret(const struct bench *bench, const char *secret)
{
    CU_ASSERT_EQUAL(file_replace(bench->secret_path, view_of(secret), NULL), OK);
}

static void bench_open(struct bench *bench, const struct reply *replies)
{
    struct http_limits limits = http_limits_default();
    char url[64];
    clock_init(100, clock_read().wall_ns, clock_read().wall_ns);
    *bench = (struct bench){.loop = loop_new(), .replies = replies};
    text_copy(bench->secret_path, sizeof bench->secret_path, "/tmp/broom-webhook-XXXXXX");
    int fd = mkstemp(bench->secret_path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    write_secret(bench, "correct horse\n");
    bench->server = http_server_new(bench->loop, &limits, on_request, bench);
    CU_ASSERT_FATAL(http_server_listen(bench->server, "127.0.0.1:0", NULL, NULL) == OK);
    snprintf(url, sizeof url, "http://127.0.0.1:%d/repair/", http_server_port(bench->server));
    bench->client = http_client_new(bench->loop);
    bench->actuator = webhook_new(
        bench->loop, bench->client,
        &(struct webhook_options){.url = url, .secret_file = bench->secret_path});
}

static void bench_close(struct bench *bench)
{
    http_client_free(bench->client);
    bench->actuator->free(bench->actuator->self);
    http_server_free(bench->server);
    loop_free(bench->loop);
    world_free(bench->world);
    unlink(bench->secret_path);
}

static const char *const NODES[] = {"gb-1", "gb-2"};

static struct action hand_over(void)
{
    struct action action = {.verb = VERB_HAND_OVER,
                            .incident_ref = "INC-3",
                            .job = "default/llm",
                            .workload_json = "{\"kind\":\"volcano\"}",
                            .nodes = NODES,
                            .node_count = 2,
                            .reason = "broom:INC-3 \"xid 79\"",
                            .params_json = "{\"to\":\"hardware\",\"timeout_ns\":60000000000}"};
    text_copy(action.operation_id, sizeof action.operation_id, "INC-3/0/7/1");
    return action;
}

static void start(struct bench *bench)
{
    struct action action = hand_over();
    bench->actuator->start(bench->actuator->self, &action, on_done, bench);
    loop_run(bench->loop);
}

TEST(the_page_for_receivers_gives_a_signature_that_is_ours)
{
    AUTO_FREE char *page = test_read_file(BROOM_SOURCE_DIR "/runbooks/hand-over.md");
    char hex[DIGEST_HEX_BYTES];
    CU_ASSERT_PTR_NOT_NULL_FATAL(page);
    CU_ASSERT_EQUAL(digest_hmac_sha256(view_of("correct horse"),
                                       view_of("1780000320.{\"verb\":\"hand_over\"}"), hex, NULL),
                    OK);
    CU_ASSERT_PTR_NOT_NULL(strstr(page, hex));
}

TEST(an_action_is_one_signed_post_that_says_everything)
{
    struct bench bench;
    bench_open(&bench, (const struct reply[]){{200, "{\"state\":\"done\",\"outcome\":\"succeeded\","
                                                    "\"reason\":\"ticket 812\"}"},
                                              {0, NULL}});
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_STRING_EQUAL(bench.reason, "ticket 812");
    CU_ASSERT_STRING_EQUAL(bench.methods[0], "POST");
    CU_ASSERT_STRING_EQUAL(bench.paths[0], "/repair");
    CU_ASSERT_STRING_EQUAL(bench.operations[0], "INC-3/0/7/1");
    CU_ASSERT_EQUAL(bench.well_signed, 1);
    CU_ASSERT_STRING_EQUAL(
        bench.last_body,
        "{\"operation_id\":\"INC-3/0/7/1\",\"verb\":\"hand_over\",\"incident\":\"INC-3\",\"job\":"
        "\"default/llm\",\"nodes\":[\"gb-1\",\"gb-2\"],\"spares\":[],\"reason\":\"broom:INC-3 "
        "\\\"xid 79\\\"\",\"params\":{\"to\":\"hardware\",\"timeout_ns\":60000000000},\"workload\":"
        "{\"kind\":\"volcano\"}}");
    bench_close(&bench);
}

TEST(what_was_taken_is_asked_for_until_it_ends_and_never_posted_again)
{
    struct bench bench;
    bench_open(&bench, (const struct reply[]){
                           {202, "{\"state\":\"running\"}"},
                           {200, "{\"state\":\"running\",\"reason\":\"power is going\"}"},
                           {503, "{\"error\":\"restarting\"}"},
                           {200, "{\"state\":\"done\",\"outcome\":\"refused\"}"},
                           {0, NULL}});
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_REFUSED);
    CU_ASSERT_EQUAL(bench.asked, 4);
    CU_ASSERT_STRING_EQUAL(bench.methods[0], "POST");
    for (int i = 1; i < 4; i++) {
        CU_ASSERT_STRING_EQUAL(bench.methods[i], "GET");
        CU_ASSERT_STRING_EQUAL(bench.paths[i], "/repair/INC-3/0/7/1");
    }
    CU_ASSERT_EQUAL(bench.well_signed, 4);
    bench_close(&bench);
}

TEST(trouble_is_tried_again_under_the_same_id_until_it_passes)
{
    struct bench bench;
    bench_open(&bench,
               (const struct reply[]){{500, "oops"},
                                      {429, "{\"error\":\"slower\"}"},
                                      {408, ""},
                                      {200, "{\"state\":\"done\",\"outcome\":\"succeeded\"}"},
                                      {0, NULL}});
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_SUCCEEDED);
    CU_ASSERT_EQUAL(bench.asked, 4);
    for (int i = 0; i < 4; i++) {
        CU_ASSERT_STRING_EQUAL(bench.methods[i], "POST");
        CU_ASSERT_STRING_EQUAL(bench.operations[i], "INC-3/0/7/1");
    }
    bench_close(&bench);
}

TEST(trouble_that_lasts_ends_at_the_action_s_limit_and_its_outcome_says_what_may_have_been)
{
    static const struct {
        struct reply reply;
        enum outcome outcome;
    } cases[] = {{{503, "{\"error\":\"in trouble\"}"}, OUTCOME_UNKNOWN},
                 {{429, "{\"error\":\"slower\"}"}, OUTCOME_TRANSIENT},
                 {{202, "{\"state\":\"running\"}"}, OUTCOME_UNKNOWN}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        bench_open(&bench, replies);
        int64_t began_ns = clock_now_ns();
        start(&bench);
        CU_ASSERT_EQUAL(bench.result.outcome, cases[i].outcome);
        CU_ASSERT(bench.asked >= 3);
        CU_ASSERT(clock_now_ns() - began_ns < INT64_C(90000000000));
        bench_close(&bench);
    }
}

TEST(a_service_that_is_not_there_has_done_nothing_and_is_tried_until_the_limit)
{
    struct bench bench;
    bench_open(&bench, NULL);
    http_server_free(bench.server);
    bench.server = NULL;
    int64_t began_ns = clock_now_ns();
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT(clock_now_ns() - began_ns > INT64_C(15000000000));
    bench_close(&bench);
}

TEST(refusals_are_final_and_answers_without_sense_are_unknown)
{
    static const struct {
        struct reply reply;
        enum outcome outcome;
    } cases[] = {
        {{400, "{\"error\":\"no such verb\"}"}, OUTCOME_REFUSED},
        {{401, "bad signature"}, OUTCOME_REFUSED},
        {{403, "{\"error\":\"not you\"}"}, OUTCOME_REFUSED},
        {{404, "{}"}, OUTCOME_REFUSED},
        {{200, "ok"}, OUTCOME_UNKNOWN},
        {{200, "{}"}, OUTCOME_UNKNOWN},
        {{200, "{\"state\":\"done\",\"outcome\":\"hm\"}"}, OUTCOME_UNKNOWN},
        {{200, "{\"error\":\"an error behind a 200\"}"}, OUTCOME_UNKNOWN},
        {{204, ""}, OUTCOME_UNKNOWN},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        bench_open(&bench, replies);
        start(&bench);
        CU_ASSERT_EQUAL(bench.result.outcome, cases[i].outcome);
        CU_ASSERT_EQUAL(bench.asked, 1);
        bench_close(&bench);
    }
}

TEST(what_may_be_under_way_there_is_never_said_to_have_failed)
{
    static const struct reply cases[][3] = {
        {{202, "{\"state\":\"running\"}"}, {429, "{}"}, {0, NULL}},
        {{202, "{\"state\":\"running\"}"}, {401, "the secret was changed"}, {0, NULL}},
        {{503, "{}"}, {403, "{}"}, {0, NULL}},
        {{503, "{}"}, {404, "{}"}, {0, NULL}},
        {{409, "{}"}, {429, "{}"}, {0, NULL}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        bench_open(&bench, cases[i]);
        start(&bench);
        CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
        bench_close(&bench);
    }
}

static void end_server(void *context)
{
    struct bench *bench = context;
    http_server_free(bench->server);
    bench->server = NULL;
}

TEST(a_service_that_took_an_operation_and_went_away_is_not_said_to_have_done_nothing)
{
    struct bench bench;
    bench_open(&bench, (const struct reply[]){{202, "{\"state\":\"running\"}"}, {0, NULL}});
    struct loop_timer *timer = loop_timer_new(bench.loop, end_server, &bench);
    loop_timer_set(timer, INT64_C(200000000)); /* 20 s: it has been asked a few times */
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_UNKNOWN);
    loop_timer_free(timer);
    bench_close(&bench);
}

TEST(an_id_that_is_known_there_is_asked_how_it_stands)
{
    static const struct {
        struct reply second;
        enum outcome outcome;
    } cases[] = {{{200, "{\"state\":\"done\",\"outcome\":\"succeeded\"}"}, OUTCOME_SUCCEEDED},
                 {{404, "{}"}, OUTCOME_REFUSED}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        const struct reply replies[] = {{409, "{\"error\":\"known\"}"}, cases[i].second, {0, NULL}};
        bench_open(&bench, replies);
        start(&bench);
        CU_ASSERT_EQUAL(bench.result.outcome, cases[i].outcome);
        CU_ASSERT_STRING_EQUAL(bench.methods[1], "GET");
        bench_close(&bench);
    }
}

TEST(poll_only_reads_and_tells_absent_from_unreachable)
{
    static const struct {
        struct reply reply;
        enum poll_state poll;
    } cases[] = {
        {{404, "{}"}, POLL_ABSENT},
        {{200, "{\"state\":\"running\"}"}, POLL_RUNNING},
        {{200, "{\"state\":\"done\",\"outcome\":\"superseded\"}"}, POLL_DONE},
        {{500, "{}"}, POLL_UNREACHABLE},
        {{429, "{}"}, POLL_UNREACHABLE},
        {{403, "{}"}, POLL_UNREACHABLE},
        {{200, "[]"}, POLL_UNREACHABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        struct action action = hand_over();
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        bench_open(&bench, replies);
        bench.actuator->poll(bench.actuator->self, &action, on_done, &bench);
        loop_run(bench.loop);
        CU_ASSERT_EQUAL(bench.result.poll, cases[i].poll);
        CU_ASSERT_STRING_EQUAL(bench.methods[0], "GET");
        CU_ASSERT_EQUAL(bench.asked, 1);
        CU_ASSERT_EQUAL(bench.well_signed, 1);
        bench_close(&bench);
    }
}

TEST(a_secret_that_was_changed_is_used_at_once)
{
    struct bench bench;
    struct action action = hand_over();
    bench_open(&bench, (const struct reply[]){
                           {200, "{\"state\":\"done\",\"outcome\":\"succeeded\"}"}, {0, NULL}});
    write_secret(&bench, "battery staple");
    start(&bench);
    CU_ASSERT_EQUAL(bench.well_signed, 0);
    write_secret(&bench, "correct horse");
    bench.answered = false;
    bench.actuator->start(bench.actuator->self, &action, on_done, &bench);
    loop_run(bench.loop);
    CU_ASSERT_EQUAL(bench.well_signed, 1);
    bench_close(&bench);
}

TEST(without_its_secret_nothing_is_sent_and_the_file_is_named)
{
    struct bench bench;
    bench_open(&bench, (const struct reply[]){{200, "{}"}, {0, NULL}});
    write_secret(&bench, " \n");
    start(&bench);
    CU_ASSERT_EQUAL(bench.result.outcome, OUTCOME_TRANSIENT);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, bench.secret_path));
    CU_ASSERT_EQUAL(bench.asked, 0);
    bench.actuator->describe(bench.actuator->self, &(struct world_question){0}, on_world, &bench);
    loop_run(bench.loop);
    CU_ASSERT_FALSE(bench.world->known);
    CU_ASSERT_EQUAL(bench.asked, 0);
    bench_close(&bench);
}

TEST(a_world_is_told_where_there_is_one_and_is_unknown_elsewhere)
{
    static const struct {
        struct reply reply;
        bool known;
    } cases[] = {
        {{200, "{\"nodes\":[{\"name\":\"gb-1\",\"ready\":true,\"cordoned\":false}]}"}, true},
        {{404, "{}"}, false},
        {{500, "{}"}, false},
        {{200, "{\"nodes\":[]}"}, false}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct bench bench;
        const struct reply replies[] = {cases[i].reply, {0, NULL}};
        bench_open(&bench, replies);
        bench.actuator->describe(bench.actuator->self, &(struct world_question){0}, on_world,
                                 &bench);
        loop_run(bench.loop);
        CU_ASSERT_EQUAL(bench.world->known, cases[i].known);
        CU_ASSERT_STRING_EQUAL(bench.paths[0], "/repair/world");
        bench_close(&bench);
    }
}

TEST(calls_under_way_are_dropped_when_it_is_freed)
{
    struct bench bench;
    struct action action = hand_over();
    bench_open(&bench, (const struct reply[]){{200, "{}"}, {0, NULL}});
    bench.actuator->start(bench.actuator->self, &action, on_done, &bench);
    bench.actuator->poll(bench.actuator->self, &action, on_done, &bench);
    bench.actuator->describe(bench.actuator->self, &(struct world_question){0}, on_world, &bench);
    bench_close(&bench);
    CU_ASSERT_FALSE(bench.answered);
}

/* Two actuators that only say that they were asked. */
struct ear {
    struct actuator port;
    int started, polled, described, freed;
};

static void ear_start(void *self, const struct action *action, action_done_fn *done, void *context)
{
    (void)action, (void)done, (void)context;
    ((struct ear *)self)->started++;
}

static void ear_poll(void *self, const struct action *action, action_done_fn *done, void *context)
{
    (void)action, (void)done, (void)context;
    ((struct ear *)self)->polled++;
}

static void ear_describe(void *self, const struct world_question *question, world_done_fn *done,
                         void *context)
{
    (void)question, (void)done, (void)context;
    ((struct ear *)self)->described++;
}

static void ear_free(void *self)
{
    ((struct ear *)self)->freed++;
}

static void ear_open(struct ear *ear, const char *name)
{
    *ear = (struct ear){.port = {name, true, ear_start, ear_poll, ear_describe, ear_free, ear}};
}

TEST(hand_over_and_fence_go_to_the_webhook_and_all_else_to_the_cluster)
{
    struct ear cluster, webhook;
    ear_open(&cluster, "kubernetes");
    ear_open(&webhook, "webhook");
    struct actuator *both = with_hand_over_new(&cluster.port, &webhook.port);
    CU_ASSERT_STRING_EQUAL(both->name, "kubernetes");
    for (int verb = 0; verb < VERB_COUNT; verb++) {
        struct action action = {.verb = (enum verb)verb};
        both->start(both->self, &action, NULL, NULL);
        both->poll(both->self, &action, NULL, NULL);
    }
    both->describe(both->self, &(struct world_question){0}, NULL, NULL);
    CU_ASSERT_EQUAL(webhook.started, 2);
    CU_ASSERT_EQUAL(webhook.polled, 2);
    CU_ASSERT_EQUAL(webhook.described, 0);
    CU_ASSERT_EQUAL(cluster.started, VERB_COUNT - 2);
    CU_ASSERT_EQUAL(cluster.polled, VERB_COUNT - 2);
    CU_ASSERT_EQUAL(cluster.described, 1);
    both->free(both->self);
    CU_ASSERT(cluster.freed == 1 && webhook.freed == 1);
}

TESTS(T(the_page_for_receivers_gives_a_signature_that_is_ours),
      T(an_action_is_one_signed_post_that_says_everything),
      T(what_was_taken_is_asked_for_until_it_ends_and_never_posted_again),
      T(trouble_is_tried_again_under_the_same_id_until_it_passes),
      T(trouble_that_lasts_ends_at_the_action_s_limit_and_its_outcome_says_what_may_have_been),
      T(a_service_that_is_not_there_has_done_nothing_and_is_tried_until_the_limit),
      T(refusals_are_final_and_answers_without_sense_are_unknown),
      T(what_may_be_under_way_there_is_never_said_to_have_failed),
      T(a_service_that_took_an_operation_and_went_away_is_not_said_to_have_done_nothing),
      T(an_id_that_is_known_there_is_asked_how_it_stands),
      T(poll_only_reads_and_tells_absent_from_unreachable),
      T(a_secret_that_was_changed_is_used_at_once),
      T(without_its_secret_nothing_is_sent_and_the_file_is_named),
      T(a_world_is_told_where_there_is_one_and_is_unknown_elsewhere),
      T(calls_under_way_are_dropped_when_it_is_freed),
      T(hand_over_and_fence_go_to_the_webhook_and_all_else_to_the_cluster))
