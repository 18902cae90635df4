/* The postmortem bundle: everything about one incident in one tar file that is the same bytes each
 * time.
 *
 *   INC-3/README.txt      how to read and verify it with coreutils
 *   INC-3/report.md       the postmortem with its facts filled in
 *   INC-3/incident.json   the incident record
 *   INC-3/timeline.csv, timeline.md, decisions.jsonl, actions.jsonl, verdicts.jsonl, events.csv
 *   INC-3/topology.json   the job document of that time
 *   INC-3/plots/M.svg     the suspects against their peers
 *   INC-3/raw/M.csv       every sample round the incident
 *   INC-3/manifest.json   names, sizes and sums
 *   INC-3/SHA256SUMS      for sha256sum -c
 */
#ifndef BROOM_CLI_EXPORT_H
#define BROOM_CLI_EXPORT_H

#include "controller/base/json.h"

/* Takes the next bytes of the archive; what it fails with ends the export. */
typedef enum status export_sink_fn(void *context, struct view bytes, struct error *reterr);

/* answer: what GET /api/v1/incidents/{ref}/export gives. What of it cannot be read is left out;
 * `problems` gets a line for each, and so does the report. */
MUST_CHECK enum status export_write(const struct json *answer, export_sink_fn *sink, void *context,
                                    struct text *problems, struct error *reterr);

struct export_check {
    size_t files;
    size_t problems;
};
/* Checks a whole archive: its own structure, SHA256SUMS and the manifest. Each problem is a line in
 * `problems`. OK when there is none, else ERR_INVALID. */
MUST_CHECK enum status export_verify(struct view archive, struct text *problems,
                                     struct export_check *ret_check);

#endif
