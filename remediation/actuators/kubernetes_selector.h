/* A label selector of the API: matchLabels and matchExpressions, all of which must be met. */
#ifndef BROOM_ACTUATORS_KUBERNETES_SELECTOR_H
#define BROOM_ACTUATORS_KUBERNETES_SELECTOR_H

#include "controller/base/json.h"

struct selector;

/* NULL when it asks for nothing, or by an operator that we do not know: such a one selects nothing
 * here. The caller frees it. */
struct selector *selector_read(const struct json *object);
void selector_free(struct selector *selector);
DEFINE_AUTO(struct selector, selector_free)

void selector_each_key(const struct selector *selector, void (*fn)(void *context, const char *key),
                       void *context);
/* value of a label, or NULL */
typedef const char *selector_label_fn(void *context, const char *key);
bool selector_matches(const struct selector *selector, selector_label_fn *label, void *context);

#endif
