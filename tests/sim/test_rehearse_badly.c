/* Rehearsals that must not end well, and what else the command promises. */
#include "tests/sim/rehearse_runner.h"

#include <signal.h>
#include <string.h>

/* The end of a rehearsal that nobody mends is its time limit: it may come fast. */
TEST(detection_switched_off_is_noticed)
{
    expect(1, "tray-lost",
           (const char *const[]){"--policy=" POLICY, "--no-detection", "--speed=300", NULL});
}

TEST(a_swallowed_restart_is_noticed)
{
    expect(1, "tray-lost",
           (const char *const[]){"--policy=" POLICY, "--swallow-restart", "--speed=150", NULL});
}

TEST(a_policy_that_does_nothing_is_noticed)
{
    char path[300];
    AUTO_TEXT option = {0};
    need_programs();
    path_of("nothing.yaml", path, sizeof path);
    FILE *file = fopen(path, "w");
    CU_ASSERT_FATAL(file != NULL);
    fputs("apiVersion: broomwagon.io/v1\nkind: RemediationPolicy\nmetadata: {name: nothing, owner: "
          "a@example.com}\n"
          "mode: enforce\nrules:\n  - {name: all, match: {}, plan: record}\nplans:\n  record: []\n",
          file);
    fclose(file);
    text_addf(&option, "--policy=%s", path);
    expect(1, "tray-lost", (const char *const[]){option.bytes, "--speed=200", NULL});
    unlink(path);
}

TEST(an_empty_policy_folder_is_noticed)
{
    AUTO_TEXT option = {0};
    char path[300];
    need_programs();
    path_of("empty", path, sizeof path);
    CU_ASSERT_FATAL(mkdtemp(strcat(path, "XXXXXX")) != NULL);
    text_addf(&option, "--policy=%s", path);
    expect(1, "tray-lost", (const char *const[]){option.bytes, "--speed=200", NULL});
    rmdir(path);
}

TEST(what_it_leaves_stands_in_the_out_folder)
{
    static const char *const NAMES[] = {"stream.lp.zst", "job.json", "verdicts.jsonl",
                                        "actions.jsonl", "INC-1.tar"};
    AUTO_TEXT option = {0};
    char out[300];
    need_programs();
    path_of("kept", out, sizeof out);
    text_addf(&option, "--out=%s", out);
    expect(0, "tray-lost", (const char *const[]){"--policy=" POLICY, option.bytes, NULL});
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", out, NAMES[i]);
        CU_ASSERT_EQUAL(access(path, R_OK), 0);
        unlink(path);
    }
    rmdir(out);
}

TEST(an_interrupt_ends_both_processes)
{
    const char *argv[] = {BROOM, "rehearse", "healthy", "--policy=" POLICY, NULL};
    struct child child;
    char out_path[300];
    need_programs();
    path_of("out.txt", out_path, sizeof out_path);
    unlink(out_path); /* what an earlier run said */
    CU_ASSERT_FATAL(child_start(&child, "broom", argv, out_path, "/dev/null", NULL) == OK);
    for (int i = 0; i < 200 && child_is_alive(&child); i++) {
        AUTO_FREE char *said = test_read_file(out_path);
        if (said != NULL && strstr(said, "the job starts") != NULL)
            break;
        wait_ms(100);
    }
    kill(child.pid, SIGTERM);
    CU_ASSERT(child_wait(&child, 60000));
    CU_ASSERT_EQUAL(child.code, 130);
    child_stop(&child, 10000);
}

TEST(mistakes_on_the_command_line_are_named)
{
    expect(2, "tray-lots", (const char *const[]){NULL});
    expect(2, "tray-lost", (const char *const[]){"--sped=2", NULL});
    expect(2, "tray-lost", (const char *const[]){"--seed=-3", NULL});
    expect(2, "tray-lost", (const char *const[]){"healthy", NULL});
    expect(4, "tray-lost", (const char *const[]){"--policy=/no/such/policy.yaml", NULL});
}

TEST(nothing_is_left_behind)
{
    leave_nothing();
}

TESTS(T(detection_switched_off_is_noticed), T(a_swallowed_restart_is_noticed),
      T(a_policy_that_does_nothing_is_noticed), T(an_empty_policy_folder_is_noticed),
      T(what_it_leaves_stands_in_the_out_folder), T(an_interrupt_ends_both_processes),
      T(mistakes_on_the_command_line_are_named), T(nothing_is_left_behind))
