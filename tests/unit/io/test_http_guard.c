#include "controller/io/http_guard.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static struct http_refusal parse(const char *head, struct http_head *ret_head)
{
    return http_head_parse(view_of(head), ret_head);
}

static void assert_code(int code, const char *head)
{
    struct http_head parsed;
    struct http_refusal refusal = parse(head, &parsed);
    if (refusal.code != code)
        printf("\n    %d instead of %d (%s) for: %s\n", refusal.code, code, refusal.reason, head);
    CU_ASSERT_EQUAL(refusal.code, code);
    CU_ASSERT(code == 0 || refusal.reason != NULL);
}

TEST(a_plain_request_is_understood)
{
    struct http_head head;
    CU_ASSERT_EQUAL(
        parse("POST /write?precision=ms HTTP/1.1\r\nHost: a:7430\r\ncontent-LENGTH: 12\r\n"
              "Content-Encoding: gzip\r\nExpect: 100-continue\r\n\r\n",
              &head)
            .code,
        0);
    CU_ASSERT_EQUAL(head.method, HTTP_POST);
    CU_ASSERT(view_equals(head.target, "/write?precision=ms"));
    CU_ASSERT_EQUAL(head.content_length, 12);
    CU_ASSERT_EQUAL(head.encoding, HTTP_ENCODING_GZIP);
    CU_ASSERT(head.expects_continue);
    CU_ASSERT(head.keep_alive);
    CU_ASSERT_FALSE(head.is_chunked);
    CU_ASSERT(view_equals(http_head_field(&head, "host")->value, "a:7430"));
    CU_ASSERT_PTR_NULL(http_head_field(&head, "X-None"));
}

TEST(two_framings_of_one_message_are_refused)
{
    assert_code(400,
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n");
    assert_code(400, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\n");
    assert_code(
        400,
        "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_code(400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: "
                     "chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_code(400, "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n");
    assert_code(501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n");
    assert_code(501, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: \r\n\r\n");
    assert_code(400, "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding : chunked\r\n\r\n");
}

TEST(a_length_that_is_no_plain_number_is_refused)
{
    static const char *const values[] = {"-1",       "+3", "0x3", "3 3", "", "9999999999999999999",
                                         "3\xc2\xb2"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        AUTO_TEXT head = {0};
        text_addf(&head, "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %s\r\n\r\n", values[i]);
        assert_code(400, head.bytes);
    }
}

TEST(a_host_is_needed_once_in_http_1_1)
{
    assert_code(400, "GET / HTTP/1.1\r\n\r\n");
    assert_code(0, "GET / HTTP/1.0\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\nhost: b\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: u@a\r\n\r\n");
    assert_code(0, "GET / HTTP/1.1\r\nHost: [::1]:7430\r\n\r\n");
}

TEST(a_broken_request_line_is_refused)
{
    assert_code(400, "\r\n");
    assert_code(400, "GET /\r\nHost: a\r\n\r\n");
    assert_code(400, "GET  / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1 \r\nHost: a\r\n\r\n");
    assert_code(400, "GET / http/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "GET x HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "GET /\x01 HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(400, "G(T / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(505, "GET / HTTP/2.0\r\nHost: a\r\n\r\n");
    assert_code(405, "PATCH / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_code(405, "get / HTTP/1.1\r\nHost: a\r\n\r\n");
}

TEST(broken_header_lines_are_refused)
{
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\nnocolon\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\n: v\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\x01"
                     "b\r\n\r\n");
    assert_code(400, "GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n");
    assert_code(415, "POST / HTTP/1.1\r\nHost: a\r\nContent-Encoding: br\r\n\r\n");
    assert_code(417, "POST / HTTP/1.1\r\nHost: a\r\nExpect: cake\r\n\r\n");
}

TEST(more_header_lines_than_the_bound_are_refused)
{
    AUTO_TEXT head = {0};
    text_add(&head, "GET / HTTP/1.1\r\nHost: a\r\n");
    for (int i = 0; i < HTTP_FIELDS_MAX - 1; i++)
        text_add(&head, "X: y\r\n");
    AUTO_TEXT one_more = {0};
    text_addf(&one_more, "%sX: y\r\n\r\n", head.bytes);
    text_add(&head, "\r\n");
    assert_code(0, head.bytes);
    assert_code(431, one_more.bytes);
}

TEST(the_connection_header_decides_keep_alive_by_version)
{
    struct http_head head;
    parse("GET / HTTP/1.1\r\nHost: a\r\nConnection: foo, Close\r\n\r\n", &head);
    CU_ASSERT_FALSE(head.keep_alive);
    parse("GET / HTTP/1.0\r\n\r\n", &head);
    CU_ASSERT_FALSE(head.keep_alive);
    parse("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", &head);
    CU_ASSERT(head.keep_alive);
}

TEST(the_end_of_a_head_is_found_wherever_it_is_cut)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: a\r\n\r\nrest";
    size_t head_length = sizeof head - 1 - 4;
    for (size_t first = 0; first < sizeof head - 1; first++) {
        size_t scanned = 0;
        struct http_refusal refusal;
        size_t found = http_head_find_end((struct view){head, first}, &scanned, &refusal);
        CU_ASSERT_EQUAL(found, first >= head_length ? head_length : 0);
        if (found == 0)
            CU_ASSERT_EQUAL(http_head_find_end(view_of(head), &scanned, &refusal), head_length);
        CU_ASSERT_EQUAL(refusal.code, 0);
    }
    size_t scanned = 0;
    struct http_refusal refusal;
    CU_ASSERT_EQUAL(http_head_find_end(view_of("GET / HTTP/1.1\nHost"), &scanned, &refusal), 0);
    CU_ASSERT_EQUAL(refusal.code, 400);
    scanned = 0;
    CU_ASSERT_EQUAL(http_head_find_end(view_of("\x16\x03\x01"), &scanned, &refusal), 0);
    CU_ASSERT_EQUAL(refusal.code, 400);
}

/* Decodes body in pieces of `piece` bytes; the code of the refusal, or 0 with the data in *out. */
static int dechunk(const char *body, size_t length, size_t piece, struct text *out, bool *ret_done)
{
    struct http_chunks chunks = {.state = CHUNK_SIZE};
    for (size_t at = 0; at < length; at += piece) {
        struct view input = {body + at, length - at < piece ? length - at : piece};
        while (input.length > 0 && chunks.state != CHUNK_DONE) {
            struct view data;
            struct http_refusal refusal = http_chunks_take(&chunks, &input, &data);
            if (refusal.code != 0)
                return refusal.code;
            text_add_bytes(out, data.bytes, data.length);
        }
    }
    *ret_done = chunks.state == CHUNK_DONE;
    return 0;
}

TEST(chunks_are_joined_however_they_arrive)
{
    static const char body[] =
        "5\r\nhello\r\n1;name=\"v\"\r\n \r\n005\r\nworld\r\n0\r\nTrailer: x\r\n\r\n";
    for (size_t piece = 1; piece < sizeof body; piece++) {
        AUTO_TEXT out = {0};
        bool done = false;
        CU_ASSERT_EQUAL(dechunk(body, sizeof body - 1, piece, &out, &done), 0);
        CU_ASSERT(done);
        CU_ASSERT_STRING_EQUAL(out.bytes, "hello world");
    }
}

TEST(broken_chunks_are_refused)
{
    static const char *const bodies[] = {
        "\r\n",
        "g\r\n",
        "-1\r\n",
        "5\nhello\r\n0\r\n\r\n",
        "5\r\nhelloX\r\n",
        "5\r\nhello\rX",
        "0\r\n\rX",
        "10000000000000000\r\n",
        "5;a\nb\r\nhello",
        "0\r\na\nb\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        AUTO_TEXT out = {0};
        bool done = false;
        CU_ASSERT_EQUAL(dechunk(bodies[i], strlen(bodies[i]), 1, &out, &done), 400);
    }
    AUTO_TEXT trailers = {0}, out = {0};
    bool done = false;
    text_add(&trailers, "0\r\n");
    for (int i = 0; i < 1000; i++)
        text_add(&trailers, "Trailer: x\r\n");
    CU_ASSERT_EQUAL(dechunk(trailers.bytes, trailers.length, 100, &out, &done), 400);
}

TEST(percent_escapes_are_decoded_or_refused)
{
    AUTO_TEXT out = {0};
    CU_ASSERT(http_decode(view_of("default%2Fllm-17+x%c3%a9"), false, &out));
    CU_ASSERT_STRING_EQUAL(out.bytes, "default/llm-17+x\xc3\xa9");
    text_clear(&out);
    CU_ASSERT(http_decode(view_of("a+b%20c"), true, &out));
    CU_ASSERT_STRING_EQUAL(out.bytes, "a b c");
    CU_ASSERT_FALSE(http_decode(view_of("a%2"), false, &out));
    CU_ASSERT_FALSE(http_decode(view_of("a%zz"), false, &out));
    CU_ASSERT_FALSE(http_decode(view_of("a%00b"), false, &out));
}

TESTS(T(a_plain_request_is_understood), T(two_framings_of_one_message_are_refused),
      T(a_length_that_is_no_plain_number_is_refused), T(a_host_is_needed_once_in_http_1_1),
      T(a_broken_request_line_is_refused), T(broken_header_lines_are_refused),
      T(more_header_lines_than_the_bound_are_refused),
      T(the_connection_header_decides_keep_alive_by_version),
      T(the_end_of_a_head_is_found_wherever_it_is_cut), T(chunks_are_joined_however_they_arrive),
      T(broken_chunks_are_refused), T(percent_escapes_are_decoded_or_refused))
