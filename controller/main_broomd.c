/* The daemon's main: options, then app_run. */
#include "controller/app.h"
#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "controller/config/config.h"
#include "controller/config/policy_files.h"
#include "detectors/stats/gsl.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_CONFIG "/etc/broomwagon/broomd.yaml"

enum option_code {
    OPTION_CONFIG = 256,
    OPTION_SET,
    OPTION_DATA_DIR,
    OPTION_RUN_DIR,
    OPTION_DATABASE,
    OPTION_MODE,
    OPTION_POLICY,
    OPTION_CHECK,
    OPTION_EXAMPLE,
    OPTION_TIME_FILE,
    OPTION_HELP,
    OPTION_VERSION
};

static const struct option OPTIONS[] = {
    {"config", required_argument, NULL, OPTION_CONFIG},
    {"set", required_argument, NULL, OPTION_SET},
    {"data-dir", required_argument, NULL, OPTION_DATA_DIR},
    {"run-dir", required_argument, NULL, OPTION_RUN_DIR},
    {"database", required_argument, NULL, OPTION_DATABASE},
    {"mode", required_argument, NULL, OPTION_MODE},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"check-config", no_argument, NULL, OPTION_CHECK},
    {"print-example", no_argument, NULL, OPTION_EXAMPLE},
    {"time-file", required_argument, NULL, OPTION_TIME_FILE},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    AUTO_TEXT options = {0};
    config_print_help(&options);
    printf("broomd: finds the slow or lost rank, tray or rack of running training jobs, and gets "
           "them back to work.\n"
           "\n"
           "usage: broomd [--config FILE] [--set section.key=value ...]\n"
           "\n"
           "  --config FILE        default " DEFAULT_CONFIG ", which may be missing\n"
           "  --set KEY=VALUE      one option, as in the file; the last one wins\n"
           "  --data-dir DIR       short for --set data_dir=DIR; so are --run-dir, --database, "
           "--mode\n"
           "  --policy PATH        short for --set policies=PATH\n"
           "  --check-config       read everything, say what is wrong, end (exit 3: findings)\n"
           "  --print-example      a configuration file with every option at its default\n"
           "  --time-file FILE     the shared clock of a rehearsal (broom rehearse makes it)\n"
           "\n"
           "options of the file; [SIGHUP]: a reload takes it over\n%s",
           options.bytes);
}

/* An unknown option is named with the nearest one that there is. */
static int usage_error(const char *given)
{
    const char *names[ARRAY_LEN(OPTIONS)];
    size_t count = 0;
    for (; OPTIONS[count].name != NULL; count++)
        names[count] = OPTIONS[count].name;
    AUTO_FREE char *word = xstrndup(given + strspn(given, "-"),
                                    strcspn(given + strspn(given, "-"), "="));
    const char *near = text_nearest(word, names, count);
    if (near != NULL)
        fprintf(stderr, "broomd: '%s' is not an option that can be used so; did you mean --%s?\n",
                given, near);
    else
        fprintf(stderr, "broomd: '%s' is not an option; broomd --help lists them\n", given);
    return 2;
}

/* Options of the command line that are short for --set; --set itself brings its key along. */
static const struct {
    int code;
    const char *key;
} SHORT_FOR[] = {
    {OPTION_SET, ""},
    {OPTION_DATA_DIR, "data_dir"},
    {OPTION_RUN_DIR, "run_dir"},
    {OPTION_DATABASE, "database"},
    {OPTION_MODE, "mode"},
    {OPTION_POLICY, "policies"},
};

/* True when the option is one that sets a value of the file; false also when there are too many of
 * them. */
static bool take_override(struct app_options *options, int code, const char *value)
{
    for (size_t i = 0; i < ARRAY_LEN(SHORT_FOR); i++) {
        if (SHORT_FOR[i].code != code || options->override_count == APP_OVERRIDES_MAX)
            continue;
        struct text assignment = {0};
        text_addf(&assignment, "%s%s%s", SHORT_FOR[i].key, SHORT_FOR[i].key[0] != '\0' ? "=" : "",
                  value);
        options->overrides[options->override_count++] = text_take(&assignment);
        return true;
    }
    return false;
}

/* The number of policies is said, since a misspelt path is a folder without any. */
static int check_config(const struct app_options *options)
{
    AUTO(config_free) struct config *config = NULL;
    AUTO(policy_set_free) struct policy_set *policies = NULL;
    AUTO_TEXT findings = {0};
    struct error error = {0};
    enum status status = config_load(options->config_path, options->config_is_named,
                                     options->overrides, options->override_count, &config,
                                     &findings, &error);
    if (status == OK)
        status = policy_files_load(config->policies, &policies, &findings, &error);
    fputs(findings.length > 0 ? findings.bytes : "", stdout);
    if (status == OK)
        fprintf(stderr, "broomd: the configuration is good; policies in '%s': %zu\n",
                config->policies, policies->count);
    else
        fprintf(stderr, "broomd: %s\n", error.message);
    return status == OK ? 0 : 3;
}

static int print_example(void)
{
    AUTO_TEXT example = {0};
    config_print_example(&example);
    fputs(example.bytes, stdout);
    return 0;
}

static int value_error(const char *option, const char *wanted)
{
    fprintf(stderr, "broomd: '%s' needs %s\n", option, wanted);
    return 2;
}

enum { GO_ON = -1 };

/* One option. GO_ON, or the exit code with which broomd ends here. */
static int take_option(struct app_options *options, int code, const char *given,
                       bool *ret_only_check)
{
    switch (code) {
    case OPTION_CONFIG:
        options->config_path = optarg;
        options->config_is_named = true;
        return GO_ON;
    case OPTION_CHECK:
        *ret_only_check = true;
        return GO_ON;
    case OPTION_TIME_FILE:
        options->time_file = optarg;
        return GO_ON;
    case OPTION_EXAMPLE:
        return print_example();
    case OPTION_HELP:
        print_help();
        return 0;
    case OPTION_VERSION:
        printf("broomd %s\n", BROOM_VERSION);
        return 0;
    case ':':
        return value_error(given, "a value");
    default:
        return take_override(options, code, optarg) ? GO_ON : usage_error(given);
    }
}

static int run(struct app_options *options, int argc, char **argv)
{
    bool only_check = false;
    int code, ended = GO_ON;
    opterr = 0;
    while (ended == GO_ON && (code = getopt_long(argc, argv, ":", OPTIONS, NULL)) != -1)
        ended = take_option(options, code, argv[optind - 1], &only_check);
    if (ended != GO_ON)
        return ended;
    if (optind < argc)
        return usage_error(argv[optind]);
    return only_check ? check_config(options) : app_run(options);
}

int main(int argc, char **argv)
{
    stats_init();
    struct app_options options = {.config_path = DEFAULT_CONFIG};
    int code = run(&options, argc, argv);
    for (size_t i = 0; i < options.override_count; i++)
        xfree(options.overrides[i]);
    return code;
}
