/* An owned, growing list of names: nodes, spares. Order is kept; comparison is exact. */
#ifndef BROOM_REMEDIATION_NAMES_H
#define BROOM_REMEDIATION_NAMES_H

#include "controller/base/json.h"

struct names {
    char **items;
    size_t count, capacity;
};

void names_done(struct names *names);                      /* frees and empties */
void names_add(struct names *names, const char *name);     /* copies */
bool names_add_new(struct names *names, const char *name); /* false when it was there already */
bool names_has(const struct names *names, const char *name);
void names_remove(struct names *names, const char *name);
void names_copy(struct names *to, const struct names *from); /* replaces what is in `to` */
void names_write(const struct names *names, struct json_writer *writer); /* a JSON array */
void names_parse(struct names *names, const struct json *array);
/* "gb-1, gb-2 and 16 more": at most `limit` names. */
void names_add_sentence(const struct names *names, size_t limit, struct text *out);

#endif
