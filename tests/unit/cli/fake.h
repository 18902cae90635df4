/* A broomd of canned answers: each row of a script is what one path answers. Runs the whole of
 * `broom` in this process, with its streams in memory, and compares what it prints with a file of
 * tests/golden/cli. TEST_UPDATE_GOLDEN=1 writes the files anew; read the difference before
 * committing it.
 */
#ifndef BROOM_TESTS_UNIT_CLI_FAKE_H
#define BROOM_TESTS_UNIT_CLI_FAKE_H

#include "controller/base/mem.h"
#include "controller/cli/cli.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <string.h>

#define GOLDEN BROOM_SOURCE_DIR "/tests/golden/cli/"

struct fake_answer {
    const char *path; /* with its query, as sent */
    int code;
    const char *file; /* under tests/golden/cli, or NULL */
    const char *body; /* when file is NULL */
};

struct fake {
    const struct fake_answer *answers;
    size_t count;
    enum status status; /* not OK: the server cannot be reached */
    char last_method[8];
    char last_path[512];
    char last_body[1024];
    size_t requests;
};

struct run {
    int code;
    char *out, *err; /* freed by run_done */
};

static inline enum status fake_fetch(void *context, const struct cli_request *request,
                                     int *ret_code, char **ret_body, struct error *reterr)
{
    struct fake *fake = context;
    fake->requests++;
    text_copy(fake->last_method, sizeof fake->last_method, request->method);
    text_copy(fake->last_path, sizeof fake->last_path, request->path);
    text_copy(fake->last_body, sizeof fake->last_body, request->body != NULL ? request->body : "");
    if (fake->status != OK)
        return error_set(reterr, fake->status,
                         "no answer from http://127.0.0.1:7430: connection refused");
    for (size_t i = 0; i < fake->count; i++) {
        const struct fake_answer *answer = &fake->answers[i];
        if (strcmp(answer->path, request->path) != 0)
            continue;
        char path[512];
        snprintf(path, sizeof path, "%s%s", GOLDEN, answer->file != NULL ? answer->file : "");
        *ret_code = answer->code;
        *ret_body = answer->file != NULL ? test_read_file(path) : xstrdup(answer->body);
        return OK;
    }
    *ret_code = 404;
    *ret_body = xstrdup("{\"error\":\"no such incident; 'broom incidents' lists them\"}");
    return OK;
}

/* words: "incidents show INC-3", split at blanks. */
static inline struct run fake_run(struct fake *fake, const char *words)
{
    struct run run = {0};
    size_t out_bytes;
    size_t err_bytes;
    FILE *out = open_memstream(&run.out, &out_bytes);
    FILE *err = open_memstream(&run.err, &err_bytes);
    struct cli cli = {.out = out, .err = err, .fetch = fake_fetch, .fetch_context = fake};
    AUTO_FREE char *copy = xstrdup(words);
    char program[] = "broom";
    char *argv[32] = {program};
    int argc = 1;
    char *rest = copy;
    for (char *word; (word = strsep(&rest, " ")) != NULL && argc < 31;)
        if (word[0] != '\0')
            argv[argc++] = word;
    run.code = cli_run(&cli, argc, argv);
    fclose(out);
    fclose(err);
    return run;
}

static inline void run_done(struct run *run)
{
    free(run->out);
    free(run->err);
}

static inline void assert_golden(const char *name, const char *text)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", GOLDEN, name);
    if (getenv("TEST_UPDATE_GOLDEN") != NULL) {
        FILE *file = fopen(path, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(file);
        fputs(text, file);
        fclose(file);
    }
    AUTO_FREE char *golden = test_read_file(path);
    CU_ASSERT_PTR_NOT_NULL_FATAL(golden);
    if (strcmp(golden, text) != 0)
        printf("\n--- %s\n%s+++ printed\n%s", path, golden, text);
    CU_ASSERT_STRING_EQUAL(golden, text);
}

/* Runs words against fake, wants the exit code, and compares stdout and then stderr with the golden
 * file. */
static inline void assert_run_golden(struct fake *fake, const char *words, int code,
                                     const char *golden)
{
    struct run run = fake_run(fake, words);
    AUTO_TEXT both = {0};
    CU_ASSERT_EQUAL(run.code, code);
    text_addf(&both, "$ broom %s\n%s", words, run.out);
    if (run.err[0] != '\0')
        text_addf(&both, "--- stderr\n%s", run.err);
    text_addf(&both, "--- exit %d\n", run.code);
    assert_golden(golden, both.bytes);
    run_done(&run);
}

#endif
