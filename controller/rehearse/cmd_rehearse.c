/* Options of `broom rehearse`. */
#include "controller/rehearse/cmd_rehearse.h"

#include "controller/config/policy_files.h"
#include "controller/rehearse/cluster_process.h"
#include "controller/rehearse/rehearsal.h"

#include <getopt.h>
#include <string.h>

enum { EXIT_CODE_DONE = 0, EXIT_CODE_USAGE = 2 };
enum code {
    CODE_POLICY = 256,
    CODE_SEED,
    CODE_SPEED,
    CODE_OUT,
    CODE_JSON,
    CODE_NO_DETECTION,
    CODE_SWALLOW,
    CODE_CRASH,
    CODE_KEEP,
    CODE_HELP,
    CODE_CLUSTER,
    CODE_TIME_FILE,
    CODE_PORT_FILE,
    CODE_STREAM,
    CODE_LOG
};

static const struct option OPTIONS[] = {
    {"policy", required_argument, NULL, CODE_POLICY},
    {"seed", required_argument, NULL, CODE_SEED},
    {"speed", required_argument, NULL, CODE_SPEED},
    {"out", required_argument, NULL, CODE_OUT},
    {"json", no_argument, NULL, CODE_JSON},
    {"no-detection", no_argument, NULL, CODE_NO_DETECTION},
    {"swallow-restart", no_argument, NULL, CODE_SWALLOW},
    {"crash-at", required_argument, NULL, CODE_CRASH},
    {"keep", no_argument, NULL, CODE_KEEP},
    {"help", no_argument, NULL, CODE_HELP},
    /* the cluster's own process, started by the rehearsal */
    {"cluster", no_argument, NULL, CODE_CLUSTER},
    {"time-file", required_argument, NULL, CODE_TIME_FILE},
    {"port-file", required_argument, NULL, CODE_PORT_FILE},
    {"stream-file", required_argument, NULL, CODE_STREAM},
    {"log-file", required_argument, NULL, CODE_LOG},
    {NULL, 0, NULL, 0},
};

static void print_help(FILE *out)
{
    fputs("broom rehearse: play a fault against a simulated cluster, with the real broomd, "
          "PostgreSQL, policy and\n"
          "detectors, and check that it ends as it must.\n\n"
          "Usage: broom rehearse SCENARIO [options]\n\nScenarios\n",
          out);
    for (size_t i = 0; i < scenario_count(); i++)
        fprintf(out, "  %-13s %s\n", scenario_at(i)->name, scenario_at(i)->summary);
    fputs(
        "\nOptions\n"
        "  --policy FILE      a policy or a folder of them; default: the shipped "
        "nvl72-enforce.yaml\n"
        "  --seed N           noise and the place of the fault; default 1\n"
        "  --speed X          simulated seconds a real second, at most: time waits for a busy "
        "machine\n"
        "  --out DIR          leaves stream.lp.zst, job.json, verdicts.jsonl (broom detect on "
        "the stream),\n"
        "                     actions.jsonl (the cluster's own log) and an INC-n.tar for each "
        "incident\n"
        "  --json             the result as JSON on stdout; the timeline goes to stderr\n"
        "  --no-detection     broomd sees everything and judges nothing\n"
        "  --swallow-restart  the cluster accepts restarts and does nothing\n"
        "  --crash-at WHEN    kill -9 broomd and start it again; may be given several times. WHEN "
        "is a verb\n"
        "                     (cordon, request_checkpoint, promise_spare, restart_job, hand_over: "
        "the cluster has\n"
        "                     done it but not answered), a phase of an incident (placing), or the "
        "time since the\n"
        "                     job's start (345s)\n"
        "  --keep             leave the temporary folder with the logs of both processes\n"
        "\nExit codes: 0 the cluster's log and the incident agree with the ending, 1 they do "
        "not, 2 usage,\n"
        "130 interrupted.\n"
        "\nExamples\n"
        "  broom rehearse rack-fault\n"
        "  broom rehearse tray-lost --policy my-policy.yaml --out /tmp/rehearsal\n",
        out);
}

static int usage_error(const char *what, const char *given, const char *near)
{
    fprintf(stderr, "broom rehearse: %s '%s'", what, given);
    if (near != NULL)
        fprintf(stderr, "; did you mean '%s%s'?", given[0] == '-' ? "--" : "", near);
    fputs("\ntry 'broom help rehearse'\n", stderr);
    return EXIT_CODE_USAGE;
}

static const char *near_option(const char *given)
{
    const char *names[ARRAY_LEN(OPTIONS)];
    size_t count = 0;
    for (; OPTIONS[count].val != CODE_CLUSTER; count++)
        names[count] = OPTIONS[count].name;
    return text_nearest(given + strspn(given, "-"), names, count);
}

static const char *near_scenario(const char *given)
{
    const char *names[16];
    size_t count = 0;
    for (; count < scenario_count() && count < ARRAY_LEN(names); count++)
        names[count] = scenario_at(count)->name;
    return text_nearest(given, names, count);
}

struct given {
    struct rehearsal_options run;
    struct cluster_process cluster;
    bool is_cluster, help;
};

static bool take_seed(const char *text, uint64_t *ret_seed)
{
    int64_t value;
    if (!text_parse_int(view_of(text), &value) || value < 0)
        return false;
    *ret_seed = (uint64_t)value;
    return true;
}

/* What a value must be, where not every word will do. */
static const char *wanted_value(int code)
{
    switch (code) {
    case CODE_SEED:
        return "a whole number from 0 on";
    case CODE_SPEED:
        return "a number from 1 on";
    case CODE_CRASH:
        return "a verb (cordon), a phase (placing) or a time (345s), or is one too many";
    default:
        return "";
    }
}

static int wrong_value(const char *option, const char *value, int code)
{
    fprintf(stderr, "broom rehearse: --%s '%s' is not %s\ntry 'broom help rehearse'\n", option,
            value, wanted_value(code));
    return EXIT_CODE_USAGE;
}

/* False: the value makes no sense. */
static bool take_option(struct given *given, int code, const char *value)
{
    switch (code) {
    case CODE_POLICY:
        given->run.policy = value;
        return true;
    case CODE_SEED:
        return take_seed(value, &given->run.seed);
    case CODE_SPEED:
        return text_parse_number(view_of(value), &given->run.speed) && given->run.speed >= 1;
    case CODE_OUT:
        given->run.out = value;
        return true;
    case CODE_JSON:
        given->run.json = true;
        return true;
    case CODE_NO_DETECTION:
        given->run.no_detection = true;
        return true;
    case CODE_SWALLOW:
        given->run.swallow_restart = true;
        return true;
    case CODE_CRASH:
        return crashes_add(&given->run.crashes, value);
    case CODE_KEEP:
        given->run.keep = true;
        return true;
    case CODE_HELP:
        given->help = true;
        return true;
    case CODE_CLUSTER:
        given->is_cluster = true;
        return true;
    case CODE_TIME_FILE:
        given->cluster.time_path = value;
        return true;
    case CODE_PORT_FILE:
        given->cluster.port_path = value;
        return true;
    case CODE_STREAM:
        given->cluster.stream_path = value;
        return true;
    case CODE_LOG:
        given->cluster.log_path = value;
        return true;
    default:
        return false;
    }
}

/* A path that is not there is a slip of the pen. A policy that broomd will not take is shown, and
 * rehearsed all the same: what happens without it is an answer too. */
static int check_policy(const char *path)
{
    AUTO(policy_set_free) struct policy_set *set = NULL;
    AUTO_TEXT findings = {0};
    struct error error = {0};
    if (path == NULL)
        return EXIT_CODE_DONE;
    enum status status = policy_files_load_typed(path, &set, &findings, &error);
    if (status == ERR_NOT_FOUND) {
        fprintf(stderr, "broom rehearse: %s\n", error.message);
        return status_exit_code(status);
    }
    if (status != OK)
        fprintf(stderr, "%sbroom rehearse: broomd will run without this policy: %s\n",
                findings.length > 0 ? findings.bytes : "", error.message);
    return EXIT_CODE_DONE;
}

static int rehearse(const struct given *given)
{
    int code = check_policy(given->run.policy);
    return code != EXIT_CODE_DONE ? code : rehearsal_run(&given->run);
}

static int run(struct given *given)
{
    if (given->run.speed <= 0)
        given->run.speed = given->run.scenario->speed;
    if (!given->is_cluster)
        return rehearse(given);
    if (given->cluster.port_path == NULL || given->cluster.time_path == NULL)
        return usage_error("a cluster needs", "--port-file and --time-file", NULL);
    given->cluster.scenario = given->run.scenario;
    given->cluster.seed = given->run.seed;
    given->cluster.swallow_restart = given->run.swallow_restart;
    return cluster_process_run(&given->cluster);
}

int cmd_rehearse(int argc, char **argv)
{
    struct given given = {.run = {.seed = 1}};
    int code;
    int row = 0;
    opterr = 0;
    optind = 0; /* getopt starts anew: the dispatcher may have used it */
    while ((code = getopt_long(argc, argv, ":h", OPTIONS, &row)) != -1) {
        const char *word = argv[optind > 0 ? optind - 1 : 0];
        if (code == ':')
            return usage_error("a value is missing behind", word, NULL);
        if (code == '?')
            return usage_error("unknown option", word, near_option(word));
        if (!take_option(&given, code == 'h' ? CODE_HELP : code, optarg))
            return wrong_value(OPTIONS[row].name, optarg, code);
    }
    if (given.help) {
        print_help(stdout);
        return EXIT_CODE_DONE;
    }
    if (optind >= argc) {
        fputs("broom rehearse: an argument is missing: broom rehearse SCENARIO\n"
              "try 'broom help rehearse'\n",
              stderr);
        return EXIT_CODE_USAGE;
    }
    if (optind + 1 < argc)
        return usage_error("one scenario at a time; what is", argv[optind + 1], NULL);
    given.run.scenario = scenario_find(argv[optind]);
    if (given.run.scenario == NULL)
        return usage_error("unknown scenario", argv[optind], near_scenario(argv[optind]));
    return run(&given);
}
