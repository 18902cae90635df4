#include "controller/io/digest.h"

#include <openssl/evp.h>
#include <stdio.h>

enum { SHA256_BYTES = 32 };

enum status digest_sha256(struct view bytes, char ret_hex[DIGEST_HEX_BYTES], struct error *reterr)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    if (EVP_Digest(bytes.length > 0 ? bytes.bytes : "", bytes.length, digest, &length, EVP_sha256(),
                   NULL) != 1 ||
        length != SHA256_BYTES)
        return error_set(reterr, ERR_BUG, "the TLS library cannot compute SHA-256");
    for (unsigned i = 0; i < SHA256_BYTES; i++)
        snprintf(ret_hex + 2 * i, 3, "%02x", digest[i]);
    return OK;
}
