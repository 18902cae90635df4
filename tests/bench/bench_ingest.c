/* What taking in samples costs, per CPU second on one core, without HTTP (ingest_http.py measures
 * that): plain      the same lines split with memchr and read with strtod, nothing kept: what a
 * straightforward parser costs parse      our parser, nothing kept +series    the job registry and
 * the ring of recent samples +recorder  and the compressed recording on disk +detect    and the
 * detection engine Then resident memory, and the time from the last sample of a step to the
 * engine's answer.
 *
 * usage: bench_ingest [RANKS] [STEPS]      default 10368 ranks, 60 steps
 */
#include "controller/ingest/lineproto.h"
#include "controller/io/recorder.h"
#include "controller/jobs.h"
#include "controller/sys/clock.h"
#include "detectors/stats/gsl.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static const int64_t START_NS = INT64_C(1780000000000000000);
static const int64_t STEP_NS = INT64_C(2000000000);
static const int64_t NS_PER_S = 1000000000;

enum { FIELDS_A_LINE = 8 };

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53 - 0.5;
}

/* One step of all ranks, as senders write it. */
static void make_step(struct text *out, int32_t ranks, int64_t step, uint64_t *state)
{
    for (int32_t rank = 0; rank < ranks; rank++) {
        double compute = 1600 * (1 + 0.01 * noise(state));
        text_addf(out,
                  "step,job=bench/ingest,rank=%d "
                  "step=%lldi,step_ms=%.2f,allreduce_ms=%.2f,compute_ms=%.2f,sm=%.3f,mem=%.3f,"
                  "tokens=%di,grad_norm=%.4f %lld\n",
                  rank, (long long)step, 2000 + 5 * noise(state), 2000 - compute, compute,
                  0.9 + 0.01 * noise(state), 0.75, 8192, 1 + 0.1 * noise(state),
                  (long long)(START_NS + step * STEP_NS + rank));
    }
}

/* ---- the plain way ---- */

static int64_t parse_plain(struct view bytes)
{
    int64_t fields = 0;
    const char *end = bytes.bytes + bytes.length;
    for (const char *line = bytes.bytes; line < end;) {
        const char *newline = memchr(line, '\n', (size_t)(end - line));
        const char *at = memchr(line, ' ', (size_t)(newline - line));
        while (at != NULL && at < newline) {
            const char *equals = memchr(at, '=', (size_t)(newline - at));
            if (equals == NULL)
                break;
            char *stop;
            if (strtod(equals + 1, &stop) > -1e300)
                fields++;
            at = stop;
        }
        line = newline + 1;
    }
    return fields;
}

/* ---- our way ---- */

struct bench {
    struct jobs *jobs; /* NULL: parse only */
    int64_t samples;
};

static void on_sample(void *context, const struct sample *sample)
{
    struct bench *bench = context;
    bench->samples++;
    if (bench->jobs != NULL && jobs_take(bench->jobs, sample, sample->time_ns) != NULL)
        abort(); /* the bench's own lines are good */
}

static struct jobs *make_jobs(int32_t ranks, bool detect)
{
    struct jobs_limits limits = {.memory_bytes = INT64_C(4) << 30,
                                 .series_bytes_per_job = 256 << 20,
                                 .jobs = 4,
                                 .ranks = JOB_RANKS_MAX};
    struct engine_params params = engine_params_default();
    params.enabled = detect;
    struct jobs *jobs = jobs_new(&limits, &params);
    AUTO(job_free) struct job *job = job_new("bench/ingest", ranks);
    bool created;
    for (int32_t rank = 0; rank < ranks; rank++) {
        AUTO_TEXT rack = {0};
        AUTO_TEXT node = {0};
        text_addf(&rack, "rack-%d", rank / 64);
        text_addf(&node, "node-%d", rank / 4);
        job->ranks[rank].tray = rank % 4 == 0
                                    ? job_intern_tray(job, node.bytes,
                                                      job_intern_rack(job, rack.bytes, NULL))
                                    : job->ranks[rank - 1].tray;
        job->ranks[rank].gpu = job->ranks[rank].rail = (int16_t)(rank % 4);
    }
    job->compute = COMPUTE_KERNEL;
    if (jobs_put(jobs, job, START_NS, &created, NULL) != OK)
        abort();
    return jobs;
}

static int64_t resident_mib(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
}

static void print_row(const char *name, int64_t fields, size_t bytes, int64_t cpu_ns,
                      double plain_rate)
{
    double seconds = (double)cpu_ns / (double)NS_PER_S;
    double rate = (double)fields / seconds / 1e6;
    printf("%-12s%10.2f%10.1f%10.2f\n", name, rate, (double)bytes / seconds / 1e6,
           plain_rate > 0 ? rate / plain_rate : 1.0);
}

static void clear_folder(const char *dir)
{
    struct dirent **entries = NULL;
    int count = scandir(dir, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        AUTO_TEXT path = {0};
        text_addf(&path, "%s/%s", dir, entries[i]->d_name);
        unlink(path.bytes);
        xfree(entries[i]);
    }
    xfree(entries);
    rmdir(dir);
}

struct variant {
    const char *name;
    bool keeps, records, detects;
};

/* Feeds all steps; the slowest time from the end of a step's bytes to all verdicts taken is
 * *ret_latency_ns. */
static int64_t run_variant(const struct variant *variant, const struct text *steps, int32_t ranks,
                           int32_t count, int64_t *ret_latency_ns)
{
    char dir[] = "/tmp/broom-bench-XXXXXX";
    struct recorder *recorder = NULL;
    struct bench bench = {.jobs = variant->keeps ? make_jobs(ranks, variant->detects) : NULL};
    if (mkdtemp(dir) == NULL ||
        (variant->records && recorder_open(dir, INT64_C(8) << 30, &recorder, NULL) != OK))
        abort();
    int64_t began_ns = clock_cpu_ns();
    *ret_latency_ns = 0;
    for (int32_t step = 0; step < count; step++) {
        struct lineproto parser = {.on_sample = on_sample, .context = &bench};
        struct view all = {steps[step].bytes, steps[step].length};
        size_t last = all.length;
        while (last > 1 && all.bytes[last - 2] != '\n')
            last--;
        lineproto_parse(&parser, (struct view){all.bytes, last - 1});
        if (recorder != NULL)
            recorder_add(recorder, all, 1, START_NS);
        int64_t last_ns = clock_read().monotonic_ns;
        lineproto_parse(&parser, (struct view){all.bytes + last - 1, all.length - last + 1});
        struct verdict verdict;
        while (bench.jobs != NULL && engine_next(jobs_first(bench.jobs)->engine, &verdict))
            verdict_done(&verdict);
        int64_t took_ns = clock_read().monotonic_ns - last_ns;
        *ret_latency_ns = took_ns > *ret_latency_ns ? took_ns : *ret_latency_ns;
    }
    if (recorder != NULL)
        recorder_flush(recorder);
    int64_t cpu_ns = clock_cpu_ns() - began_ns;
    if (bench.samples != (int64_t)ranks * count)
        abort();
    recorder_free(recorder);
    jobs_free(bench.jobs);
    clear_folder(dir);
    return cpu_ns;
}

int main(int argc, char **argv)
{
    static const struct variant variants[] = {{"parse", false, false, false},
                                              {"+series", true, false, false},
                                              {"+recorder", true, true, false},
                                              {"+detect", true, true, true}};
    stats_init();
    int32_t ranks = argc > 1 ? (int32_t)strtol(argv[1], NULL, 10) : 10368;
    int32_t count = argc > 2 ? (int32_t)strtol(argv[2], NULL, 10) : 60;
    struct text *steps = xcalloc((size_t)count, sizeof *steps);
    size_t bytes = 0;
    uint64_t state = 1;
    for (int32_t step = 0; step < count; step++) {
        make_step(&steps[step], ranks, step, &state);
        bytes += steps[step].length;
    }
    int64_t fields = (int64_t)ranks * count * FIELDS_A_LINE;
    int64_t base_mib = resident_mib();
    printf("%d ranks, %d steps, %d fields a line, %.0f MB\n\n%-12s%10s%10s%10s\n", ranks, count,
           FIELDS_A_LINE, (double)bytes / 1e6, "", "Mfields/s", "MB/s", "x plain");
    int64_t began_ns = clock_cpu_ns();
    for (int32_t step = 0; step < count; step++)
        if (parse_plain((struct view){steps[step].bytes, steps[step].length}) !=
            (int64_t)ranks * FIELDS_A_LINE)
            abort();
    int64_t plain_ns = clock_cpu_ns() - began_ns;
    double plain_rate = (double)fields / ((double)plain_ns / 1e9) / 1e6;
    print_row("plain", fields, bytes, plain_ns, 0);
    int64_t latency_ns = 0;
    for (size_t i = 0; i < ARRAY_LEN(variants); i++)
        print_row(variants[i].name, fields, bytes,
                  run_variant(&variants[i], steps, ranks, count, &latency_ns), plain_rate);
    printf("\nresident, without the lines themselves   %lld MiB\n",
           (long long)(resident_mib() - base_mib));
    printf("last sample of a step to its verdicts     %.1f ms at worst\n",
           (double)latency_ns / 1e6);
    for (int32_t step = 0; step < count; step++)
        text_done(&steps[step]);
    xfree(steps);
    return 0;
}
