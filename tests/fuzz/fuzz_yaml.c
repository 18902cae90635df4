/* Any bytes as YAML: a tree or findings, never both missing; every node has a place inside the
 * text. The same bytes then go through the table of options.
 */
#include "controller/config/config.h"
#include "controller/config/yaml.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_node(const struct tree_node *node, int depth)
{
    require(depth <= 33 && node->line >= 1 && node->column >= 1);
    require(node->kind != TREE_SCALAR || node->scalar != NULL);
    size_t children = 0;
    for (const struct tree_node *child = node->first; child != NULL; child = child->next) {
        require((node->kind == TREE_MAPPING) == (child->key != NULL));
        require(child->key == NULL || (child->key_line >= 1 && tree_get(node, child->key) != NULL));
        check_node(child, depth + 1);
        children++;
    }
    require(children == node->size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct yaml_document document;
    struct findings findings = {0};
    yaml_parse((struct view){(const char *)data, size}, &document, &findings);
    require(document.root != NULL || findings.errors > 0);
    for (size_t i = 0; i < findings.count; i++)
        require(findings.items[i].line >= 1 && findings.items[i].column >= 1);
    if (document.root != NULL) {
        check_node(document.root, 1);
        AUTO(config_free) struct config *config = config_new();
        config_parse(config, document.root, &findings);
    }
    AUTO_TEXT printed = {0};
    findings_print(&findings, "fuzz.yaml", &printed);
    findings_done(&findings);
    yaml_done(&document);
    return 0;
}
