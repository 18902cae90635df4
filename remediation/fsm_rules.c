/* The table. Read a row aloud: in these phases, on this event, with these facts, go there and do
 * that. The checks of tests/unit/remediation/test_fsm_table.c hold it complete and free of order.
 */
#include "remediation/fsm.h"

/* clang-format off */
#define P(x)  (1u << PHASE_##x)
#define E(x)  (UINT64_C(1) << EVENT_##x)
#define F(x)  (1u << FACT_##x)
#define TO(x) PHASE_##x
#define ON(x) EVENT_##x
#define STAY  FSM_STAY
#define KEEP  FSM_KEEP_STATUS

/* Where a plan can stand between two steps, before and after its restart. */
#define BEFORE  (P(CONFIRMED) | P(AWAITING_APPROVAL) | P(HOLDING) | P(CORDONING) | P(SAVING))
#define STEPPING (BEFORE | P(VERIFYING))
/* The time that one step was given is not the next one's. */
#define DOING   (P(CORDONING) | P(SAVING))
#define WAITING (P(PLACING) | P(RESUMING))
#define ACTIVE  (STEPPING | P(RESTARTING) | WAITING)
#define OPEN    (P(SUSPECTED) | ACTIVE | P(REPAIRING) | P(VALIDATING))
#define ENDS    (P(DONE) | P(CANCELLED) | P(ESCALATED))

/* What must hold before the cluster is touched, and before something scarce is spent. */
#define TOUCH (F(LEASE_HELD) | F(CLOCK_TRUSTED) | F(STORE_UP) | F(UNPAUSED) | F(ATTEMPTS_LEFT))
#define SPEND (TOUCH | F(TELEMETRY_SEEN) | F(BREAKER_CLOSED) | F(BUDGET_AVAILABLE) | F(WORLD_KNOWN))
#define MAY   (F(PERMITTED))
#define MAY_RESTART (F(PERMITTED) | F(RESTART_ALLOWED))
#define OBS   F(OBSERVING)

const struct fsm_rule fsm_rules[] = {
/* id                       from                on                 need                forbid                lack                       to                     status                command                timer */
/* accusation and settling */
{"note-accusation",         OPEN & ~P(VALIDATING), ON(ACCUSED),    0,                  0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"fail-validation",         P(VALIDATING),      ON(ACCUSED),       0,                  0,                    0,                         TO(REPAIRING),         INCIDENT_MITIGATED,   DO_NOTHING,            TIMER_REPAIR},
{"confirm",                 P(SUSPECTED),       ON(SETTLED),       0,                  0,                    0,                         TO(CONFIRMED),         KEEP,                 DO_NOTHING,            TIMER_WATCH},
{"clear-suspicion",         P(SUSPECTED),       ON(CLEARED),       0,                  0,                    0,                         TO(CANCELLED),         INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},
{"clear-watched",           P(CONFIRMED),       ON(CLEARED),       OBS,                0,                    0,                         TO(DONE),              INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},
{"clear-before-acting",     P(CONFIRMED) | P(AWAITING_APPROVAL) | P(HOLDING), ON(CLEARED), 0, F(ACTED) | OBS, 0,                        TO(CANCELLED),         INCIDENT_CLOSED,      DO_RELEASE_SPARES,     TIMER_NONE},
{"clear-watched-waiting",   P(AWAITING_APPROVAL) | P(HOLDING), ON(CLEARED), OBS,       F(ACTED),             0,                         TO(CANCELLED),         INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},
{"note-clear-confirmed",    P(CONFIRMED),       ON(CLEARED),       F(ACTED),           OBS,                  0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"note-clear-waiting",      P(AWAITING_APPROVAL) | P(HOLDING), ON(CLEARED), F(ACTED),  0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"note-clear",              P(CORDONING) | P(SAVING) | P(RESTARTING) | WAITING | P(VERIFYING) | P(REPAIRING) | P(VALIDATING), ON(CLEARED), 0, 0, 0, STAY,   KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"merge",                   P(SUSPECTED) | BEFORE, ON(MERGED),     0,                  0,                    0,                         TO(CANCELLED),         INCIDENT_MERGED,      DO_NOTHING,            TIMER_NONE},

/* the accuser is the suspect */
{"hold-observer",           P(SUSPECTED),       ON(OBSERVER_SUSPECTED), 0,             0,                    0,                         TO(HOLDING),           KEEP,                 DO_NOTHING,            TIMER_HOLD},
{"judge-observer",          P(HOLDING),         ON(OBSERVER_JUDGED), 0,                0,                    0,                         TO(DONE),              INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},

/* steps that only tell or look */
{"would-notify",            STEPPING,           ON(REACHED_NOTIFY), OBS,               0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"notify",                  STEPPING,           ON(REACHED_NOTIFY), F(LEASE_HELD) | F(STORE_UP), OBS,        0,                         STAY,                  KEEP,                 DO_NOTIFY,             TIMER_KEEP},
{"notify-later",            STEPPING,           ON(REACHED_NOTIFY), 0,                 OBS,                  F(LEASE_HELD) | F(STORE_UP), STAY,                KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"would-capture",           STEPPING,           ON(REACHED_CAPTURE), OBS,              0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"capture",                 STEPPING,           ON(REACHED_CAPTURE), F(LEASE_HELD) | F(STORE_UP), OBS,       0,                         STAY,                  KEEP,                 DO_CAPTURE,            TIMER_KEEP},
{"capture-later",           STEPPING,           ON(REACHED_CAPTURE), 0,                OBS,                  F(LEASE_HELD) | F(STORE_UP), STAY,                KEEP,                 DO_NOTHING,            TIMER_KEEP},

/* cordon */
{"would-cordon",            BEFORE,             ON(REACHED_CORDON), OBS,               0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-cordon",           BEFORE,             ON(REACHED_CORDON), 0,                 OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"ask-for-last-restart",    BEFORE,             ON(REACHED_CORDON), F(PERMITTED),      OBS | F(RESTART_ALLOWED), 0,                     TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-cordon",             BEFORE,             ON(REACHED_CORDON), MAY_RESTART,       OBS,                  SPEND | F(JOB_FREE) | F(WORTH_ACTING), TO(HOLDING),           KEEP,                 DO_NOTHING,            TIMER_HOLD},
{"cordon",                  BEFORE,             ON(REACHED_CORDON), MAY_RESTART | SPEND | F(JOB_FREE) | F(WORTH_ACTING), OBS, 0,        TO(CORDONING),         KEEP,                 DO_CORDON,             TIMER_STEP},

/* drain: what else runs there, the job's own pods left out */
{"would-drain",             BEFORE,             ON(REACHED_DRAIN), OBS,                0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-drain",            BEFORE,             ON(REACHED_DRAIN), 0,                  OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-drain",              BEFORE,             ON(REACHED_DRAIN), MAY,                OBS,                  SPEND,                     TO(HOLDING),           KEEP,                 DO_NOTHING,            TIMER_HOLD},
{"drain",                   BEFORE,             ON(REACHED_DRAIN), MAY | SPEND,        OBS,                  0,                         TO(CORDONING),         KEEP,                 DO_DRAIN,              TIMER_STEP},

/* checkpoint */
{"would-save",              BEFORE,             ON(REACHED_CHECKPOINT), OBS,           0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-save",             BEFORE,             ON(REACHED_CHECKPOINT), 0,             OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-save",               BEFORE,             ON(REACHED_CHECKPOINT), MAY,           OBS,                  TOUCH | F(TELEMETRY_SEEN) | F(BREAKER_CLOSED) | F(BUDGET_AVAILABLE), TO(HOLDING), KEEP, DO_NOTHING, TIMER_HOLD},
{"save",                    BEFORE,             ON(REACHED_CHECKPOINT), MAY | TOUCH | F(TELEMETRY_SEEN) | F(BREAKER_CLOSED) | F(BUDGET_AVAILABLE), OBS, 0, TO(SAVING), KEEP,         DO_REQUEST_CHECKPOINT, TIMER_STEP},

/* fence: power off, confirmed */
{"would-fence",             BEFORE,             ON(REACHED_FENCE), OBS,                0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-fence",            BEFORE,             ON(REACHED_FENCE), 0,                  OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-fence",              BEFORE,             ON(REACHED_FENCE), MAY,                OBS,                  SPEND | F(JOB_FREE),       TO(HOLDING),           KEEP,                 DO_NOTHING,            TIMER_HOLD},
{"fence",                   BEFORE,             ON(REACHED_FENCE), MAY | SPEND | F(JOB_FREE), OBS,                  0,                         TO(CORDONING),         KEEP,                 DO_FENCE,              TIMER_STEP},

/* spare */
{"would-take-spare",        BEFORE,             ON(REACHED_SPARE), OBS,                0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-take-spare",       BEFORE,             ON(REACHED_SPARE), 0,                  OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-for-spare",          BEFORE,             ON(REACHED_SPARE), MAY,                OBS,                  SPEND | F(SPARE_FREE),     TO(HOLDING),           KEEP,                 DO_NOTHING,            TIMER_HOLD},
{"take-spare",              BEFORE,             ON(REACHED_SPARE), MAY | SPEND | F(SPARE_FREE), OBS,         0,                         STAY,                  KEEP,                 DO_PROMISE_SPARE,      TIMER_KEEP},

/* restart */
{"would-restart",           BEFORE,             ON(REACHED_RESTART), OBS,              0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-restart",          BEFORE,             ON(REACHED_RESTART), 0,                OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"ask-for-last-try",        BEFORE,             ON(REACHED_RESTART), F(PERMITTED),     OBS | F(RESTART_ALLOWED), 0,                     TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-restart",            BEFORE,             ON(REACHED_RESTART), MAY_RESTART,      OBS,                  SPEND | F(JOB_FREE) | F(WORTH_ACTING), TO(HOLDING), KEEP,               DO_NOTHING,            TIMER_HOLD},
{"restart",                 BEFORE,             ON(REACHED_RESTART), MAY_RESTART | SPEND | F(JOB_FREE) | F(WORTH_ACTING), OBS, 0,       TO(RESTARTING),        KEEP,                 DO_RESTART_JOB,        TIMER_STEP},

/* pods that never end on a node that is off: the restart waits for them, answered or not */
{"would-force-delete",      P(RESTARTING) | P(PLACING), ON(PODS_STUCK), OBS,           0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"force-delete-later",      P(RESTARTING) | P(PLACING), ON(PODS_STUCK), 0,             OBS,                  MAY | SPEND,               STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"force-delete",            P(RESTARTING) | P(PLACING), ON(PODS_STUCK), MAY | SPEND,   OBS,                  0,                         STAY,                  KEEP,                 DO_FORCE_DELETE,       TIMER_KEEP},

/* somebody else's restart moved the job off our nodes already */
{"would-verify",            BEFORE,             ON(REACHED_VERIFY), OBS,               0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"verify",                  BEFORE,             ON(REACHED_VERIFY), 0,                 OBS,                  0,                         TO(VERIFYING),         KEEP,                 DO_NOTHING,            TIMER_STEP},

/* hand over to whoever repairs */
{"would-hand-over",         STEPPING,           ON(REACHED_HAND_OVER), OBS,            0,                    0,                         STAY,                  KEEP,                 DO_RECORD_WOULD,       TIMER_KEEP},
{"ask-to-hand-over",        STEPPING,           ON(REACHED_HAND_OVER), 0,              OBS | F(PERMITTED),   0,                         TO(AWAITING_APPROVAL), KEEP,                 DO_NOTHING,            TIMER_APPROVAL},
{"hold-hand-over",          STEPPING,           ON(REACHED_HAND_OVER), MAY,            OBS,                  TOUCH | F(TELEMETRY_SEEN) | F(BREAKER_CLOSED) | F(BUDGET_AVAILABLE), TO(HOLDING), KEEP, DO_NOTHING, TIMER_HOLD},
{"hand-over",               STEPPING,           ON(REACHED_HAND_OVER), MAY | TOUCH | F(TELEMETRY_SEEN) | F(BREAKER_CLOSED) | F(BUDGET_AVAILABLE), OBS, 0, TO(REPAIRING), KEEP,       DO_HAND_OVER,          TIMER_REPAIR},

/* how a step ended */
{"step-succeeded",          (STEPPING & ~DOING) | P(REPAIRING) | P(VALIDATING), ON(STEP_SUCCEEDED), 0, 0,    0,                         STAY,                  KEEP,                 DO_NEXT_STEP,          TIMER_KEEP},
{"next-step",               DOING,              ON(STEP_SUCCEEDED), 0,                 0,                    0,                         STAY,                  KEEP,                 DO_NEXT_STEP,          TIMER_STEP},
{"restart-accepted",        P(RESTARTING),      ON(STEP_SUCCEEDED), 0,                 0,                    0,                         TO(PLACING),           KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"step-skipped",            (STEPPING & ~DOING) | P(REPAIRING) | P(VALIDATING), ON(STEP_SKIPPED), 0, 0,      0,                         STAY,                  KEEP,                 DO_NEXT_STEP,          TIMER_KEEP},
{"pass-step-by",            DOING,              ON(STEP_SKIPPED),  0,                  0,                    0,                         STAY,                  KEEP,                 DO_NEXT_STEP,          TIMER_STEP},
{"retry-step",              STEPPING,           ON(STEP_FAILED),   F(ATTEMPTS_LEFT),   0,                    0,                         STAY,                  KEEP,                 DO_RETRY_STEP,         TIMER_KEEP},
{"retry-hand-over",         P(REPAIRING),       ON(STEP_FAILED),   F(ATTEMPTS_LEFT),   0,                    0,                         TO(HOLDING),           KEEP,                 DO_RETRY_STEP,         TIMER_HOLD},
{"retry-restart",           P(RESTARTING),      ON(STEP_FAILED),   F(ATTEMPTS_LEFT),   0,                    0,                         TO(HOLDING),           KEEP,                 DO_RETRY_STEP,         TIMER_HOLD},
{"give-up-step",            STEPPING | P(RESTARTING), ON(STEP_FAILED), 0,              F(ATTEMPTS_LEFT),     0,                         TO(ESCALATED),         KEEP,                 DO_RELEASE_SPARES,     TIMER_NONE},
{"give-up-hand-over",       P(REPAIRING),       ON(STEP_FAILED),   0,                  F(ATTEMPTS_LEFT),     0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},
{"step-refused",            STEPPING | P(RESTARTING), ON(STEP_REFUSED), 0,             0,                    0,                         TO(ESCALATED),         KEEP,                 DO_RELEASE_SPARES,     TIMER_NONE},
{"hand-over-refused",       P(REPAIRING),       ON(STEP_REFUSED),  0,         0,                    0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},
{"record-only",             P(CONFIRMED),       ON(PLAN_ENDED),    0,                  0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"plan-ended",              (BEFORE & ~P(CONFIRMED)) | P(VERIFYING), ON(PLAN_ENDED), 0, 0,                   0,                         TO(DONE),              INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},

/* what the world and the job answer */
{"placed",                  P(PLACING),         ON(PLACED),        0,                  0,                    0,                         TO(RESUMING),          KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"progressed",              P(RESUMING),        ON(PROGRESSED),    0,                  0,                    0,                         TO(VERIFYING),         KEEP,                 DO_NEXT_STEP,          TIMER_STEP},
{"verified",                P(VERIFYING),       ON(VERIFIED),      0,                  0,                    0,                         STAY,                  INCIDENT_MITIGATED,   DO_NEXT_STEP,          TIMER_HOLD},
{"returned",                P(REPAIRING),       ON(RETURNED),      0,                  0,                    0,                         TO(VALIDATING),        KEEP,                 DO_NOTHING,            TIMER_VALIDATE},

/* back in service: by us where the plan says so, else by a person */
{"would-give-back",         P(VALIDATING),      ON(REACHED_UNCORDON), OBS,             0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"give-back-later",         P(VALIDATING),      ON(REACHED_UNCORDON), 0,               OBS,                  MAY | SPEND,               STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"give-back",               P(VALIDATING),      ON(REACHED_UNCORDON), MAY | SPEND,     OBS,                  0,                         STAY,                  KEEP,                 DO_UNCORDON,           TIMER_KEEP},
{"validated",               P(VALIDATING),      ON(VALIDATED),     0,                  0,                    0,                         TO(DONE),              INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},

/* deadlines */
{"never-settled",           P(SUSPECTED),       ON(DEADLINE_PASSED), 0,                0,                    0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},
{"watched-long-enough",     P(CONFIRMED),       ON(DEADLINE_PASSED), OBS,              0,                    0,                         TO(DONE),              INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},
{"never-begun",             P(CONFIRMED),       ON(DEADLINE_PASSED), 0,                OBS,                  0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},
{"approval-expired",        P(AWAITING_APPROVAL), ON(DEADLINE_PASSED), 0,              0,                    0,                         TO(ESCALATED),         KEEP,                 DO_RELEASE_SPARES,     TIMER_NONE},
{"held-too-long",           P(HOLDING),         ON(DEADLINE_PASSED), 0,                0,                    0,                         TO(ESCALATED),         KEEP,                 DO_RELEASE_SPARES,     TIMER_NONE},
{"step-expired",            P(CORDONING) | P(SAVING) | P(RESTARTING) | WAITING | P(VERIFYING), ON(DEADLINE_PASSED), 0, 0, 0,            TO(ESCALATED),         KEEP,                 DO_RELEASE_SPARES,     TIMER_NONE},
{"repair-overdue",          P(REPAIRING),       ON(DEADLINE_PASSED), 0,                0,                    0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},
{"return-overdue",          P(VALIDATING),      ON(DEADLINE_PASSED), 0,                0,                    0,                         TO(ESCALATED),         KEEP,                 DO_NOTHING,            TIMER_NONE},

/* people */
{"approve",                 P(AWAITING_APPROVAL), ON(APPROVED),    0,                  0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
{"abort",                   OPEN,               ON(ABORTED),       0,                  0,                    0,                         TO(CANCELLED),         INCIDENT_CLOSED,      DO_RELEASE_SPARES,     TIMER_NONE},
{"close-escalated",         P(ESCALATED),       ON(ABORTED),       0,                  0,                    0,                         STAY,                  INCIDENT_CLOSED,      DO_NOTHING,            TIMER_NONE},
{"decline",                 OPEN,               ON(DECLINED),      0,                  0,                    0,                         TO(CANCELLED),         INCIDENT_DECLINED,    DO_UNDO,               TIMER_NONE},
{"decline-escalated",       P(ESCALATED),       ON(DECLINED),      0,                  0,                    0,                         STAY,                  INCIDENT_DECLINED,    DO_UNDO,               TIMER_NONE},
{"person-uncordoned",       BEFORE,             ON(UNCORDONED),    0,                  0,                    0,                         TO(CANCELLED),         INCIDENT_CLOSED,      DO_RELEASE_SPARES,     TIMER_NONE},
{"note-uncordon",           P(RESTARTING) | WAITING | P(VERIFYING), ON(UNCORDONED), 0, 0,                    0,                         STAY,                  KEEP,                 DO_NOTHING,            TIMER_KEEP},
};
const size_t fsm_rule_count = ARRAY_LEN(fsm_rules);

#define REACHED (E(REACHED_NOTIFY) | E(REACHED_CAPTURE) | E(REACHED_CORDON) | E(REACHED_DRAIN) | E(REACHED_CHECKPOINT) | E(REACHED_FENCE) | E(REACHED_SPARE) | E(REACHED_RESTART) | E(REACHED_VERIFY) | E(REACHED_HAND_OVER))
#define STEP_ENDS (E(STEP_SUCCEEDED) | E(STEP_SKIPPED) | E(STEP_FAILED) | E(STEP_REFUSED))

const struct fsm_ignored fsm_ignored[] = {
{ENDS,                      ((UINT64_C(1) << FSM_EVENT_COUNT) - 1) & ~(E(ABORTED) | E(DECLINED)), "an ended incident takes no part in anything; the same fault opens a new one"},
{P(DONE) | P(CANCELLED),    E(ABORTED) | E(DECLINED),                 "nothing is left to stop or to take back"},
{OPEN & ~P(SUSPECTED),      E(SETTLED) | E(OBSERVER_SUSPECTED),       "settling happens once, in suspected"},
{OPEN & ~P(HOLDING),        E(OBSERVER_JUDGED),                       "an observer-suspect incident waits in holding only"},
{P(SUSPECTED),              REACHED | STEP_ENDS | E(PLAN_ENDED),      "no plan is chosen before the suspicion has settled"},
{P(RESTARTING) | WAITING,   REACHED | E(PLAN_ENDED),                  "the restart step is not over before the job makes a step"},
{P(REPAIRING) | P(VALIDATING), REACHED | E(PLAN_ENDED),               "handing over is the last step of a plan"},
{P(VERIFYING),              E(REACHED_CORDON) | E(REACHED_DRAIN) | E(REACHED_CHECKPOINT) | E(REACHED_FENCE) | E(REACHED_SPARE) | E(REACHED_RESTART) | E(REACHED_VERIFY), "these stand before the restart; lint refuses a plan with another order"},
{WAITING,                   STEP_ENDS,                                "the restart action has already ended well"},
{P(RESTARTING),             E(STEP_SKIPPED),                          "a restart that is not needed is skipped before it begins"},
{P(VALIDATING),             E(STEP_FAILED) | E(STEP_REFUSED),         "the node came back without the hand-over"},
{OPEN & ~(P(RESTARTING) | P(PLACING)), E(PODS_STUCK),                 "only a restart on its way waits for pods to end"},
{OPEN & ~P(PLACING),        E(PLACED),                                "asked in placing only"},
{OPEN & ~P(RESUMING),       E(PROGRESSED),                            "asked in resuming only"},
{OPEN & ~P(VERIFYING),      E(VERIFIED),                              "asked in verifying only"},
{OPEN & ~P(VALIDATING),     E(REACHED_UNCORDON) | E(VALIDATED),       "asked in validating only"},
{OPEN & ~P(REPAIRING),      E(RETURNED),                              "asked in repairing only"},
{OPEN & ~P(AWAITING_APPROVAL), E(APPROVED),                           "refused at the door: there is nothing to approve"},
{P(SUSPECTED) | P(REPAIRING) | P(VALIDATING), E(UNCORDONED),          "nothing of ours is cordoned yet, or an uncordon is the return that we wait for"},
{P(RESTARTING) | WAITING | P(VERIFYING) | P(REPAIRING) | P(VALIDATING), E(MERGED), "what has restarted its job finishes by itself"},
};
const size_t fsm_ignored_count = ARRAY_LEN(fsm_ignored);
/* clang-format on */
