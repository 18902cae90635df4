#include "controller/base/mem.h"
#include "controller/ingest/lineproto.h"
#include "controller/ingest/number.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
    struct sample sample; /* the last one; its strings only while the text lives */
    int samples;
    int64_t bad_line;
    char cause[128];
    int bad;
    struct lineproto_counts counts;
};

static void on_sample(void *context, const struct sample *sample)
{
    struct seen *seen = context;
    seen->sample = *sample;
    seen->samples++;
}

static void on_error(void *context, int64_t line, const char *cause)
{
    struct seen *seen = context;
    seen->bad++;
    seen->bad_line = line;
    text_copy(seen->cause, sizeof seen->cause, cause);
}

static struct seen parse_with(struct view bytes, enum precision precision, int64_t default_time_ns)
{
    struct seen seen = {0};
    struct lineproto parser = {.precision = precision,
                               .default_time_ns = default_time_ns,
                               .on_sample = on_sample,
                               .on_error = on_error,
                               .context = &seen};
    lineproto_parse(&parser, bytes);
    seen.counts = parser.counts;
    return seen;
}

static struct seen parse(const char *text)
{
    return parse_with(view_of(text), PRECISION_NS, 0);
}

static bool is_near(double a, double b)
{
    return fabs(a - b) < 1e-12;
}

TEST(a_step_line_gives_its_fields_tags_and_time)
{
    struct seen seen = parse(
        "step,job=default/llm,rank=17 step=7i,step_ms=120.25,sm=0.9,tokens=8192,extra=1 "
        "1780000005062874525\n");
    CU_ASSERT_EQUAL(seen.samples, 1);
    CU_ASSERT(view_equals(seen.sample.job, "default/llm"));
    CU_ASSERT_EQUAL(seen.sample.rank, 17);
    CU_ASSERT_EQUAL(seen.sample.time_ns, 1780000005062874525);
    CU_ASSERT(is_near(seen.sample.values[FIELD_STEP], 7));
    CU_ASSERT(is_near(seen.sample.values[FIELD_STEP_MS], 120.25));
    CU_ASSERT(is_near(seen.sample.values[FIELD_TOKENS], 8192));
    CU_ASSERT_FALSE(sample_has(&seen.sample, FIELD_MEM));
    CU_ASSERT_EQUAL(seen.counts.unknown_fields, 1);
    CU_ASSERT_EQUAL(seen.counts.fields, 5);
}

TEST(every_measurement_is_taken_with_its_strings)
{
    struct seen seen = parse("hello,job=j,rank=0 host=\"gb-1\",gpu=0,world=8,uuid=\"GPU-x\" 5\n");
    CU_ASSERT(view_equals(seen.sample.host, "gb-1") && view_equals(seen.sample.uuid, "GPU-x"));
    seen = parse("beat,job=j,rank=3 step=4,phase=\"allreduce\" 5\n");
    CU_ASSERT(view_equals(seen.sample.phase, "allreduce"));
    seen = parse("mark,job=j kind=\"checkpoint\",step=9,dur_ms=500 5\n");
    CU_ASSERT(view_equals(seen.sample.kind, "checkpoint") && seen.sample.rank == RANK_NONE);
    seen = parse("gpu,host=gb-1,gpu=2 power_w=900,temp_c=60 5\n");
    CU_ASSERT(view_equals(seen.sample.gpu, "2") && is_near(seen.sample.values[FIELD_POWER_W], 900));
    seen = parse(
        "event,host=gb-1,rack=rk kind=\"xid\",code=79,message=\"fell, off = the \\\"bus\\\"\" 5\n");
    CU_ASSERT(view_equals(seen.sample.rack, "rk") && is_near(seen.sample.values[FIELD_CODE], 79));
    CU_ASSERT_EQUAL(seen.bad, 0);
}

/* The text of an escaped value lives only until the callback returns, so it is compared inside. */
static void on_escaped(void *context, const struct sample *sample)
{
    bool *matched = context;
    *matched = view_equals(sample->job, "a job,with=signs");
}

TEST(escaped_tags_are_unescaped)
{
    bool matched = false;
    struct lineproto parser = {.on_sample = on_escaped, .context = &matched};
    lineproto_parse(&parser, view_of("beat,job=a\\ job\\,with\\=signs,rank=1 step=1 5"));
    CU_ASSERT(matched);
}

TEST(a_bad_line_costs_only_itself_and_is_named)
{
    struct seen seen = parse("beat,job=j,rank=1 step=1 5\n# a comment\nbeat,job=j,rank=x step=1 "
                             "5\nbeat,job=j,rank=2 step=2 6\n");
    CU_ASSERT_EQUAL(seen.samples, 2);
    CU_ASSERT_EQUAL(seen.bad, 1);
    CU_ASSERT_EQUAL(seen.bad_line, 3);
    CU_ASSERT_STRING_EQUAL(seen.cause, "rank is not a whole number");
}

static void on_sample_line(void *context, const struct sample *sample)
{
    struct lineproto *parser = context;
    CU_ASSERT_EQUAL(sample->rank, parser->line);
}

TEST(samples_know_the_line_that_they_stand_on)
{
    struct lineproto parser = {.on_sample = on_sample_line, .first_line = 10};
    parser.context = &parser;
    lineproto_parse(
        &parser, view_of("# ten\n\nbeat,job=j,rank=12 step=1 5\n\r\nbeat,job=j,rank=14 step=1 5"));
    CU_ASSERT_EQUAL(parser.counts.samples, 2);
    CU_ASSERT_EQUAL(parser.line, 14);
}

TEST(what_is_no_line_has_a_cause)
{
    static const char *const lines[] = {"step",
                                        "step,job",
                                        "step,job=j,rank=1",
                                        "step,job=j,rank=1 ",
                                        "step,job=j,rank=1 step",
                                        "step,job=j,rank=1 step= 5",
                                        "step,job=j,rank=1 step=1x,step_ms=1 5",
                                        "step,job=j,rank=1 step=1 5",
                                        "step,job=j,rank=1 step=1,step_ms=2",
                                        "step,job=j,rank=1 step=1,step_ms=2 soon",
                                        "beat,job=j,rank=1 phase=\"x 5",
                                        "step,rank=1 step=1,step_ms=2 5",
                                        "step,job=j step=1,step_ms=2 5",
                                        "step,job=j,rank=-1 step=1,step_ms=2 5",
                                        "event,host=h code=3 5",
                                        ",job=j step=1 5",
                                        "step,job=j,rank=1 step=1,step_ms=2 -5"};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct seen seen = parse(lines[i]);
        CU_ASSERT_EQUAL(seen.samples, 0);
        CU_ASSERT_EQUAL(seen.bad, 1);
    }
}

TEST(unknown_measurements_and_tags_are_left_out_and_counted)
{
    struct seen seen = parse("cpu,host=x usage=1 5\nbeat,job=j,rank=1,zone=z step=1 5\n");
    CU_ASSERT_EQUAL(seen.samples, 1);
    CU_ASSERT_EQUAL(seen.bad, 0);
    CU_ASSERT_EQUAL(seen.counts.unknown_measurements, 1);
    CU_ASSERT_EQUAL(seen.counts.unknown_tags, 1);
}

TEST(timestamps_follow_precision_and_arrival)
{
    CU_ASSERT_EQUAL(
        parse_with(view_of("beat,job=j,rank=1 step=1 1780000005"), PRECISION_S, 0).sample.time_ns,
        1780000005000000000);
    CU_ASSERT_EQUAL(parse_with(view_of("beat,job=j,rank=1 step=1 1780000005062"), PRECISION_MS, 0)
                        .sample.time_ns,
                    1780000005062000000);
    CU_ASSERT_EQUAL(
        parse_with(view_of("beat,job=j,rank=1 step=1"), PRECISION_NS, 77).sample.time_ns, 77);
    CU_ASSERT_EQUAL(
        parse_with(view_of("beat,job=j,rank=1 step=1 1780000005062874525"), PRECISION_S, 0).bad, 1);
}

TEST(not_a_number_and_huge_numbers_are_values)
{
    struct seen seen = parse(
        "step,job=j,rank=1 step=1,step_ms=1e308,loss=NaN,grad_norm=nan,mem=NAN 5\r\n");
    CU_ASSERT_EQUAL(seen.bad, 0);
    CU_ASSERT(isnan(seen.sample.values[FIELD_LOSS]) && isnan(seen.sample.values[FIELD_MEM]));
    CU_ASSERT(seen.sample.values[FIELD_STEP_MS] > 9e307);
}

TEST(a_line_of_ten_megabytes_costs_only_itself)
{
    size_t length = 10 << 20;
    AUTO_TEXT text = {0};
    AUTO_FREE char *long_line = xmalloc(length);
    memset(long_line, 'x', length);
    text_add_bytes(&text, long_line, length);
    text_add(&text, "\nbeat,job=j,rank=2 step=2 6\n");
    struct seen seen = parse_with((struct view){text.bytes, text.length}, PRECISION_NS, 0);
    CU_ASSERT_EQUAL(seen.bad, 1);
    CU_ASSERT_EQUAL(seen.samples, 1);
}

TEST(numbers_read_as_strtod_reads_them)
{
    uint64_t state = test_seed();
    for (int i = 0; i < test_rounds(20000); i++) {
        char text[64];
        double value = (test_random_unit(&state) - 0.5) *
                       pow(10, (double)(test_random(&state) % 40) - 15);
        snprintf(text, sizeof text, i % 3 == 0 ? "%.17g" : i % 3 == 1 ? "%.6g" : "%.3f", value);
        double got = 0;
        double want = strtod(text, NULL);
        const char *end = number_read(text, text + strlen(text), &got);
        CU_ASSERT_PTR_EQUAL(end, text + strlen(text));
        CU_ASSERT(got <= want && got >= want);
    }
}

TESTS(T(a_step_line_gives_its_fields_tags_and_time), T(every_measurement_is_taken_with_its_strings),
      T(escaped_tags_are_unescaped), T(a_bad_line_costs_only_itself_and_is_named),
      T(samples_know_the_line_that_they_stand_on), T(what_is_no_line_has_a_cause),
      T(unknown_measurements_and_tags_are_left_out_and_counted),
      T(timestamps_follow_precision_and_arrival), T(not_a_number_and_huge_numbers_are_values),
      T(a_line_of_ten_megabytes_costs_only_itself), T(numbers_read_as_strtod_reads_them))
