/* `broom policy lint`: all mistakes at once, each at its place, and exit code 3. */
#include "tests/unit/cli/fake.h"

#include <unistd.h>

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

TEST(the_shipped_policies_are_clean)
{
    struct fake fake = {0};
    struct run run = fake_run(&fake, "policy lint --strict " BROOM_SOURCE_DIR
                                     "/deploy/policies/nvl72.yaml");
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_STRING_EQUAL(run.out, "");
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "1 file: 0 errors, 0 warnings"));
    run_done(&run);
}

TEST(five_mistakes_are_five_findings_with_their_places_and_the_near_key)
{
    static const char text[] = "apiVersion: broomwagon.io/v1\n"
                               "kind: RemediationPolicy\n"
                               "metadata: {name: five-mistakes, owner: sre@example.com}\n"
                               "mode: enforced\n"
                               "budgets:\n"
                               "  - {name: trays, scope: cluster, trays: -3, window: 1h}\n"
                               "rules:\n"
                               "  - name: a\n"
                               "    match: {kind: crsh}\n"
                               "    severty: P1\n"
                               "    plan: record\n"
                               "  - name: rest\n"
                               "    match: {}\n"
                               "    plan: nowhere\n"
                               "plans:\n"
                               "  record: []\n";
    static const char *const places[] = {":4:", ":6:", ":9:", ":10:", ":14:", "severity"};
    char path[] = "/tmp/broom_policy_XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
    write_file(path, text);
    char words[128];
    struct fake fake = {0};
    snprintf(words, sizeof words, "policy lint %s", path);
    struct run run = fake_run(&fake, words);
    CU_ASSERT_EQUAL(run.code, 3);
    size_t lines = 0;
    for (const char *c = run.out; *c != '\0'; c++)
        lines += *c == '\n';
    CU_ASSERT_EQUAL(lines, 5);
    for (size_t i = 0; i < ARRAY_LEN(places); i++) {
        if (strstr(run.out, places[i]) == NULL)
            printf("\n'%s' is not in:\n%s", places[i], run.out);
        CU_ASSERT_PTR_NOT_NULL(strstr(run.out, places[i]));
    }
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "5 errors"));
    run_done(&run);
    unlink(path);
}

TEST(a_file_that_is_no_yaml_or_not_there_says_so)
{
    struct fake fake = {0};
    struct run run = fake_run(&fake, "policy lint /nonexistent/policy.yaml");
    CU_ASSERT_EQUAL(run.code, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "cannot read '/nonexistent/policy.yaml'"));
    run_done(&run);
    run = fake_run(&fake, "policy lint /dev/null");
    CU_ASSERT_EQUAL(run.code, 3);
    run_done(&run);
    char path[] = "/tmp/broom_policy_XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_TRUE_FATAL(fd >= 0);
    close(fd);
    write_file(path, "a: [1,\nb: }\n");
    char words[128];
    snprintf(words, sizeof words, "policy lint -q %s", path);
    run = fake_run(&fake, words);
    CU_ASSERT_EQUAL(run.code, 3);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, path));
    CU_ASSERT_STRING_EQUAL(run.err, "");
    run_done(&run);
    unlink(path);
}

TEST(a_folder_is_the_set_of_its_files_and_what_cannot_be_read_is_not_clean)
{
    struct fake fake = {0};
    struct run run = fake_run(&fake, "policy lint " BROOM_SOURCE_DIR "/deploy/policies");
    CU_ASSERT_EQUAL(run.code, 0);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "2 files: 0 errors"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.out, "[hidden-rule]")); /* one hides the other */
    run_done(&run);
    run = fake_run(&fake, "policy lint " BROOM_SOURCE_DIR "/deploy/policies/nvl72.yaml /nosuch");
    CU_ASSERT_EQUAL(run.code, 1);
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "cannot read '/nosuch'"));
    CU_ASSERT_PTR_NOT_NULL(strstr(run.err, "1 file: 0 errors, 0 warnings; 1 NOT READ"));
    run_done(&run);
}

TESTS(T(the_shipped_policies_are_clean),
      T(five_mistakes_are_five_findings_with_their_places_and_the_near_key),
      T(a_file_that_is_no_yaml_or_not_there_says_so),
      T(a_folder_is_the_set_of_its_files_and_what_cannot_be_read_is_not_clean))
