/* Reads a recording block by block, feeds the engine in the recording's own time and prints what it
 * says. The end of the input is never evidence: nothing is advanced or flushed there. */
#include "controller/cli/cmd_detect.h"

#include "controller/base/json.h"
#include "controller/cli/job_document.h"
#include "controller/cli/options.h"
#include "controller/ingest/lineproto.h"
#include "controller/io/compress.h"
#include "controller/sys/file.h"
#include "detectors/engine.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

enum { BAD_LINES_SHOWN = 5, RECORD_BYTES_MAX = 256 << 20 };

struct detection {
    struct engine *engine;
    bool explain;
    struct text line; /* reused for every verdict */
    int64_t bad_lines;
    int64_t first_bad[BAD_LINES_SHOWN];
    const char *first_cause[BAD_LINES_SHOWN];
    int64_t foreign_samples; /* of another job in the same recording */
    bool write_failed;
};

/* Another job's lines in the same recording: its ranks are not this job's. */
static bool is_of_job(const struct detection *detection, const struct sample *sample)
{
    return sample->job.length == 0 || view_equals(sample->job, engine_job(detection->engine)->name);
}

static void print_verdicts(struct detection *detection)
{
    struct verdict verdict;

    while (engine_next(detection->engine, &verdict)) {
        struct json_writer writer;

        text_clear(&detection->line);
        writer = json_writer(&detection->line);
        verdict_write(&verdict, &writer);
        text_add(&detection->line, "\n");
        if (fwrite(detection->line.bytes, 1, detection->line.length, stdout) !=
            detection->line.length)
            detection->write_failed = true;
        if (detection->explain) {
            text_clear(&detection->line);
            engine_explain(detection->engine, &verdict, &detection->line);
            (void)fwrite(detection->line.bytes, 1, detection->line.length, stderr);
        }
        verdict_done(&verdict);
    }
}

static void on_sample(void *context, const struct sample *sample)
{
    struct detection *detection = context;

    if (!is_of_job(detection, sample)) {
        detection->foreign_samples++;
        return;
    }
    engine_feed(detection->engine, sample);
    print_verdicts(detection);
}

static void on_error(void *context, int64_t line, const char *cause)
{
    struct detection *detection = context;

    if (detection->bad_lines < BAD_LINES_SHOWN) {
        detection->first_bad[detection->bad_lines] = line;
        detection->first_cause[detection->bad_lines] = cause;
    }
    detection->bad_lines++;
}

static enum status read_recording(struct detection *detection, const char *path,
                                  struct error *reterr)
{
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct lineproto parser = {.precision = PRECISION_NS,
                               .on_sample = on_sample,
                               .on_error = on_error,
                               .context = detection};
    struct view block;

    TRY(line_reader_open(path, &reader, reterr));
    for (;;) {
        TRY(line_reader_next(reader, &block, reterr));
        if (block.length == 0)
            return OK;
        parser.first_line = parser.line + 1;
        lineproto_parse(&parser, block);
    }
}

static int is_record(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

static enum status add_record(struct flight *flight, const char *path, struct error *reterr)
{
    AUTO_TEXT bytes = {0};

    TRY(file_read(path, RECORD_BYTES_MAX, &bytes, reterr));
    return flight_add(flight, path, (struct view){bytes.bytes, bytes.length}, reterr);
}

/* All files of a folder in the order of their names, or one file. What is no record is left out
 * with a word: logs and dumps lie in one folder. */
static enum status read_flight(const char *path, struct flight *flight, struct error *reterr)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_record, alphasort);
    int taken = 0;

    if (count < 0)
        return add_record(flight, path, reterr);
    for (int i = 0; i < count; i++) {
        AUTO_TEXT file = {0};
        struct error error = {.status = OK};
        text_addf(&file, "%s/%s", path, entries[i]->d_name);
        if (add_record(flight, file.bytes, &error) == OK)
            taken++;
        else
            (void)fprintf(stderr, "left out: %s\n", error.message);
    }
    for (int i = 0; i < count; i++)
        xfree(entries[i]);
    xfree(entries);
    return taken > 0 ? OK : error_set(reterr, ERR_INVALID, "%s: no record in it", path);
}

static void report(const struct detection *detection)
{
    struct engine_counts counts = engine_counts(detection->engine);

    for (int64_t i = 0; i < detection->bad_lines && i < BAD_LINES_SHOWN; i++)
        (void)fprintf(stderr, "line %lld: %s\n", (long long)detection->first_bad[i],
                      detection->first_cause[i]);
    if (detection->bad_lines > 0)
        (void)fprintf(stderr, "%lld bad lines were left out\n", (long long)detection->bad_lines);
    if (detection->foreign_samples > 0)
        (void)fprintf(stderr, "%lld samples of other jobs were left out\n",
                      (long long)detection->foreign_samples);
    if (counts.wrong_rank + counts.wrong_host + counts.not_finite > 0)
        (void)fprintf(stderr,
                      "left out: %lld of ranks outside the world, %lld from a host that is not the "
                      "rank's, %lld without a usable step or step_ms\n",
                      (long long)counts.wrong_rank, (long long)counts.wrong_host,
                      (long long)counts.not_finite);
}

static int fail(const struct error *error)
{
    (void)fprintf(stderr, "broom detect: %s\n", error->message);
    return status_exit_code(error->status);
}

static enum status read_history(const char *path, struct history **ret_history,
                                struct error *reterr)
{
    AUTO_TEXT document = {0};
    struct error error = {.status = OK};

    TRY(file_read(path, RECORD_BYTES_MAX, &document, reterr));
    enum status status = history_parse((struct view){document.bytes, document.length}, ret_history,
                                       &error);
    return status == OK ? OK : error_set(reterr, status, "%s: %s", path, error.message);
}

struct paths {
    const char *job, *flight, *history, *recording; /* all but job may be NULL */
};

static int run(struct detection *detection, const struct engine_params *params,
               const struct paths *paths)
{
    AUTO(job_free) struct job *job = NULL;
    AUTO(history_free) struct history *history = NULL;
    AUTO(flight_free) struct flight *flight = flight_new();
    struct error error = {.status = OK};
    enum status status = OK;

    if (job_document_load(paths->job, &job, &error) != OK)
        return fail(&error);
    if (paths->flight != NULL && read_flight(paths->flight, flight, &error) != OK)
        return fail(&error);
    if (paths->history != NULL && read_history(paths->history, &history, &error) != OK)
        return fail(&error);
    detection->engine = engine_new(job, params);
    if (history != NULL)
        engine_take_history(detection->engine, history);
    if (paths->flight != NULL)
        engine_take_flight(detection->engine, flight);
    if (paths->recording != NULL)
        status = read_recording(detection, paths->recording, &error);
    engine_tell_flight(detection->engine);
    print_verdicts(detection);
    report(detection);
    if (status != OK) {
        error_prefix(&error, "%s", paths->recording);
        return fail(&error);
    }
    if (fflush(stdout) != 0 || detection->write_failed) {
        (void)fprintf(stderr, "broom detect: writing the verdicts failed\n");
        return EXIT_FAILED;
    }
    return EXIT_DONE;
}

int cmd_detect(int argc, char **argv)
{
    struct engine_params params = engine_params_default();
    struct detection detection = {0};
    struct paths paths = {.job = NULL};
    bool no_detect = false;
    struct arguments arguments;
    const struct option_row rows[] = {
        {"job", 0, OPTION_TEXT, "JOB.json", "the job file: ranks, trays, racks, parallel sizes",
         &paths.job, NULL},
        {"flight-recorder", 0, OPTION_TEXT, "DIR",
         "records of a hang: flight recorder dumps, NCCL RAS reports, watchdog lines",
         &paths.flight, NULL},
        {"history", 0, OPTION_TEXT, "FILE",
         "earlier faults of GPUs, trays and racks (JSON), a weak prior", &paths.history, NULL},
        {"explain", 0, OPTION_FLAG, NULL, "the numbers behind each verdict, in words, on stderr",
         &detection.explain, NULL},
        {"budget", 0, OPTION_NUMBER, "NUMBER", "false evictions allowed in 10,000 GPU-months",
         &params.false_evictions_per_10k_gpu_months, NULL},
        {"no-detect", 0, OPTION_FLAG, NULL, "read everything, say nothing", &no_detect, NULL},
    };
    const struct usage usage = {
        .command = "detect",
        .arguments = "[RECORDING]",
        .summary = "print the verdicts of a recording, one JSON line each",
        .details =
            "RECORDING is Influx line protocol in arrival order (.lp, .lp.gz, .lp.zst; - is "
            "stdin).\n"
            "Time is the recording's alone: two runs print the same bytes.\n"
            "With --flight-recorder DIR (a folder or one file) a hang names who never came to "
            "the\ncollective; without a RECORDING the records are judged alone. Files of "
            "dumps end in their\nrank: _dump_12.json, nccl_trace_rank_12.\n"
            "--history FILE: {\"faults\": [{\"node\": \"n1\", \"gpu\": 2, \"count\": 3}, "
            "{\"rack\": \"r1\", \"count\": 1}]}.\n",
        .examples = "  broom detect --job job.json recording.lp.gz\n"
                    "  broom detect --job job.json --explain recording.lp.zst > verdicts.jsonl\n"
                    "  broom detect --job job.json --flight-recorder dumps/\n",
        .least = 0,
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
    };
    int code = options_parse(&usage, argc, argv, stdout, stderr, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (paths.job == NULL) {
        (void)fprintf(stderr, "broom detect: say which job: broom detect --job JOB.json RECORDING\n"
                              "try 'broom help detect'\n");
        return EXIT_USAGE;
    }
    paths.recording = arguments.count > 0 ? arguments.items[0] : NULL;
    if (paths.recording == NULL && paths.flight == NULL) {
        (void)fprintf(stderr, "broom detect: a RECORDING or --flight-recorder DIR is missing\n"
                              "try 'broom help detect'\n");
        return EXIT_USAGE;
    }
    params.enabled = !no_detect;
    code = run(&detection, &params, &paths);
    engine_free(detection.engine);
    text_done(&detection.line);
    return code;
}
