/* Any bytes as a topology file: taken whole or not at all, and what the inventory then says is
 * JSON.
 */
#include "controller/config/yaml.h"
#include "controller/topology/inventory.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void count_sentence(void *context, const char *rule, const char *sentence)
{
    size_t *count = context;
    require(rule[0] != '\0' && sentence[0] != '\0');
    (*count)++;
}

/* One node of another source, which a file may contradict but not remove. */
static struct inventory *start(void)
{
    struct inventory *inventory = inventory_new();
    require(inventory_observe(inventory, &(struct inventory_observation){.source = INVENTORY_CLIQUE,
                                                                         .node = "gb-1",
                                                                         .nvlink_domain = "u1.1",
                                                                         .tray = INVENTORY_UNKNOWN,
                                                                         .rails = INVENTORY_UNKNOWN,
                                                                         .time_ns = 1}));
    return inventory;
}

static void check_written(const struct inventory *inventory, size_t findings)
{
    AUTO_TEXT text = {0};
    AUTO(json_free) struct json *root = NULL;
    struct json_writer writer = json_writer(&text);
    inventory_write(inventory, &writer);
    require(json_parse((struct view){text.bytes, text.length}, &root, NULL) == OK);
    require(json_size(json_get(root, "nodes")) == inventory_count(inventory));
    require(json_size(json_get(root, "findings")) == findings);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml_document document;
    struct findings findings = {0};
    AUTO(inventory_free) struct inventory *inventory = start();
    struct inventory_node node;
    size_t sentences = 0;
    yaml_parse((struct view){(const char *)data, size}, &document, &findings);
    bool taken = document.root != NULL &&
                 inventory_read_file(inventory, document.root, 2, &findings);
    for (size_t i = 0; i < findings.count; i++)
        require(findings.items[i].line >= 1 && findings.items[i].column >= 1);
    require(taken || (inventory_count(inventory) == 1 && findings.errors > 0));
    for (size_t i = 0; i < inventory_count(inventory); i++)
        require(inventory_at(inventory, i).rack != NULL);
    require(inventory_find(inventory, "gb-1", &node) && node.rack != NULL);
    inventory_findings(inventory, count_sentence, &sentences);
    check_written(inventory, sentences);
    findings_done(&findings);
    yaml_done(&document);
    return 0;
}
