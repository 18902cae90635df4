/* Heads, chunks and percent escapes, read strictly after RFC 9112 and RFC 9110. */
#include "controller/io/http_guard.h"

#include <string.h>
#include <strings.h>

enum { LENGTH_DIGITS_MAX = 18, CHUNK_DIGITS_MAX = 15, CHUNK_OVERHEAD_MAX = 4096 };

static const struct http_refusal ACCEPTED = {0, NULL};

static struct http_refusal refuse(int code, const char *reason)
{
    return (struct http_refusal){.code = code, .reason = reason};
}

static bool is_token_byte(char byte)
{
    if ((byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
        (byte >= '0' && byte <= '9'))
        return true;
    return byte != '\0' && strchr("!#$%&'*+-.^_`|~", byte) != NULL;
}

size_t http_head_find_end(struct view bytes, size_t *scanned, struct http_refusal *ret_refusal)
{
    *ret_refusal = ACCEPTED;
    /* Whoever speaks TLS or nonsense to this port is told at once, not when the deadline comes. */
    if (bytes.length > 0 && !is_token_byte(bytes.bytes[0])) {
        *ret_refusal = refuse(400, "this is not HTTP");
        return 0;
    }
    for (size_t i = *scanned; i < bytes.length; i++) {
        if (bytes.bytes[i] != '\n')
            continue;
        if (i == 0 || bytes.bytes[i - 1] != '\r') {
            *ret_refusal = refuse(400, "a line ends without a carriage return");
            return 0;
        }
        if (i >= 2 && bytes.bytes[i - 2] == '\n')
            return i + 1;
    }
    *scanned = bytes.length;
    return 0;
}

static bool is_token(struct view text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!is_token_byte(text.bytes[i]))
            return false;
    return text.length > 0;
}

static bool equals_caseless(struct view text, const char *word)
{
    return text.length == strlen(word) && strncasecmp(text.bytes, word, text.length) == 0;
}

/* Cuts the front of *rest up to `stop`, which is dropped; false when there is no `stop`. */
static bool cut(struct view *rest, char stop, struct view *ret_front)
{
    const char *found = rest->length > 0 ? memchr(rest->bytes, stop, rest->length) : NULL;
    if (found == NULL)
        return false;
    size_t length = (size_t)(found - rest->bytes);
    *ret_front = (struct view){rest->bytes, length};
    rest->bytes += length + 1;
    rest->length -= length + 1;
    return true;
}

static struct view trim(struct view text)
{
    while (text.length > 0 && (*text.bytes == ' ' || *text.bytes == '\t')) {
        text.bytes++;
        text.length--;
    }
    while (text.length > 0 &&
           (text.bytes[text.length - 1] == ' ' || text.bytes[text.length - 1] == '\t'))
        text.length--;
    return text;
}

static bool parse_method(struct view word, enum http_method *ret_method)
{
    static const char *const names[HTTP_METHOD_COUNT] = {
        [HTTP_GET] = "GET", [HTTP_HEAD] = "HEAD",     [HTTP_POST] = "POST",
        [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE",
    };
    for (int i = 0; i < HTTP_METHOD_COUNT; i++) {
        if (view_equals(word, names[i])) {
            *ret_method = (enum http_method)i;
            return true;
        }
    }
    return false;
}

static bool is_target(struct view target)
{
    for (size_t i = 0; i < target.length; i++)
        if (target.bytes[i] <= ' ' || target.bytes[i] > '~' || target.bytes[i] == '#')
            return false;
    return target.length > 0 && target.bytes[0] == '/';
}

static struct http_refusal parse_request_line(struct view line, struct http_head *head)
{
    struct view method, version;
    if (!cut(&line, ' ', &method) || !cut(&line, ' ', &head->target) || !is_token(method))
        return refuse(400, "the request line is not METHOD TARGET VERSION");
    version = line;
    if (version.length != 8 || memcmp(version.bytes, "HTTP/", 5) != 0 || version.bytes[6] != '.')
        return refuse(400, "the request line is not METHOD TARGET VERSION");
    if (view_equals(version, "HTTP/1.0"))
        head->minor_version = 0;
    else if (view_equals(version, "HTTP/1.1"))
        head->minor_version = 1;
    else
        return refuse(505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    if (!parse_method(method, &head->method))
        return refuse(405, "this method is not known here");
    if (!is_target(head->target))
        return refuse(400, "the target is not a path");
    return ACCEPTED;
}

static struct http_refusal parse_field(struct view line, struct http_head *head)
{
    if (head->field_count == HTTP_FIELDS_MAX)
        return refuse(431, "more than 100 header lines");
    struct http_field *field = &head->fields[head->field_count];
    struct view rest = line;
    /* A blank before the colon and a folded line both fail here: neither is a token. */
    if (!cut(&rest, ':', &field->name) || !is_token(field->name))
        return refuse(400, "a header line is not NAME: VALUE");
    field->value = trim(rest);
    for (size_t i = 0; i < field->value.length; i++) {
        unsigned char byte = (unsigned char)field->value.bytes[i];
        if ((byte < ' ' && byte != '\t') || byte == 0x7f)
            return refuse(400, "a header value holds a control byte");
    }
    head->field_count++;
    return ACCEPTED;
}

/* The only field of that name: *ret_field is NULL when there is none; false when there are several.
 */
static bool only_field(const struct http_head *head, const char *name,
                       const struct http_field **ret_field)
{
    *ret_field = NULL;
    for (size_t i = 0; i < head->field_count; i++) {
        if (!equals_caseless(head->fields[i].name, name))
            continue;
        if (*ret_field != NULL)
            return false;
        *ret_field = &head->fields[i];
    }
    return true;
}

static struct http_refusal check_host(const struct http_head *head)
{
    const struct http_field *host;
    if (!only_field(head, "Host", &host))
        return refuse(400, "more than one Host");
    if (host == NULL)
        return head->minor_version == 0 ? ACCEPTED : refuse(400, "the Host header is missing");
    for (size_t i = 0; i < host->value.length; i++)
        if (host->value.bytes[i] > '~' || strchr(" \t,/@?#\\", host->value.bytes[i]) != NULL)
            return refuse(400, "the Host header is not a host");
    return ACCEPTED;
}

static bool parse_length(struct view text, uint64_t *ret_length)
{
    if (text.length == 0 || text.length > LENGTH_DIGITS_MAX)
        return false;
    uint64_t length = 0;
    for (size_t i = 0; i < text.length; i++) {
        if (text.bytes[i] < '0' || text.bytes[i] > '9')
            return false;
        length = length * 10 + (uint64_t)(text.bytes[i] - '0');
    }
    *ret_length = length;
    return true;
}

static struct http_refusal check_framing(struct http_head *head)
{
    const struct http_field *length, *transfer;
    if (!only_field(head, "Content-Length", &length))
        return refuse(400, "more than one Content-Length");
    if (!only_field(head, "Transfer-Encoding", &transfer))
        return refuse(400, "more than one Transfer-Encoding");
    if (length != NULL && transfer != NULL)
        return refuse(400, "Content-Length beside Transfer-Encoding");
    if (length != NULL && !parse_length(length->value, &head->content_length))
        return refuse(400, "Content-Length is not a number of bytes");
    if (transfer != NULL && head->minor_version == 0)
        return refuse(400, "Transfer-Encoding in HTTP/1.0");
    if (transfer != NULL && !equals_caseless(transfer->value, "chunked"))
        return refuse(501, "the only Transfer-Encoding taken is chunked");
    head->is_chunked = transfer != NULL;
    return ACCEPTED;
}

static struct http_refusal check_encoding(struct http_head *head)
{
    const struct http_field *encoding;
    if (!only_field(head, "Content-Encoding", &encoding))
        return refuse(415, "more than one Content-Encoding");
    if (encoding == NULL || equals_caseless(encoding->value, "identity"))
        return ACCEPTED;
    if (!equals_caseless(encoding->value, "gzip") && !equals_caseless(encoding->value, "x-gzip"))
        return refuse(415, "the only Content-Encoding taken is gzip");
    head->encoding = HTTP_ENCODING_GZIP;
    return ACCEPTED;
}

static struct http_refusal check_expect(struct http_head *head)
{
    const struct http_field *expect;
    if (!only_field(head, "Expect", &expect))
        return refuse(417, "more than one Expect");
    if (expect == NULL)
        return ACCEPTED;
    if (!equals_caseless(expect->value, "100-continue"))
        return refuse(417, "the only expectation taken is 100-continue");
    head->expects_continue = head->minor_version > 0;
    return ACCEPTED;
}

static bool connection_says(const struct http_head *head, const char *word)
{
    for (size_t i = 0; i < head->field_count; i++) {
        if (!equals_caseless(head->fields[i].name, "Connection"))
            continue;
        struct view rest = head->fields[i].value, item;
        while (cut(&rest, ',', &item))
            if (equals_caseless(trim(item), word))
                return true;
        if (equals_caseless(trim(rest), word))
            return true;
    }
    return false;
}

static struct http_refusal check_head(struct http_head *head)
{
    static struct http_refusal (*const checks[])(struct http_head *) = {
        check_framing, check_encoding, check_expect};
    struct http_refusal refusal = check_host(head);
    for (size_t i = 0; refusal.code == 0 && i < ARRAY_LEN(checks); i++)
        refusal = checks[i](head);
    head->keep_alive = head->minor_version > 0 ? !connection_says(head, "close")
                                               : connection_says(head, "keep-alive");
    return refusal;
}

struct http_refusal http_head_parse(struct view head_bytes, struct http_head *ret_head)
{
    ret_head->field_count = 0;
    ret_head->content_length = 0;
    ret_head->is_chunked = ret_head->expects_continue = ret_head->keep_alive = false;
    ret_head->encoding = HTTP_ENCODING_NONE;
    struct view line;
    bool is_first = true;
    while (cut(&head_bytes, '\n', &line)) {
        if (line.length == 0 || line.bytes[line.length - 1] != '\r')
            return refuse(400, "a line ends without a carriage return");
        line.length--;
        if (line.length == 0)
            break;
        struct http_refusal refusal = is_first ? parse_request_line(line, ret_head)
                                               : parse_field(line, ret_head);
        if (refusal.code != 0)
            return refusal;
        is_first = false;
    }
    if (is_first)
        return refuse(400, "the request line is missing");
    return check_head(ret_head);
}

const struct http_field *http_head_field(const struct http_head *head, const char *name)
{
    for (size_t i = 0; i < head->field_count; i++)
        if (equals_caseless(head->fields[i].name, name))
            return &head->fields[i];
    return NULL;
}

static int hex_digit(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    if (byte >= 'a' && byte <= 'f')
        return byte - 'a' + 10;
    if (byte >= 'A' && byte <= 'F')
        return byte - 'A' + 10;
    return -1;
}

bool http_decode(struct view encoded, bool plus_is_blank, struct text *out)
{
    text_add(out, "");
    for (size_t i = 0; i < encoded.length; i++) {
        char byte = encoded.bytes[i];
        if (byte == '%') {
            if (encoded.length - i < 3)
                return false;
            int high = hex_digit(encoded.bytes[i + 1]), low = hex_digit(encoded.bytes[i + 2]);
            if (high < 0 || low < 0 || high + low == 0)
                return false;
            byte = (char)(high * 16 + low);
            i += 2;
        } else if (byte == '+' && plus_is_blank) {
            byte = ' ';
        }
        text_add_bytes(out, &byte, 1);
    }
    return true;
}

static struct http_refusal bad_chunk(void)
{
    return refuse(400, "the chunked body is broken");
}

static struct http_refusal take_size_byte(struct http_chunks *chunks, char byte)
{
    int digit = hex_digit(byte);
    if (digit >= 0 && chunks->digits < CHUNK_DIGITS_MAX) {
        chunks->digits++;
        chunks->left = chunks->left * 16 + (uint64_t)digit;
        return ACCEPTED;
    }
    if (digit >= 0 || chunks->digits == 0)
        return bad_chunk();
    if (byte == ';' || byte == ' ' || byte == '\t') {
        chunks->state = CHUNK_EXTENSION;
        chunks->overhead = 0;
        return ACCEPTED;
    }
    if (byte != '\r')
        return bad_chunk();
    chunks->state = CHUNK_SIZE_END;
    return ACCEPTED;
}

/* Extensions and trailers are read past: nothing here gives them a meaning. */
static struct http_refusal take_ignored_byte(struct http_chunks *chunks, char byte)
{
    if (byte == '\n' || byte == '\0' || ++chunks->overhead > CHUNK_OVERHEAD_MAX)
        return bad_chunk();
    if (byte == '\r')
        chunks->state = chunks->state == CHUNK_EXTENSION ? CHUNK_SIZE_END : CHUNK_TRAILER_LF;
    return ACCEPTED;
}

static struct http_refusal take_exact(struct http_chunks *chunks, char byte, char wanted, int next)
{
    if (byte != wanted)
        return bad_chunk();
    chunks->state = (__typeof__(chunks->state))next;
    return ACCEPTED;
}

static void start_size(struct http_chunks *chunks)
{
    chunks->left = 0;
    chunks->digits = 0;
}

static struct http_refusal take_byte(struct http_chunks *chunks, char byte)
{
    switch (chunks->state) {
    case CHUNK_SIZE:
        return take_size_byte(chunks, byte);
    case CHUNK_EXTENSION:
        return take_ignored_byte(chunks, byte);
    case CHUNK_SIZE_END:
        chunks->overhead = 0;
        return take_exact(chunks, byte, '\n', chunks->left > 0 ? CHUNK_DATA : CHUNK_TRAILER_START);
    case CHUNK_DATA_CR:
        return take_exact(chunks, byte, '\r', CHUNK_DATA_LF);
    case CHUNK_DATA_LF:
        start_size(chunks);
        return take_exact(chunks, byte, '\n', CHUNK_SIZE);
    case CHUNK_TRAILER_START:
        chunks->state = byte == '\r' ? CHUNK_LAST_LF : CHUNK_TRAILER;
        return byte == '\r' ? ACCEPTED : take_ignored_byte(chunks, byte);
    case CHUNK_TRAILER:
        return take_ignored_byte(chunks, byte);
    case CHUNK_TRAILER_LF:
        return take_exact(chunks, byte, '\n', CHUNK_TRAILER_START);
    case CHUNK_LAST_LF:
        return take_exact(chunks, byte, '\n', CHUNK_DONE);
    case CHUNK_DATA:
    case CHUNK_DONE:
        break;
    }
    return bad_chunk();
}

struct http_refusal http_chunks_take(struct http_chunks *chunks, struct view *input,
                                     struct view *ret_data)
{
    *ret_data = (struct view){input->bytes, 0};
    while (input->length > 0 && chunks->state != CHUNK_DONE) {
        if (chunks->state == CHUNK_DATA) {
            size_t length = input->length < chunks->left ? input->length : (size_t)chunks->left;
            *ret_data = (struct view){input->bytes, length};
            input->bytes += length;
            input->length -= length;
            chunks->left -= length;
            if (chunks->left == 0)
                chunks->state = CHUNK_DATA_CR;
            return ACCEPTED;
        }
        struct http_refusal refusal = take_byte(chunks, *input->bytes);
        if (refusal.code != 0)
            return refusal;
        input->bytes++;
        input->length--;
    }
    return ACCEPTED;
}
