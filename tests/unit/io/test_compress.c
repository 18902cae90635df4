#include "controller/io/compress.h"
#include "tests/harness/test.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

static void fill(struct text *text, size_t lines)
{
    for (size_t i = 0; i < lines; i++)
        text_addf(text, "beat,job=j,rank=%zu step=%zu %zu\n", i % 64, i, i + 1);
}

static struct view view_text(const struct text *text)
{
    return (struct view){text->bytes, text->length};
}

TEST(gzip_comes_back_whole)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO_TEXT back = {0};
    fill(&plain, 5000);
    CU_ASSERT_EQUAL(gzip_deflate(view_text(&plain), &packed, NULL), OK);
    CU_ASSERT_EQUAL(gzip_inflate(view_text(&packed), plain.length, &back, NULL), OK);
    CU_ASSERT(view_equals_view(view_text(&plain), view_text(&back)));
}

TEST(half_a_gzip_body_is_refused_and_leaves_nothing)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO_TEXT out = {0};
    struct error error;
    fill(&plain, 5000);
    text_add(&out, "before");
    CU_ASSERT_EQUAL(gzip_deflate(view_text(&plain), &packed, NULL), OK);
    for (size_t cut = 0; cut < packed.length; cut += packed.length / 7 + 1) {
        enum status status = gzip_inflate((struct view){packed.bytes, cut}, 1 << 20, &out, &error);
        CU_ASSERT_EQUAL(status, ERR_INVALID);
        CU_ASSERT_STRING_EQUAL(out.bytes, "before");
    }
    CU_ASSERT_EQUAL(gzip_inflate(view_of("not gzip at all"), 1 << 20, &out, &error), ERR_INVALID);
}

TEST(a_gzip_bomb_stops_at_the_limit)
{
    size_t length = 64 << 20;
    AUTO_FREE char *zeros = xcalloc(length, 1);
    AUTO_TEXT packed = {0};
    AUTO_TEXT out = {0};
    struct error error;
    CU_ASSERT_EQUAL(gzip_deflate((struct view){zeros, length}, &packed, NULL), OK);
    CU_ASSERT(packed.length < 200000);
    CU_ASSERT_EQUAL(gzip_inflate(view_text(&packed), 1 << 20, &out, &error), ERR_LIMIT);
    CU_ASSERT(out.capacity < (4 << 20));
}

/* Reads a whole file of lines back; stops at an error, which is returned. */
static enum status read_all(const char *path, struct text *out, struct error *reterr)
{
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct view block;
    TRY(line_reader_open(path, &reader, reterr));
    for (;;) {
        TRY(line_reader_next(reader, &block, reterr));
        if (block.length == 0)
            return OK;
        CU_ASSERT(block.bytes[block.length - 1] == '\n');
        text_add_bytes(out, block.bytes, block.length);
    }
}

static void write_file(const char *path, struct view bytes)
{
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    CU_ASSERT_EQUAL(fwrite(bytes.bytes, 1, bytes.length, file), bytes.length);
    fclose(file);
}

TEST(lines_are_read_from_plain_gzip_and_zstd_alike)
{
    char path[] = "/tmp/broom-test-XXXXXX";
    int fd = mkstemp(path);
    AUTO_TEXT plain = {0};
    AUTO_TEXT gzip = {0};
    AUTO_TEXT zstd = {0};
    fill(&plain, 40000);
    CU_ASSERT_EQUAL(gzip_deflate(view_text(&plain), &gzip, NULL), OK);
    AUTO(zstd_writer_free) struct zstd_writer *writer = zstd_writer_new(1);
    zstd_writer_add(writer, view_text(&plain), &zstd);
    zstd_writer_end(writer, &zstd);
    struct view files[] = {view_text(&plain), view_text(&gzip), view_text(&zstd)};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        AUTO_TEXT back = {0};
        write_file(path, files[i]);
        CU_ASSERT_EQUAL(read_all(path, &back, NULL), OK);
        CU_ASSERT(view_equals_view(view_text(&plain), view_text(&back)));
    }
    close(fd);
    unlink(path);
}

TEST(a_torn_file_gives_its_whole_lines_and_then_says_so)
{
    char path[] = "/tmp/broom-test-XXXXXX";
    int fd = mkstemp(path);
    AUTO_TEXT plain = {0};
    AUTO_TEXT zstd = {0};
    AUTO_TEXT back = {0};
    struct error error = {0};
    fill(&plain, 2000);
    AUTO(zstd_writer_free) struct zstd_writer *writer = zstd_writer_new(1);
    zstd_writer_add(writer, view_text(&plain), &zstd);
    zstd_writer_flush(writer, &zstd);
    size_t flushed = zstd.length;
    zstd_writer_add(writer, view_text(&plain), &zstd);
    zstd_writer_end(writer, &zstd);
    write_file(path, (struct view){zstd.bytes, flushed + 3});
    CU_ASSERT_EQUAL(read_all(path, &back, &error), ERR_INVALID);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "cut short"));
    CU_ASSERT(view_equals_view(view_text(&plain), view_text(&back)));
    close(fd);
    unlink(path);
}

TEST(a_missing_file_is_named)
{
    struct line_reader *reader = NULL;
    struct error error;
    CU_ASSERT_EQUAL(line_reader_open("/nonexistent/x.lp", &reader, &error), ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "/nonexistent/x.lp"));
}

TEST(a_frame_at_once_comes_back_and_is_bounded)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO_TEXT back = {0};
    struct error error;
    fill(&plain, 3000);
    CU_ASSERT_EQUAL(zstd_pack(view_text(&plain), 3, &packed, NULL), OK);
    CU_ASSERT_EQUAL(zstd_unpack(view_text(&packed), plain.length, &back, NULL), OK);
    CU_ASSERT(view_equals_view(view_text(&plain), view_text(&back)));
    CU_ASSERT_EQUAL(zstd_unpack(view_text(&packed), plain.length - 1, &back, &error), ERR_LIMIT);
    CU_ASSERT_EQUAL(
        zstd_unpack((struct view){packed.bytes, packed.length / 2}, plain.length, &back, &error),
        ERR_INVALID);
}

TEST(a_frame_without_a_checksum_is_read_to_its_last_line)
{
    char path[] = "/tmp/broom-test-XXXXXX";
    int fd = mkstemp(path);
    for (size_t lines = 1500; lines < 6000; lines += 500) { /* the last block is up to 128 KiB */
        AUTO_TEXT plain = {0};
        AUTO_TEXT packed = {0};
        AUTO_TEXT back = {0};
        fill(&plain, lines);
        CU_ASSERT_EQUAL(zstd_pack(view_text(&plain), 3, &packed, NULL), OK);
        write_file(path, view_text(&packed));
        CU_ASSERT_EQUAL(read_all(path, &back, NULL), OK);
        CU_ASSERT(view_equals_view(view_text(&plain), view_text(&back)));
    }
    close(fd);
    unlink(path);
}

/* Each byte only after the one before it was read. */
static void write_slowly(int fd, struct view bytes)
{
    for (size_t i = 0; i < bytes.length; i++) {
        int unread = 1;
        while (unread > 0 && ioctl(fd, FIONREAD, &unread) == 0)
            sched_yield();
        CU_ASSERT_EQUAL(write(fd, bytes.bytes + i, 1), 1);
    }
}

TEST(a_pipe_that_gives_single_bytes_is_known_by_its_first_ones)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct view block = {0};
    int ends[2];
    char path[64];
    fill(&plain, 3);
    CU_ASSERT_EQUAL(zstd_pack(view_text(&plain), 3, &packed, NULL), OK);
    CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
    pid_t child = fork();
    if (child == 0) {
        write_slowly(ends[1], view_text(&packed));
        _exit(0);
    }
    close(ends[1]);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", ends[0]);
    CU_ASSERT_EQUAL_FATAL(line_reader_open(path, &reader, NULL), OK);
    CU_ASSERT_EQUAL(line_reader_next(reader, &block, NULL), OK);
    CU_ASSERT(view_equals_view(view_text(&plain), block));
    close(ends[0]);
    CU_ASSERT_EQUAL(waitpid(child, NULL, 0), child);
}

TESTS(T(gzip_comes_back_whole), T(half_a_gzip_body_is_refused_and_leaves_nothing),
      T(a_gzip_bomb_stops_at_the_limit), T(lines_are_read_from_plain_gzip_and_zstd_alike),
      T(a_torn_file_gives_its_whole_lines_and_then_says_so), T(a_missing_file_is_named),
      T(a_frame_at_once_comes_back_and_is_bounded),
      T(a_frame_without_a_checksum_is_read_to_its_last_line),
      T(a_pipe_that_gives_single_bytes_is_known_by_its_first_ones))
