#include "controller/io/digest.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { SHA256_BYTES = 32 };

static void add_hex(const unsigned char *digest, char ret_hex[DIGEST_HEX_BYTES])
{
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
}

enum status digest_sha256(struct view bytes, char ret_hex[DIGEST_HEX_BYTES], struct error *reterr)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes.length > 0 ? bytes.bytes : "", bytes.length, digest, &length, EVP_sha256(),
                   NULL) != 1 ||
        length != SHA256_BYTES)
        return error_set(reterr, ERR_BUG, "the TLS library cannot compute SHA-256");
    add_hex(digest, ret_hex);
    return OK;
}

enum status digest_hmac_sha256(struct view key, struct view bytes, char ret_hex[DIGEST_HEX_BYTES],
                               struct error *reterr)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    size_t length = 0;
    const void *text = bytes.length > 0 ? bytes.bytes : "";
    if (EVP_Q_mac(NULL, "HMAC", NULL, "SHA256", NULL, key.length > 0 ? key.bytes : "", key.length,
                  text, bytes.length, digest, sizeof digest, &length) == NULL ||
        length != SHA256_BYTES)
        return error_set(reterr, ERR_BUG, "the TLS library cannot compute HMAC-SHA256");
    add_hex(digest, ret_hex);
    return OK;
}
