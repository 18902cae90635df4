/* What the communication library recorded of a stop: PyTorch Flight Recorder dumps (JSON or
 * pickle), NCCL RAS reports (text or JSON) and the time-out lines of the ProcessGroupNCCL watchdog,
 * brought together by rank, and the rule that finds who never came to the collective that all
 * others wait in.
 *
 * Pure: bytes in, findings out. Each dump is bounded by its own size; ranks by JOB_RANKS_MAX.
 */
#ifndef BROOM_DETECTORS_FLIGHT_H
#define BROOM_DETECTORS_FLIGHT_H

#include "controller/base/text.h"
#include "detectors/job.h"

struct flight;

struct flight *flight_new(void);
void flight_free(struct flight *flight);
DEFINE_AUTO(struct flight, flight_free)

/* Takes one file. name is its file name: the digits at the end of its stem are the rank of a Flight
 * Recorder dump (`_dump_12.json`, `nccl_trace_rank_3`). What it holds is told from the bytes: a
 * JSON object (or its pickle) with `entries` or `pg_status` is a dump, one with `communicators` a
 * RAS report, anything else is read line by line for watchdog lines and RAS text. ERR_INVALID: a
 * dump without a rank in its name, broken JSON, a pickle that is more than plain data. */
MUST_CHECK enum status flight_add(struct flight *flight, const char *name, struct view bytes,
                                  struct error *reterr);

/* Why the job stands, as far as the records say it; the first that applies. */
enum flight_reason {
    FLIGHT_NOTHING = 0,   /* nothing pends, or nothing can be told */
    FLIGHT_NEVER_ENTERED, /* others wait in a collective that these ranks never came to */
    FLIGHT_LEFT_BEHIND,   /* these ranks are still in an operation that their peers finished */
    FLIGHT_NO_RECORD,     /* all that is waited for are ranks that left no record: died, or stuck */
    FLIGHT_MISMATCH,      /* all came, these with another operation or size than the rest */
    FLIGHT_TRANSPORT,     /* all came with the same operation, and it does not end */
    FLIGHT_REASON_COUNT
};

struct flight_finding {
    enum flight_reason reason;
    int32_t *ranks; /* owned, ascending: the suspects, of FLIGHT_TRANSPORT the stuck group */
    size_t rank_count;
    int32_t waiting;        /* ranks that wait in an operation */
    int32_t recorded;       /* ranks that left a record */
    int64_t newest_ns;      /* when the newest operation was enqueued; 0 unknown */
    struct text waits_in;   /* the operation most of them wait in, for people */
    struct text lowest;     /* per process group with a gap: lowest and highest last enqueued */
    struct text unrecorded; /* ranks without a record, where at least half left one */
};

/* world_size bounds the ranks that may be named. Deterministic. */
struct flight_finding flight_judge(const struct flight *flight, int32_t world_size);
void flight_finding_done(struct flight_finding *finding);
const char *flight_reason_name(enum flight_reason reason); /* "never_entered" */

#endif
