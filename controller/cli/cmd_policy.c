/* `broom policy lint`: what is wrong with policy files, all of it at once, without a server. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/config/policy_files.h"
#include "controller/config/yaml.h"
#include "remediation/policy.h"

#include <string.h>

struct lint {
    struct cli *cli;
    bool quiet;
    size_t errors, warnings, files;
    struct policy_set *set; /* the files so far: mistakes across files show in it */
};

static void print_findings(struct lint *lint, const char *path, const struct findings *findings)
{
    AUTO_TEXT out = {0};
    findings_print(findings, path, &out);
    lint->errors += findings->errors;
    lint->warnings += findings->count - findings->errors;
    if (out.length > 0)
        fwrite(out.bytes, 1, out.length, lint->cli->out);
}

static void say_good(const struct lint *lint, const char *path, const struct policy *policy)
{
    if (!lint->quiet)
        fprintf(lint->cli->err,
                "%s: policy %s, mode %s, %zu rules, %zu plans, %zu budgets, hash %s\n", path,
                policy->name,
                policy->mode == MODE_UNSET ? "observe (not said)" : mode_name(policy->mode),
                policy->rule_count, policy->plan_count, policy->budget_count, policy->hash);
}

/* False when the file could not be read at all. */
static bool lint_file(struct lint *lint, const char *path)
{
    AUTO_TEXT bytes = {0};
    struct error error = {0};
    lint->files++;
    if (policy_file_read(path, &bytes, &error) != OK) {
        fprintf(lint->cli->err, "broom policy lint: %s\n", error.message);
        return false;
    }
    struct yaml_document document = {0};
    struct findings findings = {0};
    struct policy *policy = NULL;
    yaml_parse((struct view){bytes.bytes != NULL ? bytes.bytes : "", bytes.length}, &document,
               &findings);
    if (findings.errors == 0 && policy_parse(document.root, &findings, &policy) == OK) {
        say_good(lint, path, policy);
        policy_set_add(lint->set, policy);
        policy_set_check(lint->set, lint->set->count - 1, &findings);
    }
    print_findings(lint, path, &findings);
    findings_done(&findings);
    yaml_done(&document);
    return true;
}

static int cmd_policy_lint(struct cli *cli, int argc, char **argv)
{
    struct lint lint = {.cli = cli};
    bool strict = false;
    const struct option_row rows[] = {
        {"strict", 0, OPTION_FLAG, NULL, "warnings count as errors", &strict, NULL},
        {"quiet", 'q', OPTION_FLAG, NULL, "only findings", &lint.quiet, NULL},
    };
    const struct usage usage = {
        .command = "policy lint",
        .arguments = "FILE...",
        .summary = "check policy files, all mistakes at once",
        .details =
            "Prints FILE:LINE:COLUMN: error: what is wrong [rule] for each finding on stdout. "
            "Several files are\n"
            "checked as the set that broomd would make of them, in the order given. '-' is stdin.\n"
            "Exit code 3 when there are errors.\n",
        .examples = "  broom policy lint deploy/policies/nvl72.yaml\n"
                    "  broom policy lint /etc/broomwagon/policies.d/*.yaml\n",
        .least = 1,
        .most = -1,
        .own = {rows, ARRAY_LEN(rows)}};
    struct arguments arguments;
    enum parsed parsed = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (parsed != PARSED_RUN)
        return parsed == PARSED_HELP ? EXIT_DONE : EXIT_USAGE;
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    lint.set = set;
    bool all_read = true;
    for (int i = 0; i < arguments.count; i++)
        all_read &= lint_file(&lint, arguments.items[i]);
    if (!lint.quiet)
        fprintf(cli->err, "%zu file%s: %zu error%s, %zu warning%s\n", lint.files,
                lint.files == 1 ? "" : "s", lint.errors, lint.errors == 1 ? "" : "s", lint.warnings,
                lint.warnings == 1 ? "" : "s");
    if (lint.errors > 0 || (strict && lint.warnings > 0))
        return EXIT_FINDINGS;
    return all_read ? EXIT_DONE : EXIT_FAILED;
}

int cmd_policy(struct cli *cli, int argc, char **argv)
{
    if (argc >= 2 && strcmp(argv[1], "lint") == 0)
        return cmd_policy_lint(cli, argc - 1, argv + 1);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return cmd_policy_lint(cli, argc, argv);
    if (argc >= 2)
        fprintf(cli->err, "broom policy: unknown word '%s'", argv[1]);
    else
        fputs("broom policy: a word is missing", cli->err);
    fputs("; there is: broom policy lint FILE...\n", cli->err);
    return EXIT_USAGE;
}
