/* Hosts of a connection string and their addresses. */
#include "controller/io/pg_target.h"

#include "controller/io/resolve.h"

#include <string.h>

/* One host of the string, or one address of it. */
struct entry {
    char *host, *hostaddr, *port; /* "" when not given */
};

struct entries {
    struct entry *items;
    size_t count, capacity;
};

struct pg_target {
    struct loop *loop;
    struct loop_timer *wake;
    struct entries given;
    struct entries found; /* of the last look-up */
    size_t next;          /* index into given */
    struct resolve *resolve;
    struct text reason;
    loop_fn *fn;
    void *context;
};

static void entries_clear(struct entries *entries)
{
    for (size_t i = 0; i < entries->count; i++) {
        xfree(entries->items[i].host);
        xfree(entries->items[i].hostaddr);
        xfree(entries->items[i].port);
    }
    entries->count = 0;
}

static void entries_add(struct entries *entries, const char *host, const char *hostaddr,
                        const char *port)
{
    entries->items = array_grow(entries->items, entries->count, &entries->capacity,
                                sizeof *entries->items);
    entries->items[entries->count++] = (struct entry){
        .host = xstrdup(host), .hostaddr = xstrdup(hostaddr), .port = xstrdup(port)};
}

/* The part of a list at an index; a list of one part stands for all. The caller frees it. */
static char *list_part(const char *list, size_t index)
{
    if (list == NULL)
        return xstrdup("");
    bool is_single = strchr(list, ',') == NULL;
    for (; index > 0 && !is_single; index--) {
        list = strchr(list, ',');
        if (list == NULL)
            return xstrdup("");
        list++;
    }
    return xstrndup(list, strcspn(list, ","));
}

static size_t list_count(const char *list)
{
    size_t count = list != NULL && list[0] != '\0' ? 1 : 0;
    for (const char *at = list; count > 0 && (at = strchr(at, ',')) != NULL; at++)
        count++;
    return count;
}

static void on_wake(void *context);

struct pg_target *pg_target_new(struct loop *loop, const char *host, const char *hostaddr,
                                const char *port)
{
    struct pg_target *target = xcalloc(1, sizeof *target);
    target->loop = loop;
    target->wake = loop_timer_new(loop, on_wake, target);
    size_t hosts = list_count(host), addresses = list_count(hostaddr);
    size_t count = hosts > addresses ? hosts : addresses;
    for (size_t i = 0; i < count; i++) {
        AUTO_FREE char *one_host = hosts > 0 ? list_part(host, i) : xstrdup("");
        AUTO_FREE char *one_address = addresses > 0 ? list_part(hostaddr, i) : xstrdup("");
        AUTO_FREE char *one_port = list_part(port, i);
        entries_add(&target->given, one_host, one_address, one_port);
    }
    return target;
}

void pg_target_free(struct pg_target *target)
{
    if (target == NULL)
        return;
    resolve_free(target->resolve);
    loop_timer_free(target->wake);
    entries_clear(&target->given);
    entries_clear(&target->found);
    xfree(target->given.items);
    xfree(target->found.items);
    text_done(&target->reason);
    xfree(target);
}

static void on_addresses(void *context, const char *const *addresses, size_t count,
                         const char *reason)
{
    struct pg_target *target = context;
    const struct entry *entry = &target->given.items[target->next];
    for (size_t i = 0; i < count; i++)
        entries_add(&target->found, entry->host, addresses[i], entry->port);
    if (count == 0)
        text_addf(&target->reason, "%shost '%s' is not known: %s",
                  target->reason.length > 0 ? "; " : "", entry->host, reason);
    target->next++;
    loop_timer_set(target->wake, 0);
}

static bool needs_lookup(const struct entry *entry)
{
    return entry->hostaddr[0] == '\0' && entry->host[0] != '\0' && entry->host[0] != '/' &&
           entry->host[0] != '@' && !resolve_is_address(entry->host);
}

static void on_wake(void *context)
{
    struct pg_target *target = context;
    resolve_free(TAKE(target->resolve));
    for (; target->next < target->given.count; target->next++) {
        const struct entry *entry = &target->given.items[target->next];
        if (needs_lookup(entry)) {
            target->resolve = resolve_new(target->loop, entry->host, on_addresses, target);
            return;
        }
        entries_add(&target->found, entry->host, entry->hostaddr, entry->port);
    }
    target->fn(target->context);
}

void pg_target_resolve(struct pg_target *target, loop_fn *fn, void *context)
{
    target->fn = fn;
    target->context = context;
    target->next = 0;
    entries_clear(&target->found);
    text_clear(&target->reason);
    loop_timer_set(target->wake, 0);
}

bool pg_target_lists(const struct pg_target *target, unsigned try_number, struct text *host,
                     struct text *hostaddr, struct text *port, struct text *reason)
{
    size_t count = target->found.count;
    if (count == 0) {
        text_add(reason, target->reason.bytes != NULL ? target->reason.bytes : "no host");
        return false;
    }
    for (size_t i = 0; i < count; i++) {
        const struct entry *entry = &target->found.items[(i + try_number) % count];
        text_addf(host, "%s%s", i > 0 ? "," : "", entry->host);
        text_addf(hostaddr, "%s%s", i > 0 ? "," : "", entry->hostaddr);
        text_addf(port, "%s%s", i > 0 ? "," : "", entry->port);
    }
    return true;
}

bool pg_target_is_default(const struct pg_target *target)
{
    return target->given.count == 0;
}
