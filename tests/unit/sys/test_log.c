#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "controller/sys/clock.h"
#include "controller/sys/log.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static char captured[65536];

/* Standard error goes into a file between begin and end. */
static int saved_fd;
static FILE *capture_file;

static void begin(enum log_level least)
{
    fflush(stderr);
    saved_fd = dup(STDERR_FILENO);
    capture_file = tmpfile();
    CU_ASSERT_PTR_NOT_NULL_FATAL(capture_file);
    dup2(fileno(capture_file), STDERR_FILENO);
    log_init(least);
}

static void end(void)
{
    dup2(saved_fd, STDERR_FILENO);
    close(saved_fd);
    rewind(capture_file);
    size_t length = fread(captured, 1, sizeof captured - 1, capture_file);
    captured[length] = '\0';
    fclose(capture_file);
}

static int count_lines(void)
{
    int lines = 0;
    for (const char *at = captured; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines;
}

TEST(a_line_is_time_level_event_and_typed_pairs)
{
    begin(LOG_INFO);
    log_event(LOG_INFO, "incident_opened", kv_str("incident", "INC-4"), kv_int("ranks", 72),
              kv_num("gain", 0.25), kv_str("target", "rack/rk-7"), kv_str("missing", NULL));
    end();
    CU_ASSERT_EQUAL(strncmp(captured, "ts=2", 4), 0);
    CU_ASSERT(strstr(captured,
                     "Z level=info event=incident_opened incident=INC-4 ranks=72 gain=0.25 "
                     "target=rack/rk-7 missing=-\n") != NULL);
    CU_ASSERT_EQUAL(count_lines(), 1);
}

TEST(what_a_stranger_wrote_cannot_forge_a_line_or_reach_the_terminal)
{
    begin(LOG_INFO);
    log_event(LOG_WARN, "refused",
              kv_str("reason", "a b=\"c\"\\\nts=0 level=error\t\r\x1b[31m\x7f"),
              kv_str("empty", ""), kv_str("utf8", "\xc3\xa9"));
    end();
    CU_ASSERT_EQUAL(count_lines(), 1);
    CU_ASSERT(
        strstr(captured,
               "reason=\"a b=\\\"c\\\"\\\\\\nts=0 level=error\\t\\r\\x1b[31m\\x7f\" empty=\"\""
               " utf8=\xc3\xa9\n") != NULL);
    CU_ASSERT_PTR_NULL(strchr(captured, '\x1b'));
}

TEST(levels_below_the_least_are_silent)
{
    begin(LOG_WARN);
    log_event(LOG_DEBUG, "a", kv_int("n", 1));
    log_event(LOG_INFO, "b", kv_int("n", 1));
    log_event(LOG_WARN, "c", kv_int("n", 1));
    log_event(LOG_ERROR, "d", kv_int("n", 1));
    end();
    CU_ASSERT_EQUAL(count_lines(), 2);
    CU_ASSERT(strstr(captured, "level=warn event=c") != NULL &&
              strstr(captured, "level=error event=d") != NULL);
}

/* Busy waiting for at most a second: the limit counts by the second of the wall clock. */
static void wait_for_a_new_second(void)
{
    int64_t second = clock_read().wall_ns / 1000000000;
    while (clock_read().wall_ns / 1000000000 == second)
        continue;
}

TEST(repeats_beyond_ten_a_second_are_counted_and_told_later)
{
    begin(LOG_INFO);
    wait_for_a_new_second();
    for (int i = 0; i < 25; i++)
        log_event(LOG_INFO, "busy", kv_int("n", i));
    log_event(LOG_INFO, "calm", kv_int("n", 0));
    wait_for_a_new_second();
    log_event(LOG_INFO, "busy", kv_int("n", 25));
    end();
    CU_ASSERT_EQUAL(count_lines(), 12);
    CU_ASSERT(strstr(captured, "event=busy n=9\n") != NULL);
    CU_ASSERT_PTR_NULL(strstr(captured, "event=busy n=10\n"));
    CU_ASSERT(strstr(captured, "event=calm n=0\n") != NULL);
    CU_ASSERT(strstr(captured, "event=busy n=25 suppressed=15\n") != NULL);
}

TESTS(T(a_line_is_time_level_event_and_typed_pairs),
      T(what_a_stranger_wrote_cannot_forge_a_line_or_reach_the_terminal),
      T(levels_below_the_least_are_silent),
      T(repeats_beyond_ten_a_second_are_counted_and_told_later))
