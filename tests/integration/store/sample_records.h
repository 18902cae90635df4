/* Records as broomd writes them, small. */
#ifndef BROOM_TESTS_INTEGRATION_STORE_SAMPLE_RECORDS_H
#define BROOM_TESTS_INTEGRATION_STORE_SAMPLE_RECORDS_H

#include "controller/base/json.h"

/* 2026-05-28T20:32:00Z */
#define SAMPLE_NS INT64_C(1780000320000000000)

static inline void add_event(struct text *out, int64_t number)
{
    text_addf(out,
              "{\"type\":\"event\",\"key\":\"event/"
              "%lld\",\"time_ns\":%lld,\"kind\":\"xid\",\"host\":\"gb-1\","
              "\"code\":79,\"source\":\"events\"}\n",
              (long long)number, (long long)(SAMPLE_NS + number));
}

static inline void add_incident(struct text *out, int64_t number, int64_t version,
                                const char *status, const char *phase)
{
    text_addf(
        out,
        "{\"type\":\"incident\",\"key\":\"incident/INC-%lld/"
        "%lld\",\"time_ns\":%lld,\"ref\":\"INC-%lld\","
        "\"number\":%lld,\"version\":%lld,\"job\":\"default/"
        "llm\",\"kind\":\"slow\",\"scope\":\"rank\","
        "\"domain\":\"5\",\"cause\":\"gpu\",\"severity\":2,\"status\":\"%s\",\"phase\":\"%s\","
        "\"nodes\":[\"gb-1\"],\"ranks\":[5],\"victims\":[],\"mode\":\"enforce\",\"times\":{"
        "\"fault_started_ns\":%lld,\"detected_ns\":%lld,\"decided_ns\":0}}\n",
        (long long)number, (long long)version, (long long)(SAMPLE_NS + version), (long long)number,
        (long long)number, (long long)version, status, phase, (long long)SAMPLE_NS,
        (long long)(SAMPLE_NS + 30000000000));
}

static inline void add_timeline(struct text *out, int64_t number, int64_t seq, const char *sentence)
{
    text_addf(
        out,
        "{\"type\":\"timeline\",\"key\":\"timeline/INC-%lld/"
        "%lld\",\"time_ns\":%lld,\"incident\":\"INC-%lld\","
        "\"seq\":%lld,\"kind\":\"opened\",\"actor\":\"broomd\",\"text\":\"%s\",\"details\":{}}\n",
        (long long)number, (long long)seq, (long long)(SAMPLE_NS + seq), (long long)number,
        (long long)seq, sentence);
}

static inline void add_action(struct text *out, const char *operation, const char *verb)
{
    text_addf(
        out,
        "{\"type\":\"action\",\"key\":\"action/"
        "%s\",\"time_ns\":%lld,\"incident\":\"INC-1\",\"operation_id\":"
        "\"%s\",\"verb\":\"%s\",\"nodes\":[\"gb-1\"],\"spares\":[],\"params\":{},\"reason\":\"r\","
        "\"actuator\":\"dry_run\",\"mode\":\"enforce\"}\n",
        operation, (long long)SAMPLE_NS, operation, verb);
}

static inline void add_outcome(struct text *out, const char *operation, const char *outcome,
                               int64_t after_ns)
{
    text_addf(out,
              "{\"type\":\"action_outcome\",\"key\":\"outcome/%s/"
              "%s\",\"time_ns\":%lld,\"operation_id\":\"%s\","
              "\"incident\":\"INC-1\",\"outcome\":\"%s\",\"reason\":null,\"response\":\"ok\","
              "\"took_ns\":%lld}\n",
              operation, outcome, (long long)(SAMPLE_NS + after_ns), operation, outcome,
              (long long)after_ns);
}

#endif
