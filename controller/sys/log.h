/* logfmt on stderr: ts=... level=info event=incident_opened incident=INC-4 target="rack/rk-7".
 * Event names are identifiers, listed in runbooks/README.md; free text only in `reason`. Repeats of
 * one event beyond 10 a second are counted and summed up. A call gives at least one pair.
 */
#ifndef BROOM_SYS_LOG_H
#define BROOM_SYS_LOG_H

#include <stdint.h>

enum log_level { LOG_DEBUG = 0, LOG_INFO, LOG_WARN, LOG_ERROR };

struct kv {
    const char *key;
    enum { KV_END = 0, KV_STR, KV_INT, KV_NUM } type;
    const char *str;
    int64_t integer;
    double number;
};

static inline struct kv kv_str(const char *key, const char *value)
{
    return (struct kv){.key = key, .type = KV_STR, .str = value};
}
static inline struct kv kv_int(const char *key, int64_t value)
{
    return (struct kv){.key = key, .type = KV_INT, .integer = value};
}
static inline struct kv kv_num(const char *key, double value)
{
    return (struct kv){.key = key, .type = KV_NUM, .number = value};
}

void log_init(enum log_level least);
void log_write(enum log_level level, const char *event, const struct kv *pairs);
#define log_event(level, event, ...)                                                               \
    log_write((level), (event), (const struct kv[]){__VA_ARGS__, {.type = KV_END}})

#endif
