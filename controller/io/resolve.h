/* Host names to addresses without waiting: glibc's resolver thread does the waiting. */
#ifndef BROOM_IO_RESOLVE_H
#define BROOM_IO_RESOLVE_H

#include "controller/base/text.h"
#include "controller/io/loop.h"

struct resolve;

/* addresses: numeric, at most RESOLVE_ADDRESSES_MAX; count 0 when the name is not known (reason
 * says so). Lent for the call. */
enum { RESOLVE_ADDRESSES_MAX = 8 };
typedef void resolve_fn(void *context, const char *const *addresses, size_t count,
                        const char *reason);

/* Called once, from the loop, unless resolve_free comes first. The caller frees in both cases. */
struct resolve *resolve_new(struct loop *loop, const char *name, resolve_fn *fn, void *context);
void resolve_free(struct resolve *resolve);

/* True for what needs no look-up: an IPv4 or IPv6 address. */
bool resolve_is_address(const char *host);

#endif
