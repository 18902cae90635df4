/* What a request's bytes mean, and which are refused. Pure: bytes in, a description or a refusal
 * out; no socket, no clock. Each message has one reading here or none: what two servers could frame
 * differently (two lengths, a length beside chunks, folded lines, bare line feeds) is refused,
 * never repaired.
 */
#ifndef BROOM_IO_HTTP_GUARD_H
#define BROOM_IO_HTTP_GUARD_H

#include "controller/io/http_server.h"

enum { HTTP_FIELDS_MAX = 100 };

struct http_refusal {
    int code;           /* 0: nothing is refused */
    const char *reason; /* static text */
};

struct http_field {
    struct view name;  /* as sent; names are compared without case */
    struct view value; /* without the blanks round it */
};

enum http_encoding { HTTP_ENCODING_NONE = 0, HTTP_ENCODING_GZIP };

/* Views point into the head that was parsed. */
struct http_head {
    enum http_method method;
    struct view target; /* "/path?query", still encoded */
    int minor_version;  /* HTTP/1.N */
    struct http_field fields[HTTP_FIELDS_MAX];
    size_t field_count;
    uint64_t content_length;
    bool is_chunked;
    bool expects_continue;
    bool keep_alive;
    enum http_encoding encoding;
};

/* Looks for the end of a head in bytes, of which the first *scanned were looked at before. Gives
 * the head's length with its blank line, or 0 while it is not there; *ret_refusal is set when the
 * bytes can no longer become a head. */
size_t http_head_find_end(struct view bytes, size_t *scanned, struct http_refusal *ret_refusal);

struct http_refusal http_head_parse(struct view head, struct http_head *ret_head);

/* The first field of that name, or NULL. */
const struct http_field *http_head_field(const struct http_head *head, const char *name);

/* Percent-decoding onto out; false at a broken escape or an encoded NUL. plus_is_blank: in queries.
 */
bool http_decode(struct view encoded, bool plus_is_blank, struct text *out);

/* Chunked bodies. Zero-initialise. */
struct http_chunks {
    enum {
        CHUNK_SIZE = 0,
        CHUNK_EXTENSION,
        CHUNK_SIZE_END,
        CHUNK_DATA,
        CHUNK_DATA_CR,
        CHUNK_DATA_LF,
        CHUNK_TRAILER_START,
        CHUNK_TRAILER,
        CHUNK_TRAILER_LF,
        CHUNK_LAST_LF,
        CHUNK_DONE
    } state;
    uint64_t left; /* data bytes of this chunk that are still to come */
    int digits;    /* of this chunk's size */
    int overhead;  /* bytes of this extension, or of all trailers */
};

/* Takes bytes off the front of *input. *ret_data is the run of body bytes found, empty when there
 * is none; call again until *input is empty or chunks->state is CHUNK_DONE. */
struct http_refusal http_chunks_take(struct http_chunks *chunks, struct view *input,
                                     struct view *ret_data);

#endif
