/* Builds the bundle file by file: each is made, summed, written and let go, so that only the
 * largest of them has to fit into memory. Rows are put in order here, whatever order the server
 * gave.
 */
#include "controller/cli/export.h"

#include "controller/base/mem.h"
#include "controller/cli/cli.h"
#include "controller/cli/export_raw.h"
#include "controller/cli/incident_view.h"
#include "controller/cli/plot.h"
#include "controller/cli/report.h"
#include "controller/cli/table.h"
#include "controller/cli/tar.h"
#include "controller/io/digest.h"
#include "controller/topology/job_file.h"

#include <stdlib.h>
#include <string.h>

struct bundle {
    const struct json *answer;
    struct incident_view view;
    char folder[40]; /* "INC-3" */
    int64_t mtime_s;
    export_sink_fn *sink;
    void *context;
    struct text sums;  /* SHA256SUMS so far */
    struct text files; /* the manifest's list so far */
    struct json_writer list;
    struct job *job; /* NULL when its document is missing */
    const char *plots[8];
    size_t plot_count;
    struct text *problems;
};

static enum status put_entry(struct bundle *bundle, const char *name, const struct text *bytes,
                             struct error *reterr)
{
    char path[TAR_NAME_BYTES];
    AUTO_TEXT block = {0};
    if (snprintf(path, sizeof path, "%s/%s", bundle->folder, name) >= (int)sizeof path)
        return error_set(reterr, ERR_INVALID, "the name '%s' is too long for an archive", name);
    tar_add(&block, path, (struct view){bytes->bytes, bytes->length}, bundle->mtime_s);
    return bundle->sink(bundle->context, (struct view){block.bytes, block.length}, reterr);
}

static enum status put_file(struct bundle *bundle, const char *name, const struct text *bytes,
                            struct error *reterr)
{
    char hex[DIGEST_HEX_BYTES];
    TRY(digest_sha256((struct view){bytes->bytes, bytes->length}, hex, reterr));
    text_addf(&bundle->sums, "%s  %s\n", hex, name);
    json_open_object(&bundle->list);
    json_put_string(&bundle->list, "name", name);
    json_put_int(&bundle->list, "bytes", (int64_t)bytes->length);
    json_put_string(&bundle->list, "sha256", hex);
    json_close(&bundle->list);
    return put_entry(bundle, name, bytes, reterr);
}

static enum status put_lines(struct bundle *bundle, const char *name, const char *member,
                             struct error *reterr)
{
    AUTO_TEXT out = {0};
    const struct json *rows = json_get(bundle->answer, member);
    for (const struct json *row = json_first(rows); row != NULL; row = json_next(row)) {
        json_print(row, &out);
        text_add(&out, "\n");
    }
    return put_file(bundle, name, &out, reterr);
}

static void add_csv_value(struct text *out, const struct json *value, bool is_time, bool first)
{
    AUTO_TEXT cell = {0};
    if (is_time)
        text_add_time(&cell, json_int(value, 0));
    else if (json_kind(value) == JSON_STRING)
        text_add(&cell, json_string(value, ""));
    else if (json_kind(value) != JSON_NULL)
        json_print(value, &cell);
    csv_add_cell(out, cell.bytes != NULL ? cell.bytes : "", first);
}

/* Members of rows as CSV; time_ns becomes a UTC time. */
static enum status put_csv(struct bundle *bundle, const char *name, const char *member,
                           const char *const *columns, size_t column_count, struct error *reterr)
{
    AUTO_TEXT out = {0};
    for (size_t c = 0; c < column_count; c++)
        csv_add_cell(&out, strcmp(columns[c], "time_ns") == 0 ? "time" : columns[c], c == 0);
    text_add(&out, "\n");
    const struct json *rows = json_get(bundle->answer, member);
    for (const struct json *row = json_first(rows); row != NULL; row = json_next(row)) {
        for (size_t c = 0; c < column_count; c++)
            add_csv_value(&out, json_get(row, columns[c]), strcmp(columns[c], "time_ns") == 0,
                          c == 0);
        text_add(&out, "\n");
    }
    return put_file(bundle, name, &out, reterr);
}

static enum status put_pretty(struct bundle *bundle, const char *name, const struct json *json,
                              struct error *reterr)
{
    AUTO_TEXT out = {0};
    cli_add_pretty_json(&out, json);
    text_add(&out, "\n");
    return put_file(bundle, name, &out, reterr);
}

static const struct json *job_document(const struct json *answer)
{
    const struct json *job = json_get(answer, "job");
    const struct json *document = json_get(job, "document");
    return document != NULL ? document : job;
}

/* Samples and plots. */

static bool has_number(const struct json *numbers, int32_t number)
{
    for (const struct json *item = json_first(numbers); item != NULL; item = json_next(item))
        if (json_int(item, -1) == number)
            return true;
    return false;
}

static int32_t count_ranks(const struct bundle *bundle, const struct raw_metric *metric)
{
    int32_t count = bundle->job != NULL ? bundle->job->world_size : 0;
    for (size_t i = 0; i < metric->count; i++)
        if (metric->points[i].rank >= count)
            count = metric->points[i].rank + 1;
    return count;
}

static int32_t stage_of(const struct bundle *bundle, int32_t rank)
{
    return bundle->job != NULL && rank < bundle->job->world_size
               ? job_place_of(bundle->job, rank).stage
               : 0;
}

/* Peers have the same work: the stages that the suspects are in. Where those are all suspects,
 * every other rank stands in. */
static const char *assign_roles(const struct bundle *bundle, enum plot_role *roles, int32_t count,
                                size_t *ret_peers)
{
    AUTO_FREE bool *stages = xcalloc((size_t)count + 1, sizeof *stages);
    for (int32_t rank = 0; rank < count; rank++) {
        if (!has_number(bundle->view.ranks, rank))
            continue;
        roles[rank] = PLOT_SUSPECT;
        stages[stage_of(bundle, rank)] = true;
    }
    *ret_peers = 0;
    for (int pass = 0; pass < 2 && *ret_peers == 0; pass++) {
        for (int32_t rank = 0; rank < count; rank++) {
            if (roles[rank] == PLOT_SUSPECT || (pass == 0 && !stages[stage_of(bundle, rank)]))
                continue;
            roles[rank] = PLOT_PEER;
            ++*ret_peers;
        }
        if (*ret_peers > 0)
            return pass == 0 ? "peers" : "other ranks";
    }
    return "peers";
}

static void name_suspects(const struct bundle *bundle, struct text *out)
{
    const struct incident_view *view = &bundle->view;
    size_t ranks = json_size(view->ranks);
    if (ranks == 1)
        text_addf(out, "rank %lld on ", (long long)json_int(json_first(view->ranks), -1));
    else
        text_addf(out, "%zu ranks on ", ranks);
    incident_view_add_names(view->nodes, 2, out);
}

static const struct {
    const char *metric, *file, *title, *subtitle;
} plot_rows[] = {
    {"compute_ms", "plots/compute_ms.svg", "own compute time",
     "The slow rank computes longer than those that have the same work."},
    {"allreduce_ms", "plots/allreduce_ms.svg",
     "time inside the gradient all-reduce, waiting included",
     "The slow rank waits least: the others wait for it."},
    {"step_ms", "plots/step_ms.svg", "step time",
     "All ranks of a synchronous job share it: this is what the job lost."},
};

static bool draw(const struct bundle *bundle, const struct raw_metric *metric, size_t index,
                 struct text *svg)
{
    const struct incident_view *view = &bundle->view;
    const struct plot_mark marks[] = {{"fault", view->fault_ns, "#b91c1c"},
                                      {"detected", view->detected_ns, "#6d28d9"},
                                      {"acted", view->acted_ns, "#0f766e"},
                                      {"training again", view->mitigated_ns, "#15803d"}};
    int32_t rank_count = count_ranks(bundle, metric);
    size_t peers;
    AUTO_FREE enum plot_role *roles = xcalloc((size_t)rank_count + 1, sizeof *roles);
    AUTO_TEXT title = {0};
    AUTO_TEXT suspects = {0};
    AUTO_TEXT peer_name = {0};
    const char *noun = assign_roles(bundle, roles, rank_count, &peers);
    text_addf(&title, "%s: %s", view->ref, plot_rows[index].title);
    name_suspects(bundle, &suspects);
    text_addf(&peer_name, "%zu %s", peers, noun);
    bool is_slow = strcmp(view->kind, "slow") == 0;
    struct plot plot = {
        .title = title.bytes,
        .subtitle = is_slow ? plot_rows[index].subtitle
                            : "Of the ranks at fault and of the others, round the fault.",
        .suspects = suspects.bytes,
        .peers = peer_name.bytes,
        .unit = "ms",
        .metric = metric,
        .roles = roles,
        .rank_count = rank_count,
        .marks = marks,
        .mark_count = ARRAY_LEN(marks),
        .bad_from_ns = view->fault_ns,
        .bad_to_ns = view->mitigated_ns};
    return plot_write(&plot, svg);
}

static enum status put_plot(struct bundle *bundle, const struct raw_metric *metric,
                            struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(plot_rows); i++) {
        AUTO_TEXT svg = {0};
        if (strcmp(plot_rows[i].metric, metric->name) != 0 || !draw(bundle, metric, i, &svg))
            continue;
        bundle->plots[bundle->plot_count++] = plot_rows[i].file;
        TRY(put_file(bundle, plot_rows[i].file, &svg, reterr));
    }
    return OK;
}

static enum status put_metric(struct bundle *bundle, const struct raw_metric *metric,
                              struct error *reterr)
{
    char name[TAR_NAME_BYTES];
    AUTO_TEXT csv = {0};
    snprintf(name, sizeof name, "raw/%.40s.csv", metric->name);
    raw_metric_write_csv(metric, &csv);
    TRY(put_file(bundle, name, &csv, reterr));
    return put_plot(bundle, metric, reterr);
}

static enum status put_samples(struct bundle *bundle, const struct json *windows,
                               struct error *reterr)
{
    size_t count;
    AUTO_FREE const char **names = raw_metric_names(windows, &count);
    if (count == 0)
        text_add(bundle->problems,
                 "it holds no samples: they are kept some minutes after the fault, so export again "
                 "later; a job that ended before leaves none\n");
    for (size_t i = 0; i < count; i++) {
        struct raw_metric metric = raw_metric_load(windows, names[i], bundle->problems);
        enum status status = put_metric(bundle, &metric, reterr);
        raw_metric_done(&metric);
        TRY(status);
    }
    return OK;
}

/* Words and tables. */

static enum status put_words(struct bundle *bundle, struct error *reterr)
{
    AUTO_TEXT readme = {0};
    AUTO_TEXT report = {0};
    AUTO_TEXT timeline = {0};
    report_write_readme(bundle->folder, &readme);
    report_write(bundle->answer, bundle->plots, bundle->plot_count,
                 bundle->problems->length > 0 ? bundle->problems->bytes : "", &report);
    text_addf(&timeline, "# Timeline of %s\n\n", bundle->folder);
    report_write_timeline(json_get(bundle->answer, "timeline"), &timeline);
    TRY(put_file(bundle, "README.txt", &readme, reterr));
    TRY(put_file(bundle, "report.md", &report, reterr));
    return put_file(bundle, "timeline.md", &timeline, reterr);
}

static enum status put_tables(struct bundle *bundle, struct error *reterr)
{
    static const char *const timeline[] = {"time_ns", "seq", "kind", "actor", "text", "details"};
    static const char *const events[] = {"time_ns", "kind",    "host",    "gpu",   "rack",
                                         "rail",    "code",    "subcode", "tray",  "pci",
                                         "uuid",    "message", "job",     "source"};
    TRY(put_csv(bundle, "timeline.csv", "timeline", timeline, ARRAY_LEN(timeline), reterr));
    TRY(put_csv(bundle, "events.csv", "events", events, ARRAY_LEN(events), reterr));
    TRY(put_lines(bundle, "decisions.jsonl", "decisions", reterr));
    TRY(put_lines(bundle, "actions.jsonl", "actions", reterr));
    TRY(put_lines(bundle, "verdicts.jsonl", "verdicts", reterr));
    TRY(put_pretty(bundle, "incident.json", bundle->view.record, reterr));
    return put_pretty(bundle, "topology.json", job_document(bundle->answer), reterr);
}

static enum status put_manifest(struct bundle *bundle, struct error *reterr)
{
    char hex[DIGEST_HEX_BYTES];
    AUTO_TEXT manifest = {0};
    struct json_writer writer = json_writer(&manifest);
    json_close(&bundle->list);
    json_open_object(&writer);
    json_put_string(&writer, "format", "broom-export/1");
    json_put_string(&writer, "tool", "broom " BROOM_VERSION);
    json_put_string(&writer, "incident", bundle->folder);
    json_put_int(&writer, "version", json_get_int(bundle->view.record, "version", 0));
    json_put_string(&writer, "policy_hash", bundle->view.policy_hash);
    json_add_key(&writer, "files");
    json_add_raw(&writer, (struct view){bundle->files.bytes, bundle->files.length});
    json_close(&writer);
    text_add(&manifest, "\n");
    TRY(digest_sha256((struct view){manifest.bytes, manifest.length}, hex, reterr));
    text_addf(&bundle->sums, "%s  manifest.json\n", hex);
    TRY(put_entry(bundle, "manifest.json", &manifest, reterr));
    return put_entry(bundle, "SHA256SUMS", &bundle->sums, reterr);
}

static enum status put_all(struct bundle *bundle, const struct json *windows, struct error *reterr)
{
    AUTO_TEXT end = {0};
    TRY(put_samples(bundle, windows,
                    reterr)); /* first: the report names the plots and what could not be read */
    TRY(put_words(bundle, reterr));
    TRY(put_tables(bundle, reterr));
    TRY(put_manifest(bundle, reterr));
    tar_end(&end);
    return bundle->sink(bundle->context, (struct view){end.bytes, end.length}, reterr);
}

/* The document of the job's own time; without it plots take all ranks for peers. */
static struct job *parse_job(const struct json *answer, struct text *problems)
{
    struct job *job = NULL;
    struct error error = {0};
    AUTO_TEXT document = {0};
    const struct json *json = job_document(answer);
    if (json_kind(json) != JSON_OBJECT)
        return NULL;
    json_print(json, &document);
    if (job_file_parse((struct view){document.bytes, document.length}, &job, &error) != OK)
        text_addf(problems, "the layout of the job could not be read: %s\n", error.message);
    return job;
}

/* Rows in the order of their time, then of their number, then of their key. */

static int by_time(const void *a, const void *b)
{
    const struct json *left = *(const struct json *const *)a;
    const struct json *right = *(const struct json *const *)b;
    static const char *const numbers[] = {"time_ns", "seq"};
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        int64_t x = json_get_int(left, numbers[i], 0);
        int64_t y = json_get_int(right, numbers[i], 0);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return strcmp(json_get_string(left, "key", ""), json_get_string(right, "key", ""));
}

static const struct json **sorted_rows(const struct json *array, size_t *ret_count)
{
    const struct json **rows = xcalloc(json_size(array) + 1, sizeof(const struct json *));
    size_t count = 0;
    for (const struct json *row = json_first(array); row != NULL; row = json_next(row))
        rows[count++] = row;
    qsort(rows, count, sizeof(const struct json *), by_time);
    *ret_count = count;
    return rows;
}

/* The answer with its rows in order and without the samples, which are read once, from the
 * original. */
static enum status put_in_order(const struct json *answer, struct json **ret_ordered,
                                struct error *reterr)
{
    static const char *const lists[] = {"timeline", "decisions", "actions", "verdicts", "events"};
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    json_open_object(&writer);
    for (const struct json *member = json_first(answer); member != NULL;
         member = json_next(member)) {
        if (strcmp(json_key(member), "incident") != 0 && strcmp(json_key(member), "job") != 0)
            continue;
        AUTO_TEXT copy = {0};
        json_print(member, &copy);
        json_add_key(&writer, json_key(member));
        json_add_raw(&writer, (struct view){copy.bytes, copy.length});
    }
    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        size_t count;
        AUTO_FREE const struct json **rows = sorted_rows(json_get(answer, lists[i]), &count);
        json_add_key(&writer, lists[i]);
        json_open_array(&writer);
        for (size_t r = 0; r < count; r++) {
            AUTO_TEXT copy = {0};
            json_print(rows[r], &copy);
            json_add_raw(&writer, (struct view){copy.bytes, copy.length});
        }
        json_close(&writer);
    }
    json_close(&writer);
    return json_parse((struct view){text.bytes, text.length}, ret_ordered, reterr);
}

enum status export_write(const struct json *answer, export_sink_fn *sink, void *context,
                         struct text *problems, struct error *reterr)
{
    const struct json *incident = json_get(answer, "incident");
    if (json_kind(incident) != JSON_OBJECT ||
        strncmp(json_get_string(incident, "ref", ""), "INC-", 4) != 0)
        return error_set(reterr, ERR_INVALID, "the answer holds no incident");
    AUTO(json_free) struct json *ordered = NULL;
    TRY(put_in_order(answer, &ordered, reterr));
    incident = json_get(ordered, "incident");
    struct bundle bundle = {.answer = ordered,
                            .view = incident_view_of(incident),
                            .sink = sink,
                            .context = context,
                            .problems = problems,
                            .mtime_s = json_get_int(incident, "time_ns", 0) / 1000000000};
    text_copy(bundle.folder, sizeof bundle.folder, bundle.view.ref);
    bundle.list = json_writer(&bundle.files);
    json_open_array(&bundle.list);
    bundle.job = parse_job(ordered, problems);
    enum status status = put_all(&bundle, json_get(answer, "raw_windows"), reterr);
    job_free(bundle.job);
    text_done(&bundle.sums);
    text_done(&bundle.files);
    return status;
}
