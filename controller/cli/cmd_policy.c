/* `broom policy lint`: what is wrong with policy files, all of it at once, without a server. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/config/policy_files.h"
#include "controller/config/yaml.h"
#include "remediation/policy.h"

#include <string.h>
#include <unistd.h>

struct lint {
    struct cli *cli;
    bool quiet;
    size_t errors, warnings, files, unread;
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

static void say_unread(struct lint *lint, const struct error *error)
{
    lint->unread++;
    fprintf(lint->cli->err, "broom policy lint: %s\n", error->message);
}

static void lint_file(void *context, const char *path)
{
    struct lint *lint = context;
    AUTO_TEXT bytes = {0};
    struct error error = {0};
    if (policy_file_read(path, &bytes, &error) != OK) {
        say_unread(lint, &error);
        return;
    }
    lint->files++;
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
}

static void lint_path(struct lint *lint, const char *path)
{
    struct error error = {0};
    if (access(path, F_OK) != 0)
        lint_file(lint, path); /* stdin, or it says why not */
    else if (policy_files_each(path, lint_file, lint, &error) != OK)
        say_unread(lint, &error);
}

static void add_count(struct text *out, size_t count, const char *what)
{
    text_addf(out, "%zu %s%s", count, what, count == 1 ? "" : "s");
}

static void say_sum(const struct lint *lint)
{
    AUTO_TEXT sum = {0};
    add_count(&sum, lint->files, "file");
    text_add(&sum, ": ");
    add_count(&sum, lint->errors, "error");
    text_add(&sum, ", ");
    add_count(&sum, lint->warnings, "warning");
    if (lint->unread > 0)
        text_addf(&sum, "; %zu NOT READ", lint->unread);
    fprintf(lint->cli->err, "%s\n", sum.bytes);
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
        .arguments = "PATH...",
        .summary = "check policy files, all mistakes at once",
        .details =
            "Prints FILE:LINE:COLUMN: error: what is wrong [rule] for each finding on stdout. "
            "Several files are\n"
            "checked as the set that broomd would make of them, in the order given. A folder is "
            "its "
            "*.yaml files,\n"
            "'-' is stdin.\n"
            "Exit code 3 when there are errors.\n",
        .examples = "  broom policy lint deploy/policies/nvl72.yaml\n"
                    "  broom policy lint /etc/broomwagon/policies.d\n",
        .least = 1,
        .most = -1,
        .own = {rows, ARRAY_LEN(rows)}};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO(policy_set_free) struct policy_set *set = policy_set_new();
    lint.set = set;
    for (int i = 0; i < arguments.count; i++)
        lint_path(&lint, arguments.items[i]);
    if (!lint.quiet)
        say_sum(&lint);
    if (lint.errors > 0 || (strict && lint.warnings > 0))
        return EXIT_FINDINGS;
    return lint.unread == 0 ? EXIT_DONE : EXIT_FAILED;
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
    fputs("; there is: broom policy lint PATH...\n", cli->err);
    return EXIT_USAGE;
}
