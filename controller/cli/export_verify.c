/* Checks a bundle as strictly as it is written: one flipped bit anywhere is a problem with a name.
 */
#include "controller/cli/export.h"

#include "controller/base/mem.h"
#include "controller/cli/tar.h"
#include "controller/io/digest.h"

#include <string.h>

enum { FILES_MAX = 4096 };

struct check {
    struct text *problems;
    size_t count;
    struct tar_entry *entries;
    size_t entry_count;
    size_t capacity;
};

static void problem(struct check *check, const char *format, ...) PRINTF_LIKE(2, 3);
static void problem(struct check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    text_addv(check->problems, format, args);
    va_end(args);
    text_add(check->problems, "\n");
    check->count++;
}

static void read_entries(struct check *check, struct view archive)
{
    size_t offset = 0;
    struct error error = {0};
    struct tar_entry entry;
    while (check->entry_count < FILES_MAX) {
        if (tar_next(archive, &offset, &entry, &error) != OK) {
            problem(check, "%s", error.message);
            return;
        }
        if (entry.name[0] == '\0')
            return;
        check->entries = array_grow(check->entries, check->entry_count, &check->capacity,
                                    sizeof *check->entries);
        check->entries[check->entry_count++] = entry;
    }
    problem(check, "the archive holds more than %d files", FILES_MAX);
}

/* The name inside the bundle's folder, or NULL when it is outside of it. */
static const char *inner_name(const struct check *check, const struct tar_entry *entry)
{
    size_t folder = strcspn(check->entries[0].name, "/");
    bool inside = strncmp(entry->name, check->entries[0].name, folder + 1) == 0 &&
                  entry->name[folder] == '/';
    return inside && strstr(entry->name, "..") == NULL ? entry->name + folder + 1 : NULL;
}

static const struct tar_entry *find_entry(const struct check *check, const char *name)
{
    for (size_t i = 0; i < check->entry_count; i++) {
        const char *inner = inner_name(check, &check->entries[i]);
        if (inner != NULL && strcmp(inner, name) == 0)
            return &check->entries[i];
    }
    return NULL;
}

/* SHA256SUMS as it must be for these files: the given one has to be these very bytes. */
static void check_sums(struct check *check)
{
    AUTO_TEXT right = {0};
    const struct tar_entry *sums = find_entry(check, "SHA256SUMS");
    if (sums == NULL || sums != &check->entries[check->entry_count - 1]) {
        problem(check, "SHA256SUMS is missing or not the last file");
        return;
    }
    for (size_t i = 0; i + 1 < check->entry_count; i++) {
        char hex[DIGEST_HEX_BYTES];
        struct error error = {0};
        const char *name = inner_name(check, &check->entries[i]);
        if (name == NULL) {
            problem(check, "'%s' stands outside of the bundle's folder", check->entries[i].name);
            continue;
        }
        if (digest_sha256(check->entries[i].bytes, hex, &error) != OK) {
            problem(check, "%s", error.message);
            continue;
        }
        size_t start = right.length;
        text_addf(&right, "%s  %s\n", hex, name);
        struct view line = {right.bytes + start, right.length - start};
        if (memmem(sums->bytes.bytes, sums->bytes.length, line.bytes, line.length) == NULL)
            problem(check, "%s does not match its sum in SHA256SUMS", name);
    }
    if (check->count == 0 &&
        !view_equals_view((struct view){right.bytes, right.length}, sums->bytes))
        problem(check, "SHA256SUMS names other files than the archive holds");
}

static void check_listed(struct check *check, const struct json *item,
                         const struct tar_entry *entry)
{
    char hex[DIGEST_HEX_BYTES];
    const char *name = json_get_string(item, "name", "?");
    if (entry == NULL)
        problem(check, "%s is in the manifest and not in the archive", name);
    else if (json_get_int(item, "bytes", -1) != (int64_t)entry->bytes.length)
        problem(check, "%s has %zu bytes, the manifest says %lld", name, entry->bytes.length,
                (long long)json_get_int(item, "bytes", -1));
    else if (digest_sha256(entry->bytes, hex, NULL) != OK ||
             strcmp(hex, json_get_string(item, "sha256", "")) != 0)
        problem(check, "%s does not match its sum in the manifest", name);
}

static void check_manifest(struct check *check)
{
    AUTO(json_free) struct json *manifest = NULL;
    struct error error = {0};
    const struct tar_entry *entry = find_entry(check, "manifest.json");
    if (entry == NULL) {
        problem(check, "manifest.json is missing");
        return;
    }
    if (json_parse(entry->bytes, &manifest, &error) != OK) {
        problem(check, "manifest.json: %s", error.message);
        return;
    }
    const char *format = json_get_string(manifest, "format", "?");
    if (strcmp(format, "broom-export/1") != 0)
        problem(check, "the format is '%s', this program knows 'broom-export/1'", format);
    const struct json *files = json_get(manifest, "files");
    for (const struct json *item = json_first(files); item != NULL; item = json_next(item))
        check_listed(check, item, find_entry(check, json_get_string(item, "name", "?")));
    if (json_size(files) + 2 != check->entry_count)
        problem(check, "the manifest lists %zu files, the archive holds %zu beside it",
                json_size(files), check->entry_count);
}

enum status export_verify(struct view archive, struct text *problems,
                          struct export_check *ret_check)
{
    struct check check = {.problems = problems};
    read_entries(&check, archive);
    if (check.entry_count == 0 && check.count == 0)
        problem(&check, "the archive is empty");
    if (check.entry_count > 0) {
        check_sums(&check);
        check_manifest(&check);
    }
    *ret_check = (struct export_check){check.entry_count, check.count};
    xfree(check.entries);
    return check.count == 0 ? OK : ERR_INVALID;
}
