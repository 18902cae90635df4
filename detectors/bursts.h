/* How long units of one bank stay up and come back down by themselves: hot experts, congestion,
 * noisy neighbours. Such a burst is one start and then a steady level, so rows are no evidence
 * against it, only its length is.
 *
 * An excursion begins in a row above a level and lasts until two rows lie below half of it, so that
 * noise does not end it. Excursions of several units that began in the same rows are one event.
 * Kept are the last BURST_EVENTS events a level, over the whole life of the bank.
 */
#ifndef BROOM_DETECTORS_BURSTS_H
#define BROOM_DETECTORS_BURSTS_H

#include <stdbool.h>
#include <stdint.h>

enum {
    BURST_LEVELS = 10,
    BURST_EVENTS = 32,
    BURST_ROWS_UNKNOWN = 24, /* the most that is asked for where too few were seen to tell */
};

struct burst_event {
    int64_t first_row;
    int32_t unit;   /* the first of them that ended */
    uint16_t rows;  /* of the longest of them */
    uint64_t units; /* bit unit % 64: who took part, or might have */
};

struct bursts {
    int32_t units;
    int64_t rows;     /* taken so far */
    uint16_t *run;    /* by unit and level: rows of its run */
    uint8_t *below;   /* by unit and level: newest rows below */
    uint8_t *running; /* by unit: levels that it is above */
    struct burst_event events[BURST_LEVELS][BURST_EVENTS]; /* rings */
    int64_t ended[BURST_LEVELS];                           /* events so far */
};

void bursts_init(struct bursts *bursts, int32_t units);
void bursts_done(struct bursts *bursts);
void bursts_clear(struct bursts *bursts);

/* One row: residuals by unit, NAN when missing, as they lie above the centre and the unit's usual
 * offset from it. */
void bursts_push(struct bursts *bursts, const float *residuals, double centre,
                 const float *offsets);

/* Index of the highest level that is not above `level`; -1 when all are. */
int bursts_level(double level);
double bursts_level_value(int index);
/* Rows that the unit has been above the level, to its newest one there; 0 when it is not. */
int bursts_run(const struct bursts *bursts, int32_t unit, int index);

/* Whether enough of them were seen at this level that they are nothing rare. */
bool bursts_are_usual(const struct bursts *bursts, double level);

/* Rows that an excursion of the unit must last at this level so that one of the other units' kind
 * begins and lasts as long with a chance below e^-nats in a row of one unit. known: enough were
 * seen to tell; else it is twice the longest of those that were, at most BURST_ROWS_UNKNOWN, 0 when
 * there was none. */
int bursts_rows_needed(const struct bursts *bursts, int32_t unit, int index, double nats,
                       bool *ret_known);

#endif
