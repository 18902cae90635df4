/* Start, watch, check, tell, keep, stop: in this order, and stop on every way out. */
#include "controller/rehearse/rehearsal.h"

#include "controller/io/http_client.h"
#include "controller/rehearse/narrate.h"
#include "controller/rehearse/rehearsal_files.h"
#include "controller/rehearse/rehearsal_processes.h"
#include "controller/sys/clock.h"

#include <inttypes.h>
#include <signal.h>
#include <string.h>

enum { EXIT_AGREES = 0, EXIT_DISAGREES = 1, EXIT_INTERRUPTED = 130 };
enum { LOOK_EVERY_MS = 120, LOOK_FOR_CRASH_EVERY_MS = 20, CALL_TIMEOUT_MS = 10000 };

struct run {
    const struct rehearsal_options *options;
    struct processes processes;
    struct endings *endings;
    struct narrator narrator;
    struct json *incidents; /* array of whole records, newest look */
    struct json *world;
    char *log; /* the cluster's */
    struct text disagreements;
    int disagreement_count;
    struct crashes crashes;
    bool reached;
    int64_t end_ns; /* pipeline time at which it is over, come what may */
};

static volatile sig_atomic_t interrupted;

static void on_interrupt(int signal_number)
{
    (void)signal_number;
    interrupted = 1;
}

/* --- asking both sides
 * ------------------------------------------------------------------------------- */

static enum status call(const char *method, const char *base, const char *path, const char *body,
                        char **ret_body, struct error *reterr)
{
    AUTO_TEXT url = {0};
    AUTO_FREE char *answer = NULL;
    size_t bytes;
    int code = 0;
    text_addf(&url, "%s%s", base, path);
    struct http_call request = {
        .method = method, .url = url.bytes, .body = view_of(body), .timeout_ms = CALL_TIMEOUT_MS};
    TRY(http_call_wait(&request, &code, &answer, &bytes, reterr));
    if (code < 200 || code > 299)
        return error_set(reterr, ERR_REFUSED, "%s %s was answered HTTP %d: %.300s", method, path,
                         code, answer != NULL ? answer : "");
    *ret_body = answer != NULL ? TAKE(answer) : xstrdup("");
    return OK;
}

static enum status get_json(const char *base, const char *path, struct json **ret_root,
                            struct error *reterr)
{
    AUTO_FREE char *body = NULL;
    TRY(call("GET", base, path, NULL, &body, reterr));
    return json_parse(view_of(body), ret_root, reterr);
}

/* Every incident with its timeline, as one array. */
static enum status fetch_incidents(struct run *run, struct error *reterr)
{
    AUTO(json_free) struct json *list = NULL;
    AUTO_TEXT all = {0};
    TRY(get_json(run->processes.api_url, "/api/v1/incidents", &list, reterr));
    text_add(&all, "[");
    const struct json *items = json_get(list, "incidents");
    for (const struct json *item = json_first(items); item != NULL; item = json_next(item)) {
        AUTO_TEXT path = {0};
        AUTO_FREE char *body = NULL;
        text_addf(&path, "/api/v1/incidents/%s", json_get_string(item, "ref", ""));
        TRY(call("GET", run->processes.api_url, path.bytes, NULL, &body, reterr));
        text_addf(&all, "%s%s", all.length > 1 ? "," : "", body);
    }
    text_add(&all, "]");
    struct json *incidents = NULL;
    TRY(json_parse((struct view){all.bytes, all.length}, &incidents, reterr));
    json_free(run->incidents);
    run->incidents = incidents;
    return OK;
}

static enum status look(struct run *run, struct error *reterr)
{
    struct json *world = NULL;
    char *log = NULL;
    TRY(fetch_incidents(run, reterr));
    TRY(get_json(run->processes.cluster_url, "/v1/world", &world, reterr));
    json_free(run->world);
    run->world = world;
    TRY(call("GET", run->processes.cluster_url, "/v1/log", NULL, &log, reterr));
    xfree(run->log);
    run->log = log;
    narrate_incidents(&run->narrator, run->incidents);
    struct endings_evidence evidence = {view_of(run->log), run->world, run->incidents};
    text_clear(&run->disagreements);
    run->disagreement_count = endings_check(run->endings, &evidence, &run->disagreements);
    return OK;
}

/* --- the course of it
 * ----------------------------------------------------------------------------------- */

/* What a site's scheduler would tell broomd: the job as it is placed now. */
static enum status tell_job(struct run *run, char **ret_document, struct error *reterr)
{
    AUTO_FREE char *document = NULL;
    AUTO_FREE char *answer = NULL;
    TRY(call("GET", run->processes.cluster_url, "/v1/job", NULL, &document, reterr));
    TRY(call("PUT", run->processes.api_url, "/api/v1/jobs/default%2Frehearsal", document, &answer,
             reterr));
    *ret_document = TAKE(document);
    return OK;
}

/* The cluster will do the verb of the next crash and not answer. */
static enum status hold_next_verb(struct run *run, struct error *reterr)
{
    AUTO_FREE char *answer = NULL;
    AUTO_TEXT body = {0};
    enum verb verb;
    if (!crashes_next_verb(&run->crashes, &verb))
        return OK;
    text_addf(&body, "{\"hold\": \"%s\"}", verb_name(verb));
    return call("POST", run->processes.cluster_url, "/v1/trouble", body.bytes, &answer, reterr);
}

static enum status hand_over_job(struct run *run, struct error *reterr)
{
    AUTO_FREE char *document = NULL;
    AUTO_FREE char *started = NULL;
    AUTO_TEXT body = {0};
    TRY(tell_job(run, &document, reterr));
    TRY(files_write(&run->processes.files, "job.json", view_of(document), reterr));
    TRY(hold_next_verb(run, reterr));
    text_addf(&body, "{\"broomd\": \"%s\"}", run->processes.api_url);
    TRY(call("POST", run->processes.cluster_url, "/v1/start", body.bytes, &started, reterr));
    run->narrator.start_ns = clock_now_ns();
    run->end_ns = run->narrator.start_ns + run->options->scenario->duration_ns;
    return OK;
}

/* Once the ending is reached nothing more may happen for a while. */
static void note_ending(struct run *run)
{
    bool mends = run->options->scenario->ending.restarts > 0;
    if (!mends || run->reached || run->disagreement_count > 0)
        return;
    run->reached = true;
    run->end_ns = clock_now_ns() + run->options->scenario->linger_ns;
    narrate(&run->narrator, clock_now_ns(),
            "the job is back; watching for %d s more that nothing follows",
            (int)(run->options->scenario->linger_ns / INT64_C(1000000000)));
}

/* Kills broomd when it is time, and waits until it is back. */
static enum status crash_if_due(struct run *run, struct error *reterr)
{
    int64_t since_start_ns = clock_now_ns() - run->narrator.start_ns;
    struct crash *crash = crashes_find_due(&run->crashes, run->log, run->incidents, since_start_ns);
    if (crash == NULL)
        return OK;
    crash->done = true;
    narrate(&run->narrator, clock_now_ns(), "kill -9 of broomd: %s%s", crash->word,
            crash->kind == CRASH_AT_VERB ? " is done and not answered" : "");
    TRY(processes_crash(&run->processes, run->options, reterr));
    narrate(&run->narrator, clock_now_ns(), "broomd is back");
    return hold_next_verb(run, reterr);
}

static enum status watch(struct run *run, struct error *reterr)
{
    while (interrupted == 0) {
        bool over = clock_now_ns() >= run->end_ns;
        TRY(processes_check(&run->processes, reterr));
        TRY(look(run, reterr));
        TRY(crash_if_due(run, reterr));
        note_ending(run);
        if (over && clock_now_ns() >= run->end_ns)
            return OK;
        bool waits_for_crash = crashes_find_missed(&run->crashes) != NULL;
        wait_ms(waits_for_crash ? LOOK_FOR_CRASH_EVERY_MS : LOOK_EVERY_MS);
    }
    return OK;
}

static enum status play(struct run *run, struct error *reterr)
{
    AUTO_TEXT fault = {0};
    const struct rehearsal_options *options = run->options;
    endings_describe_fault(run->endings, &fault);
    fprintf(run->narrator.out, "%s: %s\nseed %" PRIu64 ", at most %g times as fast; %s\n",
            options->scenario->name, options->scenario->summary, options->seed, options->speed,
            fault.bytes);
    TRY(processes_start(&run->processes, options, reterr));
    TRY(hand_over_job(run, reterr));
    narrate(&run->narrator, run->narrator.start_ns, "the job starts (broomd %s, its files in %s)",
            run->processes.api_url, run->processes.files.folder);
    return watch(run, reterr);
}

/* --- the result
 * ------------------------------------------------------------------------------------------- */

static void write_json(const struct run *run, const char *failure)
{
    AUTO_TEXT out = {0};
    struct json_writer w = json_writer(&out);
    json_open_object(&w);
    json_put_string(&w, "scenario", run->options->scenario->name);
    json_put_int(&w, "seed", (int64_t)run->options->seed);
    json_put_number(&w, "speed", run->options->speed);
    json_put_bool(&w, "agrees", failure == NULL && run->disagreement_count == 0);
    json_put_string(&w, "failure", failure);
    json_add_key(&w, "disagreements");
    json_open_array(&w);
    const char *line = run->disagreements.length > 0 ? run->disagreements.bytes : "";
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        json_add_view(&w, (struct view){line, (size_t)(end - line)});
    json_close(&w);
    json_add_key(&w, "incidents");
    if (run->incidents != NULL) {
        AUTO_TEXT incidents = {0};
        json_print(run->incidents, &incidents);
        json_add_raw(&w, (struct view){incidents.bytes, incidents.length});
    } else {
        json_add_null(&w);
    }
    json_close(&w);
    printf("%s\n", out.bytes);
}

static void tell_result(const struct run *run, struct narrator *narrator)
{
    fputs("\n", narrator->out);
    for (const struct json *i = json_first(run->incidents); i != NULL; i = json_next(i))
        narrate_cost(narrator, i);
    if (run->disagreement_count == 0) {
        fprintf(narrator->out, "%s ended as it must: the cluster's own log and %s agree\n",
                run->options->scenario->name,
                run->options->scenario->ending.incidents > 0 ? "the incident" : "broomd");
        return;
    }
    fprintf(narrator->out, "%s did not end as it must:\n", run->options->scenario->name);
    const char *line = run->disagreements.bytes;
    for (const char *end; (end = strchr(line, '\n')) != NULL; line = end + 1)
        fprintf(narrator->out, "  - %.*s\n", (int)(end - line), line);
}

static int conclude(struct run *run, enum status status, const struct error *error)
{
    const char *failure = status != OK ? error->message : interrupted != 0 ? "interrupted" : NULL;
    const struct crash *missed = crashes_find_missed(&run->crashes);
    if (failure == NULL && missed != NULL)
        failure = "it never came to what --crash-at names";
    if (failure == NULL)
        tell_result(run, &run->narrator);
    else
        fprintf(stderr, "broom: the rehearsal could not be played to its end: %s\n", failure);
    if (run->options->json)
        write_json(run, failure);
    fflush(NULL);
    if (interrupted != 0)
        return EXIT_INTERRUPTED;
    return failure == NULL && run->disagreement_count == 0 ? EXIT_AGREES : EXIT_DISAGREES;
}

static void catch_interrupts(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void keep_files(struct run *run, enum status played)
{
    struct error error = {0};
    if (run->processes.files.out == NULL || interrupted != 0)
        return;
    if (played == OK && processes_export(&run->processes, run->incidents, &error) != OK)
        fprintf(stderr, "broom: %s\n", error.message);
    processes_stop(&run->processes);
    if (processes_keep(&run->processes, &error) != OK)
        fprintf(stderr, "broom: %s\n", error.message);
}

int rehearsal_run(const struct rehearsal_options *options)
{
    struct run run = {.options = options,
                      .crashes = options->crashes,
                      .narrator = {.out = options->json ? stderr : stdout}};
    struct error error = {0};
    catch_interrupts();
    run.endings = endings_new(options->scenario, options->seed);
    enum status status = files_open(&run.processes.files, options->out, &error);
    if (status == OK)
        status = play(&run, &error);
    if (status != OK && interrupted == 0)
        processes_show_logs(&run.processes, stderr);
    keep_files(&run, status);
    processes_stop(&run.processes);
    int code = conclude(&run, status, &error);
    files_close(&run.processes.files, options->keep);
    json_free(run.incidents);
    json_free(run.world);
    xfree(run.log);
    text_done(&run.disagreements);
    endings_free(run.endings);
    return code;
}
