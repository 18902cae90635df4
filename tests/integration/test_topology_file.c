/* Topology files as people write them: YAML, or the job document's own object. */
#include "controller/config/yaml.h"
#include "controller/topology/inventory.h"
#include "tests/harness/test.h"

#include <string.h>

/* What broomd would say of the file; "" when it is good. */
static char *read_file(struct inventory *inventory, const char *yaml, int64_t time_ns)
{
    struct yaml_document document = {0};
    struct findings findings = {0};
    struct text out = {0};
    yaml_parse(view_of(yaml), &document, &findings);
    bool good = document.root != NULL &&
                inventory_read_file(inventory, document.root, time_ns, &findings);
    CU_ASSERT_EQUAL(good, findings.errors == 0);
    text_add(&out, "");
    findings_print(&findings, "t.yaml", &out);
    findings_done(&findings);
    yaml_done(&document);
    return text_take(&out);
}

static const char TWO_RACKS[] = "racks:\n"
                                "  - rack: rk-1\n"
                                "    nvlink_domain: rk-1.0\n"
                                "    trays: [gb-1, {node: gb-2, tray: 2, rails: 4}]\n"
                                "  - {rack: rk-2, trays: [gb-3]}\n";

TEST(a_file_places_its_nodes)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_FREE char *said = read_file(inventory, TWO_RACKS, 1000);
    struct inventory_node node;
    CU_ASSERT_STRING_EQUAL(said, "");
    CU_ASSERT_EQUAL(inventory_count(inventory), 3);
    CU_ASSERT(inventory_find(inventory, "gb-2", &node));
    CU_ASSERT_STRING_EQUAL(node.rack, "rk-1");
    CU_ASSERT_STRING_EQUAL(node.nvlink_domain, "rk-1.0");
    CU_ASSERT_EQUAL(node.tray, 2);
    CU_ASSERT_EQUAL(node.rails, 4);
    CU_ASSERT_EQUAL(node.rack_source, INVENTORY_FILE);
    CU_ASSERT(inventory_find(inventory, "gb-3", &node));
    CU_ASSERT_PTR_NULL(node.nvlink_domain);
}

TEST(a_job_document_is_a_topology_file_too)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_FREE char *said = read_file(
        inventory,
        "{\"job\": \"default/x\", \"world_size\": 8, \"topology\": {\"racks\": [{\"rack\": "
        "\"rk-1\", "
        "\"nvlink_domain\": \"rk-1.0\", \"trays\": [\"gb-1\", \"gb-2\"]}]}}",
        1000);
    CU_ASSERT_STRING_EQUAL(said, "");
    CU_ASSERT_EQUAL(inventory_count(inventory), 2);
}

TEST(a_node_that_leaves_the_file_is_no_longer_placed_by_it)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_FREE char *first = read_file(inventory, TWO_RACKS, 1000);
    CU_ASSERT_STRING_EQUAL(first, "");
    inventory_observe(inventory, &(struct inventory_observation){.source = INVENTORY_LABEL,
                                                                 .node = "gb-3",
                                                                 .rack = "r9",
                                                                 .tray = INVENTORY_UNKNOWN,
                                                                 .rails = INVENTORY_UNKNOWN,
                                                                 .time_ns = 2000});
    AUTO_FREE char *second = read_file(inventory, "racks:\n  - {rack: rk-1, trays: [gb-1]}\n",
                                       3000);
    struct inventory_node node;
    CU_ASSERT_STRING_EQUAL(second, "");
    CU_ASSERT(inventory_find(inventory, "gb-2", &node));
    CU_ASSERT_PTR_NULL(node.rack);
    CU_ASSERT(inventory_find(inventory, "gb-3", &node));
    CU_ASSERT_STRING_EQUAL(node.rack, "r9");
    CU_ASSERT(inventory_find(inventory, "gb-1", &node));
    CU_ASSERT_EQUAL(node.rack_since_ns, 1000);
}

TEST(every_mistake_is_told_with_its_place_and_nothing_of_the_file_counts)
{
    AUTO(inventory_free) struct inventory *inventory = inventory_new();
    AUTO_FREE char *first = read_file(inventory, TWO_RACKS, 1000);
    CU_ASSERT_STRING_EQUAL(first, "");
    AUTO_FREE char *said = read_file(inventory,
                                     "racks:\n"
                                     "  - {rack: rk-1, trays: [gb-9, gb-9]}\n"
                                     "  - {rack: rk-1, trays: gb-8}\n"
                                     "  - {trays: [gb-7]}\n"
                                     "  - rack: rk-4\n"
                                     "    trays: [{tray: 1}, {node: gb-6, tray: first}]\n",
                                     2000);
    CU_ASSERT_STRING_EQUAL(
        said, "t.yaml:2:32: error: 'gb-9' stands in rack 'rk-1' already [topology]\n"
              "t.yaml:3:5: error: a rack needs a list of nodes under 'trays' [topology]\n"
              "t.yaml:3:12: error: rack 'rk-1' stands twice [topology]\n"
              "t.yaml:4:5: error: a rack needs a name under 'rack' [topology]\n"
              "t.yaml:6:13: error: a tray is a node's name, or a mapping with 'node' [topology]\n"
              "t.yaml:6:43: error: tray must be a whole number from 0 to 1023 [topology]\n");
    CU_ASSERT_EQUAL(inventory_count(inventory), 3);
    AUTO_FREE char *none = read_file(inventory, "rack: [1]\n", 3000);
    CU_ASSERT_STRING_EQUAL(
        none, "t.yaml:1:1: error: a topology file needs a list under 'racks' [topology]\n");
}

TESTS(T(a_file_places_its_nodes), T(a_job_document_is_a_topology_file_too),
      T(a_node_that_leaves_the_file_is_no_longer_placed_by_it),
      T(every_mistake_is_told_with_its_place_and_nothing_of_the_file_counts))
