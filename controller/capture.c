/* Raw windows and rollups as records. */
#include "controller/capture.h"

#include "controller/io/compress.h"
#include "controller/series/raw_window.h"

#include <string.h>

enum { CAPTURE_ZSTD_LEVEL = 6 };

struct capture {
    char *incident_ref;
    char *job;
    int64_t from_ns, to_ns;
    struct capture *next;
};

struct captures {
    struct capture *first;
};

struct captures *captures_new(void)
{
    return xcalloc(1, sizeof(struct captures));
}

static void capture_free(struct capture *capture)
{
    xfree(capture->incident_ref);
    xfree(capture->job);
    xfree(capture);
}

void captures_free(struct captures *captures)
{
    if (captures == NULL)
        return;
    while (captures->first != NULL) {
        struct capture *capture = captures->first;
        captures->first = capture->next;
        capture_free(capture);
    }
    xfree(captures);
}

void captures_plan(struct captures *captures, const char *incident_ref, const char *job,
                   int64_t from_ns, int64_t to_ns)
{
    for (struct capture *capture = captures->first; capture != NULL; capture = capture->next) {
        if (strcmp(capture->incident_ref, incident_ref) != 0)
            continue;
        capture->from_ns = from_ns < capture->from_ns ? from_ns : capture->from_ns;
        capture->to_ns = to_ns > capture->to_ns ? to_ns : capture->to_ns;
        return;
    }
    struct capture *capture = xcalloc(1, sizeof *capture);
    *capture = (struct capture){.incident_ref = xstrdup(incident_ref),
                                .job = xstrdup(job),
                                .from_ns = from_ns,
                                .to_ns = to_ns,
                                .next = captures->first};
    captures->first = capture;
}

static bool emit_metric(const struct capture *capture, const struct live_job *live,
                        enum field metric, captures_record_fn *fn, void *context)
{
    AUTO_TEXT plain = {0};
    AUTO_TEXT packed = {0};
    AUTO_TEXT record = {0};
    AUTO_TEXT key = {0};
    struct raw_window window = series_window(live->series, metric,
                                             capture->from_ns - live->sender_lag_ns,
                                             capture->to_ns - live->sender_lag_ns);
    size_t count = window.count;
    raw_window_encode(&window, &plain);
    raw_window_done(&window);
    if (count == 0 || zstd_pack((struct view){plain.bytes, plain.length}, CAPTURE_ZSTD_LEVEL,
                                &packed, NULL) != OK)
        return false;
    text_clear(&plain);
    base64_encode((struct view){packed.bytes, packed.length}, &plain);
    text_addf(&key, "raw_window/%s/%s/%lld", capture->incident_ref, field_name(metric),
              (long long)capture->from_ns);
    struct json_writer writer = json_writer(&record);
    json_open_object(&writer);
    json_put_string(&writer, "type", "raw_window");
    json_put_string(&writer, "key", key.bytes);
    json_put_int(&writer, "time_ns", capture->to_ns);
    json_put_string(&writer, "incident", capture->incident_ref);
    json_put_string(&writer, "job", live->name);
    json_put_string(&writer, "metric", field_name(metric));
    json_put_int(&writer, "from_ns", capture->from_ns);
    json_put_int(&writer, "to_ns", capture->to_ns);
    json_put_int(&writer, "points", (int64_t)count);
    json_put_string(&writer, "encoding", "zstd-columns");
    json_put_string(&writer, "data", plain.bytes);
    json_close(&writer);
    fn(context, record.bytes);
    return true;
}

static int64_t emit(const struct capture *capture, const struct jobs *jobs, captures_record_fn *fn,
                    void *context)
{
    const struct live_job *live = jobs_find(jobs, view_of(capture->job));
    int64_t emitted = 0;
    for (int metric = 0; live != NULL && metric < FIELD_COUNT; metric++)
        emitted += emit_metric(capture, live, (enum field)metric, fn, context) ? 1 : 0;
    return emitted;
}

int64_t captures_emit_due(struct captures *captures, const struct jobs *jobs, int64_t now_ns,
                          captures_record_fn *fn, void *context)
{
    int64_t emitted = 0;
    for (struct capture **place = &captures->first; *place != NULL;) {
        struct capture *capture = *place;
        if (now_ns < capture->to_ns) {
            place = &capture->next;
            continue;
        }
        emitted += emit(capture, jobs, fn, context);
        *place = capture->next;
        capture_free(capture);
    }
    return emitted;
}

static void emit_rollup(const struct live_job *live, const struct rollup *rollup,
                        captures_record_fn *fn, void *context)
{
    AUTO_TEXT record = {0};
    AUTO_TEXT key = {0};
    text_addf(&key, "rollup/%s/%s/%lld", live->name, field_name(rollup->metric),
              (long long)rollup->minute_ns);
    struct json_writer writer = json_writer(&record);
    json_open_object(&writer);
    json_put_string(&writer, "type", "rollup");
    json_put_string(&writer, "key", key.bytes);
    json_put_int(&writer, "time_ns", rollup->minute_ns);
    json_put_string(&writer, "job", live->name);
    json_put_string(&writer, "metric", field_name(rollup->metric));
    json_put_int(&writer, "minute_ns", rollup->minute_ns);
    json_put_int(&writer, "ranks", rollup->ranks);
    json_add_key(&writer, "values");
    json_open_array(&writer);
    for (int32_t r = 0; r < rollup->ranks; r++)
        json_add_rounded(&writer, (double)rollup->values[r], 6);
    json_close(&writer);
    json_close(&writer);
    fn(context, record.bytes);
}

int64_t captures_emit_rollups(struct live_job *live, int64_t now_ns, captures_record_fn *fn,
                              void *context)
{
    int64_t emitted = 0;
    struct rollup rollup;
    int64_t sender_now_ns = jobs_sender_time(live, now_ns);
    while (series_take_rollup(live->series, sender_now_ns, &rollup)) {
        emit_rollup(live, &rollup, fn, context);
        rollup_done(&rollup);
        emitted++;
    }
    return emitted;
}
