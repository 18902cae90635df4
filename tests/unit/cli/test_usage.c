/* Mistakes on the command line, exit codes, and help that teaches. */
#include "tests/unit/cli/fake.h"

static void assert_fails(const char *words, int code, const char *says)
{
    struct fake fake = {0};
    struct run run = fake_run(&fake, words);
    CU_ASSERT_EQUAL(run.code, code);
    if (strstr(run.err, says) == NULL)
        printf("\n'broom %s' says: %s", words, run.err);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, says));
    CU_ASSERT_STRING_EQUAL(run.out, "");
    CU_ASSERT_EQUAL(fake.requests, 0);
    run_done(&run);
}

TEST(an_unknown_option_names_the_near_one)
{
    assert_fails("incidents --sinc 24h", 2, "unknown option '--sinc'; did you mean '--since'?");
    assert_fails("ranks j --slwo", 2, "did you mean '--slow'?");
    assert_fails("pause --resaon x", 2, "did you mean '--reason'?");
    assert_fails("status -Z", 2, "unknown option '-Z'");
}

TEST(an_unknown_command_names_the_near_one)
{
    assert_fails("incident", 2, "unknown command 'incident'; did you mean 'incidents'?");
    assert_fails("ack INC-1", 2, "did you mean 'incidents ack'?");
    assert_fails("incidents shwo INC-1", 2, "did you mean 'show'?");
    assert_fails("incidents INC-4", 2, "did you mean 'broom incidents show INC-4'?");
    assert_fails("policy lnt x", 2, "broom policy lint PATH...");
    assert_fails("", 2, "Usage: broom COMMAND");
}

TEST(a_wrong_value_says_what_is_right)
{
    assert_fails("incidents -o tabel", 2, "one of table, wide, json, csv; did you mean 'table'?");
    assert_fails("wait INC-1 --timeout soon", 2, "a duration such as 10m");
    assert_fails("wait INC-1 --for status=mitigate", 2, "did you mean 'status=mitigated'?");
    assert_fails("wait INC-1 --for phase=donne", 2, "did you mean 'phase=done'?");
    assert_fails("wait INC-1 --for status=holding", 2, "did you mean 'phase=holding'?");
    assert_fails("incidents show", 2, "an argument is missing: broom incidents show INC-n");
    assert_fails("incidents show INC-x", 2, "'INC-x' is no incident");
    assert_fails("incidents show INC-0", 2, "'INC-0' is no incident");
    assert_fails("incidents show INC-1 INC-2", 2, "'INC-2' is one argument too many");
    assert_fails("incidents --since", 2, "--since needs a value");
    assert_fails("ranks j --slow=yes", 2, "--slow takes no value");
    assert_fails("incidents decline INC-3", 2, "say it in words");
    assert_fails("export INC-3", 2, "--out");
    assert_fails("approve INC-3 INC-4", 2, "one incident at a time; what is 'INC-4'?");
}

TEST(the_exit_code_says_what_kind_of_failure_it_was)
{
    static const struct {
        int http, exit;
    } codes[] = {{400, 2}, {401, 5}, {403, 5}, {404, 4}, {409, 1},
                 {422, 7}, {429, 1}, {500, 1}, {503, 6}, {504, 6}};
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        const struct fake_answer answer = {"/api/v1/incidents/INC-3/approve", codes[i].http, NULL,
                                           "{\"error\":\"the breaker is open\"}"};
        struct fake fake = {.answers = &answer, .count = 1};
        struct run run = fake_run(&fake, "approve INC-3");
        CU_ASSERT_EQUAL(run.code, codes[i].exit);
        CU_ASSERT_STRING_EQUAL(run.out, "");
        CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "broom: the breaker is open\n"));
        run_done(&run);
    }
    struct fake away = {.status = ERR_UNREACHABLE};
    struct run run = fake_run(&away, "status");
    CU_ASSERT_EQUAL(run.code, 6);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "is broomd running?"));
    run_done(&run);
}

TEST(steering_sends_what_was_said_and_reports_what_became_of_it)
{
    const struct fake_answer answers[] = {
        {"/api/v1/incidents/INC-3/abort", 200, NULL,
         "{\"incident\":\"INC-3\",\"status\":\"open\",\"phase\":\"holding\",\"text\":\"a spare\"}"},
        {"/api/v1/pause", 200, NULL, "{}"},
        {"/api/v1/incidents/INC-3/fenced", 200, NULL, "{}"},
        {"/api/v1/nodes/gb-r17-t04/fenced", 200, NULL, "{}"},
        {"/api/v1/incidents/INC-3/note", 200, NULL, "{}"},
        {"/api/v1/breaker/close", 200, NULL, "{}"}};
    struct fake fake = {.answers = answers, .count = ARRAY_LEN(answers)};
    struct run run = fake_run(&fake, "abort INC-3 --reason=wrong-rack");
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_STRING_EQUAL(fake.last_method, "POST");
    CU_ASSERT_STRING_EQUAL(fake.last_body, "{\"text\":\"wrong-rack\"}");
    CU_ASSERT_STRING_EQUAL(run.out,
                           "INC-3: aborted; it is now open, holding, and waits for a spare\n");
    run_done(&run);
    run = fake_run(&fake, "pause power work in row 4");
    CU_ASSERT_STRING_EQUAL(fake.last_body, "{\"text\":\"power work in row 4\"}");
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "broom resume"));
    run_done(&run);
    run = fake_run(&fake, "incidents note inc-3 -- --server is no option here");
    CU_ASSERT_STRING_EQUAL(fake.last_body, "{\"text\":\"--server is no option here\"}");
    run_done(&run);
    run = fake_run(&fake, "fenced gb-r17-t04 --reason BMC");
    CU_ASSERT_STRING_EQUAL(fake.last_path, "/api/v1/nodes/gb-r17-t04/fenced");
    CU_ASSERT_STRING_EQUAL(run.out, "gb-r17-t04: taken as fenced\n");
    run_done(&run);
    run = fake_run(&fake, "fenced 3 --reason BMC");
    CU_ASSERT_STRING_EQUAL(fake.last_path, "/api/v1/incidents/INC-3/fenced");
    run_done(&run);
    run = fake_run(&fake, "fenced gb-r17-t04");
    CU_ASSERT_EQUAL(run.code, EXIT_USAGE);
    run_done(&run);
    run = fake_run(&fake, "breaker close --reason monitor-7-was-broken");
    CU_ASSERT_EQUAL(run.code, 0);
    run_done(&run);
}

TEST(wait_ends_when_reached_when_it_cannot_be_and_when_time_is_over)
{
    const struct fake_answer answers[] = {
        {"/api/v1/incidents/INC-1", 200, NULL,
         "{\"status\":\"resolved\",\"phase\":\"validating\"}"},
        {"/api/v1/incidents/INC-2", 200, NULL, "{\"status\":\"declined\",\"phase\":\"cancelled\"}"},
        {"/api/v1/incidents/INC-3", 200, NULL, "{\"status\":\"open\",\"phase\":\"holding\"}"}};
    struct fake fake = {.answers = answers, .count = ARRAY_LEN(answers)};
    static const struct {
        const char *words;
        int code;
    } cases[] = {{"wait INC-1", 0},
                 {"wait INC-1 --for status=closed --timeout 20ms --interval 5ms", 8},
                 {"wait INC-2", 1},
                 {"wait INC-2 --for declined", 0},
                 {"wait INC-3 --for phase=holding", 0},
                 {"wait INC-3 --for holding", 0},
                 {"wait INC-3 --timeout 20ms --interval 5ms", 8},
                 {"wait INC-9", 4}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct run run = fake_run(&fake, cases[i].words);
        CU_ASSERT_EQUAL(run.code, cases[i].code);
        run_done(&run);
    }
}

TEST(help_teaches_and_goes_to_stdout)
{
    struct fake fake = {0};
    assert_run_golden(&fake, "help", 0, "help.txt");
    assert_run_golden(&fake, "help incidents show", 0, "help_show.txt");
    assert_run_golden(&fake, "incidents --help", 0, "help_incidents.txt");
    assert_run_golden(&fake, "help export", 0, "help_export.txt");
    assert_run_golden(&fake, "help policy lint", 0, "help_policy_lint.txt");
    assert_run_golden(&fake, "--version", 0, "version.txt");
}

TEST(every_command_of_the_list_has_help_with_a_usage_line)
{
    static const char *const commands[] = {"status", "jobs",   "ranks",  "incidents", "approve",
                                           "abort",  "pause",  "resume", "fenced",    "breaker",
                                           "wait",   "export", "policy"};
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        char words[64];
        struct fake fake = {0};
        snprintf(words, sizeof words, "help %s", commands[i]);
        struct run run = fake_run(&fake, words);
        CU_ASSERT_EQUAL(run.code, 0);
        CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "Usage: broom "));
        CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "Examples\n  broom "));
        run_done(&run);
    }
}

TESTS(T(an_unknown_option_names_the_near_one), T(an_unknown_command_names_the_near_one),
      T(a_wrong_value_says_what_is_right), T(the_exit_code_says_what_kind_of_failure_it_was),
      T(steering_sends_what_was_said_and_reports_what_became_of_it),
      T(wait_ends_when_reached_when_it_cannot_be_and_when_time_is_over),
      T(help_teaches_and_goes_to_stdout), T(every_command_of_the_list_has_help_with_a_usage_line))
