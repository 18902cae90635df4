#include "controller/admin/metrics.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static bool printed(const struct metrics *metrics, const char *line)
{
    AUTO_TEXT out = {0};
    text_add(&out, "\n");
    metrics_print(metrics, &out);
    return strstr(out.bytes, line) != NULL;
}

TEST(a_metric_appears_once_it_was_set_with_help_and_type)
{
    struct metrics *metrics = metrics_new();
    AUTO_TEXT empty = {0};
    metrics_print(metrics, &empty);
    CU_ASSERT_EQUAL(empty.length, 0);
    metrics_add(metrics, METRIC_CPU, NULL, 1.5);
    metrics_add(metrics, METRIC_CPU, NULL, 2);
    CU_ASSERT(printed(metrics,
                      "\n# TYPE broom_cpu_seconds_total counter\nbroom_cpu_seconds_total 3.5\n"));
    metrics_set(metrics, METRIC_JOBS, NULL, 3);
    metrics_set(metrics, METRIC_JOBS, NULL, 2);
    CU_ASSERT(printed(metrics, "\nbroom_jobs 2\n"));
    metrics_free(metrics);
}

TEST(labels_are_escaped_and_bounded)
{
    struct metrics *metrics = metrics_new();
    metrics_add(metrics, METRIC_TRANSITIONS, "a\"b\\c\nd", 1);
    CU_ASSERT(printed(metrics, "\nbroom_transitions_total{rule=\"a\\\"b\\\\c\\nd\"} 1\n"));
    for (int i = 0; i < 1000; i++) {
        char rule[16];
        snprintf(rule, sizeof rule, "rule-%d", i);
        metrics_add(metrics, METRIC_TRANSITIONS, rule, 1);
    }
    CU_ASSERT(printed(metrics, "\nbroom_transitions_total{rule=\"rule-61\"} 1\n"));
    CU_ASSERT_FALSE(printed(metrics, "rule=\"rule-62\""));
    CU_ASSERT(printed(metrics, "\nbroom_transitions_total{rule=\"other\"} 938\n"));
    metrics_free(metrics);
}

TEST(a_histogram_counts_upward)
{
    struct metrics *metrics = metrics_new();
    static const double seconds[] = {0.0005, 0.001, 0.3, 31, (double)NAN};
    for (size_t i = 0; i < ARRAY_LEN(seconds); i++)
        metrics_observe(metrics, METRIC_PASS_SECONDS, seconds[i]);
    CU_ASSERT(printed(metrics, "\nbroom_pass_seconds_bucket{le=\"0.001\"} 2\n"));
    CU_ASSERT(printed(metrics, "\nbroom_pass_seconds_bucket{le=\"0.25\"} 2\n"));
    CU_ASSERT(printed(metrics, "\nbroom_pass_seconds_bucket{le=\"0.5\"} 3\n"));
    CU_ASSERT(printed(metrics, "\nbroom_pass_seconds_bucket{le=\"+Inf\"} 5\n"));
    CU_ASSERT(printed(metrics, "\nbroom_pass_seconds_count 5\n"));
    metrics_free(metrics);
}

static bool is_histogram(enum metric metric)
{
    return metric == METRIC_PASS_SECONDS || metric == METRIC_DATABASE_SECONDS;
}

static bool has_label(enum metric metric)
{
    static const enum metric labelled[] = {
        METRIC_BUILD_INFO, METRIC_MODE,     METRIC_HTTP_REFUSED,   METRIC_API_ERRORS,
        METRIC_SAMPLES,    METRIC_VERDICTS, METRIC_INCIDENTS_OPEN, METRIC_TRANSITIONS,
        METRIC_ACTIONS,    METRIC_RELOADS};
    for (size_t i = 0; i < ARRAY_LEN(labelled); i++)
        if (labelled[i] == metric)
            return true;
    return false;
}

/* What `promtool check metrics` says of the text: its exit code, or -1 when it is not installed. */
static int promtool(struct view text)
{
    int ends[2];
    if (access("/usr/bin/promtool", X_OK) != 0 || pipe(ends) != 0)
        return -1;
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[0], STDIN_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/usr/bin/promtool", "promtool", "check", "metrics", (char *)NULL);
        _exit(127);
    }
    close(ends[0]);
    ssize_t written = write(ends[1], text.bytes, text.length);
    close(ends[1]);
    int result = -1;
    waitpid(child, &result, 0);
    CU_ASSERT_EQUAL(written, (ssize_t)text.length);
    return WIFEXITED(result) ? WEXITSTATUS(result) : -1;
}

TEST(promtool_accepts_every_metric_of_the_table)
{
    struct metrics *metrics = metrics_new();
    for (int i = 0; i < METRIC_COUNT; i++) {
        enum metric metric = (enum metric)i;
        if (is_histogram(metric))
            metrics_observe(metrics, metric, 0.2);
        else
            metrics_set(metrics, metric, has_label(metric) ? "a" : NULL, 1);
    }
    AUTO_TEXT out = {0};
    metrics_print(metrics, &out);
    int code = promtool((struct view){out.bytes, out.length});
    if (code == -1)
        printf("(no promtool) ");
    else
        CU_ASSERT_EQUAL(code, 0);
    metrics_free(metrics);
}

TESTS(T(a_metric_appears_once_it_was_set_with_help_and_type), T(labels_are_escaped_and_bounded),
      T(a_histogram_counts_upward), T(promtool_accepts_every_metric_of_the_table))
