/* An open hash table with linear probing; removing closes the gap. */
#include "controller/kube/kube_objects.h"

#include "controller/base/mem.h"
#include "controller/base/text.h"

#include <string.h>

static uint64_t hash_of(const char *key)
{
    uint64_t hash = 14695981039346656037u;
    for (; *key != '\0'; key++)
        hash = (hash ^ (unsigned char)*key) * 1099511628211u;
    return hash ^ hash >> 32;
}

static bool is_number(const char *text)
{
    return text[0] != '\0' && text[strspn(text, "0123456789")] == '\0';
}

bool kube_version_is_older(const char *a, const char *b)
{
    if (!is_number(a) || !is_number(b))
        return false;
    a += strspn(a, "0");
    b += strspn(b, "0");
    size_t a_length = strlen(a), b_length = strlen(b);
    return a_length != b_length ? a_length < b_length : strcmp(a, b) < 0;
}

/* The slot of key, or the free one where it would stand. */
static size_t slot_of(const struct kube_objects *objects, const char *key)
{
    size_t mask = objects->capacity - 1;
    size_t at = (size_t)hash_of(key) & mask;
    while (objects->slots[at].key != NULL && strcmp(objects->slots[at].key, key) != 0)
        at = (at + 1) & mask;
    return at;
}

static void grow(struct kube_objects *objects)
{
    struct kube_objects bigger = *objects;
    bigger.capacity = objects->capacity == 0 ? 64 : objects->capacity * 2;
    bigger.slots = xcalloc(bigger.capacity, sizeof *bigger.slots);
    for (size_t i = 0; i < objects->capacity; i++)
        if (objects->slots[i].key != NULL)
            bigger.slots[slot_of(&bigger, objects->slots[i].key)] = objects->slots[i];
    xfree(objects->slots);
    *objects = bigger;
}

static char *key_of(const char *namespace_name, const char *name)
{
    AUTO_TEXT key = {0};
    text_addf(&key, "%s/%s", namespace_name, name);
    return text_take(&key);
}

static size_t bytes_of(const struct kube_object *object)
{
    return strlen(object->key) + strlen(object->version) + 2;
}

bool kube_objects_put(struct kube_objects *objects, const char *namespace_name, const char *name,
                      const char *version, int64_t listing)
{
    if (objects->count * 2 >= objects->capacity)
        grow(objects);
    AUTO_FREE char *key = key_of(namespace_name, name);
    struct kube_object *object = &objects->slots[slot_of(objects, key)];
    if (object->key == NULL) {
        *object = (struct kube_object){.key = TAKE(key), .version = xstrdup("")};
        objects->count++;
        objects->bytes += bytes_of(object);
    }
    object->listing = listing;
    if (kube_version_is_older(version, object->version))
        return false;
    objects->bytes -= bytes_of(object);
    xfree(object->version);
    object->version = xstrdup(version);
    objects->bytes += bytes_of(object);
    return true;
}

/* Those behind a gap move into it when their own place is not between the two. */
static void close_gap(struct kube_objects *objects, size_t gap)
{
    size_t mask = objects->capacity - 1;
    for (size_t at = (gap + 1) & mask; objects->slots[at].key != NULL; at = (at + 1) & mask) {
        size_t home = (size_t)hash_of(objects->slots[at].key) & mask;
        if (((at - home) & mask) < ((at - gap) & mask))
            continue;
        objects->slots[gap] = objects->slots[at];
        objects->slots[at] = (struct kube_object){0};
        gap = at;
    }
}

bool kube_objects_remove(struct kube_objects *objects, const char *namespace_name, const char *name)
{
    if (objects->count == 0)
        return false;
    AUTO_FREE char *key = key_of(namespace_name, name);
    size_t at = slot_of(objects, key);
    struct kube_object *object = &objects->slots[at];
    if (object->key == NULL)
        return false;
    objects->bytes -= bytes_of(object);
    objects->count--;
    xfree(object->key);
    xfree(object->version);
    *object = (struct kube_object){0};
    close_gap(objects, at);
    return true;
}

/* What closes the gap of a removal comes from behind it, or from slots that were looked at: the
 * slot itself is looked at again. */
const struct kube_object *kube_objects_other(const struct kube_objects *objects, int64_t listing,
                                             size_t *cursor)
{
    for (; *cursor < objects->capacity; (*cursor)++) {
        const struct kube_object *object = &objects->slots[*cursor];
        if (object->key != NULL && object->listing != listing)
            return object;
    }
    return NULL;
}

void kube_objects_done(struct kube_objects *objects)
{
    for (size_t i = 0; i < objects->capacity; i++) {
        xfree(objects->slots[i].key);
        xfree(objects->slots[i].version);
    }
    xfree(objects->slots);
    *objects = (struct kube_objects){0};
}
