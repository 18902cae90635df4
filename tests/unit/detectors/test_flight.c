/* Records of the communication library: who never came to the collective that the others wait in.
 */
#include "tests/unit/detectors/feed.h"

#include "detectors/flight.h"

#include <stdlib.h>

enum { WORLD = 8 };

/* A dump of one rank in the default group: `enqueued` all-reduces of `elements`, the last one
 * pending or retired. Numbers of pg_status are strings, as gloo writes them. */
static void add_dump(struct flight *flight, int rank, int enqueued, int completed,
                     const char *operation, int elements)
{
    char name[64];
    AUTO_TEXT dump = {0};
    struct error error;

    (void)snprintf(name, sizeof name, "dumps/_dump_%d.json", rank);
    text_addf(&dump,
              "{\"version\":\"2.10\",\"pg_config\":{},\"pg_status\":{\"0\":{"
              "\"last_enqueued_collective\":\"%d\",\"last_completed_collective\":\"%d\"}},"
              "\"entries\":[",
              enqueued, completed);
    for (int i = completed > 2 ? completed - 1 : 1; i <= enqueued; i++)
        text_addf(&dump,
                  "%s{\"pg_id\":0,\"process_group\":[\"0\",\"default_pg\"],"
                  "\"collective_seq_id\":%d,\"is_p2p\":false,\"profiling_name\":\"gloo:%s\","
                  "\"state\":\"scheduled\",\"retired\":%s,\"time_created_ns\":%d,"
                  "\"input_sizes\":[[%d]]}",
                  dump.bytes[dump.length - 1] == '[' ? "" : ",", i, operation,
                  i <= completed ? "true" : "false", 1000 + i, elements);
    text_add(&dump, "]}");
    CU_ASSERT_EQUAL_FATAL(flight_add(flight, name, (struct view){dump.bytes, dump.length}, &error),
                          OK);
}

static void add_text(struct flight *flight, const char *name, const char *text)
{
    struct error error;

    CU_ASSERT_EQUAL_FATAL(flight_add(flight, name, view_of(text), &error), OK);
}

/* Judges and asserts the reason and the only suspects. */
static void assert_finding(const struct flight *flight, int32_t world, enum flight_reason reason,
                           int32_t first, int32_t second)
{
    struct flight_finding finding = flight_judge(flight, world);

    CU_ASSERT_EQUAL(finding.reason, reason);
    CU_ASSERT_EQUAL(finding.rank_count, (size_t)((first >= 0) + (second >= 0)));
    if (first >= 0 && finding.rank_count > 0)
        CU_ASSERT_EQUAL(finding.ranks[0], first);
    if (second >= 0 && finding.rank_count > 1)
        CU_ASSERT_EQUAL(finding.ranks[1], second);
    flight_finding_done(&finding);
}

TEST(the_rank_with_the_lowest_enqueued_collective_never_came)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    for (int r = 0; r < WORLD; r++)
        add_dump(flight, r, r == 2 ? 21 : 22, 21, "all_reduce", 1024);
    assert_finding(flight, WORLD, FLIGHT_NEVER_ENTERED, 2, -1);
    struct flight_finding finding = flight_judge(flight, WORLD);
    CU_ASSERT_EQUAL(finding.waiting, WORLD - 1);
    CU_ASSERT_EQUAL(finding.newest_ns, 1022);
    CU_ASSERT(strstr(finding.waits_in.bytes, "gloo:all_reduce 22 of group 0 (default_pg)") != NULL);
    CU_ASSERT(strstr(finding.lowest.bytes, "lacks 2 (at 21)") != NULL);
    flight_finding_done(&finding);
}

TEST(a_rank_that_is_still_in_what_its_peers_finished_is_left_behind)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    for (int r = 0; r < WORLD; r++)
        add_dump(flight, r, 30, r == 5 ? 20 : 24, "all_reduce", 1024);
    assert_finding(flight, WORLD, FLIGHT_LEFT_BEHIND, 5, -1);
}

TEST(a_rank_without_a_dump_is_the_suspect_when_all_others_wait_for_it)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    for (int r = 0; r < WORLD; r++)
        if (r != 6)
            add_dump(flight, r, 22, 21, "all_reduce", 1024);
    assert_finding(flight, WORLD, FLIGHT_NO_RECORD, 6, -1);
    struct flight_finding finding = flight_judge(flight, WORLD);
    CU_ASSERT_STRING_EQUAL(finding.unrecorded.bytes, "6");
    flight_finding_done(&finding);
}

TEST(two_dumps_of_eight_say_nothing_about_those_that_were_not_collected)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    add_dump(flight, 0, 22, 21, "all_reduce", 1024);
    add_dump(flight, 1, 22, 21, "all_reduce", 1024);
    assert_finding(flight, WORLD, FLIGHT_NOTHING, -1, -1);
}

TEST(a_rank_with_another_size_or_another_operation_is_named_where_all_came)
{
    AUTO(flight_free) struct flight *sizes = flight_new();
    AUTO(flight_free) struct flight *operations = flight_new();

    for (int r = 0; r < WORLD; r++) {
        add_dump(sizes, r, 22, 21, "all_reduce", r == 3 ? 1000 : 1024);
        add_dump(operations, r, 22, 21, r == 4 ? "broadcast" : "all_reduce", 1024);
    }
    assert_finding(sizes, WORLD, FLIGHT_MISMATCH, 3, -1);
    assert_finding(operations, WORLD, FLIGHT_MISMATCH, 4, -1);
}

TEST(where_all_came_with_the_same_it_is_the_transport)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    for (int r = 0; r < WORLD; r++)
        add_dump(flight, r, 22, 21, "all_reduce", 1024);
    struct flight_finding finding = flight_judge(flight, WORLD);
    CU_ASSERT_EQUAL(finding.reason, FLIGHT_TRANSPORT);
    CU_ASSERT_EQUAL(finding.rank_count, WORLD);
    flight_finding_done(&finding);
}

/* Two tensor groups and a pipeline between them: ranks 0 and 1 wait for 2 and 3, of which 3 never
 * came to their group. Numbers of groups differ from rank to rank. */
TEST(a_chain_of_waiting_ends_at_the_rank_that_waits_for_nobody)
{
    static const char *const DUMPS[] = {
        "{\"pg_config\":{\"7\":{\"name\":\"7\",\"desc\":\"PIPE\",\"ranks\":\"[0, 2]\"}},"
        "\"pg_status\":{},\"entries\":[{\"pg_id\":6,\"process_group\":[\"7\",\"PIPE\"],"
        "\"collective_seq_id\":1,\"p2p_seq_id\":90,\"profiling_name\":\"nccl:recv 0<-1\","
        "\"is_p2p\":true,\"state\":\"scheduled\",\"retired\":false}]}",
        "{\"pg_config\":{\"8\":{\"name\":\"8\",\"desc\":\"PIPE\",\"ranks\":\"[1, 3]\"}},"
        "\"pg_status\":{},\"entries\":[{\"pg_id\":6,\"process_group\":[\"8\",\"PIPE\"],"
        "\"collective_seq_id\":1,\"p2p_seq_id\":90,\"profiling_name\":\"nccl:recv 0<-1\","
        "\"state\":\"scheduled\",\"retired\":false}]}",
        "{\"pg_config\":{\"5\":{\"name\":\"5\",\"desc\":\"TENSOR\",\"ranks\":\"[2, 3]\"}},"
        "\"pg_status\":{\"4\":{\"last_enqueued_collective\":41,\"last_completed_collective\":40}},"
        "\"entries\":[{\"pg_id\":4,\"process_group\":[\"5\",\"TENSOR\"],"
        "\"collective_seq_id\":41,\"profiling_name\":\"nccl:all_reduce\",\"state\":\"started\","
        "\"retired\":false}]}",
        "{\"pg_config\":{\"5\":{\"name\":\"5\",\"desc\":\"TENSOR\",\"ranks\":\"[2, 3]\"}},"
        "\"pg_status\":{\"3\":{\"last_enqueued_collective\":40,\"last_completed_collective\":40}},"
        "\"entries\":[]}"};
    AUTO(flight_free) struct flight *flight = flight_new();

    for (int r = 0; r < 4; r++) {
        char name[32];
        (void)snprintf(name, sizeof name, "nccl_trace_rank_%d", r);
        add_text(flight, name, DUMPS[r]);
    }
    assert_finding(flight, 4, FLIGHT_NEVER_ENTERED, 3, -1);
}

TEST(watchdog_lines_of_all_but_one_rank_point_at_that_one)
{
    AUTO(flight_free) struct flight *flight = flight_new();
    AUTO_TEXT log = {0};

    text_add(&log, "step 2069 loss 2.31\n");
    for (int r = 0; r < WORLD; r++)
        if (r != 1)
            text_addf(
                &log,
                "[rank%d]:[E909 09:55:46.99 ProcessGroupNCCL.cpp:607] [Rank %d] Watchdog "
                "caught collective operation timeout: WorkNCCL(SeqNum=2070, OpType=ALLREDUCE, "
                "NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600017 "
                "milliseconds before timing out.\n",
                r, r);
    add_text(flight, "train.log", log.bytes);
    assert_finding(flight, WORLD, FLIGHT_NO_RECORD, 1, -1);
}

TEST(a_watchdog_that_tells_what_was_enqueued_names_the_rank_that_is_behind)
{
    AUTO(flight_free) struct flight *flight = flight_new();
    AUTO_TEXT log = {0};

    for (int r = 0; r < WORLD; r++)
        text_addf(
            &log,
            "[rank%d]:[E909 ProcessGroupNCCL.cpp:1709] [PG 0 (default_pg) Rank %d] Timeout at "
            "NCCL work: %d, last enqueued NCCL work: %d, last completed NCCL work: %d.\n",
            r, r, r == 4 ? 2065 : 2070, 2082, r == 4 ? 2064 : 2069);
    add_text(flight, "train.log", log.bytes);
    assert_finding(flight, WORLD, FLIGHT_LEFT_BEHIND, 4, -1);
}

TEST(a_ras_report_names_the_few_ranks_behind_and_the_few_ahead)
{
    AUTO(flight_free) struct flight *behind = flight_new();
    AUTO(flight_free) struct flight *ahead = flight_new();

    add_text(behind, "ras.txt",
             "#0-0 (27a0) MISMATCH\n  Communicator ranks have different collective operation "
             "counts\n  6 ranks have launched up to operation 6650\n  2 ranks have launched up to "
             "operation 6649\n  Rank 5 -- GPU 1 managed by process 7 on node 10.0.0.1\n"
             "  Rank 2 -- GPU 2 managed by process 9 on node 10.0.0.1\n");
    assert_finding(behind, WORLD, FLIGHT_NEVER_ENTERED, 2, 5);
    add_text(ahead, "ras.txt",
             "#0-0 (27a0) MISMATCH\n  Communicator ranks have different AllGather operation "
             "counts\n  7 ranks have launched up to operation 640\n  1 ranks have launched up to "
             "operation 641\n  Rank 5 -- GPU 1 managed by process 7 on node 10.0.0.1\n\n=====\n");
    assert_finding(ahead, WORLD, FLIGHT_MISMATCH, 5, -1);
}

TEST(a_ras_report_in_json_names_who_does_not_answer)
{
    AUTO(flight_free) struct flight *flight = flight_new();

    add_text(flight, "ras.json",
             "{\"communicators\":[{\"size\":2,\"ranks\":[{\"rank\":0,\"collective_counts\":"
             "{\"AllReduce\":12}}],\"missing_ranks\":[{\"rank\":1,\"status\":"
             "{\"unresponsive\":true}}]}]}");
    assert_finding(flight, 2, FLIGHT_NO_RECORD, 1, -1);
    assert_finding(flight, 4, FLIGHT_NOTHING, -1, -1); /* of another communicator */
}

TEST(what_is_no_record_is_refused_with_the_reason)
{
    static const struct {
        const char *name, *bytes, *says;
    } CASES[] = {
        {"nccl_trace_rank_3", "\x80\x02}q", "pickle"},
        {"dump.json", "{\"entries\":[]}", "no rank"},
        {"_dump_1.json", "{\"entries\":[", "line 1"},
        {"_dump_1.json", "{\"other\":1}", "neither"},
        {"_dump_999999999.json", "{\"entries\":[]}", "out of bounds"},
    };

    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        AUTO(flight_free) struct flight *flight = flight_new();
        struct error error = {.status = OK};
        CU_ASSERT_EQUAL(flight_add(flight, CASES[i].name, view_of(CASES[i].bytes), &error),
                        ERR_INVALID);
        CU_ASSERT_PTR_NOT_NULL(strstr(error.message, CASES[i].says));
    }
}

/* As Python writes them with protocol 2: rank 0 waits in operation 7, rank 1 never came. */
TEST(a_pickle_is_read_as_its_json_would_be)
{
    static const char WAITS[] =
        "\200\002}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.9q\002X\011"
        "\000\000\000pg_configq\003}q\004X\001\000\000\0000q\005}q\006(X\004\000\000"
        "\000nameq\007h\005X\004\000\000\000descq\010X\012\000\000\000default_pgq\011"
        "X\005\000\000\000ranksq\012X\006\000\000\000[0, 1]q\013usX\011\000\000\000"
        "pg_statusq\014}q\015h\005}q\016(X\030\000\000\000last_enqueued_collective"
        "q\017K\007X\031\000\000\000last_completed_collectiveq\020K\006usX\007\000"
        "\000\000entriesq\021]q\022}q\023(X\005\000\000\000pg_idq\024K\000X\015\000"
        "\000\000process_groupq\025h\005h\011\206q\026X\021\000\000\000collective_"
        "seq_idq\027K\007X\006\000\000\000is_p2pq\030\211X\016\000\000\000profilin"
        "g_nameq\031X\017\000\000\000nccl:all_reduceq\032X\005\000\000\000stateq\033"
        "X\011\000\000\000scheduledq\034X\007\000\000\000retiredq\035\211X\017\000"
        "\000\000time_created_nsq\036\212\010\212\302!\364\357\326g\030X\032\000\000"
        "\000time_discovered_started_nsq\037NX\013\000\000\000duration_msq G\277\340"
        "\000\000\000\000\000\000X\013\000\000\000input_sizesq!]q\042]q#(K\020J\377"
        "\377\377\377Jp\021\001\000eauau.";
    static const char NEVER_CAME[] =
        "\200\002}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.9q\002X\011"
        "\000\000\000pg_configq\003}q\004X\001\000\000\0000q\005}q\006(X\004\000\000"
        "\000nameq\007h\005X\004\000\000\000descq\010X\012\000\000\000default_pgq\011"
        "X\005\000\000\000ranksq\012X\006\000\000\000[0, 1]q\013usX\011\000\000\000"
        "pg_statusq\014}q\015h\005}q\016(X\030\000\000\000last_enqueued_collective"
        "q\017K\006X\031\000\000\000last_completed_collectiveq\020K\006usX\007\000"
        "\000\000entriesq\021]q\022u.";
    AUTO(flight_free) struct flight *flight = flight_new();
    struct error error = {.status = OK};

    CU_ASSERT_EQUAL(
        flight_add(flight, "trace_rank_0", (struct view){WAITS, sizeof WAITS - 1}, &error), OK);
    CU_ASSERT_EQUAL(flight_add(flight, "trace_rank_1",
                               (struct view){NEVER_CAME, sizeof NEVER_CAME - 1}, &error),
                    OK);
    assert_finding(flight, 2, FLIGHT_NEVER_ENTERED, 1, -1);
    struct flight_finding finding = flight_judge(flight, 2);
    CU_ASSERT(llabs(finding.newest_ns - 1758610505592849034) < 1000); /* numbers are doubles */
    flight_finding_done(&finding);
    /* Wherever it is cut it is refused, and read no further than it reaches. */
    for (size_t cut = 1; cut + 1 < sizeof WAITS; cut++)
        CU_ASSERT_EQUAL(flight_add(flight, "trace_rank_0", (struct view){WAITS, cut}, &error),
                        ERR_INVALID);
}

TEST(a_pickle_that_would_call_something_is_refused)
{
    static const char CALLS[] = "\200\002cos\nsystem\nq\000U\004trueq\001\205q\002Rq\003.";
    static const char DEEP[] = "\200\002]q\000h\000a."; /* a list that holds itself */
    AUTO(flight_free) struct flight *flight = flight_new();
    struct error error = {.status = OK};

    CU_ASSERT_EQUAL(
        flight_add(flight, "trace_rank_0", (struct view){CALLS, sizeof CALLS - 1}, &error),
        ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "not plain data"));
    CU_ASSERT_EQUAL(
        flight_add(flight, "trace_rank_0", (struct view){DEEP, sizeof DEEP - 1}, &error),
        ERR_INVALID);
}

TEST(a_hang_of_the_samples_names_the_rank_that_the_dumps_accuse)
{
    AUTO(flight_free) struct flight *flight = flight_new();
    bool silent[FEED_RANKS_MAX] = {false}, computing[FEED_RANKS_MAX] = {false};
    struct feed feed;

    feed_open(&feed, WORLD, 1);
    feed_steps(&feed, 60);
    for (int r = 0; r < WORLD; r++) {
        computing[r] = r < 4; /* half of them stand in compute: the beats alone say little */
        add_dump(flight, r, r == 6 ? 21 : 22, 21, "all_reduce", 1024);
    }
    engine_take_flight(feed.engine, flight);
    feed_stuck(&feed, 280, silent, computing);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_HANG), 1);
    /* The dumps were of another time (1970): they are not of this stop. */
    CU_ASSERT_STRING_NOT_EQUAL(feed_find(&feed, VERDICT_HANG)->id, "6");
    engine_tell_flight(feed.engine);
    feed_take(&feed);
    CU_ASSERT_EQUAL(feed_count(&feed, VERDICT_HANG), 2);
    CU_ASSERT_STRING_EQUAL(feed.verdicts[feed.count - 1].id, "6");
    CU_ASSERT_EQUAL(feed.verdicts[feed.count - 1].cause, CAUSE_HOST);
    CU_ASSERT_FALSE(feed.verdicts[feed.count - 1].evict);
    feed_close(&feed);
}

TEST(records_without_a_time_are_of_the_hang_that_the_samples_show)
{
    AUTO(flight_free) struct flight *flight = flight_new();
    bool silent[FEED_RANKS_MAX] = {false}, computing[FEED_RANKS_MAX] = {false};
    struct feed feed;

    add_text(flight, "ras.txt",
             "  Communicator ranks have different collective operation counts\n  7 ranks have "
             "launched up to operation 60\n  1 ranks have launched up to operation 59\n  Rank 3 -- "
             "GPU 3 managed by process 7 on node 10.0.0.1\n");
    feed_open(&feed, WORLD, 1);
    engine_take_flight(feed.engine, flight);
    feed_steps(&feed, 60);
    feed_stuck(&feed, 280, silent, computing);
    engine_tell_flight(feed.engine);
    feed_take(&feed);
    CU_ASSERT_EQUAL(feed.count, 1);
    CU_ASSERT_EQUAL_FATAL(feed_count(&feed, VERDICT_HANG), 1);
    CU_ASSERT_STRING_EQUAL(feed_find(&feed, VERDICT_HANG)->id, "3");
    feed_close(&feed);
}

TESTS(T(a_pickle_is_read_as_its_json_would_be), T(a_pickle_that_would_call_something_is_refused),
      T(the_rank_with_the_lowest_enqueued_collective_never_came),
      T(a_rank_that_is_still_in_what_its_peers_finished_is_left_behind),
      T(a_rank_without_a_dump_is_the_suspect_when_all_others_wait_for_it),
      T(two_dumps_of_eight_say_nothing_about_those_that_were_not_collected),
      T(a_rank_with_another_size_or_another_operation_is_named_where_all_came),
      T(where_all_came_with_the_same_it_is_the_transport),
      T(a_chain_of_waiting_ends_at_the_rank_that_waits_for_nobody),
      T(watchdog_lines_of_all_but_one_rank_point_at_that_one),
      T(a_watchdog_that_tells_what_was_enqueued_names_the_rank_that_is_behind),
      T(a_ras_report_names_the_few_ranks_behind_and_the_few_ahead),
      T(a_ras_report_in_json_names_who_does_not_answer),
      T(what_is_no_record_is_refused_with_the_reason),
      T(a_hang_of_the_samples_names_the_rank_that_the_dumps_accuse),
      T(records_without_a_time_are_of_the_hang_that_the_samples_show))
