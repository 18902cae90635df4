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
                       : error_set(reterr, ERR_INVALID, "%zu errors in policy '%s'", errors, path);
}

static int is_policy_name(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return length > 5 && entry->d_name[0] != '.' &&
           strcmp(entry->d_name + length - 5, ".yaml") == 0;
}

static enum status load_folder(const char *path, struct policy_set *set, struct text *findings,
                               struct error *reterr)
{
    struct dirent **entries = NULL;
    int count = scandir(path, &entries, is_policy_name, alphasort);
    if (count < 0)
        return errno == ENOENT
                   ? OK
                   : error_set(reterr, ERR_IO, "cannot list '%s': %s", path, strerror(errno));
    enum status status = OK;
    if (count > POLICY_FILES_MAX)
        status = error_set(reterr, ERR_LIMIT, "%d policy files in '%s'; at most %d are read", count,
                           path, POLICY_FILES_MAX);
    for (int i = 0; i < count; i++) {
        AUTO_TEXT file = {0};
        text_addf(&file, "%s/%s", path, entries[i]->d_name);
        struct error error;
        enum status one = count > POLICY_FILES_MAX ? status
                                                   : load_file(file.bytes, set, findings, &error);
        if (one != OK &&
            status == OK) /* the rest is read all the same: every error of a site at once */
            status = error_set(reterr, one, "%s", error.message);
        xfree(entries[i]);
    }
    xfree(entries);
    return status;
}

enum status policy_files_load(const char *path, struct policy_set **ret_set, struct text *findings,
                              struct error *reterr)
{
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    struct stat info;
    bool is_file = stat(path, &info) == 0 && !S_ISDIR(info.st_mode);
    if (is_file)
        TRY(load_file(path, set, findings, reterr));
    else
        TRY(load_folder(path, set, findings, reterr));
    *ret_set = TAKE(set);
    return OK;
}
