#include "controller/io/process.h"
#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct bench {
    struct loop *loop;
    struct process_runner *runner;
    int wanted, answered;
    enum status status;
    int exit_code;
    int64_t took_ns;
    char output[256], errors[256], reason[256];
    size_t output_bytes;
    char order[16];
};

static void bench_open(struct bench *bench, size_t most)
{
    *bench = (struct bench){.loop = loop_new()};
    bench->runner = process_runner_new(bench->loop, most);
}

static void bench_close(struct bench *bench)
{
    process_runner_free(bench->runner);
    loop_free(bench->loop);
}

static void keep(char *buffer, size_t bytes, struct view view)
{
    snprintf(buffer, bytes, "%.*s", (int)view.length, view.bytes != NULL ? view.bytes : "");
}

static void on_done(void *context, const struct process_result *result)
{
    struct bench *bench = context;
    bench->status = result->status;
    bench->exit_code = result->exit_code;
    bench->took_ns = result->took_ns;
    bench->output_bytes = result->output.length;
    keep(bench->output, sizeof bench->output, result->output);
    keep(bench->errors, sizeof bench->errors, result->errors);
    text_copy(bench->reason, sizeof bench->reason, result->reason != NULL ? result->reason : "");
    if (bench->answered < 15 && result->output.length > 0)
        bench->order[bench->answered] = result->output.bytes[0];
    if (++bench->answered >= bench->wanted)
        loop_stop(bench->loop);
}

static void run(struct bench *bench, const struct process_call *call)
{
    bench->wanted = bench->answered + 1;
    process_start(bench->runner, call, on_done, bench);
    loop_run(bench->loop);
}

/* A test's own programs are shell scripts; the module itself never sees a shell. */
static void run_script(struct bench *bench, const char *script, struct process_call call)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    call.argv = argv;
    run(bench, &call);
}

TEST(a_program_answers_with_its_exit_code_and_both_outputs)
{
    struct bench bench;
    bench_open(&bench, 4);
    run_script(&bench, "echo seen; echo told >&2; exit 3", (struct process_call){0});
    CU_ASSERT_EQUAL(bench.status, OK);
    CU_ASSERT_EQUAL(bench.exit_code, 3);
    CU_ASSERT_STRING_EQUAL(bench.output, "seen\n");
    CU_ASSERT_STRING_EQUAL(bench.errors, "told\n");
    bench_close(&bench);
}

TEST(arguments_reach_the_program_as_they_are_and_no_shell_reads_them)
{
    struct bench bench;
    bench_open(&bench, 4);
    const char *argv[] = {"printf", "%s|", "a b", "$(reboot)", "; exit 1", "\"'", NULL};
    run(&bench, &(struct process_call){.argv = argv});
    CU_ASSERT_EQUAL(bench.status, OK);
    CU_ASSERT_STRING_EQUAL(bench.output, "a b|$(reboot)|; exit 1|\"'|");
    bench_close(&bench);
}

TEST(environment_lines_win_over_ours_and_the_rest_stays)
{
    struct bench bench;
    const char *lines[] = {"SLURM_CONF=/there", "HOMELY=1", NULL};
    setenv("SLURM_CONF", "/here", 1);
    setenv("HOME", "/stays", 1);
    bench_open(&bench, 4);
    run_script(&bench, "echo $SLURM_CONF $HOME $HOMELY",
               (struct process_call){.environment = lines});
    CU_ASSERT_STRING_EQUAL(bench.output, "/there /stays 1\n");
    bench_close(&bench);
}

TEST(input_larger_than_a_pipe_is_read_to_its_end)
{
    struct bench bench;
    size_t bytes = 1u << 20;
    AUTO_FREE char *input = xmalloc(bytes);
    memset(input, 'x', bytes);
    bench_open(&bench, 4);
    run_script(&bench, "wc -c", (struct process_call){.input = {input, bytes}});
    CU_ASSERT_STRING_EQUAL(bench.output, "1048576\n");
    run_script(&bench, "wc -c", (struct process_call){0}); /* no input is an end at once */
    CU_ASSERT_STRING_EQUAL(bench.output, "0\n");
    bench_close(&bench);
}

TEST(a_program_that_hangs_is_killed_at_its_limit_with_what_it_started)
{
    struct bench bench;
    char alive[64];
    bench_open(&bench, 4);
    run_script(&bench, "sleep 100 & echo $!; trap '' TERM; wait",
               (struct process_call){.timeout_ms = 200});
    CU_ASSERT_EQUAL(bench.status, ERR_TIMEOUT);
    CU_ASSERT(bench.took_ns >= 200000000 && bench.took_ns < 5000000000);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench.reason, "200 ms"));
    int grandchild = atoi(bench.output);
    CU_ASSERT_FATAL(grandchild > 1);
    snprintf(alive, sizeof alive, "while kill -0 %d; do :; done; echo gone", grandchild);
    run_script(&bench, alive, (struct process_call){.timeout_ms = 5000});
    CU_ASSERT_STRING_EQUAL(bench.output, "gone\n");
    bench_close(&bench);
}

TEST(too_much_output_ends_the_program_and_is_said)
{
    struct bench bench;
    bench_open(&bench, 4);
    run_script(&bench, "while :; do echo yes; done",
               (struct process_call){.output_bytes_max = 100000});
    CU_ASSERT_EQUAL(bench.status, ERR_LIMIT);
    CU_ASSERT(bench.output_bytes < 400000);
    bench_close(&bench);
}

TEST(a_program_that_is_not_there_was_never_started)
{
    struct bench bench;
    const char *argv[] = {"/nowhere/scontrol", NULL};
    bench_open(&bench, 4);
    run(&bench, &(struct process_call){.argv = argv});
    CU_ASSERT_EQUAL(bench.status, ERR_UNREACHABLE);
    CU_ASSERT_STRING_EQUAL(bench.reason,
                           "'/nowhere/scontrol' cannot be started: No such file or directory");
    bench_close(&bench);
}

TEST(a_signal_that_ends_it_is_no_exit_code)
{
    struct bench bench;
    bench_open(&bench, 4);
    run_script(&bench, "kill -SEGV $$", (struct process_call){0});
    CU_ASSERT_EQUAL(bench.status, ERR_IO);
    CU_ASSERT_STRING_EQUAL(bench.reason, "signal 11 ended it");
    bench_close(&bench);
}

TEST(a_child_that_keeps_the_pipes_open_holds_nothing_up)
{
    struct bench bench;
    bench_open(&bench, 4);
    run_script(&bench, "sleep 3 & echo done", (struct process_call){0});
    CU_ASSERT_EQUAL(bench.status, OK);
    CU_ASSERT_STRING_EQUAL(bench.output, "done\n");
    CU_ASSERT(bench.took_ns < 2000000000);
    bench_close(&bench);
}

TEST(other_children_are_left_to_those_who_wait_for_them)
{
    struct bench bench;
    int wait_status = 0;
    pid_t other = fork();
    if (other == 0)
        _exit(7);
    bench_open(&bench, 4);
    run_script(&bench, "exit 0", (struct process_call){0});
    CU_ASSERT_EQUAL(waitpid(other, &wait_status, 0), other);
    CU_ASSERT_EQUAL(WEXITSTATUS(wait_status), 7);
    bench_close(&bench);
}

TEST(no_more_run_at_once_than_allowed_and_their_turn_is_their_order)
{
    struct bench bench;
    bench_open(&bench, 1);
    bench.wanted = 4;
    for (int i = 0; i < 4; i++) {
        char script[64];
        const char *argv[] = {"/bin/sh", "-c", script, NULL};
        snprintf(script, sizeof script, "sleep 0.0%d; echo %d", 4 - i, i);
        process_start(bench.runner, &(struct process_call){.argv = argv}, on_done, &bench);
    }
    CU_ASSERT_EQUAL(bench.answered, 0); /* never from inside the call */
    loop_run(bench.loop);
    CU_ASSERT_STRING_EQUAL(bench.order, "0123");
    bench_close(&bench);
}

TEST(freeing_the_runner_kills_and_answers_nothing)
{
    struct bench bench;
    const char *sleep_long[] = {"/bin/sleep", "100", NULL}, *quick[] = {"true", NULL};
    bench_open(&bench, 2);
    process_start(bench.runner, &(struct process_call){.argv = sleep_long}, on_done, &bench);
    run(&bench, &(struct process_call){.argv = quick}); /* so that the other one runs as well */
    process_start(bench.runner, &(struct process_call){.argv = quick}, on_done, &bench);
    bench_close(&bench);
    CU_ASSERT_EQUAL(bench.answered, 1);
}

TESTS(T(a_program_answers_with_its_exit_code_and_both_outputs),
      T(arguments_reach_the_program_as_they_are_and_no_shell_reads_them),
      T(environment_lines_win_over_ours_and_the_rest_stays),
      T(input_larger_than_a_pipe_is_read_to_its_end),
      T(a_program_that_hangs_is_killed_at_its_limit_with_what_it_started),
      T(too_much_output_ends_the_program_and_is_said),
      T(a_program_that_is_not_there_was_never_started), T(a_signal_that_ends_it_is_no_exit_code),
      T(a_child_that_keeps_the_pipes_open_holds_nothing_up),
      T(other_children_are_left_to_those_who_wait_for_them),
      T(no_more_run_at_once_than_allowed_and_their_turn_is_their_order),
      T(freeing_the_runner_kills_and_answers_nothing))
