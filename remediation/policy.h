/* Policies: what to do about which verdict, under which budgets and in which mode. A policy file
 * (formats.md section 6) is read from a tree with positions, so that every mistake is named at its
 * line and column and a file with five mistakes gives five findings.
 *
 * Several files make one set, in file-name order: rules are tried file by file, the first match
 * wins; a rule's plan and mode come from its own file; the budgets of all files hold at once.
 */
#ifndef BROOM_REMEDIATION_POLICY_H
#define BROOM_REMEDIATION_POLICY_H

#include "controller/base/tree.h"
#include "detectors/verdict.h"

/* From strict to free; the strictest of daemon, policy and rule wins. */
enum mode { MODE_OBSERVE = 0, MODE_APPROVE, MODE_ENFORCE, MODE_UNSET, MODE_COUNT };

enum step_kind {
    STEP_NOTIFY = 0,
    STEP_CAPTURE,
    STEP_CORDON,
    STEP_DRAIN,
    STEP_REQUEST_CHECKPOINT,
    STEP_FENCE,
    STEP_CHOOSE_SPARE,
    STEP_RESTART_JOB,
    STEP_VERIFY,
    STEP_HAND_OVER,
    STEP_KIND_COUNT
};

enum on_timeout { ON_TIMEOUT_ESCALATE = 0, ON_TIMEOUT_CONTINUE, ON_TIMEOUT_COUNT };
enum spare_source { SPARE_SAME_NVLINK_DOMAIN = 0, SPARE_RACK, SPARE_SOURCE_COUNT };
enum budget_scope { BUDGET_CLUSTER = 0, BUDGET_RACK, BUDGET_JOB, BUDGET_SCOPE_COUNT };
enum budget_unit { BUDGET_TRAYS = 0, BUDGET_RACKS, BUDGET_RESTARTS, BUDGET_UNIT_COUNT };

enum {
    POLICY_NAME_BYTES = 64,
    PLAN_STEPS_MAX = 16,
    POLICY_HASH_BYTES = 17,
    SEVERITY_UNSET = -1,
    JOB_PHASE_COUNT = 7,
    MATCH_JOBS_MAX = 16
};

struct plan_step {
    enum step_kind kind;
    char severity[16];           /* notify: info, warning, critical */
    int64_t before_ns, after_ns; /* capture */
    bool whole_rack;             /* cordon: {target: rack} */
    int64_t timeout_ns;          /* drain, request_checkpoint, fence, restart_job, verify: the
                                    step's deadline */
    enum on_timeout on_timeout;
    enum spare_source prefer[SPARE_SOURCE_COUNT]; /* choose_spare, best first */
    int prefer_count;
    bool hold_on_none;  /* choose_spare: hold, else escalate */
    bool named_only;    /* restart_job: {placement: named}: on the promised spares or nowhere */
    bool force_fenced;  /* restart_job: {force_delete: fenced}: pods that never end on nodes that
                           are off */
    int64_t new_steps;  /* verify */
    double pace_within; /* verify: new pace / old pace at most */
    char to[32];        /* hand_over */
    bool gives_back;    /* hand_over: {uncordon: broom}: once validated, else a person does */
};

struct plan {
    char name[POLICY_NAME_BYTES];
    struct plan_step steps[PLAN_STEPS_MAX];
    int count;
};

struct range {
    double at_least, at_most; /* NAN: no bound */
};

struct policy_rule {
    char name[POLICY_NAME_BYTES];
    uint32_t kinds, scopes, causes; /* bit per enum value; 0 takes any */
    int evict;                      /* -1 any, else 0 or 1 */
    struct range slowdown, gain, confidence;
    struct range repeats;           /* incidents of these nodes in the last seven days */
    char jobs[MATCH_JOBS_MAX][128]; /* exact names, or a prefix that ends in '*' */
    int job_count;                  /* 0 takes any */
    uint32_t unless_phases;         /* bit per job phase, see job_phases in policy.c */
    int64_t for_ns;                 /* how long the verdict must stand; 0: the settle time alone */
    int severity;                   /* 0 to 4 or SEVERITY_UNSET */
    enum mode mode;
    int plan; /* index into plans */
    int line, column;
};

struct policy_budget {
    char name[POLICY_NAME_BYTES];
    enum budget_scope scope;
    enum budget_unit unit;
    int64_t count;  /* -1: no count */
    double percent; /* of the population of scope; NAN: none. The smaller wins, never < 1 */
    int64_t window_ns;
};

/* How long each wait may last. Defaults: policy_timers_default. */
struct policy_timers {
    int64_t settle_corroborated_ns;   /* hard fault, job stopped too: 10 s */
    int64_t settle_uncorroborated_ns; /* hard fault, job steps on: 60 s */
    int64_t approval_ns;              /* 1 h, then escalated */
    int64_t hold_ns;                  /* 24 h, then escalated */
    int64_t action_ns;                /* 5 m for an action without a time-out of its own */
    int64_t repair_ns;                /* 7 d, then escalated */
    int64_t validate_ns;              /* 10 m of Ready before a returned node counts */
    int64_t watch_ns;                 /* 24 h: how long a recorded incident waits for its clear */
    int64_t restart_cost_ns;          /* 2 m: what a restart is taken to cost */
    int64_t restart_stuck_ns; /* 15 m: a restart of nobody's incident, then people are told */
};

struct policy {
    char name[POLICY_NAME_BYTES];
    char owner[128];
    char hash[POLICY_HASH_BYTES]; /* 64-bit FNV-1a of the document's meaning, as hex */
    enum mode mode;               /* MODE_UNSET when the file does not say */
    struct policy_timers timers;
    struct policy_budget *budgets;
    size_t budget_count;
    struct policy_rule *rules;
    size_t rule_count;
    struct plan *plans;
    size_t plan_count;
};

struct policy_set {
    struct policy **items; /* owned, in file-name order */
    size_t count;
};

struct policy_timers policy_timers_default(void);

/* Reads one policy. Findings (errors and warnings) are added; *ret_policy is set only when none of
 * them is an error: the caller frees it. NULL root (an empty file) is an error. */
MUST_CHECK enum status policy_parse(const struct tree_node *root, struct findings *findings,
                                    struct policy **ret_policy);
void policy_free(struct policy *policy);
DEFINE_AUTO(struct policy, policy_free)

struct policy_set *policy_set_new(void);
void policy_set_add(struct policy_set *set, struct policy *take_policy);
void policy_set_free(struct policy_set *set);
DEFINE_AUTO(struct policy_set, policy_set_free)
/* Mistakes that only show across files: a rule that an earlier file's match-all hides. Positions
 * are those of the later file; `index` says which. */
void policy_set_check(const struct policy_set *set, size_t index, struct findings *findings);

/* What a rule is matched against. */
struct policy_case {
    enum verdict_kind kind;
    enum scope scope;
    enum cause cause;
    bool evict;
    double slowdown, gain, confidence;
    int64_t repeats;
    const char *job;
    const char *job_phase; /* of engine_progress; "" when unknown */
};

struct policy_choice {
    const struct policy *policy; /* NULL: no rule matched */
    const struct policy_rule *rule;
    const struct plan *plan;
    bool unless_holds; /* the rule matches but its `unless` asks to wait */
};

struct policy_choice policy_choose(const struct policy_set *set, const struct policy_case *item);
/* Strictest of daemon, policy and rule; observe where neither policy nor rule says. */
enum mode policy_mode(enum mode daemon, const struct policy *policy,
                      const struct policy_rule *rule);

const char *mode_name(enum mode mode);
bool mode_parse(const char *name, enum mode *ret_mode);
const char *step_kind_name(enum step_kind kind);
bool step_kind_parse(const char *name, enum step_kind *ret_kind);
bool plan_changes_world(const struct plan *plan);
bool plan_has(const struct plan *plan, enum step_kind kind);
/* "cordon the rack", "restart the job": what a step does, for people. */
const char *plan_step_sentence(const struct plan_step *step);

#endif
