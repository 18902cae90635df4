/* Words are rows; judgements are masks over them. */
#include "remediation/actuators/slurm_state.h"

#include "remediation/actuators/slurm_text.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

/* --- words --- */

#define NO_BASE SLURM_BASE_COUNT

struct word {
    const char *name;
    enum slurm_base base; /* NO_BASE: the word says nothing of it */
    unsigned flags;
};

/* clang-format off */
static const struct word WORDS[] = {
    {"UNKNOWN",          SLURM_BASE_UNKNOWN,   0},
    {"IDLE",             SLURM_BASE_IDLE,      0},
    {"ALLOCATED",        SLURM_BASE_ALLOCATED, 0},
    {"MIXED",            SLURM_BASE_MIXED,     0},
    {"DOWN",             SLURM_BASE_DOWN,      0},
    {"ERROR",            SLURM_BASE_ERROR,     0},
    {"FUTURE",           SLURM_BASE_FUTURE,    0},
    {"DRAIN",            NO_BASE,              SLURM_DRAIN},
    {"DRAINED",          SLURM_BASE_IDLE,      SLURM_DRAIN},
    {"DRAINING",         SLURM_BASE_ALLOCATED, SLURM_DRAIN},
    {"FAIL",             NO_BASE,              SLURM_FAIL},
    {"FAILING",          SLURM_BASE_ALLOCATED, SLURM_FAIL},
    {"COMPLETING",       NO_BASE,              SLURM_COMPLETING},
    {"NOT_RESPONDING",   NO_BASE,              SLURM_NOT_RESPONDING},
    {"NO_RESPOND",       NO_BASE,              SLURM_NOT_RESPONDING},
    {"POWERED_DOWN",     NO_BASE,              SLURM_POWER},
    {"POWERING_DOWN",    NO_BASE,              SLURM_POWER},
    {"POWERING_UP",      NO_BASE,              SLURM_POWER},
    {"POWER_DOWN",       NO_BASE,              SLURM_POWER},
    {"POWER_UP",         NO_BASE,              SLURM_POWER},
    {"POWER_DRAIN",      NO_BASE,              SLURM_POWER | SLURM_DRAIN},
    {"REBOOT",           NO_BASE,              SLURM_REBOOT},
    {"REBOOT_REQUESTED", NO_BASE,              SLURM_REBOOT},
    {"REBOOT_ISSUED",    NO_BASE,              SLURM_REBOOT},
    {"MAINT",            NO_BASE,              SLURM_MAINT},
    {"MAINTENANCE",      NO_BASE,              SLURM_MAINT},
    {"RESERVED",         NO_BASE,              SLURM_RESERVED},
    {"PLANNED",          NO_BASE,              SLURM_PLANNED},
    {"INVAL",            NO_BASE,              SLURM_INVALID},
    {"INVALID_REG",      NO_BASE,              SLURM_INVALID},
    {"CLOUD",            NO_BASE,              SLURM_CLOUD},
    {"DYNAMIC_NORM",     NO_BASE,              SLURM_CLOUD},
    {"DYNAMIC_FUTURE",   NO_BASE,              SLURM_CLOUD},
};

static const struct suffix {
    char sign;
    unsigned flags;
} SUFFIXES[] = {
    {'*', SLURM_NOT_RESPONDING}, {'~', SLURM_POWER},   {'#', SLURM_POWER},  {'!', SLURM_POWER},
    {'%', SLURM_POWER},          {'$', SLURM_MAINT},   {'@', SLURM_REBOOT}, {'^', SLURM_REBOOT},
    {'-', SLURM_PLANNED},        {'+', SLURM_COMPLETING},
};
/* clang-format on */

static bool take_suffix(struct slurm_state *state, struct view *word)
{
    for (size_t i = 0; i < ARRAY_LEN(SUFFIXES); i++)
        if (word->length > 1 && word->bytes[word->length - 1] == SUFFIXES[i].sign) {
            state->flags |= SUFFIXES[i].flags;
            word->length--;
            return true;
        }
    return false;
}

void slurm_state_add(struct slurm_state *state, struct view word)
{
    while (take_suffix(state, &word))
        ;
    for (size_t i = 0; i < ARRAY_LEN(WORDS); i++) {
        const struct word *row = &WORDS[i];
        if (strlen(row->name) != word.length ||
            strncasecmp(row->name, word.bytes, word.length) != 0)
            continue;
        state->flags |= row->flags;
        if (row->base != NO_BASE)
            state->base = row->base;
        return;
    }
    state->flags |= SLURM_STRANGE;
}

struct slurm_state slurm_state_parse(struct view text)
{
    struct slurm_state state = {SLURM_BASE_UNKNOWN, 0};
    size_t from = 0;
    if (text.length == 0)
        state.flags = SLURM_STRANGE;
    for (size_t i = 0; i <= text.length && text.length > 0; i++) {
        /* "allocated+" ends in a suffix; "IDLE+DRAIN" joins words. */
        bool joins = i < text.length && text.bytes[i] == '+' && i + 1 < text.length;
        if (!joins && i < text.length)
            continue;
        slurm_state_add(&state, (struct view){text.bytes + from, i - from});
        from = i + 1;
    }
    return state;
}

bool slurm_is_ready(struct slurm_state state)
{
    const unsigned bad = SLURM_NOT_RESPONDING | SLURM_POWER | SLURM_REBOOT | SLURM_MAINT |
                         SLURM_INVALID | SLURM_FAIL | SLURM_STRANGE;
    bool is_up = state.base == SLURM_BASE_IDLE || state.base == SLURM_BASE_ALLOCATED ||
                 state.base == SLURM_BASE_MIXED;
    return is_up && (state.flags & bad) == 0;
}

bool slurm_is_drained(struct slurm_state state)
{
    const unsigned doubtful = SLURM_COMPLETING | SLURM_NOT_RESPONDING | SLURM_STRANGE;
    bool is_empty = state.base == SLURM_BASE_IDLE || state.base == SLURM_BASE_DOWN;
    return is_empty && (state.flags & SLURM_DRAIN) != 0 && (state.flags & doubtful) == 0;
}

/* --- nodes --- */

static char *copy_view(struct view view)
{
    return xstrndup(view.bytes != NULL ? view.bytes : "", view.length);
}

static void set(char **field, struct view value)
{
    xfree(*field);
    *field = copy_view(
        view_equals(value, "(null)") || view_equals(value, "N/A") ? (struct view){"", 0} : value);
}

/* "fan swap [root@2026-12-01T04:15:01]" -> "fan swap". */
static struct view without_who(struct view reason)
{
    if (reason.length == 0 || reason.bytes[reason.length - 1] != ']')
        return reason;
    for (size_t i = reason.length - 1; i > 0; i--)
        if (reason.bytes[i] == '[' && reason.bytes[i - 1] == ' ')
            return (struct view){reason.bytes, i - 1};
    return reason;
}

int32_t slurm_count_gpus(struct view gres)
{
    int64_t total = 0;
    for (size_t i = 0; i < gres.length;) {
        size_t end = i, depth = 0;
        while (end < gres.length && (depth > 0 || gres.bytes[end] != ',')) {
            depth += gres.bytes[end] == '(' ? 1 : 0;
            depth -= gres.bytes[end] == ')' && depth > 0 ? 1 : 0;
            end++;
        }
        struct view entry = {gres.bytes + i, end - i};
        const char *brace = entry.length > 0 ? memchr(entry.bytes, '(', entry.length) : NULL;
        if (brace != NULL)
            entry.length = (size_t)(brace - entry.bytes);
        size_t digits = 0;
        while (digits < entry.length &&
               isdigit((unsigned char)entry.bytes[entry.length - digits - 1]))
            digits++;
        int64_t count = 1;
        bool is_gpu = entry.length >= 3 && memcmp(entry.bytes, "gpu", 3) == 0 &&
                      (entry.length == 3 || entry.bytes[3] == ':');
        bool counts = digits > 0 && digits < 6 && entry.bytes[entry.length - digits - 1] == ':' &&
                      text_parse_int((struct view){entry.bytes + entry.length - digits, digits},
                                     &count);
        total += is_gpu ? (counts ? count : 1) : 0;
        i = end + 1;
    }
    return (int32_t)total;
}

void slurm_node_read(struct view record, struct slurm_node *ret_node)
{
    struct slurm_reader reader = {record, false};
    struct slurm_field field;
    struct slurm_node node = {.name = xstrdup(""), .reason = xstrdup(""), .features = xstrdup("")};
    bool has_state = false, has_reason = false;
    node.state.flags = SLURM_STRANGE;
    while (slurm_next_field(&reader, &field)) {
        if (view_equals(field.key, "NodeName")) {
            set(&node.name, field.value);
        } else if (view_equals(field.key, "State") && !has_state) {
            node.state = slurm_state_parse(field.value);
            has_state = true;
        } else if (view_equals(field.key, "Reason") && !has_reason) {
            set(&node.reason, without_who(field.value));
            has_reason = true;
        } else if (view_equals(field.key, "Gres")) {
            node.gpus = slurm_count_gpus(field.value);
        } else if (view_equals(field.key, "ActiveFeatures")) {
            set(&node.features, field.value);
        }
    }
    *ret_node = node;
}

void slurm_node_done(struct slurm_node *node)
{
    xfree(node->name);
    xfree(node->reason);
    xfree(node->features);
    *node = (struct slurm_node){0};
}

struct view slurm_reason_incident(const char *reason)
{
    static const char HEAD[] = SLURM_REASON_PREFIX "INC-";
    size_t prefix = strlen(SLURM_REASON_PREFIX);
    size_t digits = strspn(strncmp(reason, HEAD, strlen(HEAD)) == 0 ? reason + strlen(HEAD) : "",
                           "0123456789");
    char after = digits > 0 ? reason[strlen(HEAD) + digits] : 'x';
    if (digits == 0 || (after != ' ' && after != '\0'))
        return (struct view){reason, 0};
    return (struct view){reason + prefix, strlen("INC-") + digits};
}

bool slurm_reason_is_own(const char *reason)
{
    static const char *const OWN[] = {"Not responding",
                                      "Node unexpectedly rebooted",
                                      "Low RealMemory",
                                      "Low TmpDisk",
                                      "Low CPUs",
                                      "gres/gpu count",
                                      "Prolog error",
                                      "Epilog error",
                                      "Kill task failed",
                                      "batch job complete failure",
                                      "Reboot ASAP",
                                      "reboot complete",
                                      "NO NETWORK ADDRESS FOUND"};
    for (size_t i = 0; i < ARRAY_LEN(OWN); i++)
        if (strncasecmp(reason, OWN[i], strlen(OWN[i])) == 0)
            return true;
    return false;
}

bool slurm_is_cordoned(const struct slurm_node *node)
{
    if ((node->state.flags & (SLURM_DRAIN | SLURM_FAIL)) != 0)
        return true;
    return node->state.base == SLURM_BASE_DOWN && node->reason[0] != '\0' &&
           !slurm_reason_is_own(node->reason);
}

bool slurm_has_feature(const struct slurm_node *node, const char *feature)
{
    size_t length = strlen(feature);
    for (const char *at = node->features; length > 0 && *at != '\0';) {
        size_t word = strcspn(at, ",");
        if (word == length && memcmp(at, feature, length) == 0)
            return true;
        at += word + (at[word] == ',' ? 1 : 0);
    }
    return false;
}

/* --- jobs --- */

static void read_user(struct slurm_job *job, struct view value)
{
    const char *brace = value.length > 0 ? memchr(value.bytes, '(', value.length) : NULL;
    if (brace != NULL)
        value.length = (size_t)(brace - value.bytes);
    set(&job->user, value);
}

/* "4-4" or "4": the least. */
static int64_t leading_number(struct view value, int64_t fallback)
{
    size_t digits = 0;
    int64_t number;
    while (digits < value.length && isdigit((unsigned char)value.bytes[digits]))
        digits++;
    return text_parse_int((struct view){value.bytes, digits}, &number) ? number : fallback;
}

struct job_texts {
    const char *key;
    size_t offset;
};
/* clang-format off */
#define AT(member) offsetof(struct slurm_job, member)
static const struct job_texts JOB_TEXTS[] = {
    {"JobId", AT(id)},                {"JobState", AT(state)},       {"Reason", AT(reason)},
    {"NodeList", AT(nodes)},          {"ReqNodeList", AT(required_nodes)},
    {"ExcNodeList", AT(excluded_nodes)}, {"Reservation", AT(reservation)},
    {"AdminComment", AT(admin_comment)}, {"SubmitTime", AT(submit_time)}, {NULL, AT(user)},
};
#undef AT
/* clang-format on */

static char **text_at(struct slurm_job *job, size_t offset)
{
    return (char **)(void *)((char *)job + offset);
}

static void take_field(struct slurm_job *job, const struct slurm_field *field)
{
    for (size_t i = 0; i < ARRAY_LEN(JOB_TEXTS); i++) {
        char **text = text_at(job, JOB_TEXTS[i].offset);
        if (JOB_TEXTS[i].key != NULL && view_equals(field->key, JOB_TEXTS[i].key) &&
            (*text)[0] == '\0')
            set(text, field->value);
    }
    if (view_equals(field->key, "UserId"))
        read_user(job, field->value);
    else if (view_equals(field->key, "Restarts"))
        job->restarts = leading_number(field->value, -1);
    else if (view_equals(field->key, "NumTasks"))
        job->tasks = leading_number(field->value, 0);
    else if (view_equals(field->key, "NumNodes"))
        job->node_count = leading_number(field->value, 0);
    else if (view_equals(field->key, "BatchFlag"))
        job->is_batch = leading_number(field->value, 0) > 0;
    else if (view_equals(field->key, "Requeue"))
        job->may_requeue = leading_number(field->value, 0) > 0;
}

void slurm_job_read(struct view record, struct slurm_job *ret_job)
{
    struct slurm_reader reader = {record, false};
    struct slurm_field field;
    struct slurm_job job = {.restarts = -1};
    for (size_t i = 0; i < ARRAY_LEN(JOB_TEXTS); i++)
        *text_at(&job, JOB_TEXTS[i].offset) = xstrdup("");
    while (slurm_next_field(&reader, &field))
        take_field(&job, &field);
    *ret_job = job;
}

void slurm_job_done(struct slurm_job *job)
{
    for (size_t i = 0; i < ARRAY_LEN(JOB_TEXTS); i++)
        xfree(*text_at(job, JOB_TEXTS[i].offset));
    *job = (struct slurm_job){0};
}

bool slurm_job_is(const struct slurm_job *job, const char *state)
{
    return strcmp(job->state, state) == 0;
}

bool slurm_job_has_ended(const struct slurm_job *job)
{
    static const char *const ENDS[] = {"COMPLETED", "CANCELLED",     "FAILED",       "TIMEOUT",
                                       "NODE_FAIL", "PREEMPTED",     "BOOT_FAIL",    "DEADLINE",
                                       "REVOKED",   "LAUNCH_FAILED", "OUT_OF_MEMORY"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++)
        if (slurm_job_is(job, ENDS[i]))
            return true;
    return false;
}

bool slurm_job_is_held(const struct slurm_job *job)
{
    static const char *const HOLDS[] = {"JobHeldUser", "JobHeldAdmin", "job_requeued_in_held_state",
                                        "launch_failed_requeued_held", "JobHoldMaxRequeue"};
    if (slurm_job_is(job, "REQUEUE_HOLD") || slurm_job_is(job, "SPECIAL_EXIT"))
        return true;
    for (size_t i = 0; i < ARRAY_LEN(HOLDS); i++)
        if (strcmp(job->reason, HOLDS[i]) == 0)
            return true;
    return false;
}

/* --- the mark --- */

static const char *find_mark(const char *admin_comment)
{
    const char *mark = strstr(admin_comment, SLURM_REASON_PREFIX "INC-");
    return mark != NULL && (mark == admin_comment || mark[-1] == ' ') ? mark : NULL;
}

/* The value of " key=" at *at, which moves behind it. */
static bool take_mark_value(const char **at, const char *key, struct view *ret_value)
{
    size_t length = strlen(key);
    if (strncmp(*at, key, length) != 0)
        return false;
    *ret_value = (struct view){*at + length, strcspn(*at + length, " ")};
    *at += length + ret_value->length;
    return true;
}

bool slurm_mark_read(const char *admin_comment, struct slurm_mark *ret_mark)
{
    const char *at = find_mark(admin_comment);
    struct slurm_mark mark = {.nodes = {"", 0}};
    struct view number;
    if (at == NULL)
        return false;
    at += strlen(SLURM_REASON_PREFIX);
    size_t length = strcspn(at, " ");
    if (length >= sizeof mark.operation_id)
        return false;
    memcpy(mark.operation_id, at, length);
    at += length;
    if (!take_mark_value(&at, " restarts=", &number) || !text_parse_int(number, &mark.restarts))
        return false;
    take_mark_value(&at, " nodes=", &mark.nodes);
    *ret_mark = mark;
    return true;
}

void slurm_mark_write(struct text *out, const char *admin_comment, const char *operation_id,
                      int64_t restarts, const char *nodes)
{
    const char *mark = find_mark(admin_comment);
    size_t kept = mark != NULL ? (size_t)(mark - admin_comment) : strlen(admin_comment);
    while (kept > 0 && admin_comment[kept - 1] == ' ')
        kept--;
    text_add_bytes(out, admin_comment, kept);
    text_addf(out, "%s" SLURM_REASON_PREFIX "%s restarts=%lld", kept > 0 ? " " : "", operation_id,
              (long long)restarts);
    if (nodes[0] != '\0')
        text_addf(out, " nodes=%s", nodes);
}
