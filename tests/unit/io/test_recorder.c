#include "controller/io/compress.h"
#include "controller/io/recorder.h"
#include "tests/harness/test.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static char dir[] = "/tmp/broom-rec-XXXXXX";

/* Without the marks of arrival. */
static void add_plain(struct text *out, struct view block)
{
    for (const char *at = block.bytes, *end = at + block.length; at < end;) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline != NULL ? newline + 1 : end;
        if (*at != '#')
            text_add_bytes(out, at, (size_t)(next - at));
        at = next;
    }
}

/* All segments in name order, and their number. */
static int read_segments(struct text *out, int64_t *ret_bytes)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort), segments = 0;
    for (int i = 0; i < count; i++) {
        AUTO_TEXT path = {0};
        AUTO(line_reader_free) struct line_reader *reader = NULL;
        struct view block;
        text_addf(&path, "%s/%s", dir, entries[i]->d_name);
        if (strstr(entries[i]->d_name, ".lp.zst") != NULL) {
            segments++;
            *ret_bytes += access(path.bytes, R_OK) == 0 ? 1 : 0;
            CU_ASSERT_EQUAL_FATAL(line_reader_open(path.bytes, &reader, NULL), OK);
            while (line_reader_next(reader, &block, NULL) == OK && block.length > 0)
                add_plain(out, block);
        }
        xfree(entries[i]);
    }
    xfree(entries);
    return segments;
}

static void clear_dir(void)
{
    struct dirent **entries;
    int count = scandir(dir, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        AUTO_TEXT path = {0};
        text_addf(&path, "%s/%s", dir, entries[i]->d_name);
        unlink(path.bytes); /* . and .. refuse, as they should */
        xfree(entries[i]);
    }
    xfree(entries);
    rmdir(dir);
}

static void add(struct recorder *recorder, const char *lines, int64_t unit_ns)
{
    recorder_add(recorder, view_of(lines), unit_ns, 4242);
}

TEST(what_goes_in_comes_out_with_timestamps_in_nanoseconds)
{
    struct recorder *recorder = NULL;
    AUTO_TEXT back = {0};
    int64_t bytes = 0;
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL_FATAL(recorder_open(dir, 1 << 20, &recorder, NULL), OK);
    add(recorder,
        "beat,job=j,rank=1 step=1 77\nbeat,job=j,rank=1 step=2\nbeat,job=j,rank=1 step=3 88", 1);
    add(recorder, "beat,job=j,rank=1 step=4 5\n", 1000000000);
    recorder_free(recorder);
    CU_ASSERT_EQUAL(read_segments(&back, &bytes), 1);
    CU_ASSERT_STRING_EQUAL(back.bytes,
                           "beat,job=j,rank=1 step=1 77\nbeat,job=j,rank=1 step=2 4242\n"
                           "beat,job=j,rank=1 step=3 88\nbeat,job=j,rank=1 step=4 5000000000\n");
    clear_dir();
}

TEST(a_flush_makes_lines_readable_while_it_goes_on)
{
    struct recorder *recorder = NULL;
    AUTO_TEXT back = {0};
    int64_t bytes = 0;
    text_copy(dir, sizeof dir, "/tmp/broom-rec-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL_FATAL(recorder_open(dir, 1 << 20, &recorder, NULL), OK);
    add(recorder, "beat,job=j,rank=1 step=1 77\n", 1);
    recorder_flush(recorder);
    read_segments(&back, &bytes);
    CU_ASSERT_STRING_EQUAL(back.bytes, "beat,job=j,rank=1 step=1 77\n");
    recorder_free(recorder);
    clear_dir();
}

TEST(the_oldest_segments_go_when_the_room_is_used_up)
{
    struct recorder *recorder = NULL;
    AUTO_TEXT back = {0};
    int64_t bytes = 0;
    uint64_t state = test_seed();
    text_copy(dir, sizeof dir, "/tmp/broom-rec-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL_FATAL(recorder_open(dir, 300000, &recorder, NULL), OK);
    for (int i = 0; i < 60; i++) {
        AUTO_TEXT lines = {0};
        for (int k = 0; k < 1000; k++)
            text_addf(&lines, "beat,job=j,rank=1 step=%llu 77\n",
                      (unsigned long long)test_random(&state));
        recorder_add(recorder, (struct view){lines.bytes, lines.length}, 1, i + 1);
        recorder_flush(recorder);
    }
    struct recorder_counts counts = recorder_counts(recorder);
    recorder_free(recorder);
    CU_ASSERT(counts.segments_dropped > 0);
    CU_ASSERT(counts.packed_bytes > 300000);
    CU_ASSERT(read_segments(&back, &bytes) <= 5);
    CU_ASSERT_EQUAL(counts.failed_writes, 0);
    clear_dir();
}

static struct recorder *open_recorder(void)
{
    struct recorder *recorder = NULL;
    text_copy(dir, sizeof dir, "/tmp/broom-rec-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(dir));
    CU_ASSERT_EQUAL_FATAL(recorder_open(dir, 1 << 20, &recorder, NULL), OK);
    return recorder;
}

TEST(line_ends_of_other_systems_do_not_hide_the_timestamp)
{
    struct recorder *recorder = open_recorder();
    AUTO_TEXT back = {0};
    int64_t bytes = 0;
    add(recorder, "beat,job=j,rank=1 step=1 77\r\nbeat,job=j,rank=1 step=2\r\n\r\n", 1);
    add(recorder, "beat,job=j,rank=1 step=3 88  \nbeat,job=j,rank=1 step=4 \n", 1);
    recorder_free(recorder);
    read_segments(&back, &bytes);
    CU_ASSERT_STRING_EQUAL(back.bytes,
                           "beat,job=j,rank=1 step=1 77\nbeat,job=j,rank=1 step=2 4242\n"
                           "beat,job=j,rank=1 step=3 88\nbeat,job=j,rank=1 step=4 4242\n");
    clear_dir();
}

TEST(a_line_of_ten_megabytes_leaves_the_recording_readable)
{
    struct recorder *recorder = open_recorder();
    AUTO_TEXT back = {0};
    AUTO_TEXT lines = {0};
    AUTO_FREE char *long_line = xmalloc(10 << 20);
    int64_t bytes = 0;
    memset(long_line, 'x', 10 << 20);
    text_add(&lines, "beat,job=j,rank=1 step=1 77\n");
    text_add_bytes(&lines, long_line, 10 << 20);
    text_add(&lines, "\nbeat,job=j,rank=1 step=2 78\n");
    recorder_add(recorder, (struct view){lines.bytes, lines.length}, 1, 4242);
    recorder_free(recorder);
    read_segments(&back, &bytes);
    CU_ASSERT_STRING_EQUAL(back.bytes,
                           "beat,job=j,rank=1 step=1 77\nbeat,job=j,rank=1 step=2 78\n");
    clear_dir();
}

struct heard {
    struct text lines;
    int64_t first_ns, last_ns;
    int calls;
};

static void on_lines(void *context, struct view lines, int64_t arrival_ns)
{
    struct heard *heard = context;
    heard->first_ns = heard->calls++ == 0 ? arrival_ns : heard->first_ns;
    heard->last_ns = arrival_ns;
    text_add_bytes(&heard->lines, lines.bytes, lines.length);
}

TEST(the_last_minutes_are_read_back_with_the_times_at_which_they_came)
{
    struct recorder *recorder = open_recorder();
    struct heard heard = {0};
    char line[64];
    const int64_t second_ns = 1000000000;
    for (int i = 1; i <= 100; i++) {
        (void)snprintf(line, sizeof line, "beat,job=j,rank=1 step=%d %d\n", i, i);
        recorder_add(recorder, view_of(line), 1, i * second_ns);
    }
    recorder_flush(recorder); /* and no more: as a crash leaves it */
    CU_ASSERT_EQUAL(recorder_read(dir, 98 * second_ns, on_lines, &heard, NULL), OK);
    CU_ASSERT_STRING_EQUAL(heard.lines.bytes, "beat,job=j,rank=1 step=98 98\n"
                                              "beat,job=j,rank=1 step=99 99\n"
                                              "beat,job=j,rank=1 step=100 100\n");
    CU_ASSERT_EQUAL(heard.first_ns, 98 * second_ns);
    CU_ASSERT_EQUAL(heard.last_ns, 100 * second_ns);
    text_done(&heard.lines);
    recorder_free(recorder);
    clear_dir();
    CU_ASSERT_EQUAL(recorder_read(dir, 0, on_lines, &heard, NULL), ERR_NOT_FOUND);
}

/* A limit on file sizes makes writes fail as a full disk does. */
static void set_disk_full(bool is_full)
{
    struct rlimit limit;
    getrlimit(RLIMIT_FSIZE, &limit);
    limit.rlim_cur = is_full ? 0 : limit.rlim_max;
    setrlimit(RLIMIT_FSIZE, &limit);
}

TEST(a_full_disk_is_told_leaves_no_empty_files_and_recording_goes_on_after_it)
{
    struct recorder *recorder = open_recorder();
    AUTO_TEXT back = {0};
    int64_t bytes = 0;
    signal(SIGXFSZ, SIG_IGN);
    set_disk_full(true);
    for (int i = 0; i < 5; i++) {
        add(recorder, "beat,job=j,rank=1 step=1 77\n", 1);
        recorder_flush(recorder);
    }
    set_disk_full(false);
    CU_ASSERT_EQUAL(recorder_counts(recorder).failed_writes, 5);
    CU_ASSERT(recorder_counts(recorder).lost_bytes > 0);
    CU_ASSERT_PTR_NOT_NULL(recorder_counts(recorder).reason);
    CU_ASSERT_EQUAL(read_segments(&back, &bytes), 0);
    add(recorder, "beat,job=j,rank=1 step=2 78\n", 1);
    recorder_flush(recorder);
    CU_ASSERT_PTR_NULL(recorder_counts(recorder).reason);
    recorder_free(recorder);
    CU_ASSERT_EQUAL(read_segments(&back, &bytes), 1);
    CU_ASSERT_STRING_EQUAL(back.bytes, "beat,job=j,rank=1 step=2 78\n");
    clear_dir();
}

TESTS(T(what_goes_in_comes_out_with_timestamps_in_nanoseconds),
      T(a_flush_makes_lines_readable_while_it_goes_on),
      T(the_oldest_segments_go_when_the_room_is_used_up),
      T(line_ends_of_other_systems_do_not_hide_the_timestamp),
      T(a_line_of_ten_megabytes_leaves_the_recording_readable),
      T(the_last_minutes_are_read_back_with_the_times_at_which_they_came),
      T(a_full_disk_is_told_leaves_no_empty_files_and_recording_goes_on_after_it))
