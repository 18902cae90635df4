/* Any bytes as a request: however they are cut, the head ends at the same place; what is accepted
 * has one framing; and chunks give the same body in one piece as byte by byte.
 */
#include "controller/io/http_guard.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static size_t find_end(struct view bytes, size_t piece, int *ret_code)
{
    size_t scanned = 0, found = 0;
    struct http_refusal refusal = {0, NULL};
    for (size_t length = 1; length <= bytes.length && found == 0 && refusal.code == 0;
         length = length < bytes.length && length + piece > bytes.length ? bytes.length
                                                                         : length + piece)
        found = http_head_find_end((struct view){bytes.bytes, length}, &scanned, &refusal);
    *ret_code = refusal.code;
    return found;
}

static bool is_inside(struct view part, struct view whole)
{
    return part.length == 0 ||
           (part.bytes >= whole.bytes && part.bytes + part.length <= whole.bytes + whole.length);
}

static void check_head(struct view head)
{
    struct http_head parsed;
    struct http_refusal refusal = http_head_parse(head, &parsed);
    require((refusal.code == 0) == (refusal.reason == NULL));
    if (refusal.code != 0)
        return;
    require(!parsed.is_chunked || parsed.content_length == 0);
    require(parsed.target.length > 0 && parsed.target.bytes[0] == '/' &&
            is_inside(parsed.target, head));
    require(parsed.minor_version == 0 || http_head_field(&parsed, "Host") != NULL);
    int lengths = 0;
    for (size_t i = 0; i < parsed.field_count; i++) {
        require(is_inside(parsed.fields[i].name, head) && is_inside(parsed.fields[i].value, head));
        lengths += parsed.fields[i].name.length == 14 &&
                   strncasecmp(parsed.fields[i].name.bytes, "Content-Length", 14) == 0;
    }
    require(lengths <= 1 && (lengths == 0 || !parsed.is_chunked));
    AUTO_TEXT decoded = {0};
    if (http_decode(parsed.target, true, &decoded))
        require(decoded.length <= parsed.target.length && strlen(decoded.bytes) == decoded.length);
}

/* The refusal's code; bytes that were taken are counted in *ret_used. */
static int dechunk(struct view bytes, size_t piece, struct text *out, size_t *ret_used)
{
    struct http_chunks chunks = {.state = CHUNK_SIZE};
    *ret_used = 0;
    while (*ret_used < bytes.length && chunks.state != CHUNK_DONE) {
        size_t left = bytes.length - *ret_used;
        struct view input = {bytes.bytes + *ret_used, left < piece ? left : piece};
        size_t offered = input.length;
        while (input.length > 0 && chunks.state != CHUNK_DONE) {
            struct view data;
            struct http_refusal refusal = http_chunks_take(&chunks, &input, &data);
            if (refusal.code != 0)
                return refusal.code;
            text_add_bytes(out, data.bytes, data.length);
        }
        *ret_used += offered - input.length;
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view bytes = {(const char *)data, size};
    int code_small = 0, code_whole = 0;
    size_t small = find_end(bytes, 1, &code_small);
    size_t whole = find_end(bytes, size > 0 ? size : 1, &code_whole);
    require(small == whole && code_small == code_whole);
    if (whole > 0)
        check_head((struct view){bytes.bytes, whole});
    struct view body = {bytes.bytes + whole, bytes.length - whole};
    AUTO_TEXT one = {0}, many = {0};
    size_t used_one, used_many;
    int code_one = dechunk(body, body.length + 1, &one, &used_one);
    int code_many = dechunk(body, 1, &many, &used_many);
    require(code_one == code_many && one.length == many.length);
    require(code_one != 0 || used_one == used_many);
    require(one.length == 0 || memcmp(one.bytes, many.bytes, one.length) == 0);
    return 0;
}
