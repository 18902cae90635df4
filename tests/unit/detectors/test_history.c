/* Fleet memory: a share of the budget, never more of it. */
#include "tests/unit/detectors/feed.h"

#include "detectors/engine_state.h"
#include "detectors/history.h"

enum { RANKS = 128 };

TEST(earlier_faults_of_gpu_tray_and_rack_count_less_the_wider_they_were)
{
    AUTO(job_free) struct job *job = feed_job(RANKS, 4);
    AUTO(grid_free) struct grid *grid = grid_new(job);
    AUTO(history_free) struct history *history = history_new();
    float faults[RANKS], nats[RANKS];
    double sum = 0;

    history_add(history, NULL, "node2", 1, 2);
    history_add(history, NULL, "node3", JOB_NONE, 2);
    history_add(history, "rack1", NULL, JOB_NONE, 2);
    history_add(history, NULL, "elsewhere", 0, 50);
    history_place(history, job, grid, faults, nats);
    CU_ASSERT_DOUBLE_EQUAL(faults[9], 2, 0);
    CU_ASSERT_DOUBLE_EQUAL(faults[8], 0, 0);
    CU_ASSERT_DOUBLE_EQUAL(faults[13], 2, 0);
    CU_ASSERT_DOUBLE_EQUAL(faults[64], 2, 0);
    CU_ASSERT(nats[9] > nats[13] && nats[13] > nats[64] && nats[64] > nats[0]);
    /* The shares add up to what an even budget is. */
    for (int r = 0; r < RANKS; r++)
        sum += exp((double)nats[r]);
    CU_ASSERT_DOUBLE_EQUAL(sum / RANKS, 1, 1e-4);
}

TEST(however_bad_the_past_it_counts_three_nats_at_most)
{
    AUTO(job_free) struct job *job = feed_job(RANKS, 4);
    AUTO(grid_free) struct grid *grid = grid_new(job);
    AUTO(history_free) struct history *history = history_new();
    float faults[RANKS], nats[RANKS];

    history_add(history, NULL, "node2", 1, 1e9);
    history_place(history, job, grid, faults, nats);
    CU_ASSERT((double)nats[9] <= HISTORY_NATS_MOST);
    CU_ASSERT((double)(nats[9] - nats[8]) > 2.9);
    history_place(NULL, job, grid, faults, nats);
    CU_ASSERT_DOUBLE_EQUAL(nats[9], 0, 1e-6);
}

TEST(a_document_of_earlier_faults_is_read_and_its_mistakes_are_placed)
{
    static const char *const WRONG[] = {"{}", "{\"faults\": [{\"count\": 1}]}",
                                        "{\"faults\": [{\"node\": \"a\", \"rack\": \"b\"}]}",
                                        "{\"faults\": [{\"node\": \"a\", \"count\": -1}]}",
                                        "{\"faults\": [{\"node\": \"a\", \"gpu\": 4096}]}"};
    AUTO(job_free) struct job *job = feed_job(RANKS, 4);
    AUTO(grid_free) struct grid *grid = grid_new(job);
    AUTO(history_free) struct history *history = NULL;
    float faults[RANKS], nats[RANKS];
    struct error error;

    CU_ASSERT_EQUAL_FATAL(
        history_parse(view_of("{\"faults\": [{\"node\": \"node2\", \"gpu\": 1, \"count\": 3}, "
                              "{\"rack\": \"rack0\"}]}"),
                      &history, &error),
        OK);
    history_place(history, job, grid, faults, nats);
    CU_ASSERT_DOUBLE_EQUAL(faults[9], 4, 0);
    CU_ASSERT_DOUBLE_EQUAL(faults[0], 1, 0);
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        AUTO(history_free) struct history *none = NULL;
        CU_ASSERT_EQUAL(history_parse(view_of(WRONG[i]), &none, &error), ERR_INVALID);
    }
}

static double evidence_of(const struct verdict *verdict, const char *name)
{
    for (size_t i = 0; verdict != NULL && i < verdict->evidence_count; i++)
        if (strcmp(verdict->evidence[i].name, name) == 0)
            return verdict->evidence[i].value;
    return (double)NAN;
}

TEST(a_repeat_offender_is_told_with_its_past_and_a_healthy_one_stays_healthy)
{
    AUTO(history_free) struct history *history = history_new();
    AUTO_TEXT words = {0};
    struct feed feed;

    feed_open(&feed, RANKS, 1);
    history_add(history, NULL, "node2", 1, 4);
    history_add(history, NULL, "node9", JOB_NONE, 40);
    engine_take_history(feed.engine, history);
    feed_steps(&feed, 100);
    CU_ASSERT_EQUAL(feed.count, 0);
    feed.slow[9] = 1.1;
    feed_steps(&feed, 40);
    const struct verdict *verdict = feed_find(&feed, VERDICT_SLOW);
    CU_ASSERT_PTR_NOT_NULL_FATAL(verdict);
    CU_ASSERT_STRING_EQUAL(verdict->id, "9");
    CU_ASSERT_DOUBLE_EQUAL(evidence_of(verdict, "earlier_faults"), 4, 0);
    CU_ASSERT(evidence_of(verdict, "prior_nats") > 1);
    engine_explain(feed.engine, verdict, &words);
    CU_ASSERT_PTR_NOT_NULL(strstr(words.bytes, "4 faults before"));
    CU_ASSERT_PTR_NOT_NULL(strstr(words.bytes, "confidence"));
    if (isfinite(evidence_of(verdict, "usual_offset")))
        CU_ASSERT_PTR_NOT_NULL(strstr(words.bytes, "against its own past"));
    feed_close(&feed);
}

TESTS(T(earlier_faults_of_gpu_tray_and_rack_count_less_the_wider_they_were),
      T(however_bad_the_past_it_counts_three_nats_at_most),
      T(a_document_of_earlier_faults_is_read_and_its_mistakes_are_placed),
      T(a_repeat_offender_is_told_with_its_past_and_a_healthy_one_stays_healthy))
