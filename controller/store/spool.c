/* DIRECTORY/spool-NNNNNNNNNN.jsonl, written at the end of the last one, drained from the start of
 * the first one. */
#include "controller/store/spool.h"

#include "controller/base/json.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SEGMENT_BYTES = 8 * 1024 * 1024, REJECTED_BYTES_MAX = 16 * 1024 * 1024 };

struct segment {
    int64_t number;
    int64_t bytes;
};

struct spool {
    char *directory;
    int directory_fd;
    int64_t bytes_max;
    struct segment *segments; /* oldest first */
    size_t segment_count, segment_capacity;
    int64_t next_number;
    int write_fd;   /* of the last segment; -1: the next add begins one */
    int64_t offset; /* drained of the first segment */
    int64_t peeked; /* bytes from offset that the last peek covered; 0 none */
    int64_t damaged;
};

static void segment_name(int64_t number, char ret_name[64])
{
    snprintf(ret_name, 64, "spool-%010lld.jsonl", (long long)number);
}

static void add_segment(struct spool *spool, int64_t number, int64_t bytes)
{
    spool->segments = array_grow(spool->segments, spool->segment_count, &spool->segment_capacity,
                                 sizeof *spool->segments);
    spool->segments[spool->segment_count++] = (struct segment){.number = number, .bytes = bytes};
    if (number >= spool->next_number)
        spool->next_number = number + 1;
}

static int by_number(const void *a, const void *b)
{
    const struct segment *left = a, *right = b;
    return left->number < right->number ? -1 : left->number > right->number;
}

static void find_segments(struct spool *spool, DIR *listing)
{
    for (const struct dirent *item; (item = readdir(listing)) != NULL;) {
        char name[64];
        struct stat info;
        int64_t number = 0;
        const char *digits = item->d_name + 6;
        if (strncmp(item->d_name, "spool-", 6) != 0 ||
            !text_parse_int((struct view){digits, strspn(digits, "0123456789")}, &number))
            continue;
        segment_name(number, name);
        if (strcmp(name, item->d_name) == 0 &&
            fstatat(spool->directory_fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISREG(info.st_mode))
            add_segment(spool, number, info.st_size);
    }
    if (spool->segment_count > 1)
        qsort(spool->segments, spool->segment_count, sizeof *spool->segments, by_number);
}

enum status spool_open(const char *directory, int64_t bytes_max, struct spool **ret_spool,
                       struct error *reterr)
{
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "the spool '%s' cannot be opened: %s", directory,
                         strerror(errno));
    DIR *listing = opendir(directory);
    if (listing == NULL) {
        close(fd);
        return error_set(reterr, ERR_IO, "the spool '%s' cannot be read: %s", directory,
                         strerror(errno));
    }
    struct spool *spool = xcalloc(1, sizeof *spool);
    spool->directory = xstrdup(directory);
    spool->directory_fd = fd;
    spool->bytes_max = bytes_max;
    spool->write_fd = -1;
    spool->next_number = 1;
    find_segments(spool, listing);
    closedir(listing);
    *ret_spool = spool;
    return OK;
}

static void close_writer(struct spool *spool)
{
    if (spool->write_fd >= 0)
        close(spool->write_fd);
    spool->write_fd = -1;
}

void spool_free(struct spool *spool)
{
    if (spool == NULL)
        return;
    close_writer(spool);
    close(spool->directory_fd);
    xfree(spool->segments);
    xfree(spool->directory);
    xfree(spool);
}

/* ---- writing ---- */

static enum status begin_segment(struct spool *spool, struct error *reterr)
{
    char name[64];
    segment_name(spool->next_number, name);
    int fd = openat(spool->directory_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
                    0600);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "the spool cannot be written: %s", strerror(errno));
    if (fsync(spool->directory_fd) != 0) {
        close(fd);
        return error_set(reterr, ERR_IO, "the spool cannot be synced: %s", strerror(errno));
    }
    spool->write_fd = fd;
    add_segment(spool, spool->next_number, 0);
    return OK;
}

static bool write_all(int fd, struct view bytes)
{
    while (bytes.length > 0) {
        ssize_t wrote = write(fd, bytes.bytes, bytes.length);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote <= 0)
            return false;
        bytes = (struct view){bytes.bytes + wrote, bytes.length - (size_t)wrote};
    }
    return true;
}

enum status spool_add(struct spool *spool, struct view lines, struct error *reterr)
{
    if (lines.length == 0)
        return OK;
    if (spool_bytes(spool) + (int64_t)lines.length > spool->bytes_max)
        return error_set(reterr, ERR_LIMIT, "the spool is full: %lld of %lld bytes",
                         (long long)spool_bytes(spool), (long long)spool->bytes_max);
    if (spool->write_fd < 0)
        TRY(begin_segment(spool, reterr));
    struct segment *last = &spool->segments[spool->segment_count - 1];
    if (!write_all(spool->write_fd, lines) || fdatasync(spool->write_fd) != 0) {
        enum status status = error_set(reterr, ERR_IO, "the spool cannot be written: %s",
                                       strerror(errno));
        /* Half a line in the middle would cost the next one. When even this fails, a new file is
         * begun. */
        if (ftruncate(spool->write_fd, last->bytes) != 0)
            close_writer(spool);
        return status;
    }
    last->bytes += (int64_t)lines.length;
    if (last->bytes >= SEGMENT_BYTES)
        close_writer(spool);
    return OK;
}

/* ---- draining ---- */

static void drop_first(struct spool *spool)
{
    char name[64];
    segment_name(spool->segments[0].number, name);
    if (spool->segment_count == 1)
        close_writer(spool);
    /* A file that stays is drained again after the next start, without effect. */
    (void)unlinkat(spool->directory_fd, name, 0);
    spool->segment_count--;
    memmove(spool->segments, spool->segments + 1, spool->segment_count * sizeof *spool->segments);
    spool->offset = 0;
}

/* Whole lines from the offset: at least one, or the rest of a file that has no more newline. */
static enum status read_lines(struct spool *spool, size_t wanted, struct text *raw,
                              struct error *reterr)
{
    char name[64];
    segment_name(spool->segments[0].number, name);
    int fd = openat(spool->directory_fd, name, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "the spool file '%s' cannot be read: %s", name,
                         strerror(errno));
    ssize_t got = 1;
    while (got > 0 && (raw->length < wanted || memchr(raw->bytes, '\n', raw->length) == NULL)) {
        char block[65536];
        got = pread(fd, block, sizeof block, spool->offset + (int64_t)raw->length);
        if (got > 0)
            text_add_bytes(raw, block, (size_t)got);
    }
    close(fd);
    if (got < 0)
        return error_set(reterr, ERR_IO, "the spool file '%s' cannot be read: %s", name,
                         strerror(errno));
    return OK;
}

static bool is_record(struct view line)
{
    AUTO(json_free) struct json *root = NULL;
    return json_parse(line, &root, NULL) == OK && json_kind(root) == JSON_OBJECT;
}

/* Keeps what is whole; returns how many bytes of raw that covers. */
static size_t keep_records(struct spool *spool, const struct text *raw, struct text *lines,
                           int64_t *ret_count)
{
    size_t used = 0;
    for (const char *end; used < raw->length; used = (size_t)(end - raw->bytes) + 1) {
        end = memchr(raw->bytes + used, '\n', raw->length - used);
        if (end == NULL)
            break;
        struct view line = {raw->bytes + used, (size_t)(end - raw->bytes) - used};
        if (line.length == 0)
            continue;
        if (!is_record(line)) {
            spool->damaged++;
            continue;
        }
        text_add_bytes(lines, line.bytes, line.length + 1);
        (*ret_count)++;
    }
    return used;
}

enum status spool_peek(struct spool *spool, size_t bytes_wanted, struct text *lines,
                       int64_t *ret_count, struct error *reterr)
{
    *ret_count = 0;
    spool->peeked = 0;
    while (spool->segment_count > 0 && *ret_count == 0) {
        AUTO_TEXT raw = {0};
        spool->offset += spool->peeked; /* nothing but damage so far */
        spool->peeked = 0;
        TRY(read_lines(spool, bytes_wanted, &raw, reterr));
        if (raw.length == 0) {
            drop_first(spool);
            continue;
        }
        size_t used = keep_records(spool, &raw, lines, ret_count);
        if (used == 0) { /* a torn tail */
            spool->damaged++;
            used = raw.length;
        }
        spool->peeked = (int64_t)used;
    }
    return OK;
}

void spool_advance(struct spool *spool)
{
    spool->offset += spool->peeked;
    spool->peeked = 0;
    if (spool->segment_count > 0 && spool->offset >= spool->segments[0].bytes)
        drop_first(spool);
}

int64_t spool_bytes(const struct spool *spool)
{
    int64_t sum = -spool->offset;
    for (size_t i = 0; i < spool->segment_count; i++)
        sum += spool->segments[i].bytes;
    return sum > 0 ? sum : 0;
}

int64_t spool_damaged(const struct spool *spool)
{
    return spool->damaged;
}

void spool_reject(struct spool *spool, struct view line, const char *reason)
{
    AUTO_TEXT out = {0};
    struct stat info;
    int fd = openat(spool->directory_fd, "rejected.jsonl",
                    O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_put_string(&writer, "reason", reason);
    json_add_key(&writer, "record");
    json_add_view(&writer, line); /* as text: it may be no JSON at all */
    json_close(&writer);
    text_add(&out, "\n");
    if (fstat(fd, &info) == 0 && info.st_size + (int64_t)out.length <= REJECTED_BYTES_MAX)
        (void)write_all(fd, (struct view){out.bytes, out.length});
    close(fd);
}
