/* Inflating: any bytes; never more than the limit, and nothing left behind on failure. */
#include "controller/io/compress.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT_BYTES = 1 << 16 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view packed = {(const char *)data, size};
    AUTO_TEXT out = {0};
    AUTO_TEXT frame = {0};
    struct error error;
    enum status status = gzip_inflate(packed, LIMIT_BYTES, &out, &error);
    if (out.length > LIMIT_BYTES || (status != OK && out.length != 0))
        abort();
    status = zstd_unpack(packed, LIMIT_BYTES, &frame, &error);
    if (frame.length > LIMIT_BYTES || (status != OK && frame.length != 0))
        abort();
    return 0;
}
