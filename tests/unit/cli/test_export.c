/* The postmortem bundle: the same bytes each time, whole, and honest about every flipped bit. */
#include "controller/cli/export.h"
#include "controller/cli/export_raw.h"
#include "controller/cli/tar.h"
#include "tests/unit/cli/sample_export.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static enum status collect(void *context, struct view bytes, struct error *reterr)
{
    (void)reterr;
    text_add_bytes(context, bytes.bytes, bytes.length);
    return OK;
}

static enum status refuse(void *context, struct view bytes, struct error *reterr)
{
    int *blocks = context;
    (void)bytes;
    return ++*blocks > 3 ? error_set(reterr, ERR_IO, "no space left on device") : OK;
}

static void export_sample(bool shuffled, struct text *out)
{
    AUTO_TEXT answer = {0};
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    AUTO_TEXT problems = {0};
    sample_export(shuffled, &answer);
    CU_ASSERT_EQUAL_FATAL(json_parse((struct view){answer.bytes, answer.length}, &root, &error),
                          OK);
    enum status status = export_write(root, collect, out, &problems, &error);
    if (status != OK)
        printf("\nexport: %s", error.message);
    CU_ASSERT_EQUAL_FATAL(status, OK);
    CU_ASSERT_EQUAL(problems.length, 0);
}

static struct view find_file(const struct text *archive, const char *name)
{
    size_t offset = 0;
    struct tar_entry entry;
    while (tar_next((struct view){archive->bytes, archive->length}, &offset, &entry, NULL) == OK &&
           entry.name[0] != '\0')
        if (strcmp(entry.name, name) == 0)
            return entry.bytes;
    return (struct view){0};
}

static bool has_text(struct view bytes, const char *text)
{
    return bytes.length > 0 && memmem(bytes.bytes, bytes.length, text, strlen(text)) != NULL;
}

TEST(two_exports_are_the_same_bytes_whatever_order_the_server_gave)
{
    AUTO_TEXT first = {0};
    AUTO_TEXT second = {0};
    export_sample(false, &first);
    export_sample(true, &second);
    CU_ASSERT_EQUAL(first.length, second.length);
    CU_ASSERT_EQUAL(memcmp(first.bytes, second.bytes, first.length), 0);
}

TEST(a_bundle_holds_everything_a_postmortem_asks_for)
{
    static const char *const files[] = {
        "README.txt",         "report.md",       "incident.json",        "timeline.csv",
        "timeline.md",        "decisions.jsonl", "actions.jsonl",        "verdicts.jsonl",
        "events.csv",         "topology.json",   "plots/compute_ms.svg", "plots/step_ms.svg",
        "raw/compute_ms.csv", "raw/step_ms.csv", "manifest.json",        "SHA256SUMS"};
    AUTO_TEXT archive = {0};
    export_sample(false, &archive);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char name[128];
        snprintf(name, sizeof name, "INC-2/%s", files[i]);
        CU_ASSERT_TRUE(find_file(&archive, name).length > 0);
    }
    struct view report = find_file(&archive, "INC-2/report.md");
    static const char *const sections[] = {
        "# Postmortem INC-2",   "## Summary",      "## Impact",
        "| steps lost | 212 |", "## Root cause",   "## Trigger",
        "## Detection",         "## Timeline",     "## What the controller did and why",
        "## Lessons",           "## Action items", "plots/compute_ms.svg",
        "compute\\_z 9.1"};
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (!has_text(report, sections[i]))
            printf("\nreport.md lacks '%s'", sections[i]);
        CU_ASSERT_TRUE(has_text(report, sections[i]));
    }
    CU_ASSERT_TRUE(has_text(find_file(&archive, "INC-2/decisions.jsonl"), "\"spares_free\":2"));
    CU_ASSERT_TRUE(has_text(find_file(&archive, "INC-2/actions.jsonl"), "node/gb-000002 cordoned"));
    CU_ASSERT_TRUE(has_text(find_file(&archive, "INC-2/events.csv"), "\"said \"\"no\"\", twice\""));
    CU_ASSERT_TRUE(
        has_text(find_file(&archive, "INC-2/raw/compute_ms.csv"), "time,step,rank,value\n"));
    CU_ASSERT_TRUE(
        has_text(find_file(&archive, "INC-2/plots/compute_ms.svg"), "rank 5 on gb-000002"));
}

TEST(verify_is_content_with_what_was_written)
{
    AUTO_TEXT archive = {0};
    AUTO_TEXT problems = {0};
    struct export_check check;
    export_sample(false, &archive);
    CU_ASSERT_EQUAL(export_verify((struct view){archive.bytes, archive.length}, &problems, &check),
                    OK);
    CU_ASSERT_TRUE(check.files >= 16);
    CU_ASSERT_EQUAL(check.problems, 0);
}

TEST(one_flipped_bit_anywhere_is_found)
{
    uint64_t random = test_seed();
    AUTO_TEXT archive = {0};
    struct export_check check;
    export_sample(false, &archive);
    int rounds = test_rounds(150);
    for (int i = 0; i < rounds; i++) {
        AUTO_TEXT problems = {0};
        /* Half of the flips go into the first headers, where they are easiest to miss. */
        size_t limit = i % 2 == 0 ? archive.length : 4096;
        size_t byte = test_random(&random) % limit;
        unsigned char bit = (unsigned char)(1u << test_random(&random) % 8);
        archive.bytes[byte] = (char)((unsigned char)archive.bytes[byte] ^ bit);
        if (export_verify((struct view){archive.bytes, archive.length}, &problems, &check) == OK)
            printf("\nflip of bit %u at byte %zu was missed", bit, byte);
        CU_ASSERT_TRUE(check.problems > 0);
        archive.bytes[byte] = (char)((unsigned char)archive.bytes[byte] ^ bit);
    }
}

TEST(an_archive_cut_anywhere_or_with_bytes_behind_it_is_found)
{
    AUTO_TEXT archive = {0};
    struct export_check check;
    export_sample(false, &archive);
    for (size_t length = 0; length < archive.length; length += length < 2048 ? 97 : 9973) {
        AUTO_TEXT problems = {0};
        CU_ASSERT_EQUAL(export_verify((struct view){archive.bytes, length}, &problems, &check),
                        ERR_INVALID);
    }
    AUTO_TEXT problems = {0};
    text_add_bytes(&archive, "x", 1);
    CU_ASSERT_EQUAL(export_verify((struct view){archive.bytes, archive.length}, &problems, &check),
                    ERR_INVALID);
}

TEST(a_disk_that_is_full_ends_the_export_with_its_reason)
{
    AUTO_TEXT answer = {0};
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    AUTO_TEXT problems = {0};
    int blocks = 0;
    sample_export(false, &answer);
    CU_ASSERT_EQUAL_FATAL(json_parse((struct view){answer.bytes, answer.length}, &root, &error),
                          OK);
    CU_ASSERT_EQUAL(export_write(root, refuse, &blocks, &problems, &error), ERR_IO);
    CU_ASSERT_STRING_EQUAL(error.message, "no space left on device");
}

TEST(an_incident_without_samples_job_or_actions_can_still_be_exported)
{
    static const char bare[] =
        "{\"incident\":{\"ref\":\"INC-9\",\"job\":\"j\",\"kind\":\"info\",\"scope\":\"job\","
        "\"domain\":\"j\",\"times\":{\"detected_ns\":1780000000000000000}},\"timeline\":[],"
        "\"job\":null}";
    AUTO(json_free) struct json *root = NULL;
    AUTO_TEXT archive = {0};
    AUTO_TEXT problems = {0};
    AUTO_TEXT damage = {0};
    struct export_check check;
    CU_ASSERT_EQUAL_FATAL(json_parse(view_of(bare), &root, NULL), OK);
    CU_ASSERT_EQUAL(export_write(root, collect, &archive, &problems, NULL), OK);
    CU_ASSERT_EQUAL(export_verify((struct view){archive.bytes, archive.length}, &damage, &check),
                    OK);
    CU_ASSERT_TRUE(
        has_text(find_file(&archive, "INC-9/report.md"), "It changed nothing in the cluster."));
    CU_ASSERT_TRUE(has_text(find_file(&archive, "INC-9/report.md"), "it holds no samples"));
}

/* A shell command in a folder; its exit code. */
static int run_shell(const char *folder, const char *command)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        if (chdir(folder) == 0)
            execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(a_window_that_cannot_be_read_costs_only_itself_and_is_named)
{
    static const char *const windows[] = {
        "{\"metric\":\"step_ms\",\"encoding\":\"parquet\",\"data\":\"\"}",
        "{\"metric\":\"step_ms\",\"encoding\":\"zstd-columns\",\"data\":\"????\"}",
        "{\"metric\":\"step_ms\",\"encoding\":\"zstd-columns\",\"data\":\"AAAA\"}",
        "{\"metric\":\"step_ms\",\"encoding\":\"zstd-columns\"}"};
    for (size_t i = 0; i < ARRAY_LEN(windows); i++) {
        AUTO_TEXT answer = {0};
        AUTO_TEXT archive = {0};
        AUTO(json_free) struct json *root = NULL;
        struct error error = {0};
        text_addf(&answer, "{\"incident\":{\"ref\":\"INC-9\"},\"raw_windows\":[%s]}", windows[i]);
        CU_ASSERT_EQUAL_FATAL(json_parse((struct view){answer.bytes, answer.length}, &root, NULL),
                              OK);
        AUTO_TEXT problems = {0};
        CU_ASSERT_EQUAL(export_write(root, collect, &archive, &problems, &error), OK);
        CU_ASSERT_PTR_NOT_NULL_FATAL(problems.bytes);
        CU_ASSERT_PTR_NOT_NULL(strstr(problems.bytes, "the samples of step_ms could not be read"));
        CU_ASSERT_TRUE(
            has_text(find_file(&archive, "INC-9/report.md"), "This bundle is not whole"));
    }
}

TEST(coreutils_and_tar_agree_with_the_bundle)
{
    if (access("/bin/tar", X_OK) != 0 && access("/usr/bin/tar", X_OK) != 0)
        return;
    char folder[] = "/tmp/broom_export_XXXXXX";
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
    AUTO_TEXT archive = {0};
    char path[64];
    export_sample(false, &archive);
    snprintf(path, sizeof path, "%s/b.tar", folder);
    FILE *file = fopen(path, "wb");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fwrite(archive.bytes, 1, archive.length, file);
    fclose(file);
    CU_ASSERT_EQUAL(
        run_shell(folder, "tar xf b.tar && cd INC-2 && sha256sum --quiet --strict -c SHA256SUMS"),
        0);
    CU_ASSERT_EQUAL(run_shell(folder, "rm -r INC-2 b.tar"), 0);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

TESTS(T(two_exports_are_the_same_bytes_whatever_order_the_server_gave),
      T(a_bundle_holds_everything_a_postmortem_asks_for),
      T(verify_is_content_with_what_was_written), T(one_flipped_bit_anywhere_is_found),
      T(an_archive_cut_anywhere_or_with_bytes_behind_it_is_found),
      T(a_disk_that_is_full_ends_the_export_with_its_reason),
      T(an_incident_without_samples_job_or_actions_can_still_be_exported),
      T(a_window_that_cannot_be_read_costs_only_itself_and_is_named),
      T(coreutils_and_tar_agree_with_the_bundle))
