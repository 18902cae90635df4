/* One SVG: the suspects of an incident against their peers over time. Peers as median and 10-90 %
 * band, a few suspects as a line each, many as a median and band of their own. Same points, same
 * bytes.
 */
#ifndef BROOM_CLI_PLOT_H
#define BROOM_CLI_PLOT_H

#include "controller/cli/export_raw.h"

enum plot_role { PLOT_OTHER = 0, PLOT_PEER, PLOT_SUSPECT };

struct plot_mark {
    const char *label;
    int64_t time_ns; /* 0: not drawn */
    const char *colour;
};

struct plot {
    const char *title;
    const char *subtitle;
    const char *suspects; /* "rank 57 on gb-000031", for the legend */
    const char *peers;    /* "31 peers of its stage" */
    const char *unit;     /* "ms" */
    const struct raw_metric *metric;
    const enum plot_role *roles; /* by rank */
    int32_t rank_count;
    const struct plot_mark *marks;
    size_t mark_count;
    int64_t bad_from_ns, bad_to_ns; /* shaded; to 0: up to the end */
};

/* False when there is nothing to draw; then out is as it was. */
bool plot_write(const struct plot *plot, struct text *out);

#endif
