/* The commands by which people steer: one row a command, one way to carry it out. Who did it is
 * what the server proves, never an option.
 */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"

#include <string.h>
#include <strings.h>

enum target { ON_ALL = 0, ON_INCIDENT, ON_NODE /* or on all nodes of an incident */ };

struct steering {
    const char *command; /* as typed: "incidents ack" */
    const char *verb;    /* in the path: "ack" */
    enum target target;
    bool needs_text;
    const char *summary;
    const char *details;
    const char *done; /* words after success */
};

static void add_text_body(struct text *body, const char *text)
{
    struct json_writer writer = json_writer(body);
    json_open_object(&writer);
    json_put_string(&writer, "text", text);
    json_close(&writer);
}

/* Words behind the reference are the text; --reason says the same. */
static void join_text(const struct arguments *arguments, int first, const char *reason,
                      struct text *out)
{
    if (reason != NULL)
        text_add(out, reason);
    for (int i = first; i < arguments->count; i++)
        text_addf(out, "%s%s", out->length > 0 ? " " : "", arguments->items[i]);
}

/* `INC-3` or `3`; anything else is the name of a node. */
static bool is_incident(const char *given)
{
    const char *digits = strncasecmp(given, "inc-", 4) == 0 ? given + 4 : given;
    return digits[0] != '\0' && strspn(digits, "0123456789") == strlen(digits);
}

/* `approve INC-1 INC-2` steers one of them: better none. */
static const char *second_incident(const struct arguments *arguments, int first)
{
    for (int i = first; first > 0 && i < arguments->count; i++)
        if (strncasecmp(arguments->items[i], "inc-", 4) != 0 || !is_incident(arguments->items[i]))
            return NULL;
    return first > 0 && arguments->count > first ? arguments->items[first] : NULL;
}

static void print_result(struct cli *cli, const struct cli_common *common,
                         const struct steering *steering, const char *ref, const struct json *root)
{
    if (strcmp(common->output, "json") == 0) {
        cli_print_json(cli, root);
        return;
    }
    AUTO_TEXT line = {0};
    const char *phase = json_get_string(root, "phase", NULL);
    const char *waits = json_get_string(root, "text", "");
    text_addf(&line, "%s%s%s", ref, ref[0] != '\0' ? ": " : "", steering->done);
    if (phase != NULL)
        text_addf(&line, "; it is now %s, %s", json_get_string(root, "status", "?"), phase);
    if (waits[0] != '\0')
        text_addf(&line, ", and waits for %s", waits);
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, line.bytes);
    fprintf(cli->out, "%s\n", clean.bytes);
    if (ref[0] != '\0' && is_incident(ref))
        fprintf(cli->err, "Next: broom incidents show %s\n", ref);
}

static int send_steering(struct cli *cli, const struct cli_common *common,
                         const struct steering *steering, const char *ref, const char *text)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT body = {0};
    AUTO(json_free) struct json *root = NULL;
    if (steering->target == ON_NODE && !is_incident(ref)) {
        text_add(&path, "/api/v1/nodes/");
        text_add_percent(&path, ref);
        text_addf(&path, "/%s", steering->verb);
    } else if (steering->target != ON_ALL)
        text_addf(&path, "/api/v1/incidents/%s/%s", ref, steering->verb);
    else
        text_addf(&path, "/api/v1/%s", steering->verb);
    add_text_body(&body, text);
    int code = cli_send(cli, common, "POST", path.bytes, body.bytes, &root);
    if (code == EXIT_DONE)
        print_result(cli, common, steering, ref, root);
    return code;
}

static int steer(struct cli *cli, int argc, char **argv, const struct steering *steering)
{
    const char *reason = NULL;
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {{"reason", 0, OPTION_TEXT, "TEXT",
                                       "why; stands in the timeline beside your name", &reason,
                                       NULL}};
    static const char *const names[] = {
        [ON_ALL] = "", [ON_INCIDENT] = " INC-3", [ON_NODE] = " gb-r17-t04"};
    AUTO_TEXT examples = {0};
    text_addf(&examples, "  broom %s%s --reason 'confirmed with the data centre'\n",
              steering->command, names[steering->target]);
    int first = steering->target != ON_ALL ? 1 : 0;
    const struct usage usage = {.command = steering->command,
                                .arguments = steering->target == ON_ALL    ? "[TEXT]"
                                             : steering->target == ON_NODE ? "NODE|INC-n TEXT"
                                             : steering->needs_text        ? "INC-n TEXT"
                                                                           : "INC-n [TEXT]",
                                .summary = steering->summary,
                                .details = steering->details,
                                .examples = examples.bytes,
                                .least = first,
                                .most = -1,
                                .own = {rows, ARRAY_LEN(rows)},
                                .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    const char *second = second_incident(&arguments, first);
    if (second != NULL) {
        fprintf(cli->err, "broom %s: one incident at a time; what is '%s'?\n", steering->command,
                second);
        return EXIT_USAGE;
    }
    char number[32] = "";
    bool on_node = steering->target == ON_NODE && !is_incident(arguments.items[0]);
    if (!on_node && steering->target != ON_ALL &&
        !cli_parse_ref(cli, steering->command, arguments.items[0], number))
        return EXIT_USAGE;
    const char *ref = on_node ? arguments.items[0] : number;
    AUTO_TEXT text = {0};
    join_text(&arguments, first, reason, &text);
    if (steering->needs_text && text.length == 0) {
        fprintf(cli->err, "broom %s: say it in words: broom %s%s%s --reason 'why'\n",
                steering->command, steering->command, ref[0] != '\0' ? " " : "", ref);
        return EXIT_USAGE;
    }
    return send_steering(cli, &common, steering, ref, text.bytes != NULL ? text.bytes : "");
}

int cmd_note(struct cli *cli, int argc, char **argv)
{
    return steer(cli, argc, argv,
                 &(struct steering){"incidents note", "note", ON_INCIDENT, true,
                                    "add a line of your own to the timeline",
                                    "The line carries the time and the name that the server knows "
                                    "you by. It steers nothing.\n",
                                    "noted"});
}

int cmd_ack(struct cli *cli, int argc, char **argv)
{
    return steer(cli, argc, argv,
                 &(struct steering){
                     "incidents ack", "ack", ON_INCIDENT, false, "say that you are looking at it",
                     "Others see your name in the incident. The robot goes on with its plan.\n",
                     "acknowledged"});
}

int cmd_decline(struct cli *cli, int argc, char **argv)
{
    return steer(cli, argc, argv,
                 &(struct steering){"incidents decline", "decline", ON_INCIDENT, true,
                                    "call it a false alarm",
                                    "The robot stops, takes its own cordons off again, and the "
                                    "incident ends as declined, with your name\n"
                                    "and reason. Cordons that somebody else had set stay.\n",
                                    "declined"});
}

int cmd_approve(struct cli *cli, int argc, char **argv)
{
    return steer(cli, argc, argv,
                 &(struct steering){"approve", "approve", ON_INCIDENT, false,
                                    "let the robot do what INC-n waits for",
                                    "Look first: 'broom incidents show INC-n' says what it would "
                                    "do. Budgets and guards still hold.\n",
                                    "approved"});
}

int cmd_abort(struct cli *cli, int argc, char **argv)
{
    return steer(
        cli, argc, argv,
        &(struct steering){
            "abort", "abort", ON_INCIDENT, false, "stop the robot on this incident",
            "Nothing more is started. What the cluster is already doing goes on there. Cordons "
            "stay as they are,\n"
            "promised spares are given back. On an escalated incident it closes the incident.\n",
            "aborted"});
}

int cmd_fenced(struct cli *cli, int argc, char **argv)
{
    return steer(
        cli, argc, argv,
        &(struct steering){"fenced", "fenced", ON_NODE, true,
                           "confirm that a node, or all of INC-n, is powered off",
                           "Cordoned is not fenced: a tray that only looks dead may still "
                           "write to a checkpoint. Say it only when\n"
                           "you know (BMC, PDU, or somebody at the rack). It counts in every "
                           "open incident that has the node,\n"
                           "until the node is seen ready again.\n",
                           "taken as fenced"});
}

int cmd_pause(struct cli *cli, int argc, char **argv)
{
    return steer(cli, argc, argv,
                 &(struct steering){"pause", "pause", ON_ALL, false, "stop the robot everywhere",
                                    "Detection, incidents and notes go on; no action is started "
                                    "until 'broom resume'. What the cluster is\n"
                                    "already doing goes on there.\n",
                                    "paused; 'broom resume' lets the robot act again"});
}

int cmd_resume(struct cli *cli, int argc, char **argv)
{
    return steer(
        cli, argc, argv,
        &(struct steering){"resume", "resume", ON_ALL, false, "let the robot act again",
                           "Incidents that piled up meanwhile are judged as they stand now.\n",
                           "resumed"});
}

int cmd_breaker(struct cli *cli, int argc, char **argv)
{
    const struct steering close = {
        "breaker close",
        "breaker/close",
        ON_ALL,
        true,
        "close the breaker, once you know why it opened",
        "The breaker opens when one source accuses a large part of the cluster at once: then the "
        "observer is the\n"
        "suspect, and no action is started. 'broom status' says why it is open.\n",
        "breaker closed"};
    if (argc >= 2 && strcmp(argv[1], "close") == 0)
        return steer(cli, argc - 1, argv + 1, &close);
    if (argc >= 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return steer(cli, argc, argv, &close);
    fputs("broom breaker: the word 'close' is missing: broom breaker close --reason 'why'\n",
          cli->err);
    return EXIT_USAGE;
}
