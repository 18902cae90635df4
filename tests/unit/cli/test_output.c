/* What `broom` prints, word for word, on fixed answers. */
#include "tests/unit/cli/fake.h"

static const struct fake_answer answers[] = {
    {"/api/v1/incidents?since=24h", 200, "incidents.json", NULL},
    {"/api/v1/incidents?since=24h&status=merged", 200, NULL, "{\"incidents\":[]}"},
    {"/api/v1/incidents/INC-3", 200, "incident.json", NULL},
    {"/api/v1/incidents/INC-3/timeline", 200, "timeline.json", NULL},
    {"/api/v1/jobs", 200, "jobs.json", NULL},
    {"/api/v1/jobs/default%2Fllm-17/ranks?slow=1", 200, "ranks.json", NULL},
    {"/api/v1/status", 200, "status.json", NULL},
};

static struct fake fake_new(void)
{
    return (struct fake){.answers = answers, .count = ARRAY_LEN(answers)};
}

TEST(incidents_are_a_table_with_the_next_command_below)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "incidents", 0, "incidents.txt");
}

TEST(wide_shows_rule_plan_and_what_is_waited_for)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "incidents -o wide", 0, "incidents_wide.txt");
}

TEST(csv_has_exact_times_and_seconds_and_no_words)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "incidents -o csv", 0, "incidents_csv.txt");
}

TEST(no_incident_leaves_stdout_empty)
{
    struct fake fake = fake_new();
    struct run run = fake_run(&fake, "incidents --status merged");
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_STRING_EQUAL(run.out, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "no incidents"));
    run_done(&run);
}

TEST(show_is_one_screen_for_somebody_woken_up)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "incidents show INC-3", 0, "show.txt");
    struct run run = fake_run(&fake, "incidents show 3");
    size_t lines = 0;
    for (const char *c = run.out; *c != '\0'; c++)
        lines += *c == '\n';
    CU_ASSERT_TRUE(lines <= 50);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "broom approve INC-3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "broom abort INC-3"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "broom pause"));
    run_done(&run);
}

TEST(show_says_when_it_is_up_to_a_person_and_when_nothing_will_be_done)
{
    static const struct fake_answer others[] = {
        {"/api/v1/incidents/INC-5", 200, NULL,
         "{\"ref\":\"INC-5\",\"job\":\"j\",\"kind\":\"hang\",\"scope\":\"job\",\"domain\":\"j\","
         "\"status\":\"open\","
         "\"phase\":\"escalated\",\"mode\":\"enforce\"}"},
        {"/api/v1/incidents/INC-6", 200, NULL,
         "{\"ref\":\"INC-6\",\"job\":\"j\",\"kind\":\"slow\",\"scope\":\"tray\",\"domain\":\"gb-"
         "1\",\"status\":\"open\","
         "\"phase\":\"confirmed\",\"mode\":\"observe\",\"rule\":\"r\",\"policy\":\"p\","
         "\"decisions\":[{\"fsm_rule\":"
         "\"would-cordon\",\"phase_from\":\"confirmed\",\"phase_to\":\"confirmed\",\"executed\":"
         "false}]}"},
        {"/api/v1/incidents/INC-7", 200, NULL,
         "{\"ref\":\"INC-7\",\"job\":\"j\",\"kind\":\"fault\",\"status\":\"open\",\"phase\":"
         "\"holding\","
         "\"mode\":\"enforce\",\"observer_suspect\":true,\"waiting_for\":\"a person to close the "
         "breaker: monitor-7\"}"}};
    struct fake fake = {.answers = others, .count = ARRAY_LEN(others)};
    struct run escalated = fake_run(&fake, "incidents show INC-5");
    struct run observed = fake_run(&fake, "incidents show INC-6");
    struct run storm = fake_run(&fake, "incidents show INC-7");
    CU_ASSERT_PTR_NOT_NULL(strstr(escalated.out, "Waiting for YOU"));
    CU_ASSERT_PTR_NULL(strstr(escalated.out, "broom approve"));
    CU_ASSERT_PTR_NOT_NULL(strstr(observed.out, "mode observe only records"));
    CU_ASSERT_PTR_NOT_NULL(strstr(observed.out, "not executed"));
    CU_ASSERT_PTR_NOT_NULL(strstr(storm.out, "broom breaker close --reason"));
    CU_ASSERT_PTR_NOT_NULL(strstr(storm.out, "THE OBSERVER IS THE SUSPECT"));
    run_done(&storm);
    run_done(&escalated);
    run_done(&observed);
}

TEST(what_the_robot_gave_up_is_in_the_first_lines_that_one_sees)
{
    static const struct fake_answer given_up[] = {
        {"/api/v1/status", 200, NULL,
         "{\"mode\":\"observe\",\"acting\":true,\"open_incidents\":0,"
         "\"escalated_incidents\":2}"},
        {"/api/v1/incidents?since=24h", 200, NULL,
         "{\"incidents\":[{\"ref\":\"INC-5\",\"status\":\"open\",\"phase\":"
         "\"escalated\"}]}"}};
    struct fake fake = {.answers = given_up, .count = ARRAY_LEN(given_up)};
    struct run status = fake_run(&fake, "status");
    struct run list = fake_run(&fake, "incidents");
    CU_ASSERT_PTR_NOT_NULL(strstr(status.out, "0 in progress, 2 ESCALATED"));
    CU_ASSERT_PTR_NOT_NULL(strstr(status.out, "observes only"));
    CU_ASSERT_PTR_NOT_NULL(strstr(list.err, "INC-5 waits for YOU"));
    CU_ASSERT_PTR_NOT_NULL(strstr(list.err, "1 incident, 0 in progress, 1 ESCALATED"));
    run_done(&status);
    run_done(&list);
}

TEST(what_comes_from_memory_says_that_the_database_is_away)
{
    static const struct fake_answer remembered[] = {
        {"/api/v1/incidents/INC-1", 200, NULL,
         "{\"from_memory\":true,\"incident\":{\"ref\":\"INC-1\",\"job\":\"j\",\"kind\":\"crash\","
         "\"scope\":\"rack\","
         "\"domain\":\"rk-1\",\"status\":\"open\",\"phase\":\"holding\",\"waiting_for\":\"the "
         "database\"},\"timeline\":[]}"}};
    struct fake fake = {.answers = remembered, .count = 1};
    struct run run = fake_run(&fake, "incidents show INC-1");
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "THE DATABASE IS AWAY"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "Waiting for the database"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "not known while the database is away"));
    run_done(&run);
}

TEST(timeline_mixes_robot_and_people)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "incidents timeline inc-3", 0, "timeline.txt");
}

TEST(jobs_and_slow_ranks_are_tables)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "jobs", 0, "jobs.txt");
    assert_run_golden(&fake, "ranks default/llm-17 --slow", 0, "ranks.txt");
}

TEST(status_says_whether_the_robot_acts_and_why_not)
{
    struct fake fake = fake_new();
    assert_run_golden(&fake, "status", 0, "status.txt");
    const struct fake_answer stopped[] = {{"/api/v1/status", 200, "status_stopped.json", NULL}};
    struct fake other = {.answers = stopped, .count = 1};
    assert_run_golden(&other, "status", 0, "status_stopped.txt");
}

TEST(text_from_a_server_cannot_steer_the_terminal)
{
    const struct fake_answer evil[] = {
        {"/api/v1/jobs", 200, NULL,
         "{\"jobs\":[{\"job\":\"a\\u001b[2Jb\\u009bc\",\"phase\":\"x\\ny\"}]}"},
        {"/api/v1/incidents/INC-1", 200, NULL,
         "{\"ref\":\"INC-1\",\"job\":\"\\u001b]0;gone\\u0007\",\"waiting_for\":\"\\u001b[31m\"}"}};
    struct fake fake = {.answers = evil, .count = 2};
    struct run jobs = fake_run(&fake, "jobs");
    struct run show = fake_run(&fake, "incidents show INC-1");
    CU_ASSERT_PTR_NULL(strchr(jobs.out, 033));
    CU_ASSERT_PTR_NULL(strchr(show.out, 033));
    CU_ASSERT_PTR_NULL(strchr(show.out, 007));
    CU_ASSERT_PTR_NOT_NULL(strstr(jobs.out, "a?[2Jb??c"));
    run_done(&jobs);
    run_done(&show);
}

TEST(json_is_passed_on_whole_and_options_may_stand_before_the_command)
{
    struct fake fake = fake_new();
    struct run run = fake_run(&fake, "-o json incidents show INC-3");
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_EQUAL(json_parse(view_of(run.out), &root, NULL), OK);
    CU_ASSERT_STRING_EQUAL(json_get_string(root, "ref", ""), "INC-3");
    CU_ASSERT_EQUAL(json_size(json_get(root, "timeline")), 8);
    run_done(&run);
}

TESTS(T(incidents_are_a_table_with_the_next_command_below),
      T(wide_shows_rule_plan_and_what_is_waited_for),
      T(csv_has_exact_times_and_seconds_and_no_words), T(no_incident_leaves_stdout_empty),
      T(show_is_one_screen_for_somebody_woken_up),
      T(show_says_when_it_is_up_to_a_person_and_when_nothing_will_be_done),
      T(what_the_robot_gave_up_is_in_the_first_lines_that_one_sees),
      T(what_comes_from_memory_says_that_the_database_is_away), T(timeline_mixes_robot_and_people),
      T(jobs_and_slow_ranks_are_tables), T(status_says_whether_the_robot_acts_and_why_not),
      T(text_from_a_server_cannot_steer_the_terminal),
      T(json_is_passed_on_whole_and_options_may_stand_before_the_command))
