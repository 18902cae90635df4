/* YAML text -> a tree with positions (libyaml's event API; yaml.c is the only includer of yaml.h).
 * Anchors, aliases, tags and several documents are refused; duplicate keys and depth over 32 are
 * findings.
 */
#ifndef BROOM_CONFIG_YAML_H
#define BROOM_CONFIG_YAML_H

#include "controller/base/tree.h"

struct yaml_document {
    struct tree_node *root; /* NULL when the text does not parse; then findings say why */
    void *arena;
};

void yaml_parse(struct view text, struct yaml_document *ret_document, struct findings *findings);
void yaml_done(struct yaml_document *document);

#endif
