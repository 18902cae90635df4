/* `broom wait`: for scripts that go on when an incident has got somewhere. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/incident_view.h"
#include "controller/io/loop.h"
#include "controller/sys/clock.h"
#include "remediation/incident.h"

#include <string.h>

struct goal {
    bool is_phase;
    const char *value;
};

/* A phase's or a status's name; NULL: there is none of that number. */
static const char *goal_name(bool is_phase, size_t number)
{
    if (is_phase)
        return number < PHASE_COUNT ? phase_name((enum phase)number) : NULL;
    return number < INCIDENT_STATUS_COUNT ? incident_status_name((enum incident_status)number)
                                          : NULL;
}

/* Says the nearest phase or status; false: none is near. */
static bool suggest(struct cli *cli, const char *word, bool is_phase)
{
    const char *names[PHASE_COUNT];
    size_t count = 0;
    for (; goal_name(is_phase, count) != NULL; count++)
        names[count] = goal_name(is_phase, count);
    const char *near = text_nearest(word, names, count);
    if (near != NULL)
        fprintf(cli->err, "; did you mean '%s=%s'?", is_phase ? "phase" : "status", near);
    return near != NULL;
}

/* "status=mitigated", "phase=done", or the bare word. */
static bool parse_goal(struct cli *cli, const char *text, struct goal *ret_goal)
{
    bool names_phase = strncmp(text, "phase=", 6) == 0;
    bool names_status = strncmp(text, "status=", 7) == 0;
    const char *word = names_phase ? text + 6 : names_status ? text + 7 : text;
    enum phase phase;
    enum incident_status status;
    bool is_status = !names_phase && incident_status_parse(word, &status);
    *ret_goal = (struct goal){!is_status, word};
    if (is_status || (!names_status && phase_parse(word, &phase)))
        return true;
    fprintf(cli->err, "broom wait: --for '%s' is neither status=STATUS nor phase=PHASE", text);
    if (!suggest(cli, word, names_phase))
        (void)suggest(cli, word, !names_phase);
    fputs("\ntry 'broom help wait'\n", cli->err);
    return false;
}

/* Resolved is later than mitigated: who waits for the first is content with the second. */
static int rank_of_status(const char *status)
{
    static const char *const order[] = {"open", "mitigated", "resolved", "closed"};
    for (int i = 0; i < (int)ARRAY_LEN(order); i++)
        if (strcmp(order[i], status) == 0)
            return i;
    return -1;
}

static bool is_reached(const struct incident_view *view, const struct goal *goal)
{
    if (goal->is_phase)
        return strcmp(view->phase, goal->value) == 0;
    int want = rank_of_status(goal->value);
    int have = rank_of_status(view->status);
    return strcmp(view->status, goal->value) == 0 || (want >= 0 && have >= want);
}

/* Nothing more will happen by itself. */
static bool is_over(const struct incident_view *view)
{
    return view->has_ended || strcmp(view->status, "merged") == 0 ||
           strcmp(view->status, "declined") == 0 || strcmp(view->status, "closed") == 0;
}

static void stop_loop(void *context)
{
    loop_stop(context);
}

static void wait_ns(int64_t span_ns)
{
    AUTO(loop_free) struct loop *loop = loop_new();
    struct loop_timer *timer = loop_timer_new(loop, stop_loop, loop);
    loop_timer_set(timer, span_ns);
    loop_run(loop);
    loop_timer_free(timer);
}

struct waiting {
    struct cli *cli;
    const struct cli_common *common;
    const char *ref;
    struct goal goal;
    int64_t timeout_ns, interval_ns;
};

/* One look: an exit code, or -1 to go on. */
static int look_once(const struct waiting *waiting)
{
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    text_addf(&path, "/api/v1/incidents/%s", waiting->ref);
    int code = cli_get(waiting->cli, waiting->common, path.bytes, &root);
    if (code == EXIT_UNREACHABLE)
        return -1; /* a restart of broomd is no reason to give up before the time is over */
    if (code != EXIT_DONE)
        return code;
    struct incident_view view = incident_view_of(root);
    if (is_reached(&view, &waiting->goal)) {
        fprintf(waiting->cli->out, "%s is %s, %s\n", waiting->ref, view.status, view.phase);
        return EXIT_DONE;
    }
    if (!is_over(&view))
        return -1;
    fprintf(waiting->cli->err, "broom wait: %s ended as %s, %s: it will not get there\n",
            waiting->ref, view.status, view.phase);
    return EXIT_FAILED;
}

static int wait_for(const struct waiting *waiting)
{
    int64_t start_ns = clock_read().monotonic_ns;
    for (;;) {
        int code = look_once(waiting);
        if (code >= 0)
            return code;
        int64_t left_ns = waiting->timeout_ns - (clock_read().monotonic_ns - start_ns);
        if (left_ns <= 0)
            break;
        wait_ns(left_ns < waiting->interval_ns ? left_ns : waiting->interval_ns);
    }
    fprintf(waiting->cli->err, "broom wait: the time is over. Next: broom incidents show %s\n",
            waiting->ref);
    return EXIT_TIMED_OUT;
}

int cmd_wait(struct cli *cli, int argc, char **argv)
{
    const char *goal = "status=mitigated";
    struct waiting waiting = {
        .cli = cli, .timeout_ns = INT64_C(600000000000), .interval_ns = 1000000000};
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"for", 0, OPTION_TEXT, "GOAL", "status=STATUS or phase=PHASE (default status=mitigated)",
         &goal, NULL},
        {"timeout", 0, OPTION_DURATION, "DURATION", "give up after it (default 10m)",
         &waiting.timeout_ns, NULL},
        {"interval", 0, OPTION_DURATION, "DURATION", "between two looks (default 1s)",
         &waiting.interval_ns, NULL},
    };
    const struct usage usage = {
        .command = "wait",
        .arguments = "INC-n",
        .summary = "wait until an incident has got somewhere",
        .details = "A later status counts too: who waits for mitigated is content with resolved. "
                   "Ends with 1 when\n"
                   "the incident ended otherwise, and with 8 when the time is over.\n"
                   "STATUS: open, mitigated, resolved, closed, merged, declined. PHASE: suspected, "
                   "confirmed,\n"
                   "awaiting_approval, holding, cordoning, saving, restarting, placing, resuming, "
                   "verifying,\n"
                   "repairing, validating, done, cancelled, escalated.\n",
        .examples =
            "  broom wait INC-3 --for status=mitigated --timeout 30m && echo 'training again'\n",
        .least = 1,
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    char ref[32];
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    if (!cli_parse_ref(cli, "wait", arguments.items[0], ref) ||
        !parse_goal(cli, goal, &waiting.goal))
        return EXIT_USAGE;
    waiting.ref = ref;
    waiting.common = &common;
    return wait_for(&waiting);
}
