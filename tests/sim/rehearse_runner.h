/* Runs `broom rehearse` as a person does, and says what it said when it ends otherwise. */
#ifndef BROOM_TESTS_SIM_REHEARSE_RUNNER_H
#define BROOM_TESTS_SIM_REHEARSE_RUNNER_H

#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "controller/rehearse/child.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BROOM  BROOM_BINARY_DIR "/broom"
#define POLICY BROOM_SOURCE_DIR "/deploy/policies/nvl72-enforce.yaml"

enum { LIMIT_MS = 400000 };

static char folder[256];

static void path_of(const char *name, char *buffer, size_t bytes)
{
    snprintf(buffer, bytes, "%s/%s", folder, name);
}

static void need_programs(void)
{
    static bool made;
    if (access(BROOM, X_OK) != 0 || access(BROOM_BINARY_DIR "/broomd", X_OK) != 0)
        test_skip_all("broom and broomd are not built");
    if (made)
        return;
    snprintf(folder, sizeof folder, "/tmp/broom-test-rehearse-XXXXXX");
    CU_ASSERT_FATAL(mkdtemp(folder) != NULL);
    made = true;
}

/* Runs with the given further words (NULL-terminated); prints what it said when the code is another
 * one. */
static void expect(int code, const char *scenario, const char *const *words)
{
    const char *argv[24] = {BROOM, "rehearse", scenario, "--seed=1"};
    struct child child;
    struct error error = {0};
    char out_path[300];
    size_t count = 4;
    need_programs();
    while (*words != NULL && count < 23)
        argv[count++] = *words++;
    path_of("out.txt", out_path, sizeof out_path);
    CU_ASSERT_FATAL(child_start(&child, "broom", argv, out_path, NULL, &error) == OK);
    CU_ASSERT_FATAL(child_wait(&child, LIMIT_MS));
    CU_ASSERT_EQUAL(child.code, code);
    if (child.code != code) {
        AUTO_FREE char *said = test_read_file(out_path);
        printf("\n%s ended with %d, %d was expected:\n%s\n", scenario, child.code, code,
               said != NULL ? said : "");
    }
}

/* Removes what the runs of this program left. */
static void leave_nothing(void)
{
    char path[300];
    path_of("out.txt", path, sizeof path);
    unlink(path);
    CU_ASSERT_EQUAL(rmdir(folder), 0);
}

#endif
