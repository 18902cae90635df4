/* The page, and a policy that lets a browser run its own script and nothing else. The policy names
 * the script and the style sheet by their SHA-256, found at the first request.
 */
#include "controller/admin/page.h"

#include "controller/base/mem.h"
#include "controller/io/digest.h"
#include "page_html.h" /* made by CMake from page.html */

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { DIGEST_BYTES = 32 };

struct view page_html(void)
{
    return (struct view){(const char *)page_html_bytes, sizeof page_html_bytes - 1};
}

static void add_base64(struct text *out, const unsigned char *bytes, size_t count)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < count; i += 3) {
        unsigned group = (unsigned)bytes[i] << 16;
        group |= i + 1 < count ? (unsigned)bytes[i + 1] << 8 : 0;
        group |= i + 2 < count ? bytes[i + 2] : 0;
        const char four[4] = {digits[group >> 18], digits[group >> 12 & 63],
                              i + 1 < count ? digits[group >> 6 & 63] : '=',
                              i + 2 < count ? digits[group & 63] : '='};
        text_add_bytes(out, four, sizeof four);
    }
}

/* 'sha256-...' of what stands between <tag> and </tag>. */
static void add_hash(struct text *out, const char *open, const char *close)
{
    struct view html = page_html();
    const char *start = memmem(html.bytes, html.length, open, strlen(open));
    assert(start != NULL);
    start += strlen(open);
    const char *end = memmem(start, html.length - (size_t)(start - html.bytes), close,
                             strlen(close));
    assert(end != NULL);
    char hex[DIGEST_HEX_BYTES] = "";
    unsigned char digest[DIGEST_BYTES] = {0};
    /* Without a sum the page stays dark; the API is not concerned. */
    ignore_status(digest_sha256((struct view){start, (size_t)(end - start)}, hex, NULL));
    for (size_t i = 0; i < DIGEST_BYTES && hex[0] != '\0'; i++) {
        unsigned byte = 0;
        sscanf(hex + 2 * i, "%2x", &byte);
        digest[i] = (unsigned char)byte;
    }
    text_add(out, "'sha256-");
    add_base64(out, digest, sizeof digest);
    text_add(out, "'");
}

const char *page_content_security_policy(void)
{
    static char policy[512]; /* made once: the document never changes */
    if (policy[0] == '\0') {
        AUTO_TEXT out = {0};
        text_add(&out, "default-src 'none'; connect-src 'self'; img-src data:; base-uri 'none'; "
                       "form-action 'none'; "
                       "frame-ancestors 'none'; script-src ");
        add_hash(&out, "<script>", "</script>");
        text_add(&out, "; style-src ");
        add_hash(&out, "<style>", "</style>");
        text_copy(policy, sizeof policy, out.bytes);
    }
    return policy;
}

void page_reply(struct http_request *request)
{
    http_reply_header(request, "Content-Security-Policy", page_content_security_policy());
    http_reply_header(request, "Cache-Control", "no-cache");
    http_reply_header(request, "X-Content-Type-Options", "nosniff");
    http_reply_header(request, "Referrer-Policy", "no-referrer");
    http_reply(request, 200, "text/html; charset=utf-8", page_html());
}
