/* Segments of zstd frames. */
#include "controller/io/recorder.h"

#include "controller/io/compress.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A line longer than LINE_BYTES_MAX was refused by the parser and would make the recording
 * unreadable. */
#define MARK "# arrival "
static const int64_t MARK_EVERY_NS = INT64_C(1000000000);
enum { SEGMENTS_AIMED = 16, FLUSH_PLAIN_BYTES = 4 << 20, ZSTD_LEVEL = 1, LINE_BYTES_MAX = 65536 };
static const int64_t SEGMENT_BYTES_MIN = 65536, SEGMENT_BYTES_MAX = 256 << 20;

struct recorder {
    char *dir;
    int64_t bytes_max;
    int fd;           /* of the open segment; -1: none */
    struct text path; /* of the segment opened last */
    int64_t segment_bytes;
    int64_t unflushed_bytes;
    int64_t marked_ns; /* arrival that the newest mark of the segment says */
    struct zstd_writer *zstd;
    struct text packed; /* compressed, not written yet */
    struct text line;   /* a line that needed a timestamp */
    struct recorder_counts counts;
    char reason[128];
};

enum status recorder_open(const char *dir, int64_t bytes_max, struct recorder **ret_recorder,
                          struct error *reterr)
{
    if (mkdir(dir, 0750) != 0 && errno != EEXIST)
        return error_set(reterr, ERR_IO, "cannot make '%s': %s", dir, strerror(errno));
    if (access(dir, W_OK | X_OK) != 0)
        return error_set(reterr, ERR_IO, "cannot write in '%s': %s", dir, strerror(errno));
    struct recorder *recorder = xcalloc(1, sizeof *recorder);
    recorder->dir = xstrdup(dir);
    recorder->bytes_max = bytes_max;
    recorder->fd = -1;
    *ret_recorder = recorder;
    return OK;
}

static void note_failure(struct recorder *recorder, const char *what)
{
    snprintf(recorder->reason, sizeof recorder->reason, "%s: %s", what, strerror(errno));
    recorder->counts.reason = recorder->reason;
    recorder->counts.failed_writes++;
}

static void close_segment(struct recorder *recorder)
{
    if (recorder->fd >= 0)
        close(recorder->fd);
    recorder->fd = -1;
    zstd_writer_free(recorder->zstd);
    recorder->zstd = NULL;
}

static void write_packed(struct recorder *recorder)
{
    size_t at = 0;
    while (at < recorder->packed.length) {
        ssize_t wrote = write(recorder->fd, recorder->packed.bytes + at,
                              recorder->packed.length - at);
        if (wrote < 0 && errno == EINTR)
            continue;
        if (wrote < 0) {
            note_failure(recorder, "recording stopped");
            recorder->counts.lost_bytes += (int64_t)(recorder->packed.length - at);
            close_segment(recorder); /* a torn frame ends its segment; the next one starts clean */
            if (recorder->segment_bytes == 0)
                unlink(recorder->path.bytes); /* a full disk must not fill with empty files */
            break;
        }
        at += (size_t)wrote;
        recorder->segment_bytes += wrote;
        recorder->counts.packed_bytes += wrote;
        recorder->counts.reason = NULL;
    }
    text_clear(&recorder->packed);
}

static int is_segment(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return strncmp(entry->d_name, "rec-", 4) == 0 && length > 7 &&
           strcmp(entry->d_name + length - 7, ".lp.zst") == 0;
}

static int64_t segment_size(const char *dir, const char *name)
{
    AUTO_TEXT path = {0};
    struct stat info;
    text_addf(&path, "%s/%s", dir, name);
    return stat(path.bytes, &info) == 0 ? (int64_t)info.st_size : 0;
}

static void drop_segment(struct recorder *recorder, const char *name)
{
    AUTO_TEXT path = {0};
    text_addf(&path, "%s/%s", recorder->dir, name);
    if (unlink(path.bytes) == 0)
        recorder->counts.segments_dropped++;
}

/* Names are times of one width, so that name order is age. The room of one more segment is kept
 * free. */
static void drop_oldest(struct recorder *recorder, int64_t room_bytes)
{
    struct dirent **entries = NULL;
    int count = scandir(recorder->dir, &entries, is_segment, alphasort);
    int64_t total = room_bytes;
    for (int i = 0; i < count; i++)
        total += segment_size(recorder->dir, entries[i]->d_name);
    for (int i = 0; i < count; i++) {
        if (total > recorder->bytes_max) {
            total -= segment_size(recorder->dir, entries[i]->d_name);
            drop_segment(recorder, entries[i]->d_name);
        }
        xfree(entries[i]);
    }
    xfree(entries);
}

static int64_t segment_bytes_aimed(const struct recorder *recorder)
{
    int64_t bytes = recorder->bytes_max / SEGMENTS_AIMED;
    return bytes < SEGMENT_BYTES_MIN   ? SEGMENT_BYTES_MIN
           : bytes > SEGMENT_BYTES_MAX ? SEGMENT_BYTES_MAX
                                       : bytes;
}

static bool open_segment(struct recorder *recorder, int64_t arrival_ns)
{
    drop_oldest(recorder, segment_bytes_aimed(recorder));
    text_clear(&recorder->path);
    text_addf(&recorder->path, "%s/rec-%019lld.lp.zst", recorder->dir, (long long)arrival_ns);
    recorder->fd = open(recorder->path.bytes, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    if (recorder->fd < 0) {
        note_failure(recorder, "cannot make a segment");
        return false;
    }
    recorder->segment_bytes = 0;
    recorder->marked_ns = 0;
    recorder->zstd = zstd_writer_new(ZSTD_LEVEL);
    recorder->counts.segments_made++;
    return true;
}

static void end_segment(struct recorder *recorder)
{
    if (recorder->fd < 0)
        return;
    zstd_writer_end(recorder->zstd, &recorder->packed);
    write_packed(recorder);
    close_segment(recorder);
}

void recorder_flush(struct recorder *recorder)
{
    if (recorder->fd < 0 || recorder->unflushed_bytes == 0)
        return;
    zstd_writer_flush(recorder->zstd, &recorder->packed);
    recorder->unflushed_bytes = 0;
    write_packed(recorder);
    if (recorder->fd >= 0 && recorder->segment_bytes >= segment_bytes_aimed(recorder))
        end_segment(recorder);
}

/* Without the blanks and the carriage return that the parser, too, takes off its end. */
static struct view trim_end(struct view line)
{
    while (line.length > 0 &&
           (line.bytes[line.length - 1] == ' ' || line.bytes[line.length - 1] == '\r'))
        line.length--;
    return line;
}

/* The timestamp at the end of a line: its length, 0 when the line has none. Fields hold '=', so a
 * last word of digits alone is one. */
static size_t timestamp_length(struct view line)
{
    size_t length = 0;
    while (length < line.length) {
        char c = line.bytes[line.length - 1 - length];
        if (c == ' ')
            return length;
        if ((c < '0' || c > '9') && c != '-')
            return 0;
        length++;
    }
    return 0;
}

static void add_changed_line(struct recorder *recorder, struct view line, size_t timestamp,
                             int64_t unit_ns, int64_t arrival_ns)
{
    int64_t time = 0;
    int64_t time_ns = arrival_ns;
    struct view digits = {line.bytes + line.length - timestamp, timestamp};
    if (timestamp > 0 &&
        (!text_parse_int(digits, &time) || __builtin_mul_overflow(time, unit_ns, &time_ns)))
        return; /* no recording takes such a line; the sender was told */
    size_t kept = line.length - timestamp;
    while (kept > 0 && line.bytes[kept - 1] == ' ')
        kept--;
    text_clear(&recorder->line);
    text_add_bytes(&recorder->line, line.bytes, kept);
    text_addf(&recorder->line, " %lld\n", (long long)time_ns);
    zstd_writer_add(recorder->zstd, (struct view){recorder->line.bytes, recorder->line.length},
                    &recorder->packed);
}

/* Whole runs of lines that need no change go in as one piece. */
static void add_lines(struct recorder *recorder, struct view lines, int64_t unit_ns,
                      int64_t arrival_ns)
{
    const char *run = lines.bytes, *at = lines.bytes, *end = lines.bytes + lines.length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        const char *next = newline != NULL ? newline + 1 : end;
        struct view line = trim_end((struct view){at, (size_t)(stop - at)});
        size_t timestamp = timestamp_length(line);
        bool is_whole = line.bytes + line.length == stop && timestamp > 0 && unit_ns == 1;
        bool is_left_out = line.length == 0 || *at == '#' || (size_t)(stop - at) > LINE_BYTES_MAX;
        if (newline == NULL || is_left_out || !is_whole) {
            zstd_writer_add(recorder->zstd, (struct view){run, (size_t)(at - run)},
                            &recorder->packed);
            if (!is_left_out)
                add_changed_line(recorder, line, timestamp, unit_ns, arrival_ns);
            run = next;
        }
        at = next;
    }
    zstd_writer_add(recorder->zstd, (struct view){run, (size_t)(at - run)}, &recorder->packed);
}

static void add_mark(struct recorder *recorder, int64_t arrival_ns)
{
    if (recorder->marked_ns != 0 && arrival_ns - recorder->marked_ns < MARK_EVERY_NS)
        return;
    recorder->marked_ns = arrival_ns;
    text_clear(&recorder->line);
    text_addf(&recorder->line, MARK "%lld\n", (long long)arrival_ns);
    zstd_writer_add(recorder->zstd, (struct view){recorder->line.bytes, recorder->line.length},
                    &recorder->packed);
}

void recorder_add(struct recorder *recorder, struct view lines, int64_t unit_ns, int64_t arrival_ns)
{
    if (lines.length == 0)
        return;
    if (recorder->fd < 0 && !open_segment(recorder, arrival_ns)) {
        recorder->counts.lost_bytes += (int64_t)lines.length;
        return;
    }
    add_mark(recorder, arrival_ns);
    add_lines(recorder, lines, unit_ns, arrival_ns);
    recorder->counts.plain_bytes += (int64_t)lines.length;
    recorder->unflushed_bytes += (int64_t)lines.length;
    if (recorder->unflushed_bytes >= FLUSH_PLAIN_BYTES)
        recorder_flush(recorder);
}

void recorder_free(struct recorder *recorder)
{
    if (recorder == NULL)
        return;
    end_segment(recorder);
    text_done(&recorder->packed);
    text_done(&recorder->line);
    text_done(&recorder->path);
    xfree(recorder->dir);
    xfree(recorder);
}

struct recorder_counts recorder_counts(const struct recorder *recorder)
{
    return recorder->counts;
}

/* ---- reading ---- */

struct reading {
    int64_t since_ns;
    int64_t arrival_ns; /* of the lines that follow; 0 before the first mark */
    recorder_lines_fn *fn;
    void *context;
};

static void give(const struct reading *reading, const char *from, const char *to)
{
    if (to > from && reading->arrival_ns != 0 && reading->arrival_ns >= reading->since_ns)
        reading->fn(reading->context, (struct view){from, (size_t)(to - from)},
                    reading->arrival_ns);
}

/* Only marks begin with '#': comments of senders are not recorded. */
static void read_block(struct reading *reading, struct view block)
{
    const char *run = block.bytes, *at = block.bytes, *end = block.bytes + block.length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *next = newline != NULL ? newline + 1 : end;
        if (*at == '#') {
            const char *number = at + strlen(MARK);
            give(reading, run, at);
            run = next;
            if (newline == NULL || newline <= number ||
                !text_parse_int((struct view){number, (size_t)(newline - number)},
                                &reading->arrival_ns))
                reading->arrival_ns = 0;
        }
        at = next;
    }
    give(reading, run, end);
}

static void read_segment(struct reading *reading, const char *dir, const char *name)
{
    AUTO_TEXT path = {0};
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct view block;
    text_addf(&path, "%s/%s", dir, name);
    reading->arrival_ns = 0;
    if (line_reader_open(path.bytes, &reader, NULL) != OK)
        return;
    while (line_reader_next(reader, &block, NULL) == OK && block.length > 0)
        read_block(reading, block);
}

/* A segment is named by its first arrival: all before the last one that begins before since_ns are
 * older. */
static int first_needed(struct dirent **entries, int count, int64_t since_ns)
{
    char name[64];
    int first = 0;
    snprintf(name, sizeof name, "rec-%019lld.lp.zst", (long long)since_ns);
    for (int i = 0; i < count; i++)
        if (strcmp(entries[i]->d_name, name) <= 0)
            first = i;
    return first;
}

enum status recorder_read(const char *dir, int64_t since_ns, recorder_lines_fn *fn, void *context,
                          struct error *reterr)
{
    struct dirent **entries = NULL;
    struct reading reading = {.since_ns = since_ns, .fn = fn, .context = context};
    int count = scandir(dir, &entries, is_segment, alphasort);
    if (count < 0)
        return error_set(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read '%s': %s",
                         dir, strerror(errno));
    int first = first_needed(entries, count, since_ns);
    for (int i = 0; i < count; i++) {
        if (i >= first)
            read_segment(&reading, dir, entries[i]->d_name);
        xfree(entries[i]);
    }
    xfree(entries);
    return OK;
}
