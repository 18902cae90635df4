/* What sources say of nodes, as it is kept: changes only, in order, for good. */
#include "tests/harness/temp_postgres.h"
#include "tests/harness/test.h"
#include "tests/integration/store/sample_records.h"

#include <string.h>

static struct temp_postgres temp;
static struct temp_store at;

/* One change, second seconds after the sample time; rack NULL: the source fell silent on "r1". */
static void add_topology(struct text *out, const char *node, const char *source, const char *rack,
                         int64_t second)
{
    int64_t time_ns = SAMPLE_NS + second * INT64_C(1000000000);
    text_addf(
        out,
        "{\"type\":\"topology\",\"key\":\"topology/%s/%s/%lld/0\",\"time_ns\":%lld,\"node\":"
        "\"%s\",\"source\":\"%s\",\"rack\":\"%s\",\"nvlink_domain\":null,\"tray\":7,\"rails\":"
        "null,\"silent\":%s,\"answer\":{\"rack\":\"%s\",\"source\":\"%s\","
        "\"nvlink_domain\":null}}\n",
        node, source, (long long)time_ns, (long long)time_ns, node, source,
        rack != NULL ? rack : "r1", rack == NULL ? "true" : "false", rack != NULL ? rack : "r1",
        source);
}

TEST(each_change_is_a_row_and_the_view_shows_the_newest)
{
    AUTO_TEXT batch = {0};
    temp_postgres_start(&temp, false);
    temp_store_open(&at, &temp, "store", true);
    CU_ASSERT_TRUE_FATAL(temp_store_wait(&at, STORE_UP, 30));
    add_topology(&batch, "gb-1", "label", "r1", 0);
    add_topology(&batch, "gb-1", "clique", "u1.1", 0);
    add_topology(&batch, "gb-1", "label", NULL, 10);
    add_topology(&batch, "gb-1", "label", "r2", 20);
    add_timeline(&batch, 1, 1, "records of other kinds go beside them");
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_submit(&at, batch.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom_api.topology_history"), 4);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom.timeline"), 1);
    AUTO_FREE char *now = temp_sql(
        &temp, "SELECT string_agg(format('%s=%s/%s/%s', source, rack, tray, silent), ' ' ORDER BY "
               "source) FROM broom_api.topology");
    CU_ASSERT_STRING_EQUAL(now, "clique=u1.1/7/f label=r2/7/f");
    CU_ASSERT_EQUAL(
        temp_sql_int(&temp, "SELECT count(*) FROM broom_api.topology_history WHERE silent"), 1);
}

TEST(a_broomd_that_starts_again_and_hears_the_same_adds_nothing)
{
    AUTO_TEXT again = {0}, moved = {0};
    add_topology(&again, "gb-1", "label", "r2", 100);
    add_topology(&again, "gb-1", "clique", "u1.1", 100);
    add_topology(&again, "gb-2", "label", "r2", 100);
    add_topology(&again, "gb-2", "label", "r2", 101);
    CU_ASSERT_EQUAL(temp_submit(&at, again.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom_api.topology_history"), 5);
    add_topology(&moved, "gb-1", "label", "r1", 200);
    CU_ASSERT_EQUAL(temp_submit(&at, moved.bytes, 0), OK);
    CU_ASSERT_EQUAL(temp_sql_int(&temp, "SELECT count(*) FROM broom_api.topology_history"), 6);
}

TEST(a_source_that_is_not_known_and_a_change_of_history_are_refused)
{
    AUTO_TEXT odd = {0};
    add_topology(&odd, "gb-1", "rumour", "r1", 300);
    CU_ASSERT_EQUAL(temp_submit(&at, odd.bytes, 0), ERR_INVALID);
    static const char *const statements[] = {"UPDATE broom.topology SET key = 'x'",
                                             "DELETE FROM broom.topology",
                                             "TRUNCATE broom.topology"};
    for (size_t i = 0; i < ARRAY_LEN(statements); i++) {
        AUTO_FREE char *answer = temp_sql(&temp, statements[i]);
        CU_ASSERT_STRING_EQUAL(answer, "ERROR 42501");
    }
    temp_store_stop(&at);
    temp_postgres_stop(&temp);
}

TESTS(T(each_change_is_a_row_and_the_view_shows_the_newest),
      T(a_broomd_that_starts_again_and_hears_the_same_adds_nothing),
      T(a_source_that_is_not_known_and_a_change_of_history_are_refused))
