/* From a set of suspect ranks to the fewest, narrowest domains that explain it: rack, rail, tray,
 * rank, replica, group. Pure set arithmetic.
 */
#ifndef BROOM_DETECTORS_DOMAINS_H
#define BROOM_DETECTORS_DOMAINS_H

#include "detectors/grid.h"
#include "detectors/verdict.h"

/* What is known of a suspect rank. */
enum {
    SUSPECT_NO = 0,
    SUSPECT_TOGETHER, /* moves with its tensor group, nothing tells the members apart */
    SUSPECT_ALONE,    /* told apart from its tensor peers */
};

struct domain {
    enum scope scope;
    int32_t index; /* rank, tray, rack, rail, replica, group number */
    enum cut cut;  /* whose unit the index is; CUT_COUNT for a rank */
};

enum { DOMAINS_MAX = 64 };

/* Parts of a domain's ranks that must be suspect before the whole of it is named. */
#define DOMAIN_SHARE 0.75

/* Fills domains, ordered by kind and index; returns how many. suspects is by rank; it is emptied of
 * what was explained, so what is left over is what fits no domain. Ranks whose tray is unknown are
 * named as ranks. */
int domains_solve(const struct grid *grid, uint8_t *suspects, struct domain *domains);

/* True when the rank lies in the domain. */
bool domain_holds(const struct grid *grid, const struct domain *domain, int32_t rank);

#endif
