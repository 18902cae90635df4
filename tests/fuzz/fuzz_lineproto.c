/* Line protocol: any bytes; samples must be within what the contract says. */
#include "controller/ingest/lineproto.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void on_sample(void *context, const struct sample *sample)
{
    int64_t *samples = context;
    (*samples)++;
    if (sample->measurement >= MEASUREMENT_COUNT || sample->time_ns <= 0 ||
        sample->rank < RANK_NONE || sample->present >> FIELD_COUNT != 0)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t samples = 0;
    struct lineproto parser = {
        .precision = (enum precision)(size % 4), .on_sample = on_sample, .context = &samples};
    lineproto_parse(&parser, (struct view){(const char *)data, size});
    if (parser.counts.samples != samples ||
        parser.counts.samples + parser.counts.bad_lines + parser.counts.unknown_measurements !=
            parser.counts.lines)
        abort();
    return 0;
}
