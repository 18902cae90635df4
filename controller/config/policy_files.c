/* Folders of policies. */
#include "controller/config/policy_files.h"

#include "controller/base/mem.h"
#include "controller/config/yaml.h"
#include "controller/sys/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { POLICY_BYTES_MAX = 1 << 20, POLICY_FILES_MAX = 64 };

enum status policy_file_read(const char *path, struct text *out, struct error *reterr)
{
    return file_read(path, POLICY_BYTES_MAX, out, reterr);
}

static enum status load_file(const char *path, struct policy_set *set, struct text *findings_text,
                             struct error *reterr)
{
    AUTO_TEXT bytes = {0};
    struct yaml_document document = {0};
    struct findings findings = {0};
    struct policy *policy = NULL;
    TRY(policy_file_read(path, &bytes, reterr));
    yaml_parse((struct view){bytes.bytes, bytes.length}, &document, &findings);
    if (findings.errors == 0 && policy_parse(document.root, &findings, &policy) == OK) {
        policy_set_add(set, policy);
        policy_set_check(set, set->count - 1, &findings);
    }
    findings_print(&findings, path, findings_text);
    size_t errors = findings.errors;
    findings_done(&findings);
    yaml_done(&document);
    return errors == 0 ? OK
                       : error_set(reterr, ERR_INVALID, "%zu error%s in policy '%s'", errors,
                                   errors == 1 ? "" : "s", path);
}

static int is_policy_name(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && entry->d_name[0] != '.' &&
           strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static enum status each_of_folder(const char *path, void (*fn)(void *context, const char *file),
                                  void *context, struct error *reterr)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_policy_name, alphasort);
    if (count < 0)
        return errno == ENOENT
                   ? OK
                   : error_set(reterr, ERR_IO, "cannot list '%s': %s", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        AUTO_TEXT file = {0};
        text_addf(&file, "%s/%s", path, entries[i]->d_name);
        if (count <= POLICY_FILES_MAX)
            fn(context, file.bytes);
        xfree(entries[i]);
    }
    xfree(entries);
    if (count > POLICY_FILES_MAX)
        return error_set(reterr, ERR_LIMIT, "%d policy files in '%s'; at most %d are read", count,
                         path, POLICY_FILES_MAX);
    return OK;
}

enum status policy_files_each(const char *path, void (*fn)(void *context, const char *file),
                              void *context, struct error *reterr)
{
    struct stat info;
    bool is_file = strcmp(path, "-") == 0 || (stat(path, &info) == 0 && !S_ISDIR(info.st_mode));
    if (!is_file)
        return each_of_folder(path, fn, context, reterr);
    fn(context, path);
    return OK;
}

struct loading {
    struct policy_set *set;
    struct text *findings;
    struct error
        error; /* the first; the rest is read all the same: every error of a site at once */
};

static void load_next(void *context, const char *file)
{
    struct loading *loading = context;
    struct error error = {0};
    if (load_file(file, loading->set, loading->findings, &error) != OK &&
        loading->error.status == OK)
        loading->error = error;
}

enum status policy_files_load(const char *path, struct policy_set **ret_set, struct text *findings,
                              struct error *reterr)
{
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    struct loading loading = {.set = set, .findings = findings};
    TRY(policy_files_each(path, load_next, &loading, reterr));
    if (loading.error.status != OK)
        return error_set(reterr, loading.error.status, "%s", loading.error.message);
    *ret_set = TAKE(set);
    return OK;
}

enum status policy_files_load_typed(const char *path, struct policy_set **ret_set,
                                    struct text *findings, struct error *reterr)
{
    if (access(path, F_OK) != 0)
        return error_set(reterr, ERR_NOT_FOUND, "cannot read the policy '%s': %s", path,
                         strerror(errno));
    return policy_files_load(path, ret_set, findings, reterr);
}
