#include "controller/topology/inventory.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static const int64_t S = INT64_C(1000000000);

static void say(struct inventory *inventory, enum inventory_source source, const char *node,
                const char *rack, const char *domain, int64_t second)
{
    CU_ASSERT(inventory_observe(
        inventory, &(struct inventory_observation){source, node, rack, domain, INVENTORY_UNKNOWN,
                                                   INVENTORY_UNKNOWN, second * S}));
}

static const char *rack_of(const struct inventory *inventory, const char *node)
{
    struct inventory_node answer;
    if (!inventory_find(inventory, node, &answer))
        return "no such node";
    return answer.rack != NULL ? answer.rack : "unknown";
}

struct told {
    int count;
    char rules[16][32];
    char texts[16][512];
};

static void on_finding(void *context, const char *rule, const char *sentence)
{
    struct told *told = context;
    if (told->count < 16) {
        snprintf(told->rules[told->count], sizeof told->rules[0], "%s", rule);
        snprintf(told->texts[told->count], sizeof told->texts[0], "%s", sentence);
    }
    told->count++;
}

static struct told findings_of(const struct inventory *inventory)
{
    struct told told = {0};
    inventory_findings(inventory, on_finding, &told);
    return told;
}

static int records_left(struct inventory *inventory)
{
    int count = 0;
    for (;; count++) {
        AUTO_TEXT record = {0};
        if (!inventory_take_record(inventory, &record))
            return count;
    }
}

TEST(the_most_trusted_source_that_speaks_wins)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    struct inventory_node answer;
    say(inventory, INVENTORY_CLIQUE, "gb-1", NULL, "u1.1", 1);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "u1.1");
    say(inventory, INVENTORY_HYPERNODE, "gb-1", "s1", NULL, 2);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "s1");
    say(inventory, INVENTORY_FILE, "gb-1", "rk-1", "rk-1.0", 3);
    say(inventory, INVENTORY_LABEL, "gb-1", "r1", NULL, 4);
    CU_ASSERT(inventory_find(inventory, "gb-1", &answer));
    CU_ASSERT_STRING_EQUAL(answer.rack, "rk-1");
    CU_ASSERT_STRING_EQUAL(answer.nvlink_domain, "rk-1.0");
    CU_ASSERT_EQUAL(answer.rack_source, INVENTORY_FILE);
    CU_ASSERT_EQUAL(answer.rack_since_ns, 3 * S);
    inventory_withdraw(inventory, INVENTORY_FILE, "gb-1", 5 * S);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "r1");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb"), "no such node");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-11"), "no such node");
}

TEST(a_label_that_is_missing_has_not_moved_the_node)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    struct inventory_node answer;
    say(inventory, INVENTORY_CLIQUE, "gb-1", NULL, NULL, 1); /* not there yet at boot */
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "unknown");
    say(inventory, INVENTORY_CLIQUE, "gb-1", NULL, "u1.1", 2);
    say(inventory, INVENTORY_CLIQUE, "gb-1", NULL, "", 3);
    CU_ASSERT(inventory_find(inventory, "gb-1", &answer));
    CU_ASSERT_STRING_EQUAL(answer.rack, "u1.1");
    CU_ASSERT_EQUAL(answer.silent_since_ns, 3 * S);
    struct told told = findings_of(inventory);
    CU_ASSERT_EQUAL(told.count, 1);
    CU_ASSERT_STRING_EQUAL(told.rules[0], "last-word");
    say(inventory, INVENTORY_CLIQUE, "gb-1", NULL, "u1.1", 4);
    CU_ASSERT(inventory_find(inventory, "gb-1", &answer));
    CU_ASSERT_EQUAL(answer.silent_since_ns, 0);
    CU_ASSERT_EQUAL(answer.rack_since_ns, 2 * S);
    CU_ASSERT_EQUAL(findings_of(inventory).count, 0);
}

TEST(a_source_that_speaks_outranks_the_last_word_of_a_more_trusted_one)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    say(inventory, INVENTORY_LABEL, "gb-1", "r1", NULL, 1);
    say(inventory, INVENTORY_SLURM, "gb-1", "sw2", NULL, 1);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "r1");
    say(inventory, INVENTORY_LABEL, "gb-1", NULL, NULL, 2);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-1"), "sw2");
}

static void say_rack(struct inventory *inventory, enum inventory_source source, int first,
                     int count, const char *rack, const char *domain, int64_t second)
{
    for (int i = first; i < first + count; i++) {
        char node[32];
        snprintf(node, sizeof node, "gb-%02d", i);
        say(inventory, source, node, rack, domain, second);
    }
}

TEST(a_rack_keeps_its_name_when_its_clique_changes)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    struct inventory_node answer;
    say_rack(inventory, INVENTORY_CLIQUE, 1, 18, NULL, "u1.1", 1);
    say_rack(inventory, INVENTORY_CLIQUE, 21, 18, NULL, "u2.1", 1);
    say_rack(inventory, INVENTORY_CLIQUE, 1, 18, NULL, NULL, 2);
    say_rack(inventory, INVENTORY_CLIQUE, 1, 9, NULL, "u9.1", 3);
    say_rack(inventory, INVENTORY_CLIQUE, 10, 9, NULL, "u9.2", 3); /* half a fabric */
    CU_ASSERT(inventory_find(inventory, "gb-18", &answer));
    CU_ASSERT_STRING_EQUAL(answer.rack, "u1.1");
    CU_ASSERT_STRING_EQUAL(answer.nvlink_domain, "u9.2");
    CU_ASSERT_EQUAL(answer.rack_since_ns, 1 * S);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-01"), "u1.1");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-21"), "u2.1");
    CU_ASSERT_EQUAL(findings_of(inventory).count, 0);
}

TEST(a_new_tray_that_shows_the_new_clique_first_does_not_rename_the_rack)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    say_rack(inventory, INVENTORY_CLIQUE, 1, 17, NULL, "u1.1", 1);
    say(inventory, INVENTORY_CLIQUE, "gb-18", NULL, "u9.1", 2);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-18"), "u9.1");
    say_rack(inventory, INVENTORY_CLIQUE, 1, 17, NULL, "u9.1", 3);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-01"), "u1.1");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-17"), "u1.1");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-18"), "u1.1");
}

TEST(a_tray_that_shows_another_rack_s_clique_stands_there)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    say_rack(inventory, INVENTORY_CLIQUE, 1, 17, NULL, "u1.1", 1);
    say_rack(inventory, INVENTORY_CLIQUE, 21, 17, NULL, "u2.1", 1);
    say(inventory, INVENTORY_CLIQUE, "gb-01", NULL, "u2.1", 2);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-01"), "u2.1");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-02"), "u1.1");
}

TEST(two_racks_with_one_clique_are_told_apart_by_the_file_and_found_out_without_it)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    say_rack(inventory, INVENTORY_CLIQUE, 1, 36, NULL, "u1.1", 1);
    struct told told = findings_of(inventory);
    CU_ASSERT_EQUAL(told.count, 1);
    CU_ASSERT_STRING_EQUAL(told.rules[0], "rack-too-large");
    say_rack(inventory, INVENTORY_FILE, 1, 18, "rk-1", NULL, 2);
    say_rack(inventory, INVENTORY_FILE, 19, 18, "rk-2", NULL, 2);
    told = findings_of(inventory);
    CU_ASSERT_EQUAL(told.count, 1);
    CU_ASSERT_STRING_EQUAL(told.rules[0], "sources-disagree");
    CU_ASSERT_STRING_EQUAL(
        told.texts[0],
        "clique 'u1.1' puts together nodes of rack 'rk-1' by file (gb-01, gb-02, gb-03 and 15 more)"
        " and rack 'rk-2' by file (gb-19, gb-20, gb-21 and 15 more)");
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-19"), "rk-2");
}

TEST(other_names_for_the_same_groups_are_no_disagreement)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    say_rack(inventory, INVENTORY_FILE, 1, 18, "rk-1", "rk-1.0", 1);
    say_rack(inventory, INVENTORY_FILE, 21, 18, "rk-2", "rk-2.0", 1);
    say_rack(inventory, INVENTORY_LABEL, 1, 18, "r1", NULL, 1);
    say_rack(inventory, INVENTORY_LABEL, 21, 18, "r2", NULL, 1);
    say_rack(inventory, INVENTORY_CLIQUE, 1, 18, NULL, "u1.32766", 1);
    CU_ASSERT_EQUAL(findings_of(inventory).count, 0);
    say(inventory, INVENTORY_HYPERNODE, "gb-01", "s1", NULL, 2);
    say(inventory, INVENTORY_HYPERNODE, "gb-21", "s1", NULL, 2);
    struct told told = findings_of(inventory);
    CU_ASSERT_EQUAL(told.count, 1);
    CU_ASSERT_STRING_EQUAL(told.texts[0],
                           "hypernode 's1' puts together nodes of rack 'rk-1' by file "
                           "(gb-01) and rack 'rk-2' by file (gb-21)");
}

TEST(a_place_that_two_nodes_claim_is_found_and_so_is_a_node_without_a_rack)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    for (int i = 0; i < 2; i++)
        inventory_observe(inventory,
                          &(struct inventory_observation){.source = INVENTORY_LABEL,
                                                          .node = i == 0 ? "gb-1" : "gb-2",
                                                          .rack = "r1",
                                                          .tray = 7,
                                                          .rails = 4,
                                                          .time_ns = S});
    say(inventory, INVENTORY_LABEL, "gb-3", NULL, NULL, 1);
    struct told told = findings_of(inventory);
    CU_ASSERT_EQUAL(told.count, 2);
    CU_ASSERT_STRING_EQUAL(told.rules[0], "tray-twice");
    CU_ASSERT_STRING_EQUAL(told.texts[0],
                           "rack 'r1': 'gb-1' and 'gb-2' are both said to be tray 7");
    CU_ASSERT_STRING_EQUAL(told.rules[1], "rack-unknown");
    CU_ASSERT_PTR_NOT_NULL(strstr(told.texts[1], "gb-3: "));
}

TEST(each_change_is_one_record_and_a_repeat_is_none)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_TEXT record = {0};
    say(inventory, INVENTORY_LABEL, "gb-1", "r1", NULL, 1);
    CU_ASSERT(inventory_take_record(inventory, &record));
    CU_ASSERT_STRING_EQUAL(
        record.bytes, "{\"type\":\"topology\",\"key\":\"topology/gb-1/label/1000000000/"
                      "0\",\"time_ns\":1000000000,"
                      "\"node\":\"gb-1\",\"source\":\"label\",\"rack\":\"r1\",\"nvlink_domain\":"
                      "null,\"tray\":null,"
                      "\"rails\":null,\"silent\":false,"
                      "\"answer\":{\"rack\":\"r1\",\"source\":\"label\",\"nvlink_domain\":null}}");
    int64_t version = inventory_version(inventory);
    for (int i = 0; i < 100; i++)
        say(inventory, INVENTORY_LABEL, "gb-1", "r1", NULL, 2 + i);
    CU_ASSERT_EQUAL(records_left(inventory), 0);
    CU_ASSERT_EQUAL(inventory_version(inventory), version);
    say(inventory, INVENTORY_LABEL, "gb-1", NULL, NULL, 200);
    say(inventory, INVENTORY_LABEL, "gb-1", NULL, NULL, 201);
    say(inventory, INVENTORY_LABEL, "gb-1", "r2", NULL, 202);
    CU_ASSERT_EQUAL(records_left(inventory), 2);
    CU_ASSERT(inventory_version(inventory) > version);
}

TEST(records_that_nobody_takes_are_bounded_and_counted)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    for (int i = 0; i < INVENTORY_CHANGES_MAX + 10; i++)
        say(inventory, INVENTORY_LABEL, "gb-1", i % 2 == 0 ? "r1" : "r2", NULL, 1 + i);
    CU_ASSERT_EQUAL(inventory_lost_records(inventory), 10);
    CU_ASSERT_EQUAL(records_left(inventory), INVENTORY_CHANGES_MAX);
    CU_ASSERT_EQUAL(inventory_count(inventory), 1);
}

TEST(the_whole_is_written_with_who_said_what_since_when)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_TEXT text = {0};
    struct json_writer writer = json_writer(&text);
    say(inventory, INVENTORY_CLIQUE, "gb-2", NULL, "u1.1", 1);
    say(inventory, INVENTORY_FILE, "gb-1", "rk-1", NULL, 1);
    say(inventory, INVENTORY_FILE, "gb-2", "rk-1", NULL, 2);
    inventory_write(inventory, &writer);
    AUTO(json_free) struct json *root = NULL;
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(text.bytes), &root, NULL), OK);
    const struct json *node = json_next(json_first(json_get(root, "nodes")));
    CU_ASSERT_STRING_EQUAL(json_get_string(node, "node", ""), "gb-2");
    CU_ASSERT_STRING_EQUAL(json_get_string(node, "rack", ""), "rk-1");
    CU_ASSERT_STRING_EQUAL(json_get_string(node, "nvlink_domain", ""), "u1.1");
    CU_ASSERT_EQUAL(json_size(json_get(node, "says")), 2);
    const struct json *rack = json_first(json_get(root, "racks"));
    CU_ASSERT_STRING_EQUAL(json_get_string(rack, "rack", ""), "rk-1");
    CU_ASSERT_EQUAL(json_size(json_get(rack, "nodes")), 2);
    CU_ASSERT_EQUAL(json_size(json_get(root, "changes")), 3);
    CU_ASSERT_STRING_EQUAL(json_get_string(json_first(json_get(root, "changes")), "source", ""),
                           "file");
}

TEST(five_thousand_nodes_of_three_sources_are_found_by_name)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    for (int i = 4999; i >= 0; i--) {
        char node[32], rack[32], clique[32];
        snprintf(node, sizeof node, "gb-%06d", i);
        snprintf(rack, sizeof rack, "rk-%03d", i / 18);
        snprintf(clique, sizeof clique, "u%03d.1", i / 18);
        say(inventory, INVENTORY_CLIQUE, node, NULL, clique, 1);
        say(inventory, INVENTORY_LABEL, node, rack, NULL, 1);
        say(inventory, INVENTORY_HYPERNODE, node, rack, NULL, 1);
    }
    CU_ASSERT_EQUAL(inventory_count(inventory), 5000);
    CU_ASSERT_STRING_EQUAL(rack_of(inventory, "gb-004999"), "rk-277");
    CU_ASSERT_STRING_EQUAL(inventory_at(inventory, 17).node, "gb-000017");
    CU_ASSERT_EQUAL(findings_of(inventory).count, 0);
    CU_ASSERT_EQUAL(inventory_lost_records(inventory), 0);
}

TEST(the_sources_are_words_that_the_schema_knows)
{
    AUTO_FREE char *schema = test_read_file(BROOM_SOURCE_DIR "/schema/005_topology.sql");
    CU_ASSERT_PTR_NOT_NULL_FATAL(schema);
    AUTO_TEXT words = {0};
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++)
        text_addf(&words, "%s'%s'", s > 0 ? ", " : "",
                  inventory_source_name((enum inventory_source)s));
    text_add(&words, "));");
    CU_ASSERT_PTR_NOT_NULL(strstr(schema, words.bytes));
}

TESTS(T(the_most_trusted_source_that_speaks_wins),
      T(a_label_that_is_missing_has_not_moved_the_node),
      T(a_source_that_speaks_outranks_the_last_word_of_a_more_trusted_one),
      T(a_rack_keeps_its_name_when_its_clique_changes),
      T(a_new_tray_that_shows_the_new_clique_first_does_not_rename_the_rack),
      T(a_tray_that_shows_another_rack_s_clique_stands_there),
      T(two_racks_with_one_clique_are_told_apart_by_the_file_and_found_out_without_it),
      T(other_names_for_the_same_groups_are_no_disagreement),
      T(a_place_that_two_nodes_claim_is_found_and_so_is_a_node_without_a_rack),
      T(each_change_is_one_record_and_a_repeat_is_none),
      T(records_that_nobody_takes_are_bounded_and_counted),
      T(the_whole_is_written_with_who_said_what_since_when),
      T(five_thousand_nodes_of_three_sources_are_found_by_name),
      T(the_sources_are_words_that_the_schema_knows))
