/* The spool: what was answered OK is there after a crash, in order; what is damaged costs only
 * itself. */
#include "controller/store/spool.h"

#include "controller/store/dir_lock.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[64];

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

static void fresh_directory(void)
{
    snprintf(directory, sizeof directory, "/tmp/broom-spool-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(directory));
}

static void remove_directory(void)
{
    CU_ASSERT_EQUAL(nftw(directory, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}

static struct spool *open_spool(int64_t bytes_max)
{
    struct spool *spool = NULL;
    CU_ASSERT_EQUAL_FATAL(spool_open(directory, bytes_max, &spool, NULL), OK);
    return spool;
}

static enum status add_number(struct spool *spool, int number)
{
    char line[64];
    snprintf(line, sizeof line, "{\"n\":%d}\n", number);
    return spool_add(spool, view_of(line), NULL);
}

/* Drains all; the numbers joined by commas. */
static char *drain(struct spool *spool, size_t wanted)
{
    struct text all = {0};
    for (int64_t count = 1; count > 0;) {
        AUTO_TEXT lines = {0};
        CU_ASSERT_EQUAL_FATAL(spool_peek(spool, wanted, &lines, &count, NULL), OK);
        for (char *line = lines.bytes; line != NULL && *line != '\0'; line = strchr(line, '\n') + 1)
            text_addf(&all, "%s%d", all.length > 0 ? "," : "", (int)strtol(line + 5, NULL, 10));
        spool_advance(spool);
    }
    return text_take(&all);
}

static void append(const char *name, const char *bytes)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, bytes, strlen(bytes)), (ssize_t)strlen(bytes));
    close(fd);
}

TEST(what_was_added_comes_out_in_order_also_after_a_restart)
{
    fresh_directory();
    struct spool *spool = open_spool(1000000);
    for (int i = 1; i <= 5; i++)
        CU_ASSERT_EQUAL(add_number(spool, i), OK);
    spool_free(spool);
    spool = open_spool(1000000);
    for (int i = 6; i <= 8; i++)
        CU_ASSERT_EQUAL(add_number(spool, i), OK);
    CU_ASSERT_EQUAL(spool_bytes(spool), 64);
    AUTO_FREE char *numbers = drain(spool, 1);
    CU_ASSERT_STRING_EQUAL(numbers, "1,2,3,4,5,6,7,8");
    CU_ASSERT_EQUAL(spool_bytes(spool), 0);
    CU_ASSERT_EQUAL(add_number(spool, 9), OK);
    AUTO_FREE char *more = drain(spool, 1000);
    CU_ASSERT_STRING_EQUAL(more, "9");
    spool_free(spool);
    remove_directory();
}

TEST(what_was_peeked_and_not_acknowledged_comes_again)
{
    fresh_directory();
    struct spool *spool = open_spool(1000000);
    AUTO_TEXT lines = {0};
    int64_t count = 0;
    CU_ASSERT_EQUAL(add_number(spool, 1), OK);
    CU_ASSERT_EQUAL(spool_peek(spool, 1, &lines, &count, NULL), OK);
    CU_ASSERT_EQUAL(add_number(spool, 2), OK);
    AUTO_FREE char *numbers = drain(spool, 1);
    CU_ASSERT_STRING_EQUAL(numbers, "1,2");
    spool_free(spool);
    remove_directory();
}

TEST(a_torn_tail_and_a_damaged_line_cost_only_themselves)
{
    fresh_directory();
    append("spool-0000000001.jsonl", "{\"n\":1}\n{\"n\":2");
    append("spool-0000000002.jsonl", "{\"n\":3}\n\x01\x02garbage\n{\"n\":4}\n");
    append("spool-0000000003.jsonl", "");
    append("spool-0000000004.jsonl", "{\"n\":");
    append("spool-x.jsonl", "not ours");
    struct spool *spool = open_spool(1000000);
    CU_ASSERT_EQUAL(add_number(spool, 5), OK);
    AUTO_FREE char *numbers = drain(spool, 1);
    CU_ASSERT_STRING_EQUAL(numbers, "1,3,4,5");
    CU_ASSERT_EQUAL(spool_damaged(spool), 3);
    CU_ASSERT_EQUAL(spool_bytes(spool), 0);
    spool_free(spool);
    remove_directory();
}

TEST(a_full_spool_refuses_and_takes_again_once_drained)
{
    fresh_directory();
    struct spool *spool = open_spool(20);
    CU_ASSERT_EQUAL(add_number(spool, 1), OK);
    CU_ASSERT_EQUAL(add_number(spool, 2), OK);
    CU_ASSERT_EQUAL(add_number(spool, 3), ERR_LIMIT);
    AUTO_FREE char *numbers = drain(spool, 1);
    CU_ASSERT_STRING_EQUAL(numbers, "1,2");
    CU_ASSERT_EQUAL(add_number(spool, 4), OK);
    spool_free(spool);
    remove_directory();
}

TEST(a_full_disk_refuses_a_batch_whole_and_harms_no_other)
{
    struct rlimit before, tight;
    fresh_directory();
    signal(SIGXFSZ, SIG_IGN);
    CU_ASSERT_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    tight = before;
    tight.rlim_cur = 20; /* two lines and a half */
    struct spool *spool = open_spool(1000000);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &tight), 0);
    CU_ASSERT_EQUAL(add_number(spool, 1), OK);
    CU_ASSERT_EQUAL(add_number(spool, 2), OK);
    enum status when_full = add_number(spool, 3);
    CU_ASSERT_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    CU_ASSERT_EQUAL(when_full, ERR_IO);
    CU_ASSERT_EQUAL(add_number(spool, 4), OK);
    AUTO_FREE char *numbers = drain(spool, 1);
    CU_ASSERT_STRING_EQUAL(numbers, "1,2,4");
    CU_ASSERT_EQUAL(spool_damaged(spool), 0);
    spool_free(spool);
    remove_directory();
}

TEST(large_batches_make_several_files_that_go_as_they_are_drained)
{
    fresh_directory();
    struct spool *spool = open_spool(INT64_C(100000000));
    AUTO_TEXT batch = {0};
    int64_t count = 0, drained = 0;
    for (int i = 0; i < 20000; i++)
        text_addf(&batch, "{\"n\":%d,\"pad\":\"%0100d\"}\n", i, i);
    for (int i = 0; i < 8; i++)
        CU_ASSERT_EQUAL(spool_add(spool, (struct view){batch.bytes, batch.length}, NULL), OK);
    CU_ASSERT_EQUAL(spool_bytes(spool), 8 * (int64_t)batch.length);
    do {
        AUTO_TEXT lines = {0};
        CU_ASSERT_EQUAL_FATAL(spool_peek(spool, 262144, &lines, &count, NULL), OK);
        drained += count;
        spool_advance(spool);
    } while (count > 0);
    CU_ASSERT_EQUAL(drained, 160000);
    CU_ASSERT_EQUAL(spool_bytes(spool), 0);
    spool_free(spool);
    remove_directory();
}

TEST(a_rejected_record_is_kept_with_its_reason)
{
    fresh_directory();
    char path[128];
    struct spool *spool = open_spool(1000);
    spool_reject(spool, view_of("{\"n\":1}"), "no such \"word\"");
    snprintf(path, sizeof path, "%s/rejected.jsonl", directory);
    AUTO_FREE char *text = test_read_file(path);
    CU_ASSERT_STRING_EQUAL(text,
                           "{\"reason\":\"no such \\\"word\\\"\",\"record\":\"{\\\"n\\\":1}\"}\n");
    spool_free(spool);
    remove_directory();
}

TEST(a_lock_names_its_holder_and_ends_with_it)
{
    struct dir_lock *lock = NULL, *other = NULL;
    struct error error = {0};
    char pid[32];
    fresh_directory();
    CU_ASSERT_EQUAL_FATAL(dir_lock_take(directory, &lock, NULL), OK);
    CU_ASSERT_EQUAL(dir_lock_take(directory, &other, &error), ERR_REFUSED);
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, pid));
    dir_lock_free(lock);
    CU_ASSERT_EQUAL(dir_lock_take(directory, &lock, NULL), OK);
    dir_lock_free(lock);
    CU_ASSERT_EQUAL(dir_lock_take("/nowhere/at/all", &lock, &error), ERR_IO);
    remove_directory();
}

TESTS(T(what_was_added_comes_out_in_order_also_after_a_restart),
      T(what_was_peeked_and_not_acknowledged_comes_again),
      T(a_torn_tail_and_a_damaged_line_cost_only_themselves),
      T(a_full_spool_refuses_and_takes_again_once_drained),
      T(a_full_disk_refuses_a_batch_whole_and_harms_no_other),
      T(large_batches_make_several_files_that_go_as_they_are_drained),
      T(a_rejected_record_is_kept_with_its_reason), T(a_lock_names_its_holder_and_ends_with_it))
