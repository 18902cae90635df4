#include "tests/unit/kube/kube_bench.h"

#include "controller/kube/kube_objects.h"
#include "controller/kube/kube_watch.h"
#include "controller/sys/clock.h"

/* A cluster of one kind that a test changes as it likes, and what the watch has told of it. */
struct object {
    char name[16];
    int version;
    bool is_there;
};

enum { OBJECTS = 8, EVENTS_MAX = 64 };

struct event {
    const char *type;
    struct object object;
};

struct test {
    struct kube_bench bench;
    struct kube_watch *watch;
    struct object cluster[OBJECTS], told[OBJECTS];
    int version;
    struct event events[EVENTS_MAX]; /* since the start: a new watch gets those after its version */
    int event_count;
    /* what the server does instead of its duty, when not 0 */
    int list_code, watch_code, empty_watches, list_version;
    bool is_silent;
    const char *list_body;
    struct scripted_connection *stream;
    char stream_path[256];
    int lists, streams;
    int news, gone, synced, lost;
    char reason[512];
    bool free_on_object;
};

static void write_object(struct text *out, const struct object *object)
{
    text_addf(out, "{\"metadata\":{\"name\":\"%s\",\"resourceVersion\":\"%d\"}}", object->name,
              object->version);
}

static void serve_list(struct test *test, struct scripted_connection *connection)
{
    AUTO_TEXT body = {0};
    test->lists++;
    if (test->list_code != 0) {
        scripted_reply(connection, test->list_code, "",
                       test->list_body != NULL ? test->list_body : "{}");
        return;
    }
    text_addf(&body, "{\"metadata\":{\"resourceVersion\":\"%d\"},\"items\":[",
              test->list_version > 0 ? test->list_version : test->version);
    bool is_first = true;
    for (int i = 0; i < OBJECTS; i++) {
        if (!test->cluster[i].is_there)
            continue;
        text_add(&body, is_first ? "" : ",");
        write_object(&body, &test->cluster[i]);
        is_first = false;
    }
    text_add(&body, "]}");
    scripted_reply(connection, 200, "", body.bytes);
}

static void send_event(struct scripted_connection *stream, const struct event *event)
{
    AUTO_TEXT line = {0};
    text_addf(&line, "{\"type\":\"%s\",\"object\":", event->type);
    write_object(&line, &event->object);
    text_add(&line, "}\n");
    scripted_chunk(stream, line.bytes);
}

static void serve_stream(struct test *test, struct scripted_connection *connection)
{
    const char *from = strstr(connection->path, "resourceVersion=");
    test->streams++;
    text_copy(test->stream_path, sizeof test->stream_path, connection->path);
    if (test->watch_code != 0) {
        scripted_reply(connection, test->watch_code, "", "{\"message\":\"as told\"}");
        return;
    }
    scripted_open_stream(connection);
    if (test->empty_watches > 0) {
        test->empty_watches--;
        scripted_end_stream(connection);
        return;
    }
    test->stream = connection;
    CU_ASSERT_PTR_NOT_NULL_FATAL(from);
    for (int i = 0; i < test->event_count; i++)
        if (test->events[i].object.version > (int)strtol(from + 16, NULL, 10))
            send_event(connection, &test->events[i]);
}

static void on_request(void *context, struct scripted_connection *connection)
{
    struct test *test = context;
    if (test->is_silent)
        return;
    if (strstr(connection->path, "watch=1") != NULL)
        serve_stream(test, connection);
    else
        serve_list(test, connection);
}

static struct object *find(struct object *objects, const char *name)
{
    for (int i = 0; i < OBJECTS; i++)
        if (strcmp(objects[i].name, name) == 0)
            return &objects[i];
    CU_FAIL_FATAL("no such object");
    return NULL;
}

static void on_object(void *context, const struct json *json)
{
    struct test *test = context;
    const struct json *metadata = json_get(json, "metadata");
    struct object *object = find(test->told, json_get_string(metadata, "name", ""));
    int version = (int)strtol(json_get_string(metadata, "resourceVersion", ""), NULL, 10);
    CU_ASSERT(version >= object->version); /* never back in time */
    object->version = version;
    object->is_there = true;
    test->news++;
    if (test->free_on_object)
        kube_watch_free(TAKE(test->watch));
}

static void on_gone(void *context, const char *namespace_name, const char *name)
{
    struct test *test = context;
    struct object *object = find(test->told, name);
    CU_ASSERT_STRING_EQUAL(namespace_name, "");
    CU_ASSERT(object->is_there); /* never told twice */
    object->is_there = false;
    test->gone++;
}

static void on_state(void *context, bool is_synced, const char *reason)
{
    struct test *test = context;
    CU_ASSERT_EQUAL(is_synced, reason == NULL);
    test->synced += is_synced;
    test->lost += !is_synced;
    if (reason != NULL)
        text_copy(test->reason, sizeof test->reason, reason);
}

static void start_watch(struct test *test, bool is_optional, int idle_ms)
{
    test->watch = kube_watch_new(test->bench.client,
                                 &(struct kube_watch_params){.path = "/api/v1/nodes",
                                                             .is_optional = is_optional,
                                                             .on_object = on_object,
                                                             .on_gone = on_gone,
                                                             .on_state = on_state,
                                                             .context = test,
                                                             .backoff_ms = 10,
                                                             .idle_ms = idle_ms});
}

static void prepare(struct test *test)
{
    struct kube_limits limits = kube_limits_default();
    limits.calls_per_s = limits.burst = 1000;
    *test = (struct test){.version = 100};
    for (int i = 0; i < OBJECTS; i++) {
        snprintf(test->cluster[i].name, sizeof test->cluster[i].name, "gb-%d", i);
        test->told[i] = test->cluster[i];
        test->cluster[i].is_there = i < 4;
        test->cluster[i].version = 90 + i;
    }
    kube_bench_open(&test->bench, &limits, "{token: t}", on_request, test);
}

static void open_test(struct test *test)
{
    prepare(test);
    start_watch(test, false, 0);
    kube_bench_until(&test->bench, &test->streams, 1);
}

static void close_test(struct test *test)
{
    kube_watch_free(test->watch);
    kube_bench_close(&test->bench);
}

/* A change of one object, with its event when somebody watches. */
static void change(struct test *test, int number, bool is_there)
{
    struct object *object = &test->cluster[number];
    const char *type = !is_there ? "DELETED" : object->is_there ? "MODIFIED" : "ADDED";
    bool is_change = is_there || object->is_there;
    object->is_there = is_there;
    object->version = ++test->version;
    if (!is_change)
        return;
    CU_ASSERT_FATAL(test->event_count < EVENTS_MAX);
    test->events[test->event_count++] = (struct event){type, *object};
    if (test->stream != NULL && test->stream->fd >= 0)
        send_event(test->stream, &test->events[test->event_count - 1]);
}

static bool is_same(const struct test *test)
{
    for (int i = 0; i < OBJECTS; i++)
        if (test->cluster[i].is_there != test->told[i].is_there ||
            (test->told[i].is_there && test->cluster[i].version != test->told[i].version))
            return false;
    return true;
}

static void until_same(struct test *test)
{
    while (!is_same(test) && !test->bench.is_late)
        kube_bench_run_ms(&test->bench, 5);
}

static const char *why_not_synced(const struct test *test, int64_t fresh_ns)
{
    const char *reason;
    return kube_watch_is_synced(test->watch, fresh_ns, &reason) ? NULL : reason;
}

TEST(the_picture_follows_the_cluster)
{
    struct test test;
    prepare(&test);
    start_watch(&test, false, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not_synced(&test, INT64_MAX), "was not listed yet"));
    kube_bench_until(&test.bench, &test.streams, 1);
    CU_ASSERT(is_same(&test));
    CU_ASSERT_EQUAL(test.synced, 1);
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 10000000000));
    CU_ASSERT_PTR_NOT_NULL(strstr(test.stream_path, "resourceVersion=100&"));
    CU_ASSERT_PTR_NOT_NULL(strstr(test.stream_path, "allowWatchBookmarks=true"));
    change(&test, 1, true);
    change(&test, 6, true);
    change(&test, 2, false);
    until_same(&test);
    CU_ASSERT_EQUAL(test.news, 4 + 2);
    CU_ASSERT_EQUAL(test.gone, 1);
    struct kube_watch_counts counts = kube_watch_counts(test.watch);
    CU_ASSERT_EQUAL(counts.lists, 1);
    CU_ASSERT_EQUAL(counts.events, 3);
    CU_ASSERT_EQUAL(counts.objects, 4);
    close_test(&test);
}

TEST(a_watch_goes_on_from_the_newest_bookmark)
{
    struct test test;
    open_test(&test);
    scripted_chunk(
        test.stream,
        "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"777\"}}}\n");
    scripted_end_stream(test.stream);
    kube_bench_until(&test.bench, &test.streams, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.stream_path, "resourceVersion=777&"));
    CU_ASSERT_EQUAL(test.lists, 1);
    CU_ASSERT_EQUAL(test.news, 4);
    CU_ASSERT_EQUAL(kube_watch_counts(test.watch).bookmarks, 1);
    close_test(&test);
}

TEST(a_line_may_come_in_pieces_and_many_lines_in_one)
{
    struct test test;
    open_test(&test);
    AUTO_TEXT lines = {0};
    for (int i = 0; i < 3; i++) {
        test.cluster[i].version = ++test.version;
        text_add(&lines, "{\"type\":\"MODIFIED\",\"object\":");
        write_object(&lines, &test.cluster[i]);
        text_add(&lines, "}\n\n");
    }
    for (size_t at = 0; at < lines.length; at += 37) {
        AUTO_FREE char *piece = xstrndup(lines.bytes + at,
                                         lines.length - at < 37 ? lines.length - at : 37);
        scripted_chunk(test.stream, piece);
        kube_bench_run_ms(&test.bench, 2);
    }
    until_same(&test);
    CU_ASSERT_EQUAL(test.news, 4 + 3);
    scripted_chunk(test.stream, lines.bytes);
    kube_bench_run_ms(&test.bench, 20);
    CU_ASSERT_EQUAL(test.lists, 1);
    close_test(&test);
}

/* While nobody watches one object goes, one comes and one changes. */
static void change_unseen(struct test *test)
{
    struct scripted_connection *stream = TAKE(test->stream);
    change(test, 0, false);
    change(test, 5, true);
    change(test, 1, true);
    test->stream = stream;
}

TEST(an_expired_version_inside_a_stream_lists_again)
{
    struct test test;
    open_test(&test);
    change_unseen(&test);
    scripted_chunk(test.stream,
                   "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,\"message\":"
                   "\"too old resource version\"}}\n");
    kube_bench_until(&test.bench, &test.streams, 2);
    CU_ASSERT(is_same(&test));
    CU_ASSERT_EQUAL(test.lists, 2);
    CU_ASSERT_EQUAL(test.gone, 1);
    CU_ASSERT_EQUAL(test.lost, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.reason, "too old resource version"));
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 10000000000));
    CU_ASSERT_EQUAL(kube_watch_counts(test.watch).expired, 1);
    close_test(&test);
}

TEST(an_expired_version_as_a_code_lists_again)
{
    struct test test;
    open_test(&test);
    change_unseen(&test);
    test.watch_code = 410;
    scripted_end_stream(test.stream);
    kube_bench_until(&test.bench, &test.streams, 2);
    test.watch_code = 0;
    kube_bench_until(&test.bench, &test.streams, 3);
    CU_ASSERT(is_same(&test));
    CU_ASSERT_EQUAL(test.lists, 2);
    CU_ASSERT_EQUAL(test.gone, 1);
    close_test(&test);
}

TEST(a_server_that_always_says_expired_is_asked_ever_more_seldom)
{
    struct test test;
    open_test(&test);
    test.watch_code = 410;
    scripted_end_stream(test.stream);
    kube_bench_run_ms(&test.bench, 400);
    CU_ASSERT(test.lists >= 3 && test.lists <= 8);
    close_test(&test);
}

TEST(watches_that_close_at_once_back_off_and_list_again)
{
    struct test test;
    open_test(&test);
    test.empty_watches = 3;
    int64_t started_ns = clock_read().monotonic_ns;
    scripted_end_stream(test.stream); /* this one too closed without an event */
    kube_bench_until(&test.bench, &test.streams, 3);
    CU_ASSERT(clock_read().monotonic_ns - started_ns >= 20000000);
    kube_bench_until(&test.bench, &test.lists, 2);
    CU_ASSERT(test.streams <= 4);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.reason, "closes watches at once"));
    kube_bench_until(&test.bench, &test.streams, 5);
    CU_ASSERT(kube_watch_counts(test.watch).empty_watches >= 3);
    close_test(&test);
}

TEST(a_list_from_the_past_is_not_acted_on)
{
    struct test test;
    open_test(&test);
    change(&test, 1, true);
    until_same(&test);
    int news = test.news;
    test.list_version = 50;
    test.cluster[1].version = 40; /* what an old server would say */
    test.cluster[2].is_there = false;
    scripted_chunk(test.stream, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
    kube_bench_until(&test.bench, &test.lists, 3);
    CU_ASSERT_EQUAL(test.news, news);
    CU_ASSERT_EQUAL(test.gone, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not_synced(&test, INT64_MAX), "older than what was seen"));
    CU_ASSERT(kube_watch_counts(test.watch).stale_lists >= 2);
    test.list_version = 0;
    test.cluster[1].version = test.version;
    until_same(&test);
    kube_bench_until(&test.bench, &test.synced, 2);
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 10000000000));
    close_test(&test);
}

TEST(an_old_event_of_an_object_is_not_told)
{
    struct test test;
    open_test(&test);
    change(&test, 1, true);
    until_same(&test);
    struct object old = test.cluster[1];
    old.version = 95;
    send_event(test.stream, &(struct event){"MODIFIED", old});
    change(&test, 2, true);
    until_same(&test);
    CU_ASSERT_EQUAL(test.news, 4 + 2);
    close_test(&test);
}

TEST(a_cut_stream_goes_on_where_it_was)
{
    struct test test;
    open_test(&test);
    change(&test, 1, true);
    until_same(&test);
    scripted_cut(TAKE(test.stream));
    kube_bench_until(&test.bench, &test.streams, 2);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.stream_path, "resourceVersion=101&"));
    CU_ASSERT_EQUAL(test.lists, 1);
    CU_ASSERT_EQUAL(test.lost, 0);
    close_test(&test);
}

TEST(what_makes_no_sense_lists_again)
{
    static const char *const lines[] = {
        "{\"type\":\"MODI\n",
        "<html>\n",
        "{\"type\":\"NEW\",\"object\":{}}\n",
        "{\"type\":\"MODIFIED\",\"object\":{}}\n",
        "[]\n",
        "{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"etcd\"}}\n"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct test test;
        open_test(&test);
        change_unseen(&test);
        scripted_chunk(test.stream, lines[i]);
        kube_bench_until(&test.bench, &test.streams, 2);
        CU_ASSERT_EQUAL(test.lists, 2);
        CU_ASSERT(is_same(&test));
        close_test(&test);
    }
}

TEST(a_line_without_an_end_is_not_collected_for_ever)
{
    struct test test;
    open_test(&test);
    AUTO_TEXT block = {0};
    for (int i = 0; i < 1024; i++)
        text_add(&block, "{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"gb-1\"     ");
    for (int i = 0; i < 400 && test.streams < 2; i++) {
        scripted_chunk(test.stream, block.bytes);
        kube_bench_run_ms(&test.bench, 1);
    }
    kube_bench_until(&test.bench, &test.streams, 2);
    CU_ASSERT_EQUAL(test.lists, 1);
    close_test(&test);
}

TEST(a_silent_server_is_noticed_and_asked_anew)
{
    struct test test;
    prepare(&test);
    start_watch(&test, false, 100);
    kube_bench_until(&test.bench, &test.streams, 1);
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 10000000000));
    kube_bench_run_ms(&test.bench, 60);
    CU_ASSERT_PTR_NOT_NULL(strstr(why_not_synced(&test, 20000000), "was not heard of"));
    kube_bench_until(&test.bench, &test.streams, 2);
    CU_ASSERT_EQUAL(test.lists, 1);
    kube_bench_run_ms(&test.bench, 10);
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 10000000000));
    close_test(&test);
}

TEST(a_server_that_comes_back_is_found_again)
{
    struct test test;
    open_test(&test);
    int port = test.bench.server.port;
    scripted_close(&test.bench.server);
    test.stream = NULL;
    kube_bench_until(&test.bench, &test.lost, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(test.reason, "cannot watch /api/v1/nodes: "));
    change(&test, 3, true);
    scripted_open(&test.bench.server, test.bench.loop, port, on_request, &test);
    kube_bench_until(&test.bench, &test.synced, 2);
    CU_ASSERT_EQUAL(test.lists, 1); /* what it missed comes as events of the watch */
    close_test(&test);
}

TEST(who_may_not_list_hears_why)
{
    struct test test;
    prepare(&test);
    test.list_code = 403;
    test.list_body = "{\"message\":\"nodes is forbidden: User \\\"x\\\" cannot list\"}";
    start_watch(&test, true, 0);
    kube_bench_until(&test.bench, &test.lists, 3);
    CU_ASSERT_EQUAL(test.lost, 1); /* the same reason is told once */
    CU_ASSERT_PTR_NOT_NULL(strstr(test.reason, "cannot list /api/v1/nodes: nodes is forbidden"));
    test.list_code = 0;
    until_same(&test);
    close_test(&test);
}

TEST(a_kind_that_is_not_installed_is_an_empty_picture_when_it_is_optional)
{
    struct test test;
    prepare(&test);
    test.list_code = 404;
    test.list_body = "404 page not found\n";
    start_watch(&test, true, 0);
    kube_bench_until(&test.bench, &test.synced, 1);
    CU_ASSERT_PTR_NULL(why_not_synced(&test, 1));
    kube_bench_run_ms(&test.bench, 50);
    CU_ASSERT_EQUAL(test.lists, 1);
    close_test(&test);
    prepare(&test);
    test.list_code = 404;
    test.list_body = "404 page not found\n";
    start_watch(&test, false, 0);
    kube_bench_until(&test.bench, &test.lost, 1);
    CU_ASSERT_EQUAL(test.synced, 0);
    close_test(&test);
}

TEST(the_watch_may_be_freed_while_it_tells)
{
    for (int i = 0; i < 2; i++) {
        struct test test;
        prepare(&test);
        test.free_on_object = i == 0;
        start_watch(&test, false, 0);
        if (i == 0) {
            kube_bench_until(&test.bench, &test.news, 1);
        } else {
            kube_bench_until(&test.bench, &test.streams, 1);
            test.free_on_object = true;
            change(&test, 1, true);
            change(&test, 2, true);
            kube_bench_until(&test.bench, &test.news, 5);
        }
        int news = test.news;
        kube_bench_run_ms(&test.bench, 20);
        CU_ASSERT_EQUAL(test.news, news);
        CU_ASSERT_PTR_NULL(test.watch);
        close_test(&test);
    }
}

/* Whatever happens on the way, in the end the picture is the cluster. */
TEST(any_course_of_events_ends_in_the_same_picture)
{
    uint64_t seed = test_seed();
    int rounds = test_rounds(10);
    for (int round = 0; round < rounds; round++) {
        struct test test;
        open_test(&test);
        for (int i = 0; i < 40; i++) {
            struct scripted_connection *stream = test.stream;
            bool is_open = stream != NULL && stream->fd >= 0;
            int what = (int)(test_random(&seed) % 10);
            if (what < 6)
                change(&test, (int)(test_random(&seed) % OBJECTS), test_random(&seed) % 3 != 0);
            else if (what == 6 && is_open)
                scripted_chunk(stream, "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n");
            else if (what == 7 && is_open)
                scripted_chunk(stream, "{\"type\":\"MODIFIED\",\"object\":{\"meta");
            else if (what == 8)
                test.watch_code = test_random(&seed) % 2 == 0 ? 410 : 0;
            else if (what == 9 && is_open)
                scripted_cut(stream);
            if (what == 7 && is_open)
                scripted_cut(stream);
            if (test_random(&seed) % 4 == 0)
                kube_bench_run_ms(&test.bench, (int)(test_random(&seed) % 8));
        }
        test.watch_code = 0;
        until_same(&test);
        CU_ASSERT(is_same(&test));
        close_test(&test);
    }
}

/* A table of any fill loses everything but what the newest list held, each object told once. The
 * time of a pass from the first slot for each of them would be minutes. */
TEST(what_is_gone_between_two_lists_is_told_in_one_pass)
{
    enum { OBJECTS_MANY = 100000, KEPT_EVERY = 1000 };
    struct kube_objects objects = {0};
    const struct kube_object *object;
    size_t cursor = 0, removed = 0;
    char name[16];
    for (int i = 0; i < OBJECTS_MANY; i++) {
        snprintf(name, sizeof name, "p-%d", i);
        kube_objects_put(&objects, "ns", name, "1", i % KEPT_EVERY == 0 ? 2 : 1);
    }
    int64_t began_ns = clock_cpu_ns();
    while ((object = kube_objects_other(&objects, 2, &cursor)) != NULL) {
        text_copy(name, sizeof name, strchr(object->key, '/') + 1);
        CU_ASSERT_FATAL(kube_objects_remove(&objects, "ns", name));
        removed++;
    }
    CU_ASSERT_EQUAL(removed, OBJECTS_MANY - OBJECTS_MANY / KEPT_EVERY);
    CU_ASSERT_EQUAL(objects.count, OBJECTS_MANY / KEPT_EVERY);
    CU_ASSERT(clock_cpu_ns() - began_ns < 5 * INT64_C(1000000000));
    for (int i = 0; i < OBJECTS_MANY; i += KEPT_EVERY) {
        snprintf(name, sizeof name, "p-%d", i);
        CU_ASSERT(kube_objects_remove(&objects, "ns", name));
    }
    kube_objects_done(&objects);
}

TESTS(T(the_picture_follows_the_cluster), T(a_watch_goes_on_from_the_newest_bookmark),
      T(a_line_may_come_in_pieces_and_many_lines_in_one),
      T(an_expired_version_inside_a_stream_lists_again),
      T(an_expired_version_as_a_code_lists_again),
      T(a_server_that_always_says_expired_is_asked_ever_more_seldom),
      T(watches_that_close_at_once_back_off_and_list_again),
      T(a_list_from_the_past_is_not_acted_on), T(an_old_event_of_an_object_is_not_told),
      T(a_cut_stream_goes_on_where_it_was), T(what_makes_no_sense_lists_again),
      T(a_line_without_an_end_is_not_collected_for_ever),
      T(a_silent_server_is_noticed_and_asked_anew), T(a_server_that_comes_back_is_found_again),
      T(who_may_not_list_hears_why),
      T(a_kind_that_is_not_installed_is_an_empty_picture_when_it_is_optional),
      T(the_watch_may_be_freed_while_it_tells), T(any_course_of_events_ends_in_the_same_picture),
      T(what_is_gone_between_two_lists_is_told_in_one_pass))
