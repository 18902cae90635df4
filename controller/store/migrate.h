/* Brings the schema up to what this program knows. Forward only: a newer schema, or one whose
 * migrations read differently, is refused, never touched.
 */
#ifndef BROOM_STORE_MIGRATE_H
#define BROOM_STORE_MIGRATE_H

#include "controller/io/pg.h"

struct migrate;

/* status OK: the schema is there and the session works as broom_writer. ERR_REFUSED: a person must
 * look. ERR_UNREACHABLE: the connection was lost. Called once, from the loop; the caller frees then
 * (inside the call is allowed) or after pg_free. */
typedef void migrate_fn(void *context, enum status status, const char *reason);

struct migrate *migrate_new(struct pg *pg, migrate_fn *fn, void *context);
void migrate_free(struct migrate *migrate);
DEFINE_AUTO(struct migrate, migrate_free)

#endif
