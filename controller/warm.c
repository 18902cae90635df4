/* Documents out and in; the recording into the engines. */
#include "controller/warm.h"

#include "controller/io/recorder.h"
#include "controller/sys/file.h"
#include "controller/topology/job_file.h"

#include <string.h>

static const size_t DOCUMENTS_BYTES_MAX = 1024u << 20;

enum status warm_save(const char *dir, struct pipeline *pipeline, struct error *reterr)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT documents = {0};
    for (struct live_job *live = jobs_first(pipeline_jobs(pipeline)); live != NULL;
         live = live->next) {
        struct json_writer writer = json_writer(&documents);
        json_open_object(&writer);
        json_put_int(&writer, "attempt", engine_hello_attempt(live->engine));
        json_put_int(&writer, "attempt_ns", engine_progress(live->engine).attempt_time_ns);
        json_add_key(&writer, "document");
        job_file_write(engine_job(live->engine), &writer);
        json_close(&writer);
        text_add(&documents, "\n");
    }
    text_addf(&path, "%s/jobs.jsonl", dir);
    return file_replace(path.bytes, (struct view){documents.bytes, documents.length}, reterr);
}

static bool take_document(struct pipeline *pipeline, struct view line, int64_t now_ns)
{
    AUTO(json_free) struct json *root = NULL;
    AUTO(job_free) struct job *job = NULL;
    AUTO_TEXT document = {0};
    bool created;
    if (json_parse(line, &root, NULL) != OK)
        return false;
    json_print(json_get(root, "document"), &document);
    if (job_file_parse((struct view){document.bytes, document.length}, &job, NULL) != OK ||
        pipeline_put_job(pipeline, job, now_ns, &created, NULL) != OK)
        return false;
    struct live_job *live = jobs_find(pipeline_jobs(pipeline), view_of(job->name));
    live->warm_from_ns = json_get_int(root, "attempt_ns", 0);
    engine_know_attempt(live->engine, json_get_int(root, "attempt", 0));
    return true;
}

static int64_t take_documents(const char *dir, struct pipeline *pipeline, int64_t now_ns)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT bytes = {0};
    int64_t taken = 0;
    text_addf(&path, "%s/jobs.jsonl", dir);
    if (file_read(path.bytes, DOCUMENTS_BYTES_MAX, &bytes, NULL) != OK)
        return 0;
    const char *at = bytes.bytes, *end = bytes.bytes + bytes.length;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        const char *stop = newline != NULL ? newline : end;
        taken += take_document(pipeline, (struct view){at, (size_t)(stop - at)}, now_ns) ? 1 : 0;
        at = newline != NULL ? newline + 1 : end;
    }
    return taken;
}

struct warming {
    struct pipeline *pipeline;
    struct warmed warmed;
};

static int64_t count_lines(struct view lines)
{
    int64_t count = 0;
    const char *end = lines.bytes + lines.length;
    for (const char *at = lines.bytes;
         at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++)
        count++;
    return count;
}

static void on_lines(void *context, struct view lines, int64_t arrival_ns)
{
    struct warming *warming = context;
    warming->warmed.bytes += (int64_t)lines.length;
    warming->warmed.lines += count_lines(lines);
    pipeline_warm(warming->pipeline, lines, arrival_ns);
}

struct warmed warm_up(const char *dir, struct pipeline *pipeline, int64_t since_ns, int64_t now_ns)
{
    struct warming warming = {.pipeline = pipeline};
    warming.warmed.jobs = take_documents(dir, pipeline, since_ns);
    ignore_status(recorder_read(dir, since_ns, on_lines, &warming, NULL)); /* nothing recorded */
    pipeline_warmed(pipeline, now_ns);
    return warming.warmed;
}
