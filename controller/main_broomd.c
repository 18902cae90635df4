/* The daemon's main: options, then app_run. */
#include "controller/app.h"
#include "controller/base/mem.h"
#include "controller/base/text.h"
#include "controller/config/config.h"
#include "detectors/stats/gsl.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

#define DEFAULT_CONFIG "/etc/broomwagon/broomd.yaml"

enum option_code { OPTION_CONFIG = 256, OPTION_SET, OPTION_DATA_DIR, OPTION_RUN_DIR, OPTION_DATABASE, OPTION_MODE,
                   OPTION_POLICY, OPTION_CHECK, OPTION_EXAMPLE, OPTION_SCALE, OPTION_ORIGIN, OPTION_HELP,
                   OPTION_VERSION };

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
    {"time-scale", required_argument, NULL, OPTION_SCALE},
    {"time-origin", required_argument, NULL, OPTION_ORIGIN},
    {"help", no_argument, NULL, OPTION_HELP},
    {"version", no_argument, NULL, OPTION_VERSION},
    {NULL, 0, NULL, 0},
};

static void print_help(void)
{
    AUTO_TEXT options = {0};
    config_print_help(&options);
    printf("broomd: finds the slow or lost rank, tray or rack of running training jobs, and gets them back to work.\n"
           "\n"
           "usage: broomd [--config FILE] [--set section.key=value ...]\n"
           "\n"
           "  --config FILE        default " DEFAULT_CONFIG ", which may be missing\n"
           "  --set KEY=VALUE      one option, as in the file; the last one wins\n"
           "  --data-dir DIR       short for --set data_dir=DIR; so are --run-dir, --database, --mode\n"
           "  --policy PATH        short for --set policies=PATH\n"
           "  --check-config       read everything, say what is wrong, end (exit 3: findings)\n"
           "  --print-example      a configuration file with every option at its default\n"
           "  --time-scale X       run the daemon's clock X times as fast; rehearsals only\n"
           "  --time-origin NS     wall time, ns since the epoch, from which it runs faster\n"
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
    AUTO_FREE char *word = xstrndup(given + strspn(given, "-"), strcspn(given + strspn(given, "-"), "="));
    const char *near = text_nearest(word, names, count);
    if (near != NULL)
        fprintf(stderr, "broomd: '%s' is not an option that can be used so; did you mean --%s?\n", given, near);
    else
        fprintf(stderr, "broomd: '%s' is not an option; broomd --help lists them\n", given);
    return 2;
}

static void add_override(struct app_options *options, const char *key, const char *value)
{
    if (options->override_count == APP_OVERRIDES_MAX)
        return;
    struct text assignment = {0};
    text_addf(&assignment, "%s%s%s", key, key[0] != '\0' ? "=" : "", value);
    options->overrides[options->override_count++] = text_take(&assignment);
}

static int check_config(const struct app_options *options)
{
    AUTO(config_free) struct config *config = NULL;
    AUTO_TEXT findings = {0};
    struct error error = {0};
    enum status status = config_load(options->config_path, options->config_is_named, options->overrides,
                                     options->override_count, &config, &findings, &error);
    fputs(findings.length > 0 ? findings.bytes : "", stdout);
    if (status == OK)
        fprintf(stderr, "broomd: the configuration is good\n");
    else
        fprintf(stderr, "broomd: %s\n", error.message);
    return status == OK ? 0 : 3;
}

static bool take_number(const char *text, double least, double *ret_value)
{
    return text_parse_number(view_of(text), ret_value) && *ret_value >= least;
}

int main(int argc, char **argv)
{
    stats_init();
    struct app_options options = {.config_path = DEFAULT_CONFIG, .time_scale = 1.0};
    bool only_check = false;
    int code;
    opterr = 0;
    while ((code = getopt_long(argc, argv, "", OPTIONS, NULL)) != -1) {
        switch (code) {
        case OPTION_CONFIG:
            options.config_path = optarg;
            options.config_is_named = true;
            break;
        case OPTION_SET:
            add_override(&options, "", optarg);
            break;
        case OPTION_DATA_DIR:
            add_override(&options, "data_dir", optarg);
            break;
        case OPTION_RUN_DIR:
            add_override(&options, "run_dir", optarg);
            break;
        case OPTION_DATABASE:
            add_override(&options, "database", optarg);
            break;
        case OPTION_MODE:
            add_override(&options, "mode", optarg);
            break;
        case OPTION_POLICY:
            add_override(&options, "policies", optarg);
            break;
        case OPTION_CHECK:
            only_check = true;
            break;
        case OPTION_SCALE:
            if (!take_number(optarg, 1, &options.time_scale))
                return usage_error(argv[optind - 1]);
            break;
        case OPTION_ORIGIN:
            if (!text_parse_int(view_of(optarg), &options.time_origin_ns))
                return usage_error(argv[optind - 1]);
            break;
        case OPTION_EXAMPLE: {
            AUTO_TEXT example = {0};
            config_print_example(&example);
            fputs(example.bytes, stdout);
            return 0;
        }
        case OPTION_HELP:
            print_help();
            return 0;
        case OPTION_VERSION:
            printf("broomd %s\n", BROOM_VERSION);
            return 0;
        default:
            return usage_error(argv[optind - 1]);
        }
    }
    if (optind < argc)
        return usage_error(argv[optind]);
    code = only_check ? check_config(&options) : app_run(&options);
    for (size_t i = 0; i < options.override_count; i++)
        xfree(options.overrides[i]);
    return code;
}
