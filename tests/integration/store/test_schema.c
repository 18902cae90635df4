/* The schema: its words are the program's, its rights are narrow, its versions are guarded, old
 * partitions go. */
#include "detectors/verdict.h"
#include "remediation/incident.h"
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <stdio.h>
#include <string.h>

static struct temp_postgres temp;
static struct temp_store at;

/* The words of a domain, sorted, joined by blanks; the caller frees. */
static char *words_of_domain(const char *domain)
{
    AUTO_TEXT sql = {0};
    text_addf(&sql,
              "SELECT string_agg(w[1], ' ' ORDER BY w[1] COLLATE \"C\") FROM pg_constraint c, "
              "regexp_matches(pg_get_constraintdef(c.oid), '''([a-z_]+)''', 'g') w "
              "WHERE c.contypid = 'broom.%s'::regtype",
              domain);
    return temp_sql(&temp, sql.bytes);
}

typedef const char *name_fn(int value);

static void check_words(const char *domain, name_fn *name, int count)
{
    AUTO_TEXT list = {0}, sql = {0};
    for (int i = 0; i < count; i++)
        text_addf(&list, "%s'%s'", i > 0 ? "," : "", name(i));
    text_addf(&sql, "SELECT string_agg(w, ' ' ORDER BY w COLLATE \"C\") FROM unnest(ARRAY[%s]) w",
              list.bytes);
    AUTO_FREE char *ours = temp_sql(&temp, sql.bytes);
    AUTO_FREE char *theirs = words_of_domain(domain);
    CU_ASSERT_STRING_EQUAL(theirs, ours);
}

static const char *kind_of(int value)
{
    return verdict_kind_name((enum verdict_kind)value);
}
static const char *scope_of(int value)
{
    return scope_name((enum scope)value);
}
static const char *cause_of(int value)
{
    return cause_name((enum cause)value);
}
static const char *phase_of(int value)
{
    return phase_name((enum phase)value);
}
static const char *status_of(int value)
{
    return incident_status_name((enum incident_status)value);
}
static const char *verb_of(int value)
{
    return verb_name((enum verb)value);
}
static const char *outcome_of(int value)
{
    return outcome_name((enum outcome)value);
}

TEST(the_words_of_the_schema_are_the_names_in_c)
{
    temp_postgres_start(&temp, false);
    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&at, STORE_UP, 30));
    check_words("verdict_kind", kind_of, VERDICT_KIND_COUNT);
    check_words("scope", scope_of, SCOPE_COUNT);
    check_words("cause", cause_of, CAUSE_COUNT);
    check_words("phase", phase_of, PHASE_COUNT);
    check_words("incident_status", status_of, INCIDENT_STATUS_COUNT);
    check_words("verb", verb_of, VERB_COUNT);
    check_words("outcome", outcome_of, OUTCOME_COUNT);
}

/* The scripts end with an error of their own when everything held, so that they leave nothing. */
static void run_script(const char *name)
{
    AUTO_TEXT path = {0};
    text_addf(&path, "%s/schema/tests/%s", BROOM_SOURCE_DIR, name);
    AUTO_FREE char *script = test_read_file(path.bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(script);
    AUTO_FREE char *result = temp_sql(&temp, script);
    CU_ASSERT_STRING_EQUAL(result, "ERROR P0TST");
}

TEST(the_roles_can_do_what_they_must_and_nothing_else)
{
    run_script("roles.sql");
}

TEST(old_partitions_go_unless_an_incident_needs_them)
{
    run_script("retention.sql");
}

static void on_reader(void *context, bool up, const char *reason)
{
    int *state = context;
    *state = up ? 1 : -1;
    if (!up)
        printf("%s\n", reason);
}

static bool is_told(void *context)
{
    const int *state = context;
    return *state != 0;
}

TEST(a_person_on_the_machine_logs_in_as_the_reader)
{
    int state = 0;
    AUTO_TEXT conninfo = {0};
    text_addf(&conninfo, "host=%s/postgres/socket user=broom_reader dbname=postgres", temp.dir);
    struct pg *pg = pg_new(temp.loop, conninfo.bytes, on_reader, &state);
    CU_ASSERT_TRUE(run_until(temp.loop, is_told, &state, 10));
    CU_ASSERT_EQUAL(state, 1);
    pg_free(pg);
}

TEST(durations_are_derived_and_unknown_ones_are_null)
{
    AUTO_TEXT batch = {0};
    add_incident(&batch, 1, 1, "open", "suspected");
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), OK);
    CU_ASSERT_EQUAL(
        temp_sql_int(&temp, "SELECT time_to_detect_s::integer FROM broom_api.incidents"), 30);
    AUTO_FREE char *decide = temp_sql(&temp, "SELECT time_to_decide_s FROM broom_api.incidents");
    CU_ASSERT_STRING_EQUAL(decide, "");
}

static void reopen_refused(const char *word)
{
    temp_store_stop(&at);
    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE(temp_store_wait(&at, STORE_MIGRATING, 10));
    run_for_ms(temp.loop, 300);
    struct store_status status = store_status(at.store);
    CU_ASSERT_EQUAL(status.state, STORE_MIGRATING);
    CU_ASSERT_PTR_NOT_NULL(strstr(status.reason, word));
    CU_ASSERT_FALSE(status.lease_held);
    AUTO_TEXT batch = {0};
    add_event(&batch, 77);
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), ERR_UNREACHABLE);
}

TEST(a_newer_schema_is_refused_and_told)
{
    AUTO_FREE char *made = temp_sql(
        &temp,
        "INSERT INTO broom.schema_version (version, name, checksum) VALUES (999, 'future', 'x')");
    CU_ASSERT_STRING_EQUAL(made, "");
    reopen_refused("999");
    AUTO_FREE char *gone = temp_sql(&temp, "DELETE FROM broom.schema_version WHERE version = 999");
    CU_ASSERT_STRING_EQUAL(gone, "");
    CU_ASSERT_TRUE(temp_store_wait(&at, STORE_UP, 20)); /* by itself, once a person has looked */
}

TEST(an_edited_migration_is_refused_and_told)
{
    AUTO_FREE char *edited = temp_sql(
        &temp, "UPDATE broom.schema_version SET checksum = 'x' WHERE version = 2");
    CU_ASSERT_STRING_EQUAL(edited, "");
    reopen_refused("002_partitions");
    temp_store_stop(&at);
    temp_postgres_stop(&temp);
}

TESTS(T(the_words_of_the_schema_are_the_names_in_c),
      T(the_roles_can_do_what_they_must_and_nothing_else),
      T(old_partitions_go_unless_an_incident_needs_them),
      T(a_person_on_the_machine_logs_in_as_the_reader),
      T(durations_are_derived_and_unknown_ones_are_null), T(a_newer_schema_is_refused_and_told),
      T(an_edited_migration_is_refused_and_told))
