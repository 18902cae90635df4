/* A document with positions: what config/yaml.c makes of a YAML file, and what policies and the
 * daemon's configuration are read from. Every node knows its line and column, so that every finding
 * can name them. Nodes are owned by the document.
 */
#ifndef BROOM_BASE_TREE_H
#define BROOM_BASE_TREE_H

#include "controller/base/mem.h"
#include "controller/base/text.h"

enum tree_kind { TREE_SCALAR = 0, TREE_SEQUENCE, TREE_MAPPING };

struct tree_node {
    enum tree_kind kind;
    int line;        /* from 1 */
    int column;      /* from 1 */
    const char *key; /* inside a mapping: this member's key, else NULL */
    int key_line;
    int key_column;
    const char *scalar;      /* TREE_SCALAR: its text, never NULL */
    bool quoted;             /* scalar stood in quotes: it is a string whatever it looks like */
    struct tree_node *first; /* children of a sequence or mapping, in file order */
    struct tree_node *next;  /* sibling */
    size_t size;             /* number of children */
};

/* NULL `mapping`, a non-mapping and a missing key all give NULL. */
const struct tree_node *tree_get(const struct tree_node *mapping, const char *key);

/* Findings of a lint: many per file, each at its place. */
struct finding {
    int line;
    int column;
    bool is_error;    /* else a warning */
    const char *rule; /* stable kebab-case id, static text */
    char message[256];
};

struct findings {
    struct finding *items;
    size_t count;
    size_t capacity;
    size_t errors;
};

void findings_done(struct findings *findings);
void findings_add(struct findings *findings, bool is_error, const char *rule, int line, int column,
                  const char *format, ...) PRINTF_LIKE(6, 7);
/* "FILE:LINE:COLUMN: error: message [rule]" lines, sorted by place. */
void findings_print(const struct findings *findings, const char *file, struct text *out);

#endif
