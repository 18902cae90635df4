/* Files of lines in any wrapping: whole lines or an error, never a hang. */
#include "controller/io/compress.h"

#include <stdlib.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[] = "/tmp/broom-fuzz-XXXXXX";
    int fd = mkstemp(path);
    if (fd < 0)
        abort();
    ssize_t wrote = write(fd, data, size);
    close(fd);
    if (wrote != (ssize_t)size)
        abort();
    struct line_reader *reader = NULL;
    struct error error;
    struct view block;
    size_t total = 0;
    if (line_reader_open(path, &reader, &error) == OK)
        while (total < (64 << 20) && line_reader_next(reader, &block, &error) == OK &&
               block.length > 0)
            total += block.length;
    line_reader_free(reader);
    unlink(path);
    return 0;
}
