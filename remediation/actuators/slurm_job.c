/* Jobs as scontrol prints them, and our mark in their AdminComment. */
#include "remediation/actuators/slurm_state.h"
#include "remediation/actuators/slurm_text.h"

#include <ctype.h>
#include <string.h>

static void read_user(struct slurm_job *job, struct view value)
{
    const char *brace = value.length > 0 ? memchr(value.bytes, '(', value.length) : NULL;
    if (brace != NULL)
        value.length = (size_t)(brace - value.bytes);
    slurm_set_text(&job->user, value);
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
            slurm_set_text(text, field->value);
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
