/* gzip in (zlib) and zstd both ways, all bounded. compress.c is the only includer of zlib.h and
 * zstd.h. */
#ifndef BROOM_IO_COMPRESS_H
#define BROOM_IO_COMPRESS_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

/* Inflates one gzip (or zlib) body. ERR_INVALID: not gzip, cut short, or bytes after the end;
 * ERR_LIMIT: more than limit_bytes would come out. Appends to out; on failure out is as before. */
MUST_CHECK enum status gzip_inflate(struct view packed, size_t limit_bytes, struct text *out,
                                    struct error *reterr);
MUST_CHECK enum status gzip_deflate(struct view plain, struct text *out, struct error *reterr);

/* zstd frames appended to a file as they come; zstd_writer_flush makes all bytes so far readable.
 */
struct zstd_writer;
struct zstd_writer *zstd_writer_new(int level);
void zstd_writer_free(struct zstd_writer *writer);
DEFINE_AUTO(struct zstd_writer, zstd_writer_free)
void zstd_writer_add(struct zstd_writer *writer, struct view plain, struct text *out);
void zstd_writer_flush(struct zstd_writer *writer, struct text *out);
void zstd_writer_end(struct zstd_writer *writer, struct text *out); /* ends the frame */

/* One frame at once. zstd_unpack: ERR_INVALID not one whole frame, ERR_LIMIT over limit_bytes.
 * Append to out. */
MUST_CHECK enum status zstd_pack(struct view plain, int level, struct text *out,
                                 struct error *reterr);
MUST_CHECK enum status zstd_unpack(struct view packed, size_t limit_bytes, struct text *out,
                                   struct error *reterr);

/* Reads a file of lines, plain, .gz or .zst by its first bytes; "-" is stdin. */
struct line_reader;
MUST_CHECK enum status line_reader_open(const char *path, struct line_reader **ret_reader,
                                        struct error *reterr);
void line_reader_free(struct line_reader *reader);
DEFINE_AUTO(struct line_reader, line_reader_free)
/* The next block of whole lines, each ended by '\n' (the last one also without): OK with an empty
 * view at the end. A line over 1 MiB is ERR_LIMIT; a file cut short gives what is whole, then
 * ERR_INVALID. The view is writable by nobody and lives until the next call. */
MUST_CHECK enum status line_reader_next(struct line_reader *reader, struct view *ret_block,
                                        struct error *reterr);

#endif
