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
            slurm_set_text(&node.name, field.value);
        } else if (view_equals(field.key, "State") && !has_state) {
            node.state = slurm_state_parse(field.value);
            has_state = true;
        } else if (view_equals(field.key, "Reason") && !has_reason) {
            slurm_set_text(&node.reason, without_who(field.value));
            has_reason = true;
        } else if (view_equals(field.key, "Gres")) {
            node.gpus = slurm_count_gpus(field.value);
        } else if (view_equals(field.key, "ActiveFeatures")) {
            slurm_set_text(&node.features, field.value);
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
