/* Command lines, and waiting for what they start. */
#include "controller/rehearse/rehearsal_processes.h"

#include "controller/io/http_client.h"
#include "controller/sys/clock.h"

#include <inttypes.h>
#include <string.h>
#include <unistd.h>

enum {
    WORDS_MAX = 48,
    WORD_BYTES = 600,
    READY_LIMIT_MS = 90000,
    LISTEN_LIMIT_MS = 15000,
    LOOK_MS = 20,
    STOP_LIMIT_MS = 20000,
    TOOL_LIMIT_MS = 120000,
    LOG_LINES = 12
};

static const char SHIPPED_POLICY[] = "nvl72-enforce.yaml";

/* argv of a child, its words owned. */
struct words {
    const char *items[WORDS_MAX + 1];
    size_t count;
};

static void add(struct words *words, const char *format, ...) PRINTF_LIKE(2, 3);

static void add(struct words *words, const char *format, ...)
{
    char word[WORD_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(word, sizeof word, format, args);
    va_end(args);
    if (words->count < WORDS_MAX)
        words->items[words->count++] = xstrdup(word);
}

static void words_done(struct words *words)
{
    for (size_t i = 0; i < words->count; i++)
        xfree(words->items[i]);
}

/* --- the cluster
 * ---------------------------------------------------------------------------------------- */

static enum status start_cluster(struct processes *processes,
                                 const struct rehearsal_options *options, struct error *reterr)
{
    struct words words = {0};
    const char *folder = processes->files.folder;
    char err_path[PATH_BYTES];
    files_path(&processes->files, "cluster.log", err_path);
    add(&words, "%s/broom", processes->programs);
    add(&words, "rehearse");
    add(&words, "%s", options->scenario->name);
    add(&words, "--cluster");
    add(&words, "--seed=%" PRIu64, options->seed);
    add(&words, "--time-file=%s/clock", folder);
    add(&words, "--port-file=%s/cluster.port", folder);
    add(&words, "--stream-file=%s/stream.lp.zst", folder);
    add(&words, "--log-file=%s/actions.jsonl", folder);
    if (options->swallow_restart)
        add(&words, "--swallow-restart");
    enum status status = child_start(&processes->cluster, "the simulated cluster", words.items,
                                     NULL, err_path, reterr);
    words_done(&words);
    return status;
}

static bool read_port(const struct processes *processes, int *ret_port)
{
    char path[PATH_BYTES];
    files_path(&processes->files, "cluster.port", path);
    FILE *file = fopen(path, "r");
    bool read = file != NULL && fscanf(file, "%d", ret_port) == 1;
    if (file != NULL)
        fclose(file);
    return read;
}

static enum status await_cluster(struct processes *processes, struct error *reterr)
{
    int port;
    for (int waited = 0; waited < LISTEN_LIMIT_MS; waited += LOOK_MS) {
        if (read_port(processes, &port)) {
            snprintf(processes->cluster_url, URL_BYTES, "http://127.0.0.1:%d", port);
            return OK;
        }
        TRY(processes_check(processes, reterr));
        wait_ms(LOOK_MS);
    }
    return error_set(reterr, ERR_TIMEOUT, "the simulated cluster does not listen");
}

/* --- broomd
 * ------------------------------------------------------------------------------------------------
 */

/* The shipped policy stands beside the sources, or beside an installed program. */
static enum status find_policy(const struct processes *processes, char path[PATH_BYTES],
                               struct error *reterr)
{
    static const char *const PLACES[] = {"../deploy/policies", "../share/broomwagon/policies",
                                         "../../deploy/policies"};
    for (size_t i = 0; i < ARRAY_LEN(PLACES); i++) {
        snprintf(path, PATH_BYTES, "%.400s/%s/%s", processes->programs, PLACES[i], SHIPPED_POLICY);
        if (access(path, R_OK) == 0)
            return OK;
    }
    snprintf(path, PATH_BYTES, "deploy/policies/%s", SHIPPED_POLICY);
    if (access(path, R_OK) == 0)
        return OK;
    return error_set(reterr, ERR_NOT_FOUND,
                     "the shipped policy '%s' is not beside the program; name one with "
                     "--policy",
                     SHIPPED_POLICY);
}

static void add_settings(struct processes *processes, const struct rehearsal_options *options,
                         const char *policy, struct words *words)
{
    const char *folder = processes->files.folder;
    add(words, "--config=%s/broomd.yaml", folder);
    add(words, "--data-dir=%s/data", folder);
    add(words, "--run-dir=%s/run", folder);
    add(words, "--mode=enforce");
    add(words, "--policy=%s", policy);
    add(words, "--set=listen.api=%s", processes->api_url + strlen("http://"));
    add(words, "--set=listen.health=%s", processes->health_url + strlen("http://"));
    add(words, "--set=actuator.kind=rehearsal");
    add(words, "--set=actuator.url=%s", processes->cluster_url);
    if (options->no_detection)
        add(words, "--set=detection.enabled=false");
}

static enum status choose_ports(struct processes *processes, struct error *reterr)
{
    int api_port;
    int health_port;
    TRY(free_port(&api_port, reterr));
    TRY(free_port(&health_port, reterr));
    snprintf(processes->api_url, URL_BYTES, "http://127.0.0.1:%d", api_port);
    snprintf(processes->health_url, URL_BYTES, "http://127.0.0.1:%d", health_port);
    return OK;
}

static enum status start_broomd(struct processes *processes,
                                const struct rehearsal_options *options, struct error *reterr)
{
    struct words words = {0};
    char policy[PATH_BYTES];
    char err_path[PATH_BYTES];
    if (options->policy != NULL)
        snprintf(policy, sizeof policy, "%s", options->policy);
    else
        TRY(find_policy(processes, policy, reterr));
    TRY(files_write(&processes->files, "broomd.yaml", view_of("mode: enforce\n"), reterr));
    snprintf(processes->broomd_log, sizeof processes->broomd_log, "broomd-%d.log",
             ++processes->broomd_starts);
    files_path(&processes->files, processes->broomd_log, err_path);
    add(&words, "%s/broomd", processes->programs);
    add_settings(processes, options, policy, &words);
    add(&words, "--time-file=%s/clock", processes->files.folder);
    enum status status = child_start(&processes->broomd, "broomd", words.items, NULL, err_path,
                                     reterr);
    words_done(&words);
    return status;
}

static bool is_ready(const struct processes *processes)
{
    AUTO_TEXT url = {0};
    AUTO_FREE char *body = NULL;
    size_t bytes;
    int code = 0;
    text_addf(&url, "%s/readyz", processes->health_url);
    struct http_call call = {.method = "GET", .url = url.bytes, .timeout_ms = 2000};
    return http_call_wait(&call, &code, &body, &bytes, NULL) == OK && code == 200;
}

static enum status await_broomd(struct processes *processes, struct error *reterr)
{
    int64_t end_ns = clock_read().monotonic_ns + INT64_C(1000000) * READY_LIMIT_MS;
    while (!is_ready(processes)) {
        TRY(processes_check(processes, reterr));
        if (clock_read().monotonic_ns > end_ns)
            return error_set(reterr, ERR_TIMEOUT,
                             "broomd is not ready after %d s (%s/readyz?verbose says why)",
                             READY_LIMIT_MS / 1000, processes->health_url);
        wait_ms(LOOK_MS);
    }
    return OK;
}

/* --- both
 * ------------------------------------------------------------------------------------------------------
 */

enum status processes_start(struct processes *processes, const struct rehearsal_options *options,
                            struct error *reterr)
{
    char clock_path[PATH_BYTES];
    files_path(&processes->files, "clock", clock_path);
    TRY(clock_share(clock_path, options->speed, clock_read().wall_ns, reterr));
    TRY(program_folder(processes->programs, sizeof processes->programs, reterr));
    TRY(start_cluster(processes, options, reterr));
    TRY(await_cluster(processes, reterr));
    TRY(choose_ports(processes, reterr));
    TRY(start_broomd(processes, options, reterr));
    return await_broomd(processes, reterr);
}

enum status processes_crash(struct processes *processes, const struct rehearsal_options *options,
                            struct error *reterr)
{
    child_kill(&processes->broomd, STOP_LIMIT_MS);
    clock_unfollow(); /* an outage takes its time */
    TRY(start_broomd(processes, options, reterr));
    return await_broomd(processes, reterr);
}

static enum status check(struct child *child, struct error *reterr)
{
    if (child->name == NULL || child_is_alive(child))
        return OK;
    return error_set(reterr, ERR_IO, "%s has ended with code %d", child->name, child->code);
}

enum status processes_check(struct processes *processes, struct error *reterr)
{
    TRY(check(&processes->cluster, reterr));
    return check(&processes->broomd, reterr);
}

static void show_tail(const struct files *files, const char *name, FILE *out)
{
    char path[PATH_BYTES];
    char line[1024];
    char lines[LOG_LINES][1024];
    int count = 0;
    files_path(files, name, path);
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return;
    while (fgets(line, sizeof line, file) != NULL)
        text_copy(lines[count++ % LOG_LINES], sizeof lines[0], line);
    fclose(file);
    fprintf(out, "the end of %s:\n", name);
    for (int i = count > LOG_LINES ? count - LOG_LINES : 0; i < count; i++)
        fprintf(out, "  %s", lines[i % LOG_LINES]);
}

void processes_show_logs(const struct processes *processes, FILE *out)
{
    if (processes->files.folder[0] == '\0')
        return;
    show_tail(&processes->files, "cluster.log", out);
    show_tail(&processes->files, processes->broomd_log, out);
}

void processes_stop(struct processes *processes)
{
    child_stop(&processes->cluster, STOP_LIMIT_MS);
    child_stop(&processes->broomd, STOP_LIMIT_MS);
}

/* --- what is kept
 * -------------------------------------------------------------------------------------------------
 */

static enum status run_tool(const struct words *words, const char *out_path, struct error *reterr)
{
    struct child child;
    TRY(child_start(&child, "broom", words->items, out_path, NULL, reterr));
    if (!child_wait(&child, TOOL_LIMIT_MS)) {
        child_stop(&child, STOP_LIMIT_MS);
        return error_set(reterr, ERR_TIMEOUT, "'broom %s' does not end", words->items[1]);
    }
    return child.code == 0 ? OK
                           : error_set(reterr, ERR_IO, "'broom %s' ended with code %d",
                                       words->items[1], child.code);
}

static enum status export_one(struct processes *processes, const char *ref, struct error *reterr)
{
    struct words words = {0};
    char name[64];
    char path[PATH_BYTES];
    snprintf(name, sizeof name, "%.32s.tar", ref);
    files_out_path(&processes->files, name, path);
    add(&words, "%s/broom", processes->programs);
    add(&words, "export");
    add(&words, "%s", ref);
    add(&words, "--out=%s", path);
    add(&words, "--server=%s", processes->api_url);
    enum status status = run_tool(&words, NULL, reterr);
    words_done(&words);
    return status;
}

enum status processes_export(struct processes *processes, const struct json *incidents,
                             struct error *reterr)
{
    for (const struct json *i = json_first(incidents); i != NULL; i = json_next(i))
        TRY(export_one(processes, json_get_string(i, "ref", ""), reterr));
    return OK;
}

static enum status detect(struct processes *processes, struct error *reterr)
{
    struct words words = {0};
    char path[PATH_BYTES];
    files_out_path(&processes->files, "verdicts.jsonl", path);
    add(&words, "%s/broom", processes->programs);
    add(&words, "detect");
    add(&words, "--job=%s/job.json", processes->files.folder);
    add(&words, "%s/stream.lp.zst", processes->files.folder);
    enum status status = run_tool(&words, path, reterr);
    words_done(&words);
    return status;
}

enum status processes_keep(struct processes *processes, struct error *reterr)
{
    static const char *const NAMES[] = {"stream.lp.zst", "job.json", "actions.jsonl"};
    for (size_t i = 0; i < ARRAY_LEN(NAMES); i++)
        TRY(files_keep(&processes->files, NAMES[i], reterr));
    return detect(processes, reterr);
}
