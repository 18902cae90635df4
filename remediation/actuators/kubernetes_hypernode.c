/* Selectors of a HyperNode's members: exactMatch, regexMatch, labelMatch. */
#include "remediation/actuators/kubernetes_hypernode.h"

#include <regex.h>
#include <string.h>

enum { PATTERN_BYTES_MAX = 256, COPIES_MAX = 256 };

struct member {
    char *exact;
    regex_t *pattern;
    char *begins; /* what every name that the pattern matches begins with; "" not known */
    struct selector *labels;
};

struct hypernode {
    char *name;
    struct member *members;
    size_t count, capacity;
};

static void member_done(struct member *member)
{
    xfree(member->exact);
    if (member->pattern != NULL)
        regfree(member->pattern);
    xfree(member->pattern);
    xfree(member->begins);
    selector_free(member->labels);
}

void hypernode_free(struct hypernode *hypernode)
{
    if (hypernode == NULL)
        return;
    for (size_t i = 0; i < hypernode->count; i++)
        member_done(&hypernode->members[i]);
    xfree(hypernode->members);
    xfree(hypernode->name);
    xfree(hypernode);
}

/* 18 of "{2,18}"; what is over COPIES_MAX need not be exact. */
static size_t largest_count(const char *brace)
{
    size_t largest = 0, number = 0;
    for (const char *c = brace + 1; *c != '\0' && *c != '}' && number <= COPIES_MAX; c++) {
        number = *c >= '0' && *c <= '9' ? number * 10 + (size_t)(*c - '0') : 0;
        largest = number > largest ? number : largest;
    }
    return largest;
}

/* Repetitions of repetitions would make it as large as whoever writes it likes. */
static bool is_modest(const char *pattern)
{
    size_t length = strlen(pattern), copies = 1;
    for (const char *c = pattern; *c != '\0' && copies <= COPIES_MAX; c++)
        if (*c == '{' && largest_count(c) > 1)
            copies *= largest_count(c);
    return length > 0 && length <= PATTERN_BYTES_MAX && copies <= COPIES_MAX;
}

/* Volcano's patterns are Go's: of what POSIX lacks, people use \d. */
static regex_t *compile(const char *pattern)
{
    AUTO_TEXT posix = {0};
    if (!is_modest(pattern))
        return NULL;
    AUTO_FREE regex_t *regex = xcalloc(1, sizeof *regex);
    for (const char *c = pattern; *c != '\0'; c++) {
        if (c[0] == '\\' && c[1] == 'd') {
            text_add(&posix, "[0-9]");
            c++;
        } else if (c[0] == '\\' && c[1] != '\0') {
            text_add_bytes(&posix, c, 2);
            c++;
        } else {
            text_add_bytes(&posix, c, 1);
        }
    }
    if (regcomp(regex, posix.bytes, REG_EXTENDED | REG_NOSUB) != 0)
        return NULL;
    return TAKE(regex);
}

/* "rk-1-" of "^rk-1-\\d+$": a comparison of a few bytes spares most of the searches. */
static char *beginning_of(const char *pattern)
{
    AUTO_TEXT begins = {0};
    text_add(&begins, "");
    if (pattern[0] != '^' || strchr(pattern, '|') != NULL)
        return text_take(&begins);
    size_t length = strcspn(pattern + 1, "\\.[](){}*+?^$");
    bool is_repeated = length > 0 && strchr("*+?{", pattern[1 + length]) != NULL &&
                       pattern[1 + length] != '\0';
    text_add_bytes(&begins, pattern + 1, is_repeated ? length - 1 : length);
    return text_take(&begins);
}

static bool read_member(struct member *member, const struct json *object)
{
    const struct json *selector = json_get(object, "selector");
    const char *exact = json_get_string(json_get(selector, "exactMatch"), "name", NULL);
    const char *pattern = json_get_string(json_get(selector, "regexMatch"), "pattern", NULL);
    *member = (struct member){0};
    if (strcmp(json_get_string(object, "type", ""), "Node") != 0)
        return false;
    if (exact != NULL)
        member->exact = xstrdup(exact);
    else if (pattern != NULL && (member->pattern = compile(pattern)) != NULL)
        member->begins = beginning_of(pattern);
    else if (pattern == NULL)
        member->labels = selector_read(json_get(selector, "labelMatch"));
    return member->exact != NULL || member->pattern != NULL || member->labels != NULL;
}

struct hypernode *hypernode_read(const struct json *object)
{
    const struct json *spec = json_get(object, "spec");
    const struct json *members = json_get(spec, "members");
    if (json_get_int(spec, "tier", 0) != 1)
        return NULL;
    struct hypernode *hypernode = xcalloc(1, sizeof *hypernode);
    hypernode->name = xstrdup(json_get_string(json_get(object, "metadata"), "name", ""));
    for (const struct json *each = json_first(members); each != NULL; each = json_next(each)) {
        hypernode->members = array_grow(hypernode->members, hypernode->count, &hypernode->capacity,
                                        sizeof *hypernode->members);
        struct member *member = &hypernode->members[hypernode->count];
        if (read_member(member, each))
            hypernode->count++;
        else
            member_done(member);
    }
    if (hypernode->count > 0)
        return hypernode;
    hypernode_free(hypernode);
    return NULL;
}

const char *hypernode_name(const struct hypernode *hypernode)
{
    return hypernode->name;
}

void hypernode_each_label(const struct hypernode *hypernode,
                          void (*fn)(void *context, const char *key), void *context)
{
    for (size_t i = 0; i < hypernode->count; i++)
        if (hypernode->members[i].labels != NULL)
            selector_each_key(hypernode->members[i].labels, fn, context);
}

/* By what is no exact name. */
static bool member_matches(const struct member *member, const char *node, selector_label_fn *label,
                           void *context)
{
    if (member->exact != NULL)
        return false;
    if (member->pattern != NULL)
        return strncmp(member->begins, node, strlen(member->begins)) == 0 &&
               regexec(member->pattern, node, 0, NULL, 0) == 0;
    return selector_matches(member->labels, label, context);
}

void hypernode_each_exact(const struct hypernode *hypernode,
                          void (*fn)(void *context, const struct hypernode *hypernode,
                                     const char *node),
                          void *context)
{
    for (size_t i = 0; i < hypernode->count; i++)
        if (hypernode->members[i].exact != NULL)
            fn(context, hypernode, hypernode->members[i].exact);
}

bool hypernode_matches(const struct hypernode *hypernode, const char *node,
                       selector_label_fn *label, void *context)
{
    for (size_t i = 0; i < hypernode->count; i++)
        if (member_matches(&hypernode->members[i], node, label, context))
            return true;
    return false;
}
