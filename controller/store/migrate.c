/* The chain of statements: is there a schema? - lock - roles - what was applied? - apply the rest -
 * unlock - work as broom_writer. A schema that is complete needs no more rights than the writer's.
 */
#include "controller/store/migrate.h"

#include "controller/io/digest.h"
#include "controller/sys/log.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct schema_file {
    const char *name; /* "001_tables" */
    const char *sql;
};

#include "schema_sql.h"

enum { MIGRATION_TIMEOUT_MS = 600000 };

/* Shared by everyone who migrates this database. */
#define MIGRATION_LOCK "7094310"

struct migrate {
    struct pg *pg;
    migrate_fn *fn;
    void *context;
    size_t next; /* migration to apply */
    bool is_locked;
};

static bool is_migration(const struct schema_file *file)
{
    return file->name[0] >= '0' && file->name[0] <= '9';
}

static int version_of(const struct schema_file *file)
{
    int64_t version = 0;
    struct view digits = {file->name, strspn(file->name, "0123456789")};
    bool is_number = text_parse_int(digits, &version);
    assert(is_number);
    (void)is_number;
    return (int)version;
}

static const struct schema_file *find_version(int version)
{
    for (size_t i = 0; i < ARRAY_LEN(schema_files); i++)
        if (is_migration(&schema_files[i]) && version_of(&schema_files[i]) == version)
            return &schema_files[i];
    return NULL;
}

static const struct schema_file *find_name(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(schema_files); i++)
        if (strcmp(schema_files[i].name, name) == 0)
            return &schema_files[i];
    return NULL;
}

static int newest_version(void)
{
    int newest = 0;
    for (size_t i = 0; i < ARRAY_LEN(schema_files); i++)
        if (is_migration(&schema_files[i]) && version_of(&schema_files[i]) > newest)
            newest = version_of(&schema_files[i]);
    return newest;
}

/* The first sixteen digits are enough to see an edited file. */
static void checksum_of(const struct schema_file *file, char ret_checksum[17])
{
    char hex[DIGEST_HEX_BYTES] = "";
    /* Only a library without SHA-256 fails; then every checksum is empty and equal. */
    ignore_status(digest_sha256(view_of(file->sql), hex, NULL));
    text_copy(ret_checksum, 17, hex);
}

/* ---- the chain ---- */

static void send(struct migrate *migrate, const char *sql, pg_answer_fn *fn)
{
    pg_query(migrate->pg, sql, NULL, 0, MIGRATION_TIMEOUT_MS, fn, migrate);
}

/* True when the answer is worth going on with; else the end was told, and migrate may be gone. */
static bool received(struct migrate *migrate, const struct pg_answer *answer, const char *what)
{
    if (answer->status == OK)
        return true;
    AUTO_TEXT reason = {0};
    text_addf(&reason, "%s: %s", what, answer->reason);
    migrate->fn(migrate->context, answer->status == ERR_UNREACHABLE ? ERR_UNREACHABLE : ERR_REFUSED,
                reason.bytes);
    return false;
}

static void on_working(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (received(migrate, answer, "the session cannot work as broom_writer"))
        migrate->fn(migrate->context, OK, "");
}

static void work_as_writer(struct migrate *migrate)
{
    AUTO_TEXT sql = {0};
    if (migrate->is_locked)
        text_add(&sql, "SELECT pg_catalog.pg_advisory_unlock(" MIGRATION_LOCK ");");
    text_add(&sql,
             "SET SESSION TimeZone = 'UTC'; SET SESSION search_path = pg_catalog;"
             "SET SESSION statement_timeout = '14s'; SET SESSION lock_timeout = '10s';"
             "SET SESSION idle_in_transaction_session_timeout = '60s'; SET ROLE broom_writer");
    send(migrate, sql.bytes, on_working);
}

static void apply_next(struct migrate *migrate);

static void on_applied(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    const struct schema_file *file = &schema_files[migrate->next];
    AUTO_TEXT what = {0};
    text_addf(&what, "migration %s failed", file->name);
    if (!received(migrate, answer, what.bytes))
        return;
    log_event(LOG_INFO, "migration_applied", kv_str("name", file->name));
    migrate->next++;
    apply_next(migrate);
}

static void apply_next(struct migrate *migrate)
{
    char checksum[17];
    AUTO_TEXT sql = {0};
    while (migrate->next < ARRAY_LEN(schema_files) && !is_migration(&schema_files[migrate->next]))
        migrate->next++;
    if (migrate->next == ARRAY_LEN(schema_files)) {
        work_as_writer(migrate);
        return;
    }
    const struct schema_file *file = &schema_files[migrate->next];
    checksum_of(file, checksum);
    text_addf(
        &sql,
        "BEGIN; SET LOCAL ROLE broom_owner;\n%s;\nINSERT INTO broom.schema_version (version, name, "
        "checksum) VALUES (%d, '%s', '%s'); COMMIT",
        file->sql, version_of(file), file->name, checksum);
    send(migrate, sql.bytes, on_applied);
}

static bool refuse(struct migrate *migrate, const char *reason)
{
    migrate->fn(migrate->context, ERR_REFUSED, reason);
    return false;
}

/* What is there must be what we would have made. Sets the first one to apply. */
static bool check_applied(struct migrate *migrate, const struct pg_answer *answer)
{
    AUTO_TEXT reason = {0};
    migrate->next = 0;
    for (int row = 0; row < answer->rows; row++) {
        char checksum[17];
        int64_t version = 0;
        (void)text_parse_int(view_of(pg_value(answer, row, 0)), &version);
        const struct schema_file *file = find_version((int)version);
        if (file == NULL) {
            text_addf(&reason,
                      "the schema is at version %lld, this broomd knows %d: start the newer broomd",
                      (long long)version, newest_version());
            return refuse(migrate, reason.bytes);
        }
        checksum_of(file, checksum);
        if (!view_equals(view_of(pg_value(answer, row, 1)), checksum)) {
            text_addf(&reason, "migration %s was applied with another text than this broomd has",
                      file->name);
            return refuse(migrate, reason.bytes);
        }
        migrate->next = (size_t)(file - schema_files) + 1;
    }
    return true;
}

static bool is_complete(const struct migrate *migrate)
{
    for (size_t i = migrate->next; i < ARRAY_LEN(schema_files); i++)
        if (is_migration(&schema_files[i]))
            return false;
    return true;
}

#define LIST_APPLIED "SELECT version, checksum FROM broom.schema_version ORDER BY version"

static void on_list_locked(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (received(migrate, answer, "the schema's version cannot be read") &&
        check_applied(migrate, answer))
        apply_next(migrate);
}

static void on_roles(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (received(migrate, answer, "the roles and the schema cannot be made"))
        send(migrate, LIST_APPLIED, on_list_locked);
}

static void on_locked(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (!received(migrate, answer, "the migration lock was not given"))
        return;
    migrate->is_locked = true;
    const struct schema_file *roles = find_name("roles");
    assert(roles != NULL); /* built in */
    send(migrate, roles->sql, on_roles);
}

static void take_lock(struct migrate *migrate)
{
    send(migrate, "SELECT pg_catalog.pg_advisory_lock(" MIGRATION_LOCK ")", on_locked);
}

static void on_list(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (!received(migrate, answer, "the schema's version cannot be read") ||
        !check_applied(migrate, answer))
        return;
    if (is_complete(migrate))
        work_as_writer(migrate);
    else
        take_lock(migrate);
}

static void on_exists(void *context, const struct pg_answer *answer)
{
    struct migrate *migrate = context;
    if (!received(migrate, answer, "the schema cannot be looked for"))
        return;
    if (pg_value(answer, 0, 0) != NULL)
        send(migrate, LIST_APPLIED, on_list);
    else
        take_lock(migrate);
}

struct migrate *migrate_new(struct pg *pg, migrate_fn *fn, void *context)
{
    struct migrate *migrate = xcalloc(1, sizeof *migrate);
    migrate->pg = pg;
    migrate->fn = fn;
    migrate->context = context;
    send(migrate, "SELECT pg_catalog.to_regclass('broom.schema_version')", on_exists);
    return migrate;
}

void migrate_free(struct migrate *migrate)
{
    xfree(migrate);
}
