/* Line protocol under random samples: what is written comes back, however the bytes are cut into
 * blocks and whatever a file wraps them in. */
#include "controller/ingest/lineproto.h"
#include "controller/io/compress.h"
#include "controller/rehearse/model.h"
#include "tests/harness/test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STRING_BYTES = 24, SAMPLE_STRINGS = 10 };

struct random_sample {
    struct sample sample;
    char bytes[SAMPLE_STRINGS][STRING_BYTES];
};

static struct view random_string(uint64_t *state, char *buffer)
{
    static const char letters[] = "abz09-/. ,=\"\\'#\xc3\xa9";
    size_t length = 1 + test_random(state) % (STRING_BYTES - 2);
    for (size_t i = 0; i < length; i++)
        buffer[i] = letters[test_random(state) % (sizeof letters - 1)];
    return (struct view){buffer, length};
}

static void add_number(struct sample *sample, enum field field, double value)
{
    sample->present |= UINT64_C(1) << field;
    sample->values[field] = value;
}

static void random_step(struct sample *sample, uint64_t *state)
{
    static const enum field measured[] = {FIELD_STEP_MS, FIELD_ALLREDUCE_MS, FIELD_COMPUTE_MS,
                                          FIELD_RECV_MS, FIELD_TP_MS,        FIELD_EP_MS,
                                          FIELD_DATA_MS};
    add_number(sample, FIELD_STEP, (double)(test_random(state) % 1000000));
    /* Hundredths of a millisecond are what the writer keeps. */
    for (size_t i = 0; i < ARRAY_LEN(measured); i++)
        if (i == 0 || test_random(state) % 2 == 0)
            add_number(sample, measured[i], (double)(test_random(state) % 10000000) / 100);
    if (test_random(state) % 4 == 0)
        add_number(sample, FIELD_LOSS, test_random(state) % 8 == 0 ? (double)NAN : 2.5);
}

static void make_sample(struct random_sample *made, uint64_t *state)
{
    struct sample *sample = &made->sample;
    *sample = (struct sample){
        .measurement = (enum measurement)(test_random(state) % MEASUREMENT_COUNT),
        .rank = (int64_t)(test_random(state) % 20000),
        .time_ns = (int64_t)(1 + test_random(state) % LINEPROTO_TIME_NS_MAX)};
    sample->job = random_string(state, made->bytes[0]);
    sample->host = random_string(state, made->bytes[1]);
    switch (sample->measurement) {
    case MEASUREMENT_STEP:
        random_step(sample, state);
        break;
    case MEASUREMENT_HELLO:
        add_number(sample, FIELD_WORLD, 20000);
        sample->uuid = random_string(state, made->bytes[2]);
        break;
    case MEASUREMENT_BEAT:
        add_number(sample, FIELD_STEP, 7);
        sample->phase = random_string(state, made->bytes[3]);
        break;
    case MEASUREMENT_MARK:
        sample->kind = random_string(state, made->bytes[4]);
        break;
    case MEASUREMENT_GPU:
        add_number(sample, FIELD_POWER_W, 900.5);
        sample->gpu = random_string(state, made->bytes[5]);
        break;
    case MEASUREMENT_EVENT:
        add_number(sample, FIELD_CODE, 79);
        sample->kind = random_string(state, made->bytes[6]);
        sample->rack = random_string(state, made->bytes[7]);
        sample->pci = random_string(state, made->bytes[8]);
        sample->message = random_string(state, made->bytes[9]);
        break;
    case MEASUREMENT_COUNT:
        break;
    }
}

static bool is_same_number(double a, double b)
{
    return isnan(a) ? isnan(b) : a <= b && a >= b;
}

static bool is_same(const struct sample *a, const struct sample *b)
{
    bool same = a->measurement == b->measurement && a->time_ns == b->time_ns &&
                a->rank == b->rank && a->present == b->present &&
                view_equals_view(a->job, b->job) && view_equals_view(a->host, b->host) &&
                view_equals_view(a->rack, b->rack) && view_equals_view(a->gpu, b->gpu) &&
                view_equals_view(a->kind, b->kind) && view_equals_view(a->phase, b->phase) &&
                view_equals_view(a->uuid, b->uuid) && view_equals_view(a->pci, b->pci) &&
                view_equals_view(a->message, b->message);
    for (int field = 0; same && field < FIELD_COUNT; field++)
        if (sample_has(a, (enum field)field))
            same = is_same_number(a->values[field], b->values[field]);
    return same;
}

struct expected {
    const struct sample *sample;
    int matched, other;
};

static void compare(void *context, const struct sample *sample)
{
    struct expected *expected = context;
    if (is_same(expected->sample, sample))
        expected->matched++;
    else
        expected->other++;
}

TEST(a_sample_that_is_written_as_a_line_is_parsed_as_itself)
{
    uint64_t state = test_seed();
    for (int round = 0; round < test_rounds(20000); round++) {
        struct random_sample made;
        AUTO_TEXT line = {0};
        make_sample(&made, &state);
        sample_add_line(&made.sample, &line);
        struct expected expected = {.sample = &made.sample};
        struct lineproto parser = {.on_sample = compare, .context = &expected};
        lineproto_parse(&parser, (struct view){line.bytes, line.length});
        CU_ASSERT_EQUAL(expected.matched, 1);
        CU_ASSERT_EQUAL(expected.other, 0);
        if (expected.matched != 1) {
            CU_FAIL(line.bytes);
            return;
        }
    }
}

/* ---- cuts ---- */

/* A digest of everything that the parser said, in order. */
struct transcript {
    struct text said;
    struct lineproto *parser;
};

static void note_sample(void *context, const struct sample *sample)
{
    struct transcript *transcript = context;
    text_addf(&transcript->said, "%lld:", (long long)transcript->parser->line);
    sample_add_line(sample, &transcript->said);
}

static void note_error(void *context, int64_t line, const char *cause)
{
    struct transcript *transcript = context;
    text_addf(&transcript->said, "%lld: %s\n", (long long)line, cause);
}

static void add_random_line(struct text *out, uint64_t *state)
{
    static const char *const others[] = {"# a comment\n",
                                         "\n",
                                         "\r\n",
                                         "cpu,host=x usage=3 5\n",
                                         "step,job=j,rank=x 5\n",
                                         "no line at all\n",
                                         "beat,job=j,rank=3 step=1 5\r\n",
                                         "\\\n",
                                         "\"\n"};
    struct random_sample made;
    if (test_random(state) % 4 == 0) {
        text_add(out, others[test_random(state) % ARRAY_LEN(others)]);
        return;
    }
    make_sample(&made, state);
    sample_add_line(&made.sample, out);
}

static void parse_cut(struct view bytes, uint64_t *state, bool in_blocks,
                      struct transcript *ret_transcript)
{
    struct lineproto parser = {
        .on_sample = note_sample, .on_error = note_error, .context = ret_transcript};
    ret_transcript->parser = &parser;
    while (bytes.length > 0) {
        size_t length = in_blocks ? 1 + test_random(state) % bytes.length : bytes.length;
        const char *newline = memchr(bytes.bytes + length - 1, '\n', bytes.length - length + 1);
        length = newline != NULL ? (size_t)(newline - bytes.bytes) + 1 : bytes.length;
        parser.first_line = parser.line + 1;
        lineproto_parse(&parser, (struct view){bytes.bytes, length});
        bytes = (struct view){bytes.bytes + length, bytes.length - length};
    }
    text_addf(&ret_transcript->said, "%lld lines, %lld samples\n", (long long)parser.counts.lines,
              (long long)parser.counts.samples);
}

TEST(blocks_of_whole_lines_say_the_same_as_all_at_once)
{
    uint64_t state = test_seed();
    for (int round = 0; round < test_rounds(200); round++) {
        AUTO_TEXT lines = {0};
        struct transcript whole = {0}, cut = {0};
        for (uint64_t i = 0; i < 1 + test_random(&state) % 60; i++)
            add_random_line(&lines, &state);
        parse_cut((struct view){lines.bytes, lines.length}, &state, false, &whole);
        parse_cut((struct view){lines.bytes, lines.length}, &state, true, &cut);
        CU_ASSERT_STRING_EQUAL(whole.said.bytes, cut.said.bytes);
        text_done(&whole.said);
        text_done(&cut.said);
    }
}

/* ---- files ---- */

enum wrapping { PLAIN = 0, GZIP, ZSTD, WRAPPINGS };

static void wrap(enum wrapping wrapping, struct view plain, struct text *out)
{
    AUTO(zstd_writer_free) struct zstd_writer *writer = zstd_writer_new(1);
    switch (wrapping) {
    case PLAIN:
    case WRAPPINGS:
        text_add_bytes(out, plain.bytes, plain.length);
        return;
    case GZIP:
        CU_ASSERT_EQUAL(gzip_deflate(plain, out, NULL), OK);
        return;
    case ZSTD:
        zstd_writer_add(writer, plain, out);
        zstd_writer_end(writer, out);
        return;
    }
}

static void read_back(const struct text *packed, struct text *out)
{
    char path[] = "/tmp/broom-property-XXXXXX";
    AUTO(line_reader_free) struct line_reader *reader = NULL;
    struct view block;
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    CU_ASSERT_EQUAL(write(fd, packed->bytes, packed->length), (ssize_t)packed->length);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(line_reader_open(path, &reader, NULL), OK);
    for (;;) {
        CU_ASSERT_EQUAL_FATAL(line_reader_next(reader, &block, NULL), OK);
        if (block.length == 0)
            break;
        text_add_bytes(out, block.bytes, block.length);
    }
    unlink(path);
}

TEST(a_file_gives_the_same_bytes_in_every_wrapping_and_in_parts)
{
    uint64_t state = test_seed();
    for (int round = 0; round < test_rounds(12); round++) {
        AUTO_TEXT lines = {0};
        while (lines.length < (size_t)1 << (10 + test_random(&state) % 11))
            add_random_line(&lines, &state);
        for (int wrapping = PLAIN; wrapping < WRAPPINGS; wrapping++) {
            AUTO_TEXT packed = {0};
            AUTO_TEXT back = {0};
            size_t half = test_random(&state) % lines.length;
            wrap((enum wrapping)wrapping, (struct view){lines.bytes, half}, &packed);
            wrap((enum wrapping)wrapping, (struct view){lines.bytes + half, lines.length - half},
                 &packed);
            read_back(&packed, &back);
            CU_ASSERT_EQUAL(back.length, lines.length);
            CU_ASSERT(back.length == lines.length &&
                      memcmp(back.bytes, lines.bytes, lines.length) == 0);
        }
    }
}

TESTS(T(a_sample_that_is_written_as_a_line_is_parsed_as_itself),
      T(blocks_of_whole_lines_say_the_same_as_all_at_once),
      T(a_file_gives_the_same_bytes_in_every_wrapping_and_in_parts))
