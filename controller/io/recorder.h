/* The raw stream on disk: segments rec-<ns>.lp.zst in one folder, the oldest dropped first when the
 * bytes run out. A segment, or several one after another, is a recording that `broom replay` reads;
 * a crash costs the lines since the last flush. A full disk costs the recording, never the daemon:
 * it counts, says so and tries again.
 */
#ifndef BROOM_IO_RECORDER_H
#define BROOM_IO_RECORDER_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

struct recorder;

/* dir is made when missing. bytes_max bounds all segments together. ERR_IO: it cannot be used. */
MUST_CHECK enum status recorder_open(const char *dir, int64_t bytes_max,
                                     struct recorder **ret_recorder, struct error *reterr);
void recorder_free(struct recorder *recorder); /* ends the segment */
DEFINE_AUTO(struct recorder, recorder_free)

/* Adds a body of lines. Timestamps are in units of unit_ns; they are written in nanoseconds, and
 * lines without one get arrival_ns. Blank lines, comments and lines over 64 KiB are left out. Once
 * a second of arrivals a comment says when: "# arrival NS". */
void recorder_add(struct recorder *recorder, struct view lines, int64_t unit_ns,
                  int64_t arrival_ns);
/* Reads what was recorded since since_ns, in order, a second of arrivals at a time: fn gets the
 * lines and when they came. A segment that a crash has torn gives what is whole. ERR_IO,
 * ERR_NOT_FOUND: the folder. */
typedef void recorder_lines_fn(void *context, struct view lines, int64_t arrival_ns);
MUST_CHECK enum status recorder_read(const char *dir, int64_t since_ns, recorder_lines_fn *fn,
                                     void *context, struct error *reterr);
/* Makes everything so far readable by others. Call every few seconds. */
void recorder_flush(struct recorder *recorder);

struct recorder_counts {
    int64_t plain_bytes, packed_bytes, segments_made, segments_dropped, failed_writes, lost_bytes;
    const char *reason; /* why the last write failed; NULL while it works */
};
struct recorder_counts recorder_counts(const struct recorder *recorder);

#endif
