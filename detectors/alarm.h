/* From the banks' scores to alarms: which unit has shifted beyond chance, which others moved with
 * it, and whether it is clear by itself how far that reaches.
 */
#ifndef BROOM_DETECTORS_ALARM_H
#define BROOM_DETECTORS_ALARM_H

#include "detectors/engine_state.h"

/* Smallest shift that is looked at; a verdict needs params.slow_min_ratio. */
#define ALARM_LEVEL_LEAST 0.02

struct alarm {
    enum bank_kind bank;
    int32_t unit;
    double z, spikes, level;
    int window;
    enum chart_test test;
    bool by_rate;
};

/* The cut whose units the bank's units are; CUT_COUNT for ranks. */
enum cut alarm_cut(enum bank_kind kind);
/* Whether what is sent makes the bank's residuals mean something. */
bool alarm_is_tested(const struct engine *engine, enum bank_kind kind);
/* Whether the unit stands at an alarm now, explained or not; fills alarm in any case. */
bool alarm_stands(const struct engine *engine, enum bank_kind kind, int32_t unit,
                  struct alarm *alarm);
/* Whether the unit moved with the alarm of another. */
bool alarm_joins(const struct engine *engine, const struct alarm *alarm, int32_t unit);
/* Ranks under open verdicts into engine->covered; before alarm_find. */
void alarm_mark_covered(struct engine *engine);
/* The strongest alarm of the bank that no open verdict explains. */
bool alarm_find(const struct engine *engine, enum bank_kind kind, struct alarm *ret_alarm);
/* Flags all ranks of units that moved with the alarm into engine->flags; returns which part of the
 * units that is. */
double alarm_flag_joined(struct engine *engine, const struct alarm *alarm);
/* Whether chance, as all other units show it, has what the unit shows since its onset no more often
 * than the budget allows. Stalls are counted, and bring their own. */
bool alarm_is_beyond_chance(const struct engine *engine, const struct alarm *alarm);
/* Own work tells by itself which ranks an alarm is of: nothing more has to be waited for when
 * none of the ranks around moves along. */
bool alarm_extent_is_clear(const struct engine *engine, const struct alarm *alarm);

#endif
