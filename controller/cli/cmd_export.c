/* `broom export INC-n --out FILE.tar` and `broom export verify FILE.tar`. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/export.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { ARCHIVE_BYTES_MAX = 1 << 30 };

static enum status write_block(void *context, struct view bytes, struct error *reterr)
{
    FILE *file = context;
    if (fwrite(bytes.bytes, 1, bytes.length, file) != bytes.length)
        return error_set(reterr, ERR_IO, "cannot write the archive: %s", strerror(errno));
    return OK;
}

static enum status close_file(FILE *file, enum status status, struct error *reterr)
{
    bool synced = fflush(file) == 0 && fsync(fileno(file)) == 0;
    bool closed = fclose(file) == 0;
    if (status == OK && !(synced && closed))
        return error_set(reterr, ERR_IO, "cannot write the archive: %s", strerror(errno));
    return status;
}

/* Written beside its place and moved there: what stands under the name is always whole. */
static enum status write_archive(const struct json *answer, const char *path, struct text *problems,
                                 struct error *reterr)
{
    AUTO_TEXT part = {0};
    text_addf(&part, "%s.part", path);
    FILE *file = fopen(part.bytes, "wb");
    if (file == NULL)
        return error_set(reterr, ERR_IO, "cannot write '%s': %s", part.bytes, strerror(errno));
    enum status status = close_file(file, export_write(answer, write_block, file, problems, reterr),
                                    reterr);
    if (status == OK && rename(part.bytes, path) != 0)
        status = error_set(reterr, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (status != OK)
        unlink(part.bytes);
    return status;
}

static enum status read_archive(const char *path, struct text *out, struct error *reterr)
{
    char block[65536];
    FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "rb");
    if (file == NULL)
        return error_set(reterr, ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0 && out->length < ARCHIVE_BYTES_MAX)
        text_add_bytes(out, block, got);
    bool failed = ferror(file) != 0;
    if (file != stdin)
        fclose(file);
    if (failed || out->length >= ARCHIVE_BYTES_MAX)
        return error_set(reterr, ERR_IO, "cannot read '%s'%s", path,
                         failed ? "" : ": it is over 1 GiB");
    return OK;
}

static int cmd_export_verify(struct cli *cli, int argc, char **argv)
{
    const struct usage usage = {.command = "export verify",
                                .arguments = "FILE.tar",
                                .summary = "check that a bundle is whole and unchanged",
                                .details = "Checks the archive's own structure, SHA256SUMS and the "
                                           "manifest. Exit code 3 when anything differs.\n",
                                .examples = "  broom export verify INC-3.tar\n",
                                .least = 1,
                                .most = 1};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO_TEXT archive = {0};
    AUTO_TEXT problems = {0};
    struct error error = {0};
    struct export_check check;
    if (read_archive(arguments.items[0], &archive, &error) != OK) {
        fprintf(cli->err, "broom export verify: %s\n", error.message);
        return EXIT_FAILED;
    }
    if (export_verify((struct view){archive.bytes, archive.length}, &problems, &check) == OK) {
        fprintf(cli->out, "%s: %zu files, all as they were written\n", arguments.items[0],
                check.files);
        return EXIT_DONE;
    }
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, problems.bytes);
    fputs(clean.bytes, cli->out);
    fprintf(cli->err, "%s: %zu problem%s: this is not what was exported\n", arguments.items[0],
            check.problems, check.problems == 1 ? "" : "s");
    return EXIT_FINDINGS;
}

static int write_export(struct cli *cli, const char *ref, const char *out_file,
                        const struct json *root)
{
    struct error error = {0};
    AUTO_TEXT problems = {0};
    enum status status = strcmp(out_file, "-") == 0
                             ? export_write(root, write_block, cli->out, &problems, &error)
                             : write_archive(root, out_file, &problems, &error);
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, problems.bytes != NULL ? problems.bytes : "");
    fputs(clean.bytes != NULL ? clean.bytes : "", cli->err);
    if (status != OK) {
        fprintf(cli->err, "broom export: %s\n", error.message);
        return EXIT_FAILED;
    }
    if (strcmp(out_file, "-") != 0)
        fprintf(cli->err, "%s: everything about %s. Next: tar xf %s, then read %s/report.md\n",
                out_file, ref, out_file, ref);
    return EXIT_DONE;
}

int cmd_export(struct cli *cli, int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "verify") == 0)
        return cmd_export_verify(cli, argc - 1, argv + 1);
    const char *out_file = NULL;
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"out", 0, OPTION_TEXT, "FILE.tar", "where to; - is stdout", &out_file, NULL}};
    const struct usage usage = {
        .command = "export",
        .arguments = "INC-n --out FILE.tar | verify FILE.tar",
        .summary = "everything about one incident in one archive, for the postmortem",
        .details = "Holds report.md (the postmortem with its facts filled in), timeline, decisions "
                   "with the values they\n"
                   "saw, actions with the cluster's responses, verdicts, events, every sample "
                   "round the incident as\n"
                   "CSV, the job's layout and plots of the suspects against their peers. Two "
                   "exports of one incident\n"
                   "are the same bytes as long as nothing is added to it.\n",
        .examples = "  broom export INC-3 --out INC-3.tar\n"
                    "  broom export verify INC-3.tar\n"
                    "  broom export INC-3 --out - | tar x INC-3/report.md\n",
        .least = 1,
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    char ref[32];
    int code = cli_take_ref(cli, &usage, argc, argv, ref);
    if (code != OPTIONS_RUN)
        return code;
    if (out_file == NULL) {
        fprintf(cli->err, "broom export: say where to: broom export %s --out %s.tar\n", ref, ref);
        return EXIT_USAGE;
    }
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    text_addf(&path, "/api/v1/incidents/%s/export", ref);
    code = cli_get_large(cli, &common, path.bytes, &root);
    return code != EXIT_DONE ? code : write_export(cli, ref, out_file, root);
}
