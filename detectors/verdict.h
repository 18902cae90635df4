/* What a detector says, as formats.md section 3 fixes it. A verdict owns its arrays. */
#ifndef BROOM_DETECTORS_VERDICT_H
#define BROOM_DETECTORS_VERDICT_H

#include "controller/base/json.h"

#include <stdint.h>

enum verdict_kind {
    VERDICT_SLOW = 0,
    VERDICT_HANG,
    VERDICT_CRASH,
    VERDICT_FAULT,
    VERDICT_NUMERIC,
    VERDICT_REGRESSION,
    VERDICT_CLEAR,
    VERDICT_INFO,
    VERDICT_KIND_COUNT
};

enum scope {
    SCOPE_RANK = 0,
    SCOPE_TRAY,
    SCOPE_RACK,
    SCOPE_SWITCH_TRAY,
    SCOPE_RAIL,
    SCOPE_STAGE,
    SCOPE_REPLICA,
    SCOPE_GROUP,
    SCOPE_JOB,
    SCOPE_COUNT
};

enum cause {
    CAUSE_GPU = 0,
    CAUSE_HOST,
    CAUSE_NVLINK,
    CAUSE_NETWORK,
    CAUSE_MEMORY,
    CAUSE_DATA,
    CAUSE_STORAGE,
    CAUSE_UNKNOWN,
    CAUSE_COUNT
};

enum { VERDICT_ID_BYTES = 256, VERDICT_EVIDENCE_MAX = 16 };

struct evidence {
    const char *name; /* static text: the key in JSON */
    double value;
    const char *text; /* owned; when not NULL it is written instead of value */
};

struct verdict {
    enum verdict_kind kind;
    enum scope scope;
    char id[VERDICT_ID_BYTES];
    int64_t step;       /* last step finished when the verdict was given */
    int64_t since_step; /* estimated onset */
    int64_t time_ns;    /* of the data that decided it, on the recording's clock */
    int64_t since_ns;   /* when it began, where a time and not a step tells it; 0 otherwise */
    enum cause cause;
    double slowdown;           /* 1.12: 12 % slower; 1 where it means nothing */
    double gain;               /* part of the job's step time that this fault costs by itself */
    double confidence;         /* 0 to 1 */
    bool evict;                /* the advice; policy decides */
    enum verdict_kind of_kind; /* VERDICT_CLEAR only: kind of what is cleared */
    const char **nodes;        /* owned, sorted; trays of this job only */
    size_t node_count;
    int32_t *ranks; /* owned, ascending */
    size_t rank_count;
    int32_t *victims; /* owned, ascending: ranks that stopped because of this one; may be empty */
    size_t victim_count;
    struct evidence evidence[VERDICT_EVIDENCE_MAX];
    size_t evidence_count;
};

const char *verdict_kind_name(enum verdict_kind kind);
const char *scope_name(enum scope scope);
const char *cause_name(enum cause cause);
bool verdict_kind_parse(const char *name, enum verdict_kind *ret_kind);
bool scope_parse(const char *name, enum scope *ret_scope);
bool cause_parse(const char *name, enum cause *ret_cause);

void verdict_done(struct verdict *verdict); /* frees contents, not the struct */
struct verdict verdict_copy(const struct verdict *verdict);
void verdict_add_node(struct verdict *verdict, const char *node); /* keeps them sorted and unique */
void verdict_add_rank(struct verdict *verdict, int32_t rank);     /* the same */
void verdict_add_victim(struct verdict *verdict, int32_t rank);   /* the same */
void verdict_add_evidence(struct verdict *verdict, const char *name, double value);
void verdict_add_evidence_text(struct verdict *verdict, const char *name, const char *text);

/* One JSON object, no newline. */
void verdict_write(const struct verdict *verdict, struct json_writer *writer);

#endif
