/* Inflating with bounds, zstd streams, and files of lines in any of three wrappings. */
#include "controller/io/compress.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

enum { CHUNK_BYTES = 65536, BLOCK_BYTES = 1 << 20, GZIP_OR_ZLIB = 32 + 15, GZIP_ONLY = 16 + 15 };

/* ---- gzip ---- */

static enum status inflate_all(z_stream *stream, size_t limit_bytes, struct text *out,
                               struct error *reterr)
{
    size_t start = out->length;
    AUTO_FREE unsigned char *chunk = xmalloc(CHUNK_BYTES);
    for (;;) {
        stream->next_out = chunk;
        stream->avail_out = CHUNK_BYTES;
        int code = inflate(stream, Z_NO_FLUSH);
        size_t got = CHUNK_BYTES - stream->avail_out;
        if (out->length - start + got > limit_bytes)
            return error_set(reterr, ERR_LIMIT, "the body inflates to more than %zu bytes",
                             limit_bytes);
        text_add_bytes(out, chunk, got);
        if (code == Z_STREAM_END) {
            if (stream->avail_in == 0)
                return OK;
            if (inflateReset(stream) != Z_OK) /* gzip allows members one after another */
                return error_set(reterr, ERR_BUG, "inflate cannot be reset");
        } else if (code == Z_BUF_ERROR ||
                   (code == Z_OK && stream->avail_in == 0 && got < CHUNK_BYTES)) {
            return error_set(reterr, ERR_INVALID, "the gzip body is cut short");
        } else if (code != Z_OK) {
            return error_set(reterr, ERR_INVALID, "not a gzip body: %s",
                             stream->msg != NULL ? stream->msg : "wrong data");
        }
    }
}

enum status gzip_inflate(struct view packed, size_t limit_bytes, struct text *out,
                         struct error *reterr)
{
    z_stream stream = {0};
    if (packed.length == 0 || packed.length > UINT32_MAX)
        return error_set(reterr, ERR_INVALID, "the gzip body is empty or over 4 GiB");
    if (inflateInit2(&stream, GZIP_OR_ZLIB) != Z_OK)
        return error_set(reterr, ERR_LIMIT, "no memory to inflate");
    AUTO_FREE unsigned char *input = xmalloc(packed.length); /* zlib's next_in is not const */
    memcpy(input, packed.bytes, packed.length);
    stream.next_in = input;
    stream.avail_in = (unsigned)packed.length;
    size_t before = out->length;
    enum status status = inflate_all(&stream, limit_bytes, out, reterr);
    inflateEnd(&stream);
    if (status != OK && out->bytes != NULL) {
        out->length = before;
        out->bytes[before] = '\0';
    }
    return status;
}

enum status gzip_deflate(struct view plain, struct text *out, struct error *reterr)
{
    z_stream stream = {0};
    if (plain.length > UINT32_MAX / 2 ||
        deflateInit2(&stream, 6, Z_DEFLATED, GZIP_ONLY, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return error_set(reterr, ERR_LIMIT, "too much to deflate at once");
    size_t bound = deflateBound(&stream, plain.length);
    AUTO_FREE unsigned char *packed = xmalloc(bound);
    AUTO_FREE unsigned char *input = xmalloc(plain.length);
    if (plain.length > 0)
        memcpy(input, plain.bytes, plain.length);
    stream.next_in = input;
    stream.avail_in = (unsigned)plain.length;
    stream.next_out = packed;
    stream.avail_out = (unsigned)bound;
    int code = deflate(&stream, Z_FINISH);
    size_t length = bound - stream.avail_out;
    deflateEnd(&stream);
    if (code != Z_STREAM_END)
        return error_set(reterr, ERR_BUG, "deflate did not end");
    text_add_bytes(out, packed, length);
    return OK;
}

/* ---- zstd ---- */

struct zstd_writer {
    ZSTD_CCtx *context;
    unsigned char *chunk;
    size_t chunk_bytes;
};

struct zstd_writer *zstd_writer_new(int level)
{
    struct zstd_writer *writer = xcalloc(1, sizeof *writer);
    writer->context = ZSTD_createCCtx();
    writer->chunk_bytes = ZSTD_CStreamOutSize();
    writer->chunk = xmalloc(writer->chunk_bytes);
    if (writer->context != NULL) {
        ZSTD_CCtx_setParameter(writer->context, ZSTD_c_compressionLevel, level);
        ZSTD_CCtx_setParameter(writer->context, ZSTD_c_checksumFlag, 1);
    }
    return writer;
}

void zstd_writer_free(struct zstd_writer *writer)
{
    if (writer == NULL)
        return;
    ZSTD_freeCCtx(writer->context);
    xfree(writer->chunk);
    xfree(writer);
}

static void zstd_step(struct zstd_writer *writer, struct view plain, ZSTD_EndDirective end,
                      struct text *out)
{
    ZSTD_inBuffer input = {plain.bytes, plain.length, 0};
    size_t left;
    do {
        ZSTD_outBuffer output = {writer->chunk, writer->chunk_bytes, 0};
        left = ZSTD_compressStream2(writer->context, &output, &input, end);
        if (ZSTD_isError(left))
            return; /* only out of memory, which create would have met first */
        text_add_bytes(out, writer->chunk, output.pos);
    } while (input.pos < input.size || (end != ZSTD_e_continue && left > 0));
}

void zstd_writer_add(struct zstd_writer *writer, struct view plain, struct text *out)
{
    zstd_step(writer, plain, ZSTD_e_continue, out);
}

void zstd_writer_flush(struct zstd_writer *writer, struct text *out)
{
    zstd_step(writer, (struct view){0}, ZSTD_e_flush, out);
}

void zstd_writer_end(struct zstd_writer *writer, struct text *out)
{
    zstd_step(writer, (struct view){0}, ZSTD_e_end, out);
}

enum status zstd_pack(struct view plain, int level, struct text *out, struct error *reterr)
{
    size_t bound = ZSTD_compressBound(plain.length);
    AUTO_FREE unsigned char *packed = xmalloc(bound);
    size_t length = ZSTD_compress(packed, bound, plain.bytes, plain.length, level);
    if (ZSTD_isError(length))
        return error_set(reterr, ERR_LIMIT, "zstd: %s", ZSTD_getErrorName(length));
    text_add_bytes(out, packed, length);
    return OK;
}

enum status zstd_unpack(struct view packed, size_t limit_bytes, struct text *out,
                        struct error *reterr)
{
    unsigned long long size = ZSTD_getFrameContentSize(packed.bytes, packed.length);
    if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN)
        return error_set(reterr, ERR_INVALID, "not a whole zstd frame");
    if (size > limit_bytes)
        return error_set(reterr, ERR_LIMIT, "the frame holds more than %zu bytes", limit_bytes);
    AUTO_FREE unsigned char *plain = xmalloc((size_t)size);
    size_t length = ZSTD_decompress(plain, (size_t)size, packed.bytes, packed.length);
    if (ZSTD_isError(length))
        return error_set(reterr, ERR_INVALID, "zstd: %s", ZSTD_getErrorName(length));
    text_add_bytes(out, plain, length);
    return OK;
}

/* ---- files of lines ---- */

enum wrapping { WRAPPING_PLAIN = 0, WRAPPING_GZIP, WRAPPING_ZSTD };

struct line_reader {
    int fd;
    enum wrapping wrapping;
    z_stream gzip;
    bool gzip_in_member;
    ZSTD_DCtx *zstd;
    size_t zstd_hint;     /* 0: between frames */
    unsigned char *input; /* raw bytes of the file */
    size_t input_at, input_end;
    bool at_end;       /* of the file */
    bool cut_short;    /* the wrapping ended in the middle */
    struct text plain; /* whole lines handed out, then the rest */
    size_t handed_out;
};

/* Reads on behind what is there. */
static enum status read_more(struct line_reader *reader, struct error *reterr)
{
    ssize_t got;
    do
        got = read(reader->fd, reader->input + reader->input_end, CHUNK_BYTES - reader->input_end);
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return error_set(reterr, ERR_IO, "read failed: %s", strerror(errno));
    reader->input_end += (size_t)got;
    reader->at_end = got == 0;
    return OK;
}

static enum status fill_input(struct line_reader *reader, struct error *reterr)
{
    if (reader->input_at < reader->input_end || reader->at_end)
        return OK;
    reader->input_at = reader->input_end = 0;
    return read_more(reader, reterr);
}

enum { MAGIC_BYTES = 4 };

/* A pipe may give the first bytes one by one. */
static enum status fill_magic(struct line_reader *reader, struct error *reterr)
{
    while (reader->input_end < MAGIC_BYTES && !reader->at_end)
        TRY(read_more(reader, reterr));
    reader->at_end = reader->input_end == 0;
    return OK;
}

static void detect_wrapping(struct line_reader *reader)
{
    static const unsigned char gzip_magic[] = {0x1f, 0x8b}, zstd_magic[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (reader->input_end >= sizeof gzip_magic &&
        memcmp(reader->input, gzip_magic, sizeof gzip_magic) == 0)
        reader->wrapping = WRAPPING_GZIP;
    else if (reader->input_end >= sizeof zstd_magic &&
             memcmp(reader->input, zstd_magic, sizeof zstd_magic) == 0)
        reader->wrapping = WRAPPING_ZSTD;
}

enum status line_reader_open(const char *path, struct line_reader **ret_reader,
                             struct error *reterr)
{
    AUTO(line_reader_free) struct line_reader *reader = xcalloc(1, sizeof *reader);
    reader->fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (reader->fd < 0)
        return error_set(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot read '%s': %s",
                         path, strerror(errno));
    reader->input = xmalloc(CHUNK_BYTES);
    TRY(fill_magic(reader, reterr));
    detect_wrapping(reader);
    if (reader->wrapping == WRAPPING_GZIP && inflateInit2(&reader->gzip, GZIP_ONLY) != Z_OK)
        return error_set(reterr, ERR_LIMIT, "no memory to inflate");
    reader->zstd = reader->wrapping == WRAPPING_ZSTD ? ZSTD_createDCtx() : NULL;
    *ret_reader = TAKE(reader);
    return OK;
}

void line_reader_free(struct line_reader *reader)
{
    if (reader == NULL)
        return;
    if (reader->wrapping == WRAPPING_GZIP)
        inflateEnd(&reader->gzip);
    ZSTD_freeDCtx(reader->zstd);
    if (reader->fd >= 0)
        close(reader->fd);
    xfree(reader->input);
    text_done(&reader->plain);
    xfree(reader);
}

static enum status unwrap_gzip(struct line_reader *reader, unsigned char *chunk, size_t *ret_got,
                               struct error *reterr)
{
    z_stream *gzip = &reader->gzip;
    gzip->next_in = reader->input + reader->input_at;
    gzip->avail_in = (unsigned)(reader->input_end - reader->input_at);
    gzip->next_out = chunk;
    gzip->avail_out = CHUNK_BYTES;
    reader->gzip_in_member = true;
    int code = inflate(gzip, Z_NO_FLUSH);
    reader->input_at = reader->input_end - gzip->avail_in;
    *ret_got = CHUNK_BYTES - gzip->avail_out;
    if (code == Z_STREAM_END) {
        reader->gzip_in_member = false;
        inflateReset(gzip);
    } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return error_set(reterr, ERR_INVALID, "the gzip file is damaged");
    }
    return OK;
}

static enum status unwrap_zstd(struct line_reader *reader, unsigned char *chunk, size_t *ret_got,
                               struct error *reterr)
{
    ZSTD_inBuffer input = {reader->input, reader->input_end, reader->input_at};
    ZSTD_outBuffer output = {chunk, CHUNK_BYTES, 0};
    reader->zstd_hint = ZSTD_decompressStream(reader->zstd, &output, &input);
    reader->input_at = input.pos;
    *ret_got = output.pos;
    if (ZSTD_isError(reader->zstd_hint))
        return error_set(reterr, ERR_INVALID, "the zstd file is damaged: %s",
                         ZSTD_getErrorName(reader->zstd_hint));
    return OK;
}

/* Adds some more plain bytes; at the end of the file it adds none. */
static enum status unwrap_more(struct line_reader *reader, struct error *reterr)
{
    TRY(fill_input(reader, reterr));
    if (reader->at_end) {
        reader->cut_short = reader->gzip_in_member || reader->zstd_hint != 0;
        return OK;
    }
    if (reader->wrapping == WRAPPING_PLAIN) {
        text_add_bytes(&reader->plain, reader->input + reader->input_at,
                       reader->input_end - reader->input_at);
        reader->input_at = reader->input_end;
        return OK;
    }
    AUTO_FREE unsigned char *chunk = xmalloc(CHUNK_BYTES);
    size_t got = 0;
    enum status status = reader->wrapping == WRAPPING_GZIP
                             ? unwrap_gzip(reader, chunk, &got, reterr)
                             : unwrap_zstd(reader, chunk, &got, reterr);
    text_add_bytes(&reader->plain, chunk, got);
    return status;
}

static void drop_handed_out(struct line_reader *reader)
{
    size_t rest = reader->plain.length - reader->handed_out;
    if (reader->handed_out > 0)
        memmove(reader->plain.bytes, reader->plain.bytes + reader->handed_out, rest);
    reader->plain.length = rest;
    reader->handed_out = 0;
}

enum status line_reader_next(struct line_reader *reader, struct view *ret_block,
                             struct error *reterr)
{
    drop_handed_out(reader);
    struct text *plain = &reader->plain;
    bool has_line = false;
    enum status status = OK;
    while (status == OK && !reader->at_end && !(has_line && plain->length >= BLOCK_BYTES / 4)) {
        size_t before = plain->length;
        status = unwrap_more(reader, reterr);
        has_line = has_line || (plain->length > before && memchr(plain->bytes + before, '\n',
                                                                 plain->length - before) != NULL);
        if (!has_line && plain->length > BLOCK_BYTES)
            return error_set(reterr, ERR_LIMIT, "a line is longer than 1 MiB");
    }
    size_t whole = 0;
    if (plain->length > 0) {
        const char *last = memrchr(plain->bytes, '\n', plain->length);
        bool is_clean_end = status == OK && reader->at_end && !reader->cut_short;
        whole = is_clean_end ? plain->length : last != NULL ? (size_t)(last - plain->bytes) + 1 : 0;
    }
    if (whole > 0) {
        *ret_block = (struct view){plain->bytes, whole};
        reader->handed_out = whole;
        reader->cut_short = reader->cut_short || status != OK; /* told by the next call */
        reader->at_end = reader->at_end || status != OK;
        return OK;
    }
    if (status != OK)
        return status;
    if (reader->cut_short)
        return error_set(reterr, ERR_INVALID,
                         "the file is cut short: what was whole has been read");
    *ret_block = (struct view){0};
    return OK;
}
