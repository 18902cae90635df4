/* The HTTP API over a real server and a backend of this file: which code and which words each
 * outcome has. */
#include "controller/admin/api.h"
#include "controller/admin/auth.h"
#include "controller/admin/page.h"
#include "controller/io/digest.h"
#include "tests/unit/admin/raw_client.h"

#include <stdio.h>

#define NONE    "Accept: */*\r\n"
#define NOW_NS  INT64_C(1780000140000000000)
#define HOUR_NS INT64_C(3600000000000)

struct world_of_test {
    struct loop *loop;
    struct http_server *server;
    struct api *api;
    struct auth *auth;
    enum status answer_status; /* what the backend answers */
    const char *answer_reason;
    const char *answer_json;
    struct api_write_result write_result;
    bool hold; /* keep answers back */
    api_done_fn *held;
    void *held_context;
    const char *host; /* header of the requests; NULL: localhost */
    int calls;
    char body[512], name[512], text[512], actor[128];
    enum api_precision precision;
    enum command_verb verb;
    struct api_query query;
    char query_ref[64], query_status[32], query_job[128];
    bool slow_only;
};

static enum status fake_write(void *self, const struct api_write *write,
                              struct api_write_result *ret_result, struct error *reterr)
{
    struct world_of_test *world = self;
    world->calls++;
    snprintf(world->body, sizeof world->body, "%.*s", (int)write->body.length, write->body.bytes);
    world->precision = write->precision;
    *ret_result = world->write_result;
    return world->answer_status == OK
               ? OK
               : error_set(reterr, world->answer_status, "%s", world->answer_reason);
}

static void fake_status(void *self, struct json_writer *writer)
{
    (void)self;
    json_open_object(writer);
    json_put_string(writer, "mode", "observe");
    json_close(writer);
}

static void fake_jobs(void *self, struct json_writer *writer)
{
    (void)self;
    json_open_array(writer);
    json_close(writer);
}

static enum status fake_job(void *self, const char *name, struct json_writer *writer,
                            struct error *reterr)
{
    struct world_of_test *world = self;
    text_copy(world->name, sizeof world->name, name);
    if (world->answer_status != OK)
        return error_set(reterr, world->answer_status, "no job '%s'", name);
    json_open_object(writer);
    json_put_string(writer, "job", name);
    json_close(writer);
    return OK;
}

static enum status fake_ranks(void *self, const char *name, bool slow_only,
                              struct json_writer *writer, struct error *reterr)
{
    struct world_of_test *world = self;
    world->slow_only = slow_only;
    return fake_job(self, name, writer, reterr);
}

static enum status fake_put_job(void *self, const char *name, struct view document,
                                const struct identity *identity, bool *ret_created,
                                struct error *reterr)
{
    struct world_of_test *world = self;
    (void)identity;
    world->calls++;
    text_copy(world->name, sizeof world->name, name);
    snprintf(world->body, sizeof world->body, "%.*s", (int)document.length, document.bytes);
    if (world->answer_status != OK)
        return error_set(reterr, world->answer_status, "%s", world->answer_reason);
    *ret_created = true;
    return OK;
}

static void answer(struct world_of_test *world, api_done_fn *done, void *context)
{
    if (world->hold) {
        world->held = done;
        world->held_context = context;
        loop_stop(world->loop);
        return;
    }
    const struct api_answer reply = {world->answer_status, world->answer_reason,
                                     view_of(world->answer_json)};
    done(context, &reply);
}

static void fake_command(void *self, const struct api_command *command, api_done_fn *done,
                         void *context)
{
    struct world_of_test *world = self;
    world->calls++;
    world->verb = command->verb;
    text_copy(world->name, sizeof world->name,
              command->incident_ref != NULL ? command->incident_ref
              : command->node != NULL       ? command->node
                                            : "");
    text_copy(world->text, sizeof world->text, command->text);
    text_copy(world->actor, sizeof world->actor, command->identity->name);
    answer(world, done, context);
}

static void fake_query(void *self, const struct api_query *query, api_done_fn *done, void *context)
{
    struct world_of_test *world = self;
    world->calls++;
    world->query = *query;
    text_copy(world->query_ref, sizeof world->query_ref,
              query->incident_ref != NULL ? query->incident_ref : "");
    text_copy(world->query_status, sizeof world->query_status,
              query->status != NULL ? query->status : "");
    text_copy(world->query_job, sizeof world->query_job, query->job != NULL ? query->job : "");
    answer(world, done, context);
}

static bool fake_recall(void *self, const struct api_query *query, struct json_writer *writer)
{
    (void)self;
    if (query->read != API_INCIDENT || strcmp(query->incident_ref, "INC-1") != 0)
        return false;
    json_open_object(writer);
    json_put_bool(writer, "from_memory", true);
    json_close(writer);
    return true;
}

static void fake_topology(void *self, struct json_writer *writer)
{
    (void)self;
    json_open_object(writer);
    json_put_string(writer, "racks", "two");
    json_close(writer);
}

/* Two trays of a job of eight; `nodes` and `incident` as they were asked for. */
static enum status fake_layout(void *self, const struct api_layout *question,
                               struct layout **ret_layout, struct error *reterr)
{
    struct world_of_test *world = self;
    text_copy(world->name, sizeof world->name, question->job);
    text_copy(world->text, sizeof world->text, question->nodes != NULL ? question->nodes : "");
    text_copy(world->query_ref, sizeof world->query_ref,
              question->incident_ref != NULL ? question->incident_ref : "");
    world->slow_only = question->by_counting;
    if (world->answer_status != OK)
        return error_set(reterr, world->answer_status, "%s", world->answer_reason);
    AUTO(job_free) struct job *job = job_new(question->job, 8);
    static const char *const names[] = {"gb-1", "gb-2"};
    struct layout_nodes nodes = layout_nodes_named(job, names, 2);
    enum status status = layout_plan(
        &(struct layout_request){
            .job = job, .nodes = nodes.items, .node_count = 2, .wanted = nodes.wanted},
        ret_layout, reterr);
    xfree(nodes.items);
    xfree(nodes.wanted);
    return status;
}

static int64_t fake_now(void *self)
{
    (void)self;
    return NOW_NS;
}

#define ADMIN_TOKEN "Authorization: Bearer admin-token-0123456789\r\n"

static const char token_file[] = "admin-token-0123456789 root admin\n"
                                 "operator-token-0123456789 alice operator\n"
                                 "job-token-0123456789 sender job:default/llm-17\n";

static struct auth *make_auth(void)
{
    char path[] = "/tmp/broom_tokens_XXXXXX";
    AUTO(config_free) struct config *config = config_new();
    AUTO_TEXT findings = {0};
    AUTO_TEXT assignment = {0};
    struct error error = {0};
    struct auth *auth = NULL;
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL_FATAL(write(fd, token_file, sizeof token_file - 1),
                          (ssize_t)sizeof token_file - 1);
    close(fd);
    text_addf(&assignment, "auth.tokens=%s", path);
    CU_ASSERT_EQUAL_FATAL(config_set(config, assignment.bytes, &error), OK);
    CU_ASSERT_EQUAL_FATAL(auth_new(config, &findings, &auth, &error), OK);
    unlink(path);
    return auth;
}

static void open_world(struct world_of_test *world)
{
    *world = (struct world_of_test){.loop = loop_new(), .auth = make_auth()};
    const struct api_backend backend = {
        world,        fake_write, fake_status, fake_jobs,   fake_job,      fake_ranks, fake_put_job,
        fake_command, fake_query, fake_now,    fake_recall, fake_topology, fake_layout};
    const struct http_limits limits = http_limits_default();
    world->api = api_new(&backend, world->auth);
    world->server = http_server_new(world->loop, &limits, api_route, world->api);
    CU_ASSERT_EQUAL_FATAL(http_server_listen(world->server, "127.0.0.1:0", NULL, NULL), OK);
}

static void close_world(struct world_of_test *world)
{
    http_server_free(world->server);
    api_free(world->api);
    auth_free(world->auth);
    loop_free(world->loop);
}

/* headers: lines that end in \r\n; "" speaks as admin, NONE without any. Returns the code;
 * *ret_answer is the whole answer. */
static int ask(struct world_of_test *world, const char *method, const char *target,
               const char *headers, const char *body, struct text *ret_answer)
{
    struct raw_client client;
    AUTO_TEXT request = {0};
    headers = headers[0] == '\0' ? ADMIN_TOKEN : headers;
    text_addf(&request,
              "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%sContent-Length: %zu\r\n\r\n%s",
              method, target, world->host != NULL ? world->host : "localhost", headers,
              strlen(body), body);
    raw_client_open(&client, world->loop, http_server_port(world->server), request.bytes,
                    request.length);
    CU_ASSERT_TRUE(raw_client_wait(&client, 5000000000));
    text_clear(ret_answer);
    text_add_bytes(ret_answer, client.answer.bytes, client.answer.length);
    text_done(&client.answer);
    raw_client_close(&client);
    int code = ret_answer->length > 12 ? (int)strtol(ret_answer->bytes + 9, NULL, 10) : 0;
    return code;
}

static bool says(const struct text *answer_text, const char *words)
{
    bool found = answer_text->bytes != NULL && strcasestr(answer_text->bytes, words) != NULL;
    if (!found)
        printf("\n'%s' is not in: %s\n", words,
               answer_text->bytes != NULL ? answer_text->bytes : "nothing");
    return found;
}

TEST(lines_that_are_all_good_are_answered_with_204)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.write_result = (struct api_write_result){.accepted = 1};
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write?precision=ms", "",
                        "step,job=j,rank=0 step=1,step_ms=2 3", &text),
                    204);
    CU_ASSERT_STRING_EQUAL(world.body, "step,job=j,rank=0 step=1,step_ms=2 3");
    CU_ASSERT_EQUAL(world.precision, API_PRECISION_MS);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v2/write", "", "x", &text), 204);
    CU_ASSERT_EQUAL(world.precision, API_PRECISION_NS);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write?precision=fortnight", "", "x", &text), 400);
    CU_ASSERT_EQUAL(world.calls, 2);
    close_world(&world);
}

TEST(a_bad_line_is_answered_with_its_number_and_cause)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.write_result = (struct api_write_result){
        .accepted = 7,
        .bad_lines = 1,
        .refused = 1,
        .bad = {{3, "no field"}, {5, "the host is not the rank's"}},
        .bad_count = 2};
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write", "", "x", &text), 400);
    CU_ASSERT_TRUE(says(&text, "\"line\":3"));
    CU_ASSERT_TRUE(says(&text, "\"accepted\":7"));
    CU_ASSERT_TRUE(says(&text, "{\"line\":5,\"cause\":\"the host is not the rank's\"}"));
    close_world(&world);
}

TEST(no_room_is_503_too_fast_is_429_and_both_say_when_to_come_again)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_reason = "the memory budget is spent";
    world.answer_status = ERR_LIMIT;
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write", "", "x", &text), 503);
    CU_ASSERT_TRUE(says(&text, "Retry-After: 5"));
    CU_ASSERT_TRUE(says(&text, "\"error\":\"the memory budget is spent\""));
    world.answer_status = ERR_AGAIN;
    world.write_result.retry_after_s = 17;
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write", "", "x", &text), 429);
    CU_ASSERT_TRUE(says(&text, "Retry-After: 17"));
    close_world(&world);
}

TEST(job_names_hold_slashes_plain_or_encoded)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/default/llm-17", "", "", &text), 200);
    CU_ASSERT_STRING_EQUAL(world.name, "default/llm-17");
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/default%2Fllm-18/ranks?slow=1", "", "", &text),
                    200);
    CU_ASSERT_STRING_EQUAL(world.name, "default/llm-18");
    CU_ASSERT_TRUE(world.slow_only);
    CU_ASSERT_EQUAL(ask(&world, "PUT", "/api/v1/jobs/a/b/c", "", "{\"job\":1}", &text), 201);
    CU_ASSERT_STRING_EQUAL(world.name, "a/b/c");
    CU_ASSERT_STRING_EQUAL(world.body, "{\"job\":1}");
    world.answer_status = ERR_NOT_FOUND;
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/x", "", "", &text), 404);
    CU_ASSERT_TRUE(says(&text, "no job 'x'"));
    close_world(&world);
}

TEST(a_layout_is_json_or_the_text_that_a_launcher_reads)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/default/llm/layout", "", "", &text), 200);
    CU_ASSERT_STRING_EQUAL(world.name, "default/llm");
    CU_ASSERT_TRUE(says(&text, "application/json"));
    CU_ASSERT_TRUE(says(&text, "{\"rank\":7,\"node\":\"gb-2\",\"gpu\":3,\"rail\":3}"));
    CU_ASSERT_EQUAL(ask(&world, "GET",
                        "/api/v1/jobs/default/llm/"
                        "layout?format=hostfile&nodes=gb-1,gb-2&incident=INC-3&by_counting=1",
                        "", "", &text),
                    200);
    CU_ASSERT_TRUE(says(&text, "text/plain"));
    CU_ASSERT_TRUE(says(&text, "\r\n\r\ngb-1 slots=4\ngb-2 slots=4\n"));
    CU_ASSERT_STRING_EQUAL(world.text, "gb-1,gb-2");
    CU_ASSERT_STRING_EQUAL(world.query_ref, "INC-3");
    CU_ASSERT_TRUE(world.slow_only);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/j/layout?format=poem", "", "", &text), 400);
    CU_ASSERT_TRUE(says(&text, "nccl-topology"));
    world.answer_status = ERR_REFUSED;
    world.answer_reason = "8 ranks need 8 GPUs";
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/jobs/j/layout", "", "", &text), 422);
    CU_ASSERT_TRUE(says(&text, "8 ranks need 8 GPUs"));
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/topology", "", "", &text), 200);
    CU_ASSERT_TRUE(says(&text, "{\"racks\":\"two\"}"));
    close_world(&world);
}

TEST(a_second_live_workload_of_one_name_is_409)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_status = ERR_CONFLICT;
    world.answer_reason = "a live job 'j' has another workload";
    CU_ASSERT_EQUAL(ask(&world, "PUT", "/api/v1/jobs/j", "", "{}", &text), 409);
    CU_ASSERT_TRUE(says(&text, "has another workload"));
    close_world(&world);
}

TEST(an_unknown_path_is_404_and_a_wrong_method_405_with_what_is_allowed)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/nothing", "", "", &text), 404);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/write", "", "", &text), 405);
    CU_ASSERT_TRUE(says(&text, "Allow: POST"));
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/incidents/INC-3", "", "", &text), 405);
    CU_ASSERT_TRUE(says(&text, "Allow: GET"));
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-3/ack", "", "", &text), 405);
    CU_ASSERT_EQUAL(world.calls, 0);
    close_world(&world);
}

TEST(incidents_are_asked_for_with_filters_that_are_checked)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_json = "{\"incidents\":[]}";
    CU_ASSERT_EQUAL(
        ask(&world, "GET", "/api/v1/incidents?since=24h&status=open&job=a%2Fb", "", "", &text),
        200);
    CU_ASSERT_EQUAL(world.query.since_ns, NOW_NS - 24 * HOUR_NS);
    CU_ASSERT_STRING_EQUAL(world.query_status, "open");
    CU_ASSERT_STRING_EQUAL(world.query_job, "a/b");
    CU_ASSERT_TRUE(says(&text, "{\"now_ns\":1780000140000000000,\"incidents\":[]}"));
    CU_ASSERT_EQUAL(
        ask(&world, "GET", "/api/v1/incidents?since=2026-05-28T20:29:02Z", "", "", &text), 200);
    CU_ASSERT_EQUAL(world.query.since_ns, INT64_C(1780000142000000000));
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents?since=yesterday", "", "", &text), 400);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents?status=bad", "", "", &text), 400);
    CU_ASSERT_EQUAL(world.calls, 2);
    close_world(&world);
}

TEST(an_incident_that_is_not_there_is_404)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_json = "null";
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-9", "", "", &text), 404);
    CU_ASSERT_STRING_EQUAL(world.query_ref, "INC-9");
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-9/timeline", "", "", &text), 404);
    CU_ASSERT_EQUAL(world.query.read, API_TIMELINE);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-9/export", "", "", &text), 404);
    CU_ASSERT_EQUAL(world.query.read, API_EXPORT);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-9'--", "", "", &text), 404);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-09", "", "", &text), 404);
    CU_ASSERT_EQUAL(world.calls, 3);
    close_world(&world);
}

TEST(what_is_in_memory_is_shown_while_the_database_is_away)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_status = ERR_UNREACHABLE;
    world.answer_reason = "the database is away";
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-1", "", "", &text), 200);
    CU_ASSERT_TRUE(says(&text, "{\"now_ns\":1780000140000000000,\"from_memory\":true}"));
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-2", "", "", &text), 503);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-1/export", "", "", &text), 503);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/incidents/INC-1/ack", "", "", &text), 503);
    close_world(&world);
}

TEST(a_command_carries_its_words_and_the_proven_name)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_json = "{}";
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/incidents/INC-3/approve", "",
                        "{\"text\":\"go\\nnow\"}", &text),
                    200);
    CU_ASSERT_EQUAL(world.verb, COMMAND_APPROVE);
    CU_ASSERT_STRING_EQUAL(world.name, "INC-3");
    CU_ASSERT_STRING_EQUAL(world.text, "go now");
    CU_ASSERT_TRUE(world.actor[0] != '\0');
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/nodes/gb-r17-t04.dc1/fenced", "",
                        "{\"text\":\"pulled the plug\"}", &text),
                    200);
    CU_ASSERT_EQUAL(world.verb, COMMAND_FENCED);
    CU_ASSERT_STRING_EQUAL(world.name, "gb-r17-t04.dc1");
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/nodes/gb-r17-t04/fenced", "", "{}", &text), 400);
    CU_ASSERT_EQUAL(
        ask(&world, "POST", "/api/v1/nodes/a%20b/fenced", "", "{\"text\":\"x\"}", &text), 404);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/pause", "", "", &text), 200);
    CU_ASSERT_EQUAL(world.verb, COMMAND_PAUSE);
    CU_ASSERT_STRING_EQUAL(world.text, "");
    CU_ASSERT_EQUAL(
        ask(&world, "POST", "/api/v1/breaker/close", "", "{\"text\":\"monitor fixed\"}", &text),
        200);
    CU_ASSERT_EQUAL(world.verb, COMMAND_BREAKER_CLOSE);
    CU_ASSERT_TRUE(says(&text, "{\"now_ns\":1780000140000000000}"));
    close_world(&world);
}

TEST(a_command_with_a_bad_body_is_400_and_never_reaches_the_backend)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    static const char *const bodies[] = {"{",
                                         "[]",
                                         "{\"text\":3}",
                                         "{\"text\":\"\xff\"}",
                                         "{\"text\":\"\xc0\xaf\"}",
                                         "{\"text\":\"  \"}",
                                         ""};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        CU_ASSERT_EQUAL(
            ask(&world, "POST", "/api/v1/incidents/INC-3/decline", "", bodies[i], &text), 400);
    AUTO_TEXT longest = {0};
    text_add(&longest, "{\"text\":\"");
    for (int i = 0; i < 4097; i++)
        text_add(&longest, "x");
    text_add(&longest, "\"}");
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/incidents/INC-3/note", "", longest.bytes, &text),
                    400);
    CU_ASSERT_EQUAL(world.calls, 0);
    close_world(&world);
}

TEST(each_outcome_of_a_command_has_its_code)
{
    static const struct {
        enum status status;
        int code;
    } outcomes[] = {{ERR_NOT_FOUND, 404}, {ERR_DENIED, 403},  {ERR_REFUSED, 422},
                    {ERR_CONFLICT, 409},  {ERR_INVALID, 400}, {ERR_UNREACHABLE, 503},
                    {ERR_TIMEOUT, 504},   {ERR_BUG, 500}};
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_reason = "because";
    for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
        world.answer_status = outcomes[i].status;
        CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/incidents/INC-3/abort", "", "", &text),
                        outcomes[i].code);
        CU_ASSERT_TRUE(says(&text, "\"error\":\"because\""));
    }
    CU_ASSERT_EQUAL(api_counts(world.api).requests, (int64_t)ARRAY_LEN(outcomes));
    CU_ASSERT_EQUAL(api_counts(world.api).server_errors, 3);
    close_world(&world);
}

TEST(a_web_page_of_somebody_else_can_neither_command_nor_write)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/pause",
                        "Origin: http://evil.example\r\n" ADMIN_TOKEN, "", &text),
                    403);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write", "Sec-Fetch-Site: cross-site\r\n", "x", &text),
                    403);
    CU_ASSERT_EQUAL(ask(&world, "PUT", "/api/v1/jobs/j", "Origin: null\r\n", "{}", &text), 403);
    CU_ASSERT_EQUAL(world.calls, 0);
    CU_ASSERT_EQUAL(
        ask(&world, "GET", "/api/v1/status", "Sec-Fetch-Site: same-origin\r\n", "", &text), 200);
    close_world(&world);
}

TEST(a_name_that_was_pointed_at_loopback_sees_nothing)
{
    static const struct {
        const char *host, *headers;
        int code;
    } cases[] = {{"evil.example", NONE, 403},
                 {"evil.example:7430", NONE, 403},
                 {"localhost.evil.example", NONE, 403},
                 {"1.2.3.4.evil.example", NONE, 403},
                 {"localhost:7430", NONE, 200},
                 {"LocalHost", NONE, 200},
                 {"127.0.0.1:7430", NONE, 200},
                 {"[::1]:7430", NONE, 200},
                 {"broomd.example:7430", ADMIN_TOKEN, 200}};
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        world.host = cases[i].host;
        CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/status", cases[i].headers, "", &text),
                        cases[i].code);
    }
    CU_ASSERT_EQUAL(ask(&world, "HEAD", "/api/v1/status", "", "", &text), 200);
    CU_ASSERT_PTR_NULL(strstr(text.bytes, "observe"));
    close_world(&world);
}

TEST(an_answer_for_a_client_that_left_is_dropped)
{
    struct world_of_test world;
    struct raw_client client;
    open_world(&world);
    world.hold = true;
    static const char request[] = "GET /api/v1/incidents/INC-1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    raw_client_open(&client, world.loop, http_server_port(world.server), request,
                    sizeof request - 1);
    loop_run(world.loop); /* until the backend has the question */
    CU_ASSERT_PTR_NOT_NULL_FATAL(world.held);
    raw_client_close(&client);
    struct text text = {0};
    world.hold = false;
    world.answer_json = "{}";
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/incidents/INC-2", "", "", &text),
                    200); /* lets the server see the close */
    const struct api_answer late = {OK, NULL, view_of("{\"ref\":\"INC-1\"}")};
    world.held(world.held_context, &late);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/status", "", "", &text), 200);
    text_done(&text);
    text_done(&client.answer);
    close_world(&world);
}

TEST(an_answer_that_comes_later_reaches_its_client)
{
    struct world_of_test world;
    struct raw_client client;
    open_world(&world);
    world.hold = true;
    static const char request[] =
        "GET /api/v1/incidents/INC-1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    raw_client_open(&client, world.loop, http_server_port(world.server), request,
                    sizeof request - 1);
    loop_run(world.loop);
    CU_ASSERT_PTR_NOT_NULL_FATAL(world.held);
    const struct api_answer late = {OK, NULL, view_of("{\"ref\":\"INC-1\"}")};
    world.held(world.held_context, &late);
    CU_ASSERT_TRUE(raw_client_wait(&client, 5000000000));
    CU_ASSERT_TRUE(says(&client.answer, "\"ref\":\"INC-1\""));
    text_done(&client.answer);
    raw_client_close(&client);
    close_world(&world);
}

TEST(questions_still_open_at_the_end_are_let_go)
{
    struct world_of_test world;
    struct raw_client client;
    open_world(&world);
    world.hold = true;
    static const char request[] = "GET /api/v1/incidents/INC-1 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    raw_client_open(&client, world.loop, http_server_port(world.server), request,
                    sizeof request - 1);
    loop_run(world.loop);
    raw_client_close(&client);
    close_world(&world); /* the sanitizers see what is left */
}

TEST(the_page_brings_all_it_needs_and_may_run_nothing_else)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/", "", "", &text), 200);
    CU_ASSERT_TRUE(says(&text, "Content-Type: text/html; charset=utf-8"));
    CU_ASSERT_TRUE(says(&text, "Content-Security-Policy: default-src 'none'; connect-src 'self'"));
    CU_ASSERT_TRUE(says(&text, "script-src 'sha256-"));
    CU_ASSERT_TRUE(says(&text, "<title>Broomwagon</title>"));
    struct view html = page_html();
    static const char *const outside[] = {"http://", "https://",  "//cdn",    "innerHTML",
                                          "eval(",   " style=\"", " onclick="};
    for (size_t i = 0; i < ARRAY_LEN(outside); i++)
        CU_ASSERT_PTR_NULL(memmem(html.bytes, html.length, outside[i], strlen(outside[i])));
    CU_ASSERT_TRUE(html.length < 100 * 1024);
    CU_ASSERT_PTR_NULL(strstr(page_content_security_policy(), "unsafe"));
    close_world(&world);
}

TEST(a_local_sender_may_write_and_look_but_a_command_needs_a_proven_name)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    world.answer_json = "{}";
    CU_ASSERT_EQUAL(ask(&world, "POST", "/write", NONE, "x", &text), 204);
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/status", NONE, "", &text), 200);
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/pause", NONE, "", &text), 403);
    CU_ASSERT_TRUE(says(&text, "operator"));
    CU_ASSERT_EQUAL(
        ask(&world, "POST", "/api/v1/pause", "Authorization: Bearer nonsense\r\n", "", &text), 401);
    CU_ASSERT_TRUE(says(&text, "WWW-Authenticate: Bearer"));
    CU_ASSERT_EQUAL(world.calls, 1);
    static const char operator[] = "Authorization: Bearer operator-token-0123456789\r\n";
    CU_ASSERT_EQUAL(ask(&world, "POST", "/api/v1/pause", operator, "", &text), 200);
    CU_ASSERT_STRING_EQUAL(world.actor, "alice");
    CU_ASSERT_EQUAL(api_counts(world.api).denied, 2);
    close_world(&world);
}

TEST(a_token_bound_to_a_job_speaks_for_that_job_alone)
{
    struct world_of_test world;
    AUTO_TEXT text = {0};
    open_world(&world);
    static const char token[] = "Authorization: Bearer job-token-0123456789\r\n";
    CU_ASSERT_EQUAL(ask(&world, "PUT", "/api/v1/jobs/default/llm-17", token, "{}", &text), 201);
    CU_ASSERT_EQUAL(ask(&world, "PUT", "/api/v1/jobs/default/llm-18", token, "{}", &text), 403);
    CU_ASSERT_TRUE(says(&text, "another job"));
    CU_ASSERT_EQUAL(ask(&world, "GET", "/api/v1/status", token, "", &text), 403);
    CU_ASSERT_EQUAL(world.calls, 1);
    close_world(&world);
}

TESTS(T(lines_that_are_all_good_are_answered_with_204),
      T(a_bad_line_is_answered_with_its_number_and_cause),
      T(no_room_is_503_too_fast_is_429_and_both_say_when_to_come_again),
      T(job_names_hold_slashes_plain_or_encoded),
      T(a_layout_is_json_or_the_text_that_a_launcher_reads),
      T(a_second_live_workload_of_one_name_is_409),
      T(an_unknown_path_is_404_and_a_wrong_method_405_with_what_is_allowed),
      T(incidents_are_asked_for_with_filters_that_are_checked),
      T(an_incident_that_is_not_there_is_404),
      T(what_is_in_memory_is_shown_while_the_database_is_away),
      T(a_command_carries_its_words_and_the_proven_name),
      T(a_command_with_a_bad_body_is_400_and_never_reaches_the_backend),
      T(each_outcome_of_a_command_has_its_code),
      T(a_web_page_of_somebody_else_can_neither_command_nor_write),
      T(a_name_that_was_pointed_at_loopback_sees_nothing),
      T(an_answer_for_a_client_that_left_is_dropped),
      T(an_answer_that_comes_later_reaches_its_client),
      T(questions_still_open_at_the_end_are_let_go),
      T(the_page_brings_all_it_needs_and_may_run_nothing_else),
      T(a_local_sender_may_write_and_look_but_a_command_needs_a_proven_name),
      T(a_token_bound_to_a_job_speaks_for_that_job_alone))
