/* How far a unit's newest residuals are from what chance makes of them, when nothing is known of
 * the noise but what all other units of the bank showed in the last CHART_RING rows.
 *
 * Noise that remembers holds a shock up over many rows, and a mean or a count of rows takes one
 * rare event for many. What is new in a row is its innovation, the residual less rho times the one
 * before: one shock is one innovation however slowly it dies away, while a shift of level L brings
 * (1 - rho) L in every row that it lasts.
 */
#ifndef BROOM_DETECTORS_CHANCE_H
#define BROOM_DETECTORS_CHANCE_H

#include "detectors/chart.h"

/* Lag-1 correlation that a shock's decay is judged by: that of ordinary residuals, or what the
 * median unit keeps of residuals beyond three sigma, whichever is larger, and two standard errors
 * more. `skip` flags units that are left out; NULL none. */
double chance_rho(const struct bank *bank, const uint8_t *skip);

/* Nats of evidence that the unit's newest `rows` rows (at most CHART_RING) are no chance: minus the
 * logarithm of the probability that a healthy unit has as much in any number of its newest rows.
 * The unit itself is left out of what it is held against, and so are those that skip flags. */
double chance_nats(const struct bank *bank, int32_t unit, int rows, enum chart_test test,
                   uint8_t *skip);

#endif
