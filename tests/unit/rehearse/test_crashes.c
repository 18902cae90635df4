#include "controller/rehearse/crashes.h"
#include "tests/harness/test.h"

#define SECOND INT64_C(1000000000)

static const char INCIDENTS[] =
    "[{\"phase\":\"restarting\",\"timeline\":[{\"kind\":\"phase\",\"text\":\"confirmed -> "
    "cordoning (cordon): due\"},{\"kind\":\"note\",\"text\":\"holding -> saving (\"}]}]";

static struct crash *find(struct crashes *crashes, const char *log, int64_t since_start_ns)
{
    AUTO(json_free) struct json *incidents = NULL;
    CU_ASSERT_FATAL(json_parse(view_of(INCIDENTS), &incidents, NULL) == OK);
    return crashes_find_due(crashes, log, incidents, since_start_ns);
}

TEST(a_verb_is_due_once_the_cluster_was_asked)
{
    struct crashes crashes = {0};
    enum verb verb;
    CU_ASSERT_TRUE(crashes_add(&crashes, "restart_job"));
    CU_ASSERT_TRUE(crashes_next_verb(&crashes, &verb) && verb == VERB_RESTART_JOB);
    CU_ASSERT_PTR_NULL(find(&crashes, "{\"verb\":\"cordon\"}\n", SECOND));
    struct crash *crash = find(&crashes, "{\"verb\":\"restart_job\"}\n", SECOND);
    CU_ASSERT_PTR_NOT_NULL_FATAL(crash);
    crash->done = true;
    CU_ASSERT_FALSE(crashes_next_verb(&crashes, &verb));
}

TEST(a_phase_is_due_while_it_lasts_and_after_it)
{
    struct crashes crashes = {0};
    CU_ASSERT_TRUE(crashes_add(&crashes, "placing"));
    CU_ASSERT_TRUE(crashes_add(&crashes, "saving")); /* only a note speaks of it */
    CU_ASSERT_PTR_NULL(find(&crashes, "", SECOND));
    CU_ASSERT_TRUE(crashes_add(&crashes, "restarting"));
    CU_ASSERT_PTR_EQUAL(find(&crashes, "", SECOND), &crashes.items[2]);
    crashes.items[2].done = true;
    CU_ASSERT_TRUE(crashes_add(&crashes, "cordoning"));
    CU_ASSERT_PTR_EQUAL(find(&crashes, "", SECOND), &crashes.items[3]);
}

TEST(a_time_is_due_so_long_after_the_start)
{
    struct crashes crashes = {0};
    CU_ASSERT_TRUE(crashes_add(&crashes, "2m"));
    CU_ASSERT_PTR_NULL(find(&crashes, "", 119 * SECOND));
    CU_ASSERT_PTR_NOT_NULL(find(&crashes, "", 120 * SECOND));
}

TEST(what_never_came_is_told)
{
    struct crashes crashes = {0};
    CU_ASSERT_PTR_NULL(crashes_find_missed(&crashes));
    CU_ASSERT_TRUE(crashes_add(&crashes, "verifying"));
    CU_ASSERT_PTR_NOT_NULL_FATAL(crashes_find_missed(&crashes));
    CU_ASSERT_STRING_EQUAL(crashes_find_missed(&crashes)->word, "verifying");
}

TEST(other_words_and_one_too_many_are_refused)
{
    struct crashes crashes = {0};
    CU_ASSERT_FALSE(crashes_add(&crashes, "cordonning"));
    CU_ASSERT_FALSE(crashes_add(&crashes, "0s"));
    CU_ASSERT_FALSE(crashes_add(&crashes, "-3s"));
    CU_ASSERT_FALSE(crashes_add(&crashes, ""));
    for (int i = 0; i < CRASHES_MAX; i++)
        CU_ASSERT_TRUE(crashes_add(&crashes, "1s"));
    CU_ASSERT_FALSE(crashes_add(&crashes, "1s"));
}

TESTS(T(a_verb_is_due_once_the_cluster_was_asked), T(a_phase_is_due_while_it_lasts_and_after_it),
      T(a_time_is_due_so_long_after_the_start), T(what_never_came_is_told),
      T(other_words_and_one_too_many_are_refused))
