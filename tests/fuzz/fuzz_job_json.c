/* Job documents: any bytes; what is accepted must read back from what is written. */
#include "controller/topology/job_file.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(job_free) struct job *job = NULL;
    AUTO(job_free) struct job *again = NULL;
    AUTO_TEXT text = {0};
    struct error error;
    if (job_file_parse((struct view){(const char *)data, size}, &job, &error) != OK)
        return 0;
    struct json_writer writer = json_writer(&text);
    job_file_write(job, &writer);
    if (job_file_parse((struct view){text.bytes, text.length}, &again, &error) != OK)
        abort();
    for (int32_t r = 0; r < job->world_size; r += job->world_size / 16 + 1)
        job_place_of(job, r);
    return 0;
}
