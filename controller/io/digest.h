/* SHA-256, for manifests, for naming contents and, keyed, for signatures (digest.c is the only
 * includer of openssl/evp.h).
 */
#ifndef BROOM_IO_DIGEST_H
#define BROOM_IO_DIGEST_H

#include "controller/base/text.h"

enum { DIGEST_HEX_BYTES = 65 };

/* Lower-case hex with its NUL. ERR_BUG: the library has no SHA-256. */
MUST_CHECK enum status digest_sha256(struct view bytes, char ret_hex[DIGEST_HEX_BYTES],
                                     struct error *reterr);

/* HMAC-SHA256 (RFC 2104) in the same form. A key of any length, also none. */
MUST_CHECK enum status digest_hmac_sha256(struct view key, struct view bytes,
                                          char ret_hex[DIGEST_HEX_BYTES], struct error *reterr);

#endif
