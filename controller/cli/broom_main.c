/* The dispatcher of `broom`: one table of commands, from which help and near names come. */
#include "controller/cli/broom_main.h"

#include "controller/base/mem.h"
#include "controller/cli/cmd_detect.h"
#include "controller/cli/cmd_replay.h"
#include "controller/cli/commands.h"
#include "controller/rehearse/cmd_rehearse.h"

#include <string.h>

struct command {
    const char *name;
    const char *summary;
    int (*run)(struct cli *cli, int argc, char **argv);
    int (*run_alone)(int argc, char **argv); /* commands that own their streams */
};

/* A row without a function is a heading of the help. */
static const struct command commands[] = {
    {NULL, "What is going on", NULL, NULL},
    {"status", "one screen: mode, pauses, guards, jobs, open incidents", cmd_status, NULL},
    {"jobs", "the jobs being watched, their step and pace", cmd_jobs, NULL},
    {"ranks", "every rank of a job; --slow for the suspects", cmd_ranks, NULL},
    {"incidents", "list; show, timeline, note, ack, decline INC-n", cmd_incidents, NULL},
    {"topology", "racks and nodes, who says where they stand", cmd_topology, NULL},
    {"layout", "where the ranks of a job go when it starts again", cmd_layout, NULL},
    {NULL, "Steering the robot", NULL, NULL},
    {"approve", "let it do what INC-n waits for", cmd_approve, NULL},
    {"abort", "stop it on INC-n", cmd_abort, NULL},
    {"pause", "stop it everywhere; watching goes on", cmd_pause, NULL},
    {"resume", "let it act again", cmd_resume, NULL},
    {"fenced", "confirm that a node, or all of INC-n, is powered off", cmd_fenced, NULL},
    {"breaker", "close the breaker, once the cause is known", cmd_breaker, NULL},
    {"wait", "wait until INC-n reaches a status or phase", cmd_wait, NULL},
    {NULL, "Afterwards", NULL, NULL},
    {"export", "everything about INC-n in one archive; verify FILE", cmd_export, NULL},
    {"replay", "run the whole pipeline on a recording", NULL, cmd_replay},
    {NULL, "Without a server", NULL, NULL},
    {"detect", "print the verdicts of a recording", NULL, cmd_detect},
    {"policy", "lint policy files", cmd_policy, NULL},
    {"rehearse", "play a fault against a simulated cluster", NULL, cmd_rehearse},
};

static void print_help(FILE *out)
{
    fputs("broom: the command line of broomd, which finds slow and lost ranks, trays and racks of "
          "training\n"
          "jobs and puts the jobs back to work.\n\nUsage: broom COMMAND [arguments] [options]\n",
          out);
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (commands[i].name == NULL)
            fprintf(out, "\n%s\n", commands[i].summary);
        else
            fprintf(out, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\nWhen paged\n"
          "  broom incidents                        what is open\n"
          "  broom incidents show INC-3             what happened, what the robot did, what it "
          "waits for\n"
          "  broom abort INC-3 --reason 'why'       stop the robot on that incident\n"
          "  broom pause --reason 'why'             stop the robot everywhere\n"
          "\n'broom help COMMAND' explains a command. Data goes to stdout, words to stderr; times "
          "are UTC.\n"
          "Exit codes: 0 done, 1 failed, 2 usage, 3 findings, 4 not found, 5 not allowed, 6 "
          "unreachable,\n"
          "7 refused by a guard, 8 wait timed out, 130 interrupted.\n",
          out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].name != NULL && strcmp(commands[i].name, name) == 0)
            return &commands[i];
    return NULL;
}

/* Words that stand behind `incidents` and are typed without it. */
static bool is_incident_word(const char *given)
{
    static const char *const words[] = {"show", "timeline", "note", "ack", "decline", "list"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (strcmp(given, words[i]) == 0)
            return true;
    return false;
}

static int unknown_command(struct cli *cli, const char *given)
{
    const char *names[ARRAY_LEN(commands)];
    size_t count = 0;
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (commands[i].name != NULL)
            names[count++] = commands[i].name;
    const char *near = text_nearest(given, names, count);
    fprintf(cli->err, "broom: unknown %s '%s'", given[0] == '-' ? "option" : "command", given);
    if (is_incident_word(given))
        fprintf(cli->err, "; did you mean 'incidents %s'?", given);
    else if (near != NULL && given[0] != '-')
        fprintf(cli->err, "; did you mean '%s'?", near);
    fputs("\ntry 'broom help'\n", cli->err);
    return EXIT_USAGE;
}

/* Output that could not be written (a full disk, a closed pipe) is a failure, not a success. */
static int finish(struct cli *cli, int code)
{
    if (fflush(cli->out) == 0 && !ferror(cli->out))
        return code;
    fputs("broom: the output could not be written\n", cli->err);
    return code == EXIT_DONE ? EXIT_FAILED : code;
}

static int run_command(struct cli *cli, const struct command *command, int argc, char **argv)
{
    return finish(cli, command->run != NULL ? command->run(cli, argc, argv)
                                            : command->run_alone(argc, argv));
}

/* `broom help incidents show` is `broom incidents show --help`. */
static int run_help(struct cli *cli, int argc, char **argv)
{
    static char help[] = "--help";
    if (argc < 2) {
        print_help(cli->out);
        return finish(cli, EXIT_DONE);
    }
    const struct command *command = find_command(argv[1]);
    if (command == NULL)
        return unknown_command(cli, argv[1]);
    AUTO_FREE char **words = xcalloc((size_t)argc + 1, sizeof *words);
    memcpy(words, argv + 1, ((size_t)argc - 1) * sizeof *words);
    words[argc - 1] = help;
    return run_command(cli, command, argc, words);
}

/* Options of every command may stand before it: they are moved behind it. Returns how many words
 * they take, 0 when argv[1] is none of them. */
static int leading_options(int argc, char **argv)
{
    struct cli_common common;
    struct option_row rows[CLI_COMMON_ROWS];
    struct option_table table = cli_common_options(&common, rows);
    int next = 1;
    while (next < argc && argv[next][0] == '-') {
        int words = 0;
        for (size_t i = 0; i < table.count; i++) {
            size_t length = strlen(table.rows[i].name);
            bool is_long = strncmp(argv[next], "--", 2) == 0 &&
                           strncmp(argv[next] + 2, table.rows[i].name, length) == 0;
            if (is_long && argv[next][2 + length] == '=')
                words = 1;
            else if ((is_long && argv[next][2 + length] == '\0') ||
                     (table.rows[i].letter != 0 && argv[next][1] == table.rows[i].letter &&
                      argv[next][2] == '\0'))
                words = table.rows[i].kind == OPTION_FLAG ? 1 : 2;
        }
        if (words == 0)
            break;
        next += words;
    }
    return next - 1 < argc ? next - 1 : argc - 1;
}

static int run_moved(struct cli *cli, const struct command *command, int argc, char **argv,
                     int leading)
{
    AUTO_FREE char **words = xcalloc((size_t)argc, sizeof *words);
    words[0] = argv[leading + 1];
    char **rest = argv + leading + 2;
    int rest_count = argc - leading - 2;
    int options = 0; /* words before "--": behind it nothing is an option */
    while (options < rest_count && strcmp(rest[options], "--") != 0)
        options++;
    memcpy(words + 1, rest, (size_t)options * sizeof *words);
    memcpy(words + 1 + options, argv + 1, (size_t)leading * sizeof *words);
    memcpy(words + 1 + options + leading, rest + options,
           (size_t)(rest_count - options) * sizeof *words);
    return run_command(cli, command, argc - 1, words);
}

int cli_run(struct cli *cli, int argc, char **argv)
{
    int leading = leading_options(argc, argv);
    const char *name = leading + 1 < argc ? argv[leading + 1] : NULL;
    if (name == NULL) {
        print_help(cli->err);
        return EXIT_USAGE;
    }
    if (strcmp(name, "help") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return run_help(cli, argc - leading - 1, argv + leading + 1);
    if (strcmp(name, "--version") == 0 || strcmp(name, "version") == 0) {
        fprintf(cli->out, "broom %s\n", BROOM_VERSION);
        return finish(cli, EXIT_DONE);
    }
    const struct command *command = find_command(name);
    if (command == NULL)
        return unknown_command(cli, name);
    return run_moved(cli, command, argc, argv, leading);
}

int broom_main(int argc, char **argv)
{
    struct cli cli = cli_default();
    return cli_run(&cli, argc, argv);
}
