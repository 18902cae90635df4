/* Requirements of a label selector. */
#include "remediation/actuators/kubernetes_selector.h"

#include "remediation/names.h"

#include <string.h>

enum requirement_kind { LABEL_IN = 0, LABEL_NOT_IN, LABEL_EXISTS, LABEL_DOES_NOT_EXIST };

static const char *const OPERATORS[] = {[LABEL_IN] = "In",
                                        [LABEL_NOT_IN] = "NotIn",
                                        [LABEL_EXISTS] = "Exists",
                                        [LABEL_DOES_NOT_EXIST] = "DoesNotExist"};

struct requirement {
    enum requirement_kind kind;
    char *key;
    struct names values;
};

struct selector {
    struct requirement *requirements;
    size_t count, capacity;
};

void selector_free(struct selector *selector)
{
    if (selector == NULL)
        return;
    for (size_t i = 0; i < selector->count; i++) {
        xfree(selector->requirements[i].key);
        names_done(&selector->requirements[i].values);
    }
    xfree(selector->requirements);
    xfree(selector);
}

static struct requirement *add_requirement(struct selector *selector, const char *key)
{
    selector->requirements = array_grow(selector->requirements, selector->count,
                                        &selector->capacity, sizeof *selector->requirements);
    struct requirement *requirement = &selector->requirements[selector->count++];
    *requirement = (struct requirement){.key = xstrdup(key)};
    return requirement;
}

static bool read_expression(struct selector *selector, const struct json *expression)
{
    const char *name = json_get_string(expression, "operator", "");
    for (size_t i = 0; i < ARRAY_LEN(OPERATORS); i++) {
        if (strcmp(OPERATORS[i], name) != 0)
            continue;
        struct requirement *requirement = add_requirement(selector,
                                                          json_get_string(expression, "key", ""));
        requirement->kind = (enum requirement_kind)i;
        names_parse(&requirement->values, json_get(expression, "values"));
        return true;
    }
    return false;
}

struct selector *selector_read(const struct json *object)
{
    AUTO(selector_free) struct selector *selector = xcalloc(1, sizeof *selector);
    const struct json *labels = json_get(object, "matchLabels");
    const struct json *expressions = json_get(object, "matchExpressions");
    for (const struct json *each = json_first(labels); each != NULL; each = json_next(each))
        names_add(&add_requirement(selector, json_key(each))->values, json_string(each, ""));
    for (const struct json *each = json_first(expressions); each != NULL; each = json_next(each))
        if (!read_expression(selector, each))
            return NULL;
    return selector->count > 0 ? TAKE(selector) : NULL;
}

void selector_each_key(const struct selector *selector, void (*fn)(void *context, const char *key),
                       void *context)
{
    for (size_t i = 0; i < selector->count; i++)
        fn(context, selector->requirements[i].key);
}

static bool is_met(const struct requirement *requirement, const char *value)
{
    bool is_in = value != NULL && names_has(&requirement->values, value);
    switch (requirement->kind) {
    case LABEL_IN:
        return is_in;
    case LABEL_NOT_IN:
        return !is_in;
    case LABEL_EXISTS:
        return value != NULL;
    case LABEL_DOES_NOT_EXIST:
        return value == NULL;
    }
    return false;
}

bool selector_matches(const struct selector *selector, selector_label_fn *label, void *context)
{
    for (size_t i = 0; i < selector->count; i++)
        if (!is_met(&selector->requirements[i], label(context, selector->requirements[i].key)))
            return false;
    return true;
}
