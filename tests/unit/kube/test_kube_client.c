#include "tests/unit/kube/kube_bench.h"

/* A server that answers from a list of replies, the last one staying, and notes what it was asked.
 */
struct reply {
    int code; /* 0: no answer; -1: the connection is cut */
    const char *headers, *body;
};

struct test {
    struct kube_bench bench;
    const struct reply *replies;
    struct text asked; /* "GET /path\n" a request */
    char last_head[4096], last_body[512];
    struct scripted_connection *held[64];
    int held_count, requests;
    int answers;
    enum kube_result result;
    int code;
    bool no_such_kind;
    char message[256];
    int64_t retry_after_ns;
    bool free_on_answer;
};

static void on_request(void *context, struct scripted_connection *connection)
{
    struct test *test = context;
    const struct reply *reply = test->replies;
    test->requests++;
    text_addf(&test->asked, "%s %s\n", connection->method, connection->path);
    text_copy(test->last_head, sizeof test->last_head, connection->head);
    text_copy(test->last_body, sizeof test->last_body, connection->body.bytes);
    if (reply[1].body != NULL)
        test->replies++;
    if (reply->code > 0)
        scripted_reply(connection, reply->code, reply->headers, reply->body);
    else if (reply->code < 0)
        scripted_cut(connection);
    else
        test->held[test->held_count++] = connection;
}

static void on_answer(void *context, const struct kube_answer *answer)
{
    struct test *test = context;
    test->answers++;
    test->result = answer->result;
    test->code = answer->code;
    test->no_such_kind = answer->no_such_kind;
    test->retry_after_ns = answer->retry_after_ns;
    CU_ASSERT_PTR_NOT_NULL_FATAL(answer->message);
    text_copy(test->message, sizeof test->message, answer->message);
    if (test->free_on_answer)
        kube_client_free(TAKE(test->bench.client));
}

static void open_with(struct test *test, const struct kube_limits *limits,
                      const struct reply *replies)
{
    *test = (struct test){.replies = replies};
    kube_bench_open(&test->bench, limits, "{token: secret}", on_request, test);
}

static void open_test(struct test *test, const struct reply *replies)
{
    struct kube_limits limits = kube_limits_default();
    open_with(test, &limits, replies);
}

static void close_test(struct test *test)
{
    kube_bench_close(&test->bench);
    text_done(&test->asked);
}

static void call(struct test *test, struct kube_call call)
{
    test->answers = 0;
    kube_call_start(test->bench.client, &call, on_answer, test);
    CU_ASSERT_EQUAL(test->answers, 0); /* never from inside the start */
    kube_bench_until(&test->bench, &test->answers, 1);
}

static void get(struct test *test, const char *path)
{
    call(test, (struct kube_call){.method = "GET", .path = path, .priority = KUBE_READ});
}

static void patch(struct test *test, enum kube_patch kind)
{
    call(test, (struct kube_call){.method = "PATCH",
                                  .path = "/api/v1/nodes/gb-1",
                                  .body = view_of("{\"spec\":{\"unschedulable\":true}}"),
                                  .patch = kind,
                                  .timeout_ms = 500});
}

TEST(a_call_carries_who_we_are_and_what_kind_of_patch_it_is)
{
    struct test test;
    open_test(&test, (const struct reply[]){{200, "", "{}"}, {0}});
    patch(&test, KUBE_STRATEGIC_PATCH);
    CU_ASSERT_EQUAL(test.result, KUBE_OK);
    CU_ASSERT_STRING_EQUAL(test.asked.bytes, "PATCH /api/v1/nodes/gb-1\n");
    CU_ASSERT_STRING_EQUAL(test.last_body, "{\"spec\":{\"unschedulable\":true}}");
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "Authorization: Bearer secret\r\n"));
    CU_ASSERT_PTR_NOT_NULL(
        strstr(test.last_head, "Content-Type: application/strategic-merge-patch+json\r\n"));
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "User-Agent: broomwagon/"));
    patch(&test, KUBE_MERGE_PATCH);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "application/merge-patch+json\r\n"));
    patch(&test, KUBE_JSON_PATCH);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "application/json-patch+json\r\n"));
    close_test(&test);
}

#define STATUS(members) "{\"kind\":\"Status\",\"status\":\"Failure\"," members "}"

TEST(each_answer_has_one_meaning)
{
    static const struct {
        enum kube_patch patch;
        struct reply reply;
        enum kube_result result;
        const char *words;
        bool no_such_kind;
    } cases[] = {
        {0, {200, "", "{\"kind\":\"Node\"}"}, KUBE_OK, "", false},
        {0, {201, "", "{\"kind\":\"Status\",\"status\":\"Success\"}"}, KUBE_OK, "", false},
        {0, {200, "", "<html>"}, KUBE_UNKNOWN, "not a JSON object", false},
        {0, {200, "", ""}, KUBE_UNKNOWN, "not a JSON object", false},
        {0, {200, "", STATUS("\"message\":\"in trouble\"")}, KUBE_UNKNOWN, "in trouble", false},
        {0,
         {404, "", STATUS("\"message\":\"nodes gb-1 not found\",\"details\":{\"name\":\"gb-1\"}")},
         KUBE_NOT_FOUND,
         "gb-1 not found",
         false},
        {0, {404, "", "404 page not found\n"}, KUBE_NOT_FOUND, "404", true},
        {0, {409, "", STATUS("\"reason\":\"Conflict\"")}, KUBE_CONFLICT, "409", false},
        {0, {409, "", STATUS("\"reason\":\"AlreadyExists\"")}, KUBE_EXISTS, "", false},
        {KUBE_JSON_PATCH,
         {422, "", STATUS("\"reason\":\"Invalid\",\"details\":{}")},
         KUBE_CONFLICT,
         "",
         false},
        {KUBE_JSON_PATCH,
         {422, "", STATUS("\"reason\":\"Invalid\",\"details\":{\"name\":\"x\",\"causes\":[{}]}")},
         KUBE_REFUSED,
         "",
         false},
        {KUBE_MERGE_PATCH, {422, "", STATUS("\"reason\":\"Invalid\"")}, KUBE_REFUSED, "", false},
        {0, {410, "", STATUS("\"reason\":\"Expired\"")}, KUBE_EXPIRED, "", false},
        {0,
         {429, "",
          STATUS("\"message\":\"Cannot evict pod.\",\"details\":{\"causes\":[{\"reason\":"
                 "\"DisruptionBudget\",\"message\":\"The disruption budget train needs 16 healthy "
                 "pods\"}]}")},
         KUBE_BLOCKED,
         "budget train needs 16",
         false},
        {0,
         {429, "Retry-After: 4\r\n", STATUS("\"message\":\"too many\"")},
         KUBE_BUSY,
         "too many",
         false},
        {0, {503, "", "starting"}, KUBE_BUSY, "503", false},
        {0, {401, "", STATUS("\"message\":\"Unauthorized\"")}, KUBE_DENIED, "credentials", false},
        {0,
         {403, "", STATUS("\"message\":\"nodes is forbidden: cannot patch\\n\"")},
         KUBE_DENIED,
         "cannot patch ",
         false},
        {0, {400, "", STATUS("\"message\":\"bad time\"")}, KUBE_REFUSED, "bad time", false},
        {0, {500, "", STATUS("\"message\":\"etcd\"")}, KUBE_UNKNOWN, "etcd", false},
        {0, {504, "", "gateway"}, KUBE_UNKNOWN, "504", false},
        {0, {-1, "", ""}, KUBE_UNKNOWN, "", false},
        {0, {0, "", ""}, KUBE_UNKNOWN, "", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct test test;
        const struct reply replies[] = {cases[i].reply, {0}};
        open_test(&test, replies);
        patch(&test, cases[i].patch);
        bool is_as_told = test.result == cases[i].result &&
                          strstr(test.message, cases[i].words) != NULL &&
                          test.no_such_kind == cases[i].no_such_kind;
        CU_ASSERT(is_as_told);
        if (!is_as_told)
            printf("case %zu: %d '%s'\n", i, (int)test.result, test.message);
        CU_ASSERT_EQUAL(test.requests, 1); /* what changes the cluster is sent once */
        close_test(&test);
    }
}

TEST(a_busy_server_says_how_long_to_wait)
{
    struct test test;
    open_test(&test, (const struct reply[]){{429, "Retry-After: 4\r\n", "{}"}, {503, "", ""}, {0}});
    patch(&test, KUBE_MERGE_PATCH);
    CU_ASSERT_EQUAL(test.retry_after_ns, 4000000000);
    patch(&test, KUBE_MERGE_PATCH);
    CU_ASSERT_EQUAL(test.retry_after_ns, 1000000000);
    close_test(&test);
}

TEST(a_read_is_tried_again_after_the_time_that_the_server_names)
{
    struct test test;
    int64_t started_ns;
    open_test(&test,
              (const struct reply[]){{429, "Retry-After: 1\r\n", "{}"}, {200, "", "{}"}, {0}});
    started_ns = clock_read().monotonic_ns;
    get(&test, "/api/v1/nodes/gb-1");
    CU_ASSERT_EQUAL(test.result, KUBE_OK);
    CU_ASSERT_EQUAL(test.requests, 2);
    CU_ASSERT(clock_read().monotonic_ns - started_ns >= 1000000000);
    CU_ASSERT_EQUAL(kube_client_counts(test.bench.client).busy, 1);
    close_test(&test);
}

TEST(a_read_that_may_not_be_tried_in_its_time_is_busy)
{
    struct test test;
    open_test(&test, (const struct reply[]){{429, "Retry-After: 60\r\n", "{}"}, {0}});
    get(&test, "/api/v1/nodes/gb-1");
    CU_ASSERT_EQUAL(test.result, KUBE_BUSY);
    CU_ASSERT_EQUAL(test.requests, 1);
    close_test(&test);
}

TEST(a_server_that_is_away_leaves_a_change_undone_and_a_read_waiting)
{
    struct test test;
    open_test(&test, (const struct reply[]){{200, "", "{}"}, {0}});
    int port = test.bench.server.port;
    scripted_close(&test.bench.server);
    patch(&test, KUBE_MERGE_PATCH);
    CU_ASSERT_EQUAL(test.result, KUBE_UNREACHABLE);
    test.answers = 0;
    kube_call_start(test.bench.client,
                    &(struct kube_call){.method = "GET", .path = "/x", .priority = KUBE_READ},
                    on_answer, &test);
    kube_bench_run_ms(&test.bench, 100);
    CU_ASSERT_EQUAL(test.answers, 0);
    scripted_open(&test.bench.server, test.bench.loop, port, on_request, &test);
    kube_bench_until(&test.bench, &test.answers, 1);
    CU_ASSERT_EQUAL(test.result, KUBE_OK);
    close_test(&test);
}

TEST(a_token_file_is_read_again_for_each_call)
{
    char name[] = "/tmp/kube-token-XXXXXX";
    int fd = mkstemp(name);
    struct kube_limits limits = kube_limits_default();
    struct test test = {.replies = (const struct reply[]){{200, "", "{}"}, {0}}};
    AUTO_TEXT user = {0};
    CU_ASSERT_FATAL(fd >= 0);
    text_addf(&user, "{tokenFile: %s}", name);
    kube_bench_open(&test.bench, &limits, user.bytes, on_request, &test);
    CU_ASSERT_EQUAL(pwrite(fd, "first\n", 6, 0), 6);
    get(&test, "/x");
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "Bearer first\r\n"));
    CU_ASSERT_EQUAL(pwrite(fd, "other\n", 6, 0), 6);
    get(&test, "/x");
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "Bearer other\r\n"));
    close(fd);
    unlink(name);
    patch(&test, KUBE_MERGE_PATCH);
    CU_ASSERT_EQUAL(test.result, KUBE_UNREACHABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.message, name));
    CU_ASSERT_EQUAL(test.requests, 2);
    test.answers = 0;
    kube_call_start(test.bench.client,
                    &(struct kube_call){.method = "GET", .path = "/x", .priority = KUBE_READ},
                    on_answer, &test);
    kube_bench_run_ms(&test.bench, 50);
    CU_ASSERT_EQUAL(test.answers, 0); /* a read waits for the file to be there again */
    FILE *file = fopen(name, "we");
    CU_ASSERT_FATAL(file != NULL);
    fputs("third", file);
    fclose(file);
    kube_bench_until(&test.bench, &test.answers, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.last_head, "Bearer third\r\n"));
    unlink(name);
    close_test(&test);
}

TEST(names_are_escaped_in_paths_and_queries)
{
    AUTO_TEXT path = {0};
    text_add(&path, "/api/v1/nodes");
    kube_path_add(&path, "a/../b?c d%\xc3\xa9");
    kube_query_add(&path, "labelSelector", "a=b,c");
    kube_query_add(&path, "limit", "5");
    CU_ASSERT_STRING_EQUAL(path.bytes,
                           "/api/v1/nodes/a%2F..%2Fb%3Fc%20d%25%C3%A9?labelSelector=a%3Db%2Cc"
                           "&limit=5");
}

static void start_many(struct test *test, int count, const char *method, const char *path,
                       enum kube_priority priority)
{
    for (int i = 0; i < count; i++)
        kube_call_start(test->bench.client,
                        &(struct kube_call){.method = method, .path = path, .priority = priority},
                        on_answer, test);
}

TEST(eighteen_cordons_go_before_what_waits_for_the_rate_limit)
{
    struct test test;
    struct kube_limits limits = kube_limits_default();
    limits.calls_per_s = 5;
    limits.burst = 2;
    open_with(&test, &limits, (const struct reply[]){{200, "", "{}"}, {0}});
    start_many(&test, 6, "GET", "/list", KUBE_LIST);
    kube_bench_until(&test.bench, &test.answers, 2);
    int64_t started_ns = clock_read().monotonic_ns;
    start_many(&test, 18, "PATCH", "/cordon", KUBE_ACT);
    kube_bench_until(&test.bench, &test.answers, 20);
    CU_ASSERT(clock_read().monotonic_ns - started_ns < 300000000);
    kube_bench_until(&test.bench, &test.answers, 24);
    struct kube_client_counts counts = kube_client_counts(test.bench.client);
    CU_ASSERT(counts.waited_ns_max[KUBE_LIST] >= 500000000);
    CU_ASSERT(counts.waited_ns_max[KUBE_ACT] < 300000000);
    CU_ASSERT_EQUAL(counts.calls, 24);
    close_test(&test);
}

TEST(reads_wait_before_lists_and_both_leave_places_for_acts)
{
    struct test test;
    struct kube_limits limits = kube_limits_default();
    limits.under_way = 8;
    open_with(&test, &limits, (const struct reply[]){{0, "", ""}, {0}});
    start_many(&test, 6, "GET", "/list", KUBE_LIST);
    start_many(&test, 2, "GET", "/read", KUBE_READ);
    kube_bench_until(&test.bench, &test.requests, 4);
    start_many(&test, 6, "PATCH", "/cordon", KUBE_ACT);
    kube_bench_until(&test.bench, &test.requests, 8);
    kube_bench_run_ms(&test.bench, 30);
    struct kube_client_counts counts = kube_client_counts(test.bench.client);
    CU_ASSERT_EQUAL(test.requests, 8);
    CU_ASSERT_EQUAL(counts.under_way, 8);
    CU_ASSERT_EQUAL(counts.waiting, 6);
    /* The connections of one moment come in any order. */
    int kinds[3] = {0};
    for (const char *line = test.asked.bytes; *line != '\0'; line = strchr(line, '\n') + 1)
        kinds[strstr(line, "read\n") == line + 5 ? 0 : strncmp(line, "GET", 3) == 0 ? 1 : 2]++;
    CU_ASSERT_EQUAL(kinds[0], 2);
    CU_ASSERT_EQUAL(kinds[1], 2);
    CU_ASSERT_EQUAL(kinds[2], 4);
    close_test(&test);
}

TEST(a_call_that_is_never_let_go_ends_as_not_done)
{
    struct test test;
    struct kube_limits limits = kube_limits_default();
    limits.under_way = 1;
    limits.wait_ms = 100;
    open_with(&test, &limits, (const struct reply[]){{0, "", ""}, {0}});
    start_many(&test, 2, "PATCH", "/cordon", KUBE_ACT);
    kube_bench_until(&test.bench, &test.answers, 1);
    CU_ASSERT_EQUAL(test.result, KUBE_UNREACHABLE);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.message, "not sent"));
    CU_ASSERT_EQUAL(test.requests, 1);
    close_test(&test);
}

TEST(freeing_drops_what_waits_and_what_is_under_way)
{
    struct test test;
    struct kube_limits limits = kube_limits_default();
    limits.under_way = 2;
    open_with(&test, &limits, (const struct reply[]){{0, "", ""}, {0}});
    start_many(&test, 5, "PATCH", "/cordon", KUBE_ACT);
    kube_bench_until(&test.bench, &test.requests, 2);
    struct kube_request *request = kube_call_start(
        test.bench.client, &(struct kube_call){.method = "GET", .path = "/"}, on_answer, &test);
    kube_request_drop(request);
    close_test(&test);
    CU_ASSERT_EQUAL(test.answers, 0);
}

TEST(the_client_may_be_freed_by_an_answer)
{
    struct test test;
    open_test(&test, (const struct reply[]){{200, "", "{}"}, {0}});
    test.free_on_answer = true;
    start_many(&test, 5, "PATCH", "/cordon", KUBE_ACT);
    kube_bench_until(&test.bench, &test.answers, 1);
    CU_ASSERT_EQUAL(test.answers, 1);
    close_test(&test);
}

/* ---- lists ---- */

struct listed {
    struct test test;
    struct kube_listing *listing;
    struct text items;
    char version[32];
    int done, restarts;
    bool drop_on_item, refuse_version;
};

static void on_item(void *context, const struct json *object)
{
    struct listed *listed = context;
    text_addf(&listed->items, "%s ", json_get_string(json_get(object, "metadata"), "name", "?"));
    if (listed->drop_on_item)
        kube_list_drop(TAKE(listed->listing));
}

static bool on_version(void *context, const char *version)
{
    struct listed *listed = context;
    text_copy(listed->version, sizeof listed->version, version);
    return !listed->refuse_version;
}

static void on_restart(void *context)
{
    struct listed *listed = context;
    listed->restarts++;
    text_clear(&listed->items);
}

static void on_done(void *context, const struct kube_answer *answer, const char *version)
{
    struct listed *listed = context;
    on_answer(&listed->test, answer);
    listed->done++;
    text_copy(listed->version, sizeof listed->version, version);
}

static void open_list(struct listed *listed, const struct reply *replies)
{
    *listed = (struct listed){0};
    open_test(&listed->test, replies);
    text_add(&listed->items, "");
    listed->listing = kube_list_start(listed->test.bench.client,
                                      &(struct kube_list){.path = "/api/v1/pods?labelSelector=a",
                                                          .page_items = 2,
                                                          .priority = KUBE_LIST,
                                                          .on_version = on_version,
                                                          .on_item = on_item,
                                                          .on_restart = on_restart,
                                                          .on_done = on_done,
                                                          .context = listed});
}

static void close_list(struct listed *listed)
{
    close_test(&listed->test);
    text_done(&listed->items);
}

#define PAGE(version, next, items)                                                                 \
    {                                                                                              \
        200, "",                                                                                   \
            "{\"metadata\":{\"resourceVersion\":\"" version "\"" next "},\"items\":[" items "]}"   \
    }
#define ITEM(name)  "{\"metadata\":{\"name\":\"" name "\"}}"
#define NEXT(token) ",\"continue\":\"" token "\""

TEST(a_list_comes_page_by_page)
{
    struct listed listed;
    open_list(&listed, (const struct reply[]){PAGE("7", NEXT("x/y="), ITEM("a") "," ITEM("b")),
                                              PAGE("7", "", ITEM("c")),
                                              {0}});
    kube_bench_until(&listed.test.bench, &listed.done, 1);
    CU_ASSERT_EQUAL(listed.test.result, KUBE_OK);
    CU_ASSERT_STRING_EQUAL(listed.items.bytes, "a b c ");
    CU_ASSERT_STRING_EQUAL(listed.version, "7");
    CU_ASSERT_STRING_EQUAL(listed.test.asked.bytes,
                           "GET /api/v1/pods?labelSelector=a&limit=2\n"
                           "GET /api/v1/pods?labelSelector=a&limit=2&continue=x%2Fy%3D\n");
    close_list(&listed);
}

TEST(a_list_whose_place_is_forgotten_starts_again)
{
    struct listed listed;
    open_list(&listed,
              (const struct reply[]){
                  PAGE("7", NEXT("x"), ITEM("a")), {410, "", "{}"}, PAGE("9", "", ITEM("c")), {0}});
    kube_bench_until(&listed.test.bench, &listed.done, 1);
    CU_ASSERT_EQUAL(listed.restarts, 1);
    CU_ASSERT_STRING_EQUAL(listed.items.bytes, "c ");
    CU_ASSERT_STRING_EQUAL(listed.version, "9");
    close_list(&listed);
}

TEST(a_list_that_is_forgotten_again_and_again_ends)
{
    struct listed listed;
    open_list(&listed, (const struct reply[]){PAGE("1", NEXT("x"), ""),
                                              {410, "", "{}"},
                                              PAGE("2", NEXT("x"), ""),
                                              {410, "", "{}"},
                                              PAGE("3", NEXT("x"), ""),
                                              {410, "", "{}"},
                                              {0}});
    kube_bench_until(&listed.test.bench, &listed.done, 1);
    CU_ASSERT_EQUAL(listed.test.result, KUBE_EXPIRED);
    close_list(&listed);
}

TEST(an_answer_without_items_is_no_empty_list)
{
    static const struct reply cases[] = {
        {200, "", "{\"metadata\":{\"resourceVersion\":\"7\"}}"},
        {200, "", "{\"metadata\":{},\"items\":[]}"},
        {200, "", "{\"kind\":\"Status\",\"status\":\"Failure\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct listed listed;
        const struct reply replies[] = {cases[i], {0}};
        open_list(&listed, replies);
        kube_bench_until(&listed.test.bench, &listed.done, 1);
        CU_ASSERT_EQUAL(listed.test.result, KUBE_UNKNOWN);
        close_list(&listed);
    }
}

TEST(an_empty_list_may_be_null)
{
    struct listed listed;
    open_list(&listed,
              (const struct reply[]){
                  {200, "", "{\"metadata\":{\"resourceVersion\":\"7\"},\"items\":null}"}, {0}});
    kube_bench_until(&listed.test.bench, &listed.done, 1);
    CU_ASSERT_EQUAL(listed.test.result, KUBE_OK);
    close_list(&listed);
}

TEST(a_list_of_a_version_that_is_not_wanted_tells_no_item)
{
    struct listed listed;
    open_list(&listed, (const struct reply[]){PAGE("7", NEXT("x"), ITEM("a")), {0}});
    listed.refuse_version = true;
    kube_bench_until(&listed.test.bench, &listed.done, 1);
    CU_ASSERT_EQUAL(listed.test.result, KUBE_EXPIRED);
    CU_ASSERT_STRING_EQUAL(listed.items.bytes, "");
    close_list(&listed);
}

TEST(a_list_may_be_dropped_by_an_item)
{
    struct listed listed;
    open_list(&listed, (const struct reply[]){PAGE("7", NEXT("x"), ITEM("a") "," ITEM("b")), {0}});
    listed.drop_on_item = true;
    kube_bench_run_ms(&listed.test.bench, 50);
    CU_ASSERT_STRING_EQUAL(listed.items.bytes, "a ");
    CU_ASSERT_EQUAL(listed.done, 0);
    CU_ASSERT_EQUAL(listed.test.requests, 1);
    close_list(&listed);
}

TESTS(T(a_call_carries_who_we_are_and_what_kind_of_patch_it_is), T(each_answer_has_one_meaning),
      T(a_busy_server_says_how_long_to_wait),
      T(a_read_is_tried_again_after_the_time_that_the_server_names),
      T(a_read_that_may_not_be_tried_in_its_time_is_busy),
      T(a_server_that_is_away_leaves_a_change_undone_and_a_read_waiting),
      T(a_token_file_is_read_again_for_each_call), T(names_are_escaped_in_paths_and_queries),
      T(eighteen_cordons_go_before_what_waits_for_the_rate_limit),
      T(reads_wait_before_lists_and_both_leave_places_for_acts),
      T(a_call_that_is_never_let_go_ends_as_not_done),
      T(freeing_drops_what_waits_and_what_is_under_way), T(the_client_may_be_freed_by_an_answer),
      T(a_list_comes_page_by_page), T(a_list_whose_place_is_forgotten_starts_again),
      T(a_list_that_is_forgotten_again_and_again_ends), T(an_answer_without_items_is_no_empty_list),
      T(an_empty_list_may_be_null), T(a_list_of_a_version_that_is_not_wanted_tells_no_item),
      T(a_list_may_be_dropped_by_an_item))
