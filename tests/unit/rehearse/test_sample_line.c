#include "controller/ingest/lineproto.h"
#include "controller/rehearse/model.h"
#include "tests/harness/test.h"

struct sent {
    struct text text;
    int64_t lines;
};

static void write_line(void *context, const struct sample *sample)
{
    struct sent *sent = context;
    sample_add_line(sample, &sent->text);
    sent->lines++;
}

struct reread {
    int64_t samples, bad;
};

static void take_sample(void *context, const struct sample *sample)
{
    (void)sample;
    ((struct reread *)context)->samples++;
}

static void take_error(void *context, int64_t line, const char *cause)
{
    (void)line;
    (void)cause;
    ((struct reread *)context)->bad++;
}

TEST(what_it_sends_is_line_protocol_that_our_parser_takes)
{
    struct model_config config = model_config_default();
    config.job = "a job, with=signs";
    config.gauge_ns = INT64_C(15000000000);
    config.checkpoint_steps = 5;
    config.pp = 2;
    config.send_tp = config.send_recv = config.send_data = config.send_tokens = true;
    config.dirt = (struct model_dirt){.lost = 0.02, .doubled = 0.01, .late = 0.02, .nan = 0.01};
    AUTO(model_free) struct model *model = model_new(&config);
    model_add_fault(model,
                    &(struct model_fault){.kind = FAULT_STORM, .magnitude = 0.4, .from_step = 5});
    struct sent sent = {0};
    model_start(model, INT64_C(1780000000000000000), 0);
    while (model_info(model).last_step < 40)
        model_step(model, write_line, &sent);
    struct reread reread = {0};
    struct lineproto parser = {
        .on_sample = take_sample, .on_error = take_error, .context = &reread};
    lineproto_parse(&parser, (struct view){sent.text.bytes, sent.text.length});
    CU_ASSERT_EQUAL(reread.bad, 0);
    CU_ASSERT_EQUAL(reread.samples, sent.lines);
    CU_ASSERT_EQUAL(parser.counts.unknown_fields, 0);
    CU_ASSERT_EQUAL(parser.counts.unknown_tags, 0);
    text_done(&sent.text);
}

TESTS(T(what_it_sends_is_line_protocol_that_our_parser_takes))
