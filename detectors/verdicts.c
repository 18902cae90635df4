/* Making, queueing, keeping and clearing verdicts. */
#include "detectors/engine_state.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

struct verdict verdict_start(const struct engine *engine, enum verdict_kind kind, enum scope scope)
{
    struct verdict verdict = {.kind = kind,
                              .scope = scope,
                              .step = engine->last_step,
                              .since_step = engine->last_step,
                              .time_ns = engine->now_ns,
                              .cause = CAUSE_UNKNOWN,
                              .slowdown = 1,
                              .gain = 0,
                              .confidence = 1,
                              .of_kind = kind};

    return verdict;
}

void verdict_set_domain(const struct engine *engine, struct verdict *verdict, int32_t index)
{
    const struct job *job = engine->job;

    switch (verdict->scope) {
    case SCOPE_TRAY:
        text_copy(verdict->id, sizeof verdict->id, job->trays[index].node);
        return;
    case SCOPE_RACK:
        text_copy(verdict->id, sizeof verdict->id, job->racks[index].name);
        return;
    case SCOPE_JOB:
        text_copy(verdict->id, sizeof verdict->id, job->name);
        return;
    case SCOPE_GROUP:
        (void)snprintf(verdict->id, sizeof verdict->id, "tp:%d", (int)index);
        return;
    case SCOPE_RANK:
    case SCOPE_RAIL:
    case SCOPE_STAGE:
    case SCOPE_REPLICA:
    case SCOPE_SWITCH_TRAY:
    case SCOPE_COUNT:
        break;
    }
    (void)snprintf(verdict->id, sizeof verdict->id, "%d", (int)index);
}

void verdict_fill_ranks(const struct engine *engine, struct verdict *verdict, const uint8_t *flags)
{
    for (int32_t r = 0; r < engine->job->world_size; r++) {
        if (flags[r] == 0)
            continue;
        verdict_add_rank(verdict, r);
        if (engine->job->ranks[r].tray != JOB_NONE)
            verdict_add_node(verdict, engine->job->trays[engine->job->ranks[r].tray].node);
    }
}

void engine_emit(struct engine *engine, struct verdict verdict)
{
    if (engine->queue_first > 0 && engine->queue_count == 0)
        engine->queue_first = 0;
    if (engine->queue_first + engine->queue_count == engine->queue_capacity)
        engine->queue = array_grow(engine->queue, engine->queue_capacity, &engine->queue_capacity,
                                   sizeof *engine->queue);
    engine->queue[engine->queue_first + engine->queue_count++] = verdict;
}

static void open_free(struct open_verdict *open)
{
    verdict_done(&open->verdict);
    xfree(open->covers);
    xfree(open->seats);
    xfree(open->units);
    xfree(open);
}

struct open_verdict *engine_find_open(const struct engine *engine, enum scope scope, const char *id)
{
    for (int i = 0; i < engine->open_count; i++) {
        struct open_verdict *open = engine->open[i];
        if (open->bank == BANK_COUNT && open->verdict.scope == scope &&
            strcmp(open->verdict.id, id) == 0)
            return open;
    }
    return NULL;
}

static void remember_seats(const struct engine *engine, struct open_verdict *open)
{
    open->seats = xcalloc((size_t)engine->job->world_size, sizeof *open->seats);
    for (int32_t r = 0; r < engine->job->world_size; r++)
        if (open->covers[r] != 0)
            open->seats[open->seat_count++] = engine->job->ranks[r];
}

struct open_verdict *engine_open(struct engine *engine, struct verdict verdict,
                                 const uint8_t *covers)
{
    struct open_verdict *open = engine_keep(engine, &verdict, covers);

    engine_emit(engine, verdict);
    return open;
}

struct open_verdict *engine_keep(struct engine *engine, const struct verdict *verdict,
                                 const uint8_t *covers)
{
    struct open_verdict *open;

    if (engine->open_count == OPEN_MAX)
        engine_close(engine, 0, false);
    open = xcalloc(1, sizeof *open);
    open->verdict = verdict_copy(verdict);
    open->covers = xcalloc((size_t)engine->job->world_size, 1);
    if (covers != NULL)
        memcpy(open->covers, covers, (size_t)engine->job->world_size);
    remember_seats(engine, open);
    open->opened_row = engine->rows;
    open->bank = BANK_COUNT;
    engine->open[engine->open_count++] = open;
    return open;
}

void engine_close(struct engine *engine, int index, bool say_clear)
{
    struct open_verdict *open = engine->open[index];

    if (say_clear && !open->untold && open->verdict.kind != VERDICT_INFO) {
        struct verdict clear = verdict_start(engine, VERDICT_CLEAR, open->verdict.scope);
        text_copy(clear.id, sizeof clear.id, open->verdict.id);
        clear.of_kind = open->verdict.kind;
        clear.cause = open->verdict.cause;
        clear.since_step = open->verdict.since_step;
        engine_emit(engine, clear);
    }
    open_free(open);
    for (int i = index; i + 1 < engine->open_count; i++)
        engine->open[i] = engine->open[i + 1];
    engine->open_count--;
}

bool engine_is_covered(const struct engine *engine, int32_t rank)
{
    for (int i = 0; i < engine->open_count; i++)
        if (engine->open[i]->covers[rank])
            return true;
    return false;
}
