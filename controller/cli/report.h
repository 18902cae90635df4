/* Words of the bundle: the postmortem, the timeline as a table, README.txt. Facts are filled in,
 * judgement is left to people, and each place that waits for them says so.
 */
#ifndef BROOM_CLI_REPORT_H
#define BROOM_CLI_REPORT_H

#include "controller/base/json.h"

/* plots: names of those in the bundle, "plots/step_ms.svg"; may be NULL when count is 0. problems:
 * what the bundle lacks, a line each; "" when nothing. */
void report_write(const struct json *answer, const char *const *plots, size_t plot_count,
                  const char *problems, struct text *out);
void report_write_timeline(const struct json *timeline, struct text *out);
void report_write_readme(const char *ref, struct text *out);

#endif
