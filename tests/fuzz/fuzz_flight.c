/* Flight recorder dumps, RAS reports and watchdog lines: any bytes, judged for a small job. The
 * first byte says which rank the file is of. */
#include "detectors/flight.h"

#include <stdio.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(flight_free) struct flight *flight = flight_new();
    struct error error;
    char name[32];

    /* The same bytes as several ranks' files, so that groups have members. */
    for (int rank = 0; rank < 3; rank++) {
        (void)snprintf(name, sizeof name, "dump_%d", rank + (size > 0 ? data[0] % 4 : 0));
        ignore_status(flight_add(flight, name, (struct view){(const char *)data, size}, &error));
    }
    for (int32_t world = 1; world < 64; world *= 4) {
        struct flight_finding finding = flight_judge(flight, world);
        flight_finding_done(&finding);
    }
    return 0;
}
