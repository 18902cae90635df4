/* The server's disk is full: events wait in the spool, the rest is refused with a reason, and once
 * there is room everything is there once. Needs the right to mount a small file system of its own.
 */
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <unistd.h>

static struct temp_postgres temp;
static struct temp_store at;

struct writing {
    struct loop_timer *timer;
    int64_t next_event;
    int64_t waiting;
    int64_t failed;
    bool is_over;
};

static void on_written(void *context, enum status status, const char *reason)
{
    struct writing *writing = context;
    (void)reason;
    writing->waiting--;
    writing->failed += status != OK;
}

static void on_write(void *context)
{
    struct writing *writing = context;
    AUTO_TEXT batch = {0};
    if (writing->is_over)
        return;
    for (int i = 0; i < 200; i++)
        add_event(&batch, writing->next_event++);
    writing->waiting++;
    store_submit(at.store, view_of(batch.bytes), STORE_MAY_SPOOL, on_written, writing);
    loop_timer_set(writing->timer, 5000000);
}

static bool is_spooling(void *context)
{
    (void)context;
    return store_status(at.store).spooled_records > 1000;
}

static bool is_caught_up(void *context)
{
    const struct writing *writing = context;
    return writing->waiting == 0 && store_status(at.store).spooled_bytes == 0 &&
           store_status(at.store).state == STORE_UP;
}

/* Leaves a little less than left_bytes free. */
static void fill_disk(const char *path, size_t left_bytes)
{
    static char block[65536];
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    off_t length = 0;
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    for (ssize_t wrote; (wrote = write(fd, block, sizeof block)) > 0;)
        length += wrote;
    CU_ASSERT_EQUAL(ftruncate(fd, length - (off_t)left_bytes), 0);
    close(fd);
}

TEST(a_full_disk_of_the_server_loses_nothing)
{
    struct writing writing = {.next_event = 1};
    AUTO_TEXT filler = {0}, entry = {0}, store_dir = {0};
    char *dir = temp_dir();
    char *spool_dir = temp_dir();
    if (mount("broom-test", dir, "tmpfs", MS_NOSUID | MS_NODEV, "size=112m,mode=0711") != 0) {
        int error = errno;
        remove_tree(dir);
        remove_tree(spool_dir);
        test_skip_all(strerror(error));
    }
    temp_postgres_start_in(&temp, dir, true);
    text_addf(&store_dir, "../%s", spool_dir + strlen("/tmp/"));
    temp_store_open(&at, &temp, store_dir.bytes, true);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&at, STORE_UP, 30));

    text_addf(&filler, "%s/filler", dir);
    fill_disk(filler.bytes, 1 << 20);
    writing.timer = loop_timer_new(temp.loop, on_write, &writing);
    loop_timer_set(writing.timer, 0);
    CU_ASSERT_TRUE(run_until(temp.loop, is_spooling, NULL, 60));
    run_for_ms(temp.loop, 1500);
    printf("\n  with the disk full: %s ... ", store_status(at.store).reason);

    CU_ASSERT_EQUAL(unlink(filler.bytes), 0);
    writing.is_over = true;
    CU_ASSERT_TRUE(run_until(temp.loop, is_caught_up, &writing, 60));
    CU_ASSERT_EQUAL(writing.failed, 0);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.event"),
                    writing.next_event - 1);
    struct store_status status = store_status(at.store);
    CU_ASSERT_EQUAL(status.drained_records, status.spooled_records);
    CU_ASSERT_EQUAL(status.committed_records, writing.next_event - 1);
    CU_ASSERT_EQUAL(status.rejected_records, 0);
    CU_ASSERT_EQUAL(status.lost_records, 0);
    add_timeline(&entry, 1, 1, "there is room again");
    CU_ASSERT_EQUAL(temp_submit(&at, entry.bytes, 0), OK);

    loop_timer_free(writing.timer);
    temp_store_stop(&at);
    temp_postgres_stop(&temp);
    CU_ASSERT_EQUAL(umount2(dir, MNT_DETACH), 0);
    remove_tree(dir);
    remove_tree(spool_dir);
}

TESTS(T(a_full_disk_of_the_server_loses_nothing))
