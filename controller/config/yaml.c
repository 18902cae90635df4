/* libyaml's event API -> a tree with positions. What makes one text mean two things is refused:
 * anchors, aliases, tags, several documents. Depth, nodes and bytes are bounded, so that a small
 * file cannot become a big one.
 */
#include "controller/config/yaml.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

enum { DEPTH_MAX = 32, NODES_MAX = 100000, MEMBERS_MAX = 2000 };
static const size_t YAML_BYTES_MAX = 4u << 20;

struct allocation {
    struct allocation *next;
};

struct level {
    struct tree_node *container;
    struct tree_node *last; /* last child that was added */
    const char *key;        /* a mapping's key that waits for its value */
    int key_line;
    int key_column;
};

struct builder {
    struct yaml_document *document;
    struct findings *findings;
    struct level levels[DEPTH_MAX];
    size_t depth;
    size_t nodes;
    int documents;
    bool stopped; /* a finding after which the rest of the text means nothing */
};

static void *arena_alloc(struct yaml_document *document, size_t bytes)
{
    struct allocation *block = xcalloc(1, sizeof *block + bytes);
    block->next = document->arena;
    document->arena = block;
    return block + 1;
}

static const char *arena_text(struct yaml_document *document, const yaml_char_t *bytes,
                              size_t length)
{
    char *text = arena_alloc(document, length + 1);
    memcpy(text, bytes, length);
    return text;
}

void yaml_done(struct yaml_document *document)
{
    struct allocation *block = document->arena;
    while (block != NULL) {
        struct allocation *next = block->next;
        xfree(block);
        block = next;
    }
    *document = (struct yaml_document){0};
}

static void refuse(struct builder *builder, yaml_mark_t mark, const char *rule, const char *message)
{
    findings_add(builder->findings, true, rule, (int)mark.line + 1, (int)mark.column + 1, "%s",
                 message);
    builder->stopped = true;
}

static struct tree_node *new_node(struct builder *builder, enum tree_kind kind, yaml_mark_t mark)
{
    struct tree_node *node = arena_alloc(builder->document, sizeof *node);
    node->kind = kind;
    node->line = (int)mark.line + 1;
    node->column = (int)mark.column + 1;
    builder->nodes++;
    return node;
}

static void check_duplicate(struct builder *builder, const struct level *level)
{
    const struct tree_node *first = tree_get(level->container, level->key);
    if (first != NULL)
        findings_add(builder->findings, true, "duplicate-key", level->key_line, level->key_column,
                     "key '%.100s' stands twice; the first is at line %d", level->key,
                     first->key_line);
}

/* Hangs a finished or opened node below the innermost container, or makes it the root. */
static void attach(struct builder *builder, struct tree_node *node)
{
    if (builder->depth == 0) {
        builder->document->root = node;
        return;
    }
    struct level *level = &builder->levels[builder->depth - 1];
    if (level->container->kind == TREE_MAPPING) {
        /* Keys are compared in pairs: the bound keeps a hostile file from costing minutes. */
        if (level->container->size < MEMBERS_MAX)
            check_duplicate(builder, level);
        else if (!builder->stopped)
            refuse(builder,
                   (yaml_mark_t){.line = (size_t)level->key_line - 1,
                                 .column = (size_t)level->key_column - 1},
                   "too-big", "more than 2000 keys in one mapping");
        node->key = TAKE(level->key);
        node->key_line = level->key_line;
        node->key_column = level->key_column;
    }
    if (level->last != NULL)
        level->last->next = node;
    else
        level->container->first = node;
    level->last = node;
    level->container->size++;
}

/* In a mapping a node is a key when none waits. */
static bool is_key_position(const struct builder *builder)
{
    if (builder->depth == 0)
        return false;
    const struct level *level = &builder->levels[builder->depth - 1];
    return level->container->kind == TREE_MAPPING && level->key == NULL;
}

static void open_container(struct builder *builder, enum tree_kind kind, const yaml_event_t *event)
{
    if (is_key_position(builder)) {
        refuse(builder, event->start_mark, "bad-key", "a key must be a plain word");
        return;
    }
    if (builder->depth == DEPTH_MAX) {
        refuse(builder, event->start_mark, "too-deep", "nested deeper than 32 levels");
        return;
    }
    struct tree_node *node = new_node(builder, kind, event->start_mark);
    attach(builder, node);
    builder->levels[builder->depth++] = (struct level){.container = node};
}

static void take_scalar(struct builder *builder, const yaml_event_t *event)
{
    const yaml_char_t *value = event->data.scalar.value;
    size_t length = event->data.scalar.length;
    if (memchr(value, '\0', length) != NULL) {
        refuse(builder, event->start_mark, "bad-text", "a NUL byte is not text");
        return;
    }
    const char *text = arena_text(builder->document, value, length);
    if (is_key_position(builder)) {
        struct level *level = &builder->levels[builder->depth - 1];
        level->key = text;
        level->key_line = (int)event->start_mark.line + 1;
        level->key_column = (int)event->start_mark.column + 1;
        return;
    }
    struct tree_node *node = new_node(builder, TREE_SCALAR, event->start_mark);
    node->scalar = text;
    node->quoted = event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE;
    attach(builder, node);
}

static void refuse_marks(struct builder *builder, const yaml_event_t *event,
                         const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        refuse(builder, event->start_mark, "anchor", "anchors are not taken: write the value out");
    else if (tag != NULL)
        refuse(builder, event->start_mark, "tag", "tags are not taken: write the plain value");
}

static void take_document_start(struct builder *builder, const yaml_event_t *event)
{
    if (++builder->documents > 1)
        refuse(builder, event->start_mark, "several-documents", "one file holds one document");
    else if (event->data.document_start.version_directive != NULL ||
             event->data.document_start.tag_directives.start !=
                 event->data.document_start.tag_directives.end)
        refuse(builder, event->start_mark, "directive", "%-directives are not taken");
}

static void take_event(struct builder *builder, const yaml_event_t *event)
{
    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        take_document_start(builder, event);
        break;
    case YAML_ALIAS_EVENT:
        refuse(builder, event->start_mark, "alias", "aliases are not taken: write the value out");
        break;
    case YAML_SCALAR_EVENT:
        refuse_marks(builder, event, event->data.scalar.anchor, event->data.scalar.tag);
        if (!builder->stopped)
            take_scalar(builder, event);
        break;
    case YAML_SEQUENCE_START_EVENT:
        refuse_marks(builder, event, event->data.sequence_start.anchor,
                     event->data.sequence_start.tag);
        if (!builder->stopped)
            open_container(builder, TREE_SEQUENCE, event);
        break;
    case YAML_MAPPING_START_EVENT:
        refuse_marks(builder, event, event->data.mapping_start.anchor,
                     event->data.mapping_start.tag);
        if (!builder->stopped)
            open_container(builder, TREE_MAPPING, event);
        break;
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        builder->depth--;
        break;
    case YAML_NO_EVENT:
    case YAML_STREAM_START_EVENT:
    case YAML_STREAM_END_EVENT:
    case YAML_DOCUMENT_END_EVENT:
        break;
    }
}

/* libyaml counts a reader's error in bytes and a parser's in lines; both become a place. */
static void add_syntax_finding(struct builder *builder, const yaml_parser_t *parser,
                               struct view text)
{
    int line = (int)parser->problem_mark.line + 1;
    int column = (int)parser->problem_mark.column + 1;
    if (parser->error == YAML_READER_ERROR) {
        line = column = 1;
        for (size_t i = 0; i < parser->problem_offset && i < text.length; i++) {
            column = text.bytes[i] == '\n' ? 1 : column + 1;
            line += text.bytes[i] == '\n';
        }
    }
    const char *problem = parser->problem != NULL ? parser->problem : "not YAML";
    if (parser->context != NULL)
        findings_add(builder->findings, true, "yaml-syntax", line, column, "%s %s", problem,
                     parser->context);
    else
        findings_add(builder->findings, true, "yaml-syntax", line, column, "%s", problem);
    builder->stopped = true;
}

static void parse_events(struct builder *builder, yaml_parser_t *parser, struct view text)
{
    bool at_end = false;
    while (!at_end && !builder->stopped) {
        yaml_event_t event;
        if (!yaml_parser_parse(parser, &event)) {
            add_syntax_finding(builder, parser, text);
            return;
        }
        at_end = event.type == YAML_STREAM_END_EVENT;
        take_event(builder, &event);
        if (builder->nodes > NODES_MAX && !builder->stopped)
            refuse(builder, event.start_mark, "too-big", "more than 100000 values");
        yaml_event_delete(&event);
    }
}

void yaml_parse(struct view text, struct yaml_document *ret_document, struct findings *findings)
{
    *ret_document = (struct yaml_document){0};
    struct builder builder = {.document = ret_document, .findings = findings};
    if (text.length > YAML_BYTES_MAX) {
        findings_add(findings, true, "too-big", 1, 1, "larger than 4 MiB");
        return;
    }
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        findings_add(findings, true, "yaml-syntax", 1, 1, "out of memory");
        return;
    }
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    const char *bytes = text.length > 0 ? text.bytes
                                        : ""; /* libyaml asserts on NULL, an empty view's pointer */
    yaml_parser_set_input_string(&parser, (const unsigned char *)bytes, text.length);
    parse_events(&builder, &parser, text);
    yaml_parser_delete(&parser);
    if (builder.stopped)
        ret_document->root = NULL;
    else if (ret_document->root == NULL)
        findings_add(findings, true, "empty", 1, 1, "the document is empty");
}
