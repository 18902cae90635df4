/* The bytes of a raw window: columns one after another, which zstd then packs well, and base64 to
 * carry them in a JSON record (encoding "zstd-columns"). Pure.
 *
 * Layout, little-endian: "BRW1", count as u64, then count times i64 time_ns, i64 step, i32 rank,
 * f32 value, each column whole before the next.
 */
#ifndef BROOM_SERIES_RAW_WINDOW_H
#define BROOM_SERIES_RAW_WINDOW_H

#include "controller/series/series.h"

enum { RAW_WINDOW_BYTES_MAX = 1 << 30 };

void raw_window_encode(const struct raw_window *window, struct text *out);
/* ERR_INVALID when the bytes are no window. The caller calls raw_window_done. */
MUST_CHECK enum status raw_window_decode(struct view bytes, struct raw_window *ret_window,
                                         struct error *reterr);

void base64_encode(struct view bytes, struct text *out);
bool base64_decode(struct view text, struct text *out); /* false on anything but padded base64 */

#endif
