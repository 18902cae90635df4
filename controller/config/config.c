/* The table of options and everything that is made from it. */
#include "controller/config/config.h"

#include "controller/config/policy_files.h"
#include "controller/config/yaml.h"

#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

enum option_type {
    TYPE_TEXT = 0,
    TYPE_ADDRESS,
    TYPE_CHOICE,
    TYPE_BOOL,
    TYPE_COUNT,
    TYPE_BYTES,
    TYPE_DURATION,
    TYPE_NUMBER,
    TYPE_LIST
};
enum { RELOADABLE = 1 };

struct option {
    const char *name; /* "section.key", or "key" at the top */
    enum option_type type;
    size_t offset;
    const char *fallback; /* text of the default */
    double least, most;   /* COUNT, BYTES, NUMBER; DURATION in seconds */
    unsigned flags;
    const char *const *choices;
    const char *help;
};

static const char *const MODE_WORDS[] = {"observe", "approve", "enforce", NULL};
static const char *const LEVEL_WORDS[] = {"debug", "info", "warn", "error", NULL};
static const char *const ACTUATOR_WORDS[] = {"dry_run", "rehearsal", "kubernetes",
                                             "slurm",   "webhook",   NULL};

#define AT(field) offsetof(struct config, field)

/* clang-format off */
static const struct option OPTIONS[] = {
    {"data_dir", TYPE_TEXT, AT(data_dir), "/var/lib/broomwagon", 0, 0, 0, NULL, "database, spool and recordings"},
    {"run_dir", TYPE_TEXT, AT(run_dir), "/run/broomwagon", 0, 0, 0, NULL, "the Unix socket"},
    {"database", TYPE_TEXT, AT(database), "", 0, 0, 0, NULL, "URL of a PostgreSQL server; empty: a private one in data_dir"},
    {"mode", TYPE_CHOICE, AT(mode), "observe", 0, 0, RELOADABLE, MODE_WORDS, "the most that any policy may do: observe, approve, enforce"},
    {"policies", TYPE_TEXT, AT(policies), "/etc/broomwagon/policies.d", 0, 0, RELOADABLE, NULL, "a folder of *.yaml, or one file"},
    {"listen.api", TYPE_ADDRESS, AT(listen_api), "127.0.0.1:7430", 0, 0, 0, NULL, "ingest, API and page; empty: none"},
    {"listen.health", TYPE_ADDRESS, AT(listen_health), "127.0.0.1:7431", 0, 0, 0, NULL, "/livez, /readyz, /metrics; empty: none"},
    {"listen.socket", TYPE_TEXT, AT(listen_socket), "", 0, 0, 0, NULL, "Unix socket of the API; empty: run_dir/broomd.sock"},
    {"tls.certificate", TYPE_TEXT, AT(tls_certificate), "", 0, 0, 0, NULL, "PEM file; with it listen.api speaks TLS"},
    {"tls.key", TYPE_TEXT, AT(tls_key), "", 0, 0, 0, NULL, "PEM file of the private key"},
    {"tls.client_ca", TYPE_TEXT, AT(tls_client_ca), "", 0, 0, 0, NULL, "PEM file: who may sign client certificates"},
    {"auth.tokens", TYPE_TEXT, AT(auth_tokens), "", 0, 0, RELOADABLE, NULL, "file of bearer tokens: TOKEN NAME ROLE, or TOKEN NAME job:JOB"},
    {"auth.admin_uids", TYPE_LIST, AT(auth_admin_uids), "", 0, 0, RELOADABLE, NULL, "uids that are admin on the Unix socket, beside root and broomd's own"},
    {"auth.operator_uids", TYPE_LIST, AT(auth_operator_uids), "", 0, 0, RELOADABLE, NULL, "uids that are operators on the Unix socket; others read"},
    {"auth.certificates", TYPE_LIST, AT(auth_certificates), "", 0, 0, RELOADABLE, NULL, "CN=ROLE or CN=job:JOB of client certificates"},
    {"limits.body_bytes", TYPE_BYTES, AT(body_bytes), "16MiB", 1024, 1e9, 0, NULL, "of one request on the wire"},
    {"limits.inflated_bytes", TYPE_BYTES, AT(inflated_bytes), "64MiB", 1024, 4e9, 0, NULL, "of one request after inflating"},
    {"limits.memory_bytes", TYPE_BYTES, AT(memory_bytes), "1GiB", 1048576, 1e12, 0, NULL, "of all jobs together; over it new jobs get 503"},
    {"limits.series_bytes", TYPE_BYTES, AT(series_bytes), "256MiB", 1048576, 1e12, 0, NULL, "recent samples of one job"},
    {"limits.connections", TYPE_COUNT, AT(connections), "1024", 1, 60000, 0, NULL, "at once"},
    {"limits.jobs", TYPE_COUNT, AT(jobs), "256", 1, 65536, 0, NULL, "alive at once"},
    {"limits.ranks", TYPE_COUNT, AT(ranks), "131072", 1, 131072, 0, NULL, "of one job"},
    {"recorder.enabled", TYPE_BOOL, AT(recorder_enabled), "true", 0, 0, 0, NULL, "keep the raw stream for broom replay"},
    {"recorder.bytes", TYPE_BYTES, AT(recorder_bytes), "8GiB", 1048576, 1e14, 0, NULL, "on disk, oldest dropped first"},
    {"recorder.warm", TYPE_DURATION, AT(recorder_warm_ns), "10m", 0, 1e14, 0, NULL, "of the recording that engines read at start, so that a restart forgets nothing; 0 none"},
    {"spool.bytes", TYPE_BYTES, AT(spool_bytes), "1GiB", 65536, 1e13, 0, NULL, "events kept on disk while the database is away"},
    {"detection.enabled", TYPE_BOOL, AT(detection_enabled), "true", 0, 0, 0, NULL, "false: samples are kept and nothing is judged"},
    {"detection.false_evictions", TYPE_NUMBER, AT(false_evictions), "0.3", 0.0001, 1000, 0, NULL, "budget of wrong eviction advice per 10,000 GPU-months"},
    {"detection.event_hold", TYPE_DURATION, AT(event_hold_ns), "10s", 0, 60, 0, NULL, "how long a hardware event is held at least, to see whether its ranks go on; 0: believed at once"},
    {"detection.min_slowdown", TYPE_NUMBER, AT(min_slowdown), "0.03", 0.005, 1, 0, NULL, "smallest slowdown, as a ratio, that is advised for eviction"},
    {"actuator.kind", TYPE_CHOICE, 0, "dry_run", 0, 0, 0, ACTUATOR_WORDS, "what acts: dry_run, rehearsal, kubernetes, slurm, webhook"},
    {"actuator.url", TYPE_TEXT, AT(actuator_url), "", 0, 0, 0, NULL, "rehearsal: address of the cluster; slurm: of slurmrestd, empty: the tools alone"},
    {"actuator.describe_every", TYPE_DURATION, AT(describe_every_ns), "15s", 1, 3600, RELOADABLE, NULL, "how often the cluster is read unasked"},
    {"actuator.kubeconfig", TYPE_TEXT, AT(kubeconfig), "", 0, 0, 0, NULL, "kubernetes: file that says where the API server is and who we are; empty: the pod's own"},
    {"actuator.context", TYPE_TEXT, AT(kube_context), "", 0, 0, 0, NULL, "kubernetes: context of the kubeconfig; empty: its current one"},
    {"actuator.rack_label", TYPE_TEXT, AT(rack_label), "", 0, 0, 0, NULL, "kubernetes: node label that names the rack; empty: HyperNode of tier 1, else nvidia.com/gpu.clique"},
    {"actuator.write_topology_labels", TYPE_BOOL, AT(write_topology_labels), "false", 0, 0, 0, NULL, "kubernetes: put broomwagon.io/rack, tray and rail on nodes; never in mode observe"},
    {"actuator.calls_per_s", TYPE_NUMBER, AT(kube_calls_per_s), "20", 1, 10000, 0, NULL, "kubernetes: reads of the API server at most; actions have a share of their own"},
    {"actuator.slurm_tools", TYPE_TEXT, AT(slurm_tools), "", 0, 0, 0, NULL, "slurm: folder of scontrol and scancel; empty: PATH"},
    {"actuator.slurm_conf", TYPE_TEXT, AT(slurm_conf), "", 0, 0, 0, NULL, "slurm: slurm.conf of the tools; empty: where Slurm looks itself"},
    {"actuator.slurm_cluster", TYPE_TEXT, AT(slurm_cluster), "", 0, 0, 0, NULL, "slurm: ClusterName that must answer; empty: any"},
    {"actuator.slurm_user", TYPE_TEXT, AT(slurm_user), "", 0, 0, 0, NULL, "slurm: user of the token, for slurmrestd"},
    {"actuator.slurm_token_file", TYPE_TEXT, AT(slurm_token_file), "", 0, 0, 0, NULL, "slurm: a JWT, read anew for each call; empty: munge"},
    {"actuator.slurm_spare_feature", TYPE_TEXT, AT(slurm_spare_feature), "spare", 0, 0, 0, NULL, "slurm: idle nodes with this feature are spares"},
    {"actuator.slurm_spare_reservation", TYPE_TEXT, AT(slurm_spare_reservation), "broom-spares", 0, 0, 0, NULL, "slurm: idle nodes in this reservation are spares"},
    {"actuator.slurm_requeue_always", TYPE_BOOL, AT(slurm_requeue_always), "false", 0, 0, 0, NULL, "slurm: also jobs submitted with --no-requeue, by Requeue=1"},
    {"webhook.url", TYPE_TEXT, AT(webhook_url), "", 0, 0, 0, NULL, "a service of the site that hand_over and fence go to, and with actuator.kind webhook everything; empty: none"},
    {"webhook.secret", TYPE_TEXT, AT(webhook_secret), "", 0, 0, 0, NULL, "file of the secret that signs what is sent there, read for each request"},
    {"webhook.ca", TYPE_TEXT, AT(webhook_ca), "", 0, 0, 0, NULL, "PEM file: who vouches for it; empty: the system's"},
    {"topology.file", TYPE_TEXT, AT(topology_file), "", 0, 0, RELOADABLE, NULL, "racks and their nodes, trusted above every other source; empty: none"},
    {"log.level", TYPE_CHOICE, AT(log_level), "info", 0, 0, RELOADABLE, LEVEL_WORDS, "debug, info, warn, error"},
    {"retention.events", TYPE_DURATION, AT(retention_events_ns), "400d", 86400, 1e9, 0, NULL, "events, verdicts and one-minute rollups; what an incident pins stays"},
};
/* clang-format on */

static void *target(const struct config *config, const struct option *option)
{
    union {
        const struct config *lent;
        char *bytes;
    } base = {.lent = config};
    return base.bytes + option->offset;
}

static void list_done(struct config_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        xfree(list->items[i]);
    list->count = 0;
}

/* ---- values ---- */

static bool parse_bytes(const char *text, double *ret_bytes)
{
    static const struct {
        const char *suffix;
        double factor;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"KiB", 1024.0},
                 {"MiB", 1048576.0},
                 {"GiB", 1073741824.0},
                 {"TiB", 1099511627776.0},
                 {"kB", 1e3},
                 {"MB", 1e6},
                 {"GB", 1e9},
                 {"TB", 1e12}};
    size_t digits = strspn(text, "0123456789.");
    double value;
    if (!text_parse_number((struct view){text, digits}, &value))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(units); i++)
        if (strcmp(text + digits, units[i].suffix) == 0) {
            *ret_bytes = value * units[i].factor;
            return true;
        }
    return false;
}

static enum status check_range(const struct option *option, double value, struct error *reterr)
{
    if (value >= option->least && value <= option->most)
        return OK;
    return error_set(reterr, ERR_INVALID, "'%s' must be from %g to %g%s", option->name,
                     option->least, option->most, option->type == TYPE_DURATION ? " seconds" : "");
}

static enum status parse_choice(const struct option *option, const char *text, int64_t *ret_index,
                                struct error *reterr)
{
    AUTO_TEXT words = {0};
    for (int64_t i = 0; option->choices[i] != NULL; i++) {
        if (strcmp(option->choices[i], text) == 0) {
            *ret_index = i;
            return OK;
        }
        text_addf(&words, "%s%s", i > 0 ? ", " : "", option->choices[i]);
    }
    return error_set(reterr, ERR_INVALID, "'%s' must be one of %s, not '%s'", option->name,
                     words.bytes, text);
}

static enum status parse_number_like(const struct option *option, const char *text,
                                     double *ret_value, struct error *reterr)
{
    int64_t duration_ns;
    bool is_good;
    const char *wanted;
    if (option->type == TYPE_BYTES) {
        is_good = parse_bytes(text, ret_value);
        wanted = "a size such as 64MiB";
    } else if (option->type == TYPE_DURATION) {
        is_good = text_parse_duration(view_of(text), &duration_ns);
        *ret_value = is_good ? (double)duration_ns / 1e9 : 0;
        wanted = "a duration such as 10m";
    } else {
        is_good = text_parse_number(view_of(text), ret_value) &&
                  (option->type == TYPE_NUMBER || floor(*ret_value) >= *ret_value);
        wanted = option->type == TYPE_NUMBER ? "a number" : "a whole number";
    }
    if (!is_good)
        return error_set(reterr, ERR_INVALID, "'%s' must be %s, not '%s'", option->name, wanted,
                         text);
    return check_range(option, *ret_value, reterr);
}

/* "" or "ADDRESS:PORT" in numbers: a name would have to be looked up. */
static enum status check_address(const struct option *option, const char *text,
                                 struct error *reterr)
{
    const char *colon = strrchr(text, ':');
    char host[64] = "";
    int64_t port = -1;
    struct in6_addr parsed;
    if (text[0] == '\0')
        return OK;
    if (colon != NULL && (size_t)(colon - text) < sizeof host) {
        memcpy(host, text, (size_t)(colon - text));
        if (!text_parse_int(view_of(colon + 1), &port))
            port = -1;
    }
    size_t length = strlen(host);
    bool is_host = strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, &parsed) == 1;
    if (length > 2 && host[0] == '[' && host[length - 1] == ']') {
        host[length - 1] = '\0';
        is_host = inet_pton(AF_INET6, host + 1, &parsed) == 1;
    }
    if (is_host && port >= 0 && port <= 65535)
        return OK;
    return error_set(reterr, ERR_INVALID,
                     "'%s' must be such as 127.0.0.1:7430 or [::1]:7430, not '%s'", option->name,
                     text);
}

static enum status set_text(struct config *config, const struct option *option, const char *text)
{
    const char **place = target(config, option);
    xfree(*place);
    *place = xstrdup(text);
    return OK;
}

static enum status list_add(struct config *config, const struct option *option, struct view item,
                            struct error *reterr)
{
    struct config_list *list = target(config, option);
    if (item.length == 0)
        return OK;
    if (list->count == CONFIG_LIST_MAX)
        return error_set(reterr, ERR_LIMIT, "'%s' takes at most %d entries", option->name,
                         CONFIG_LIST_MAX);
    list->items[list->count++] = xstrndup(item.bytes, item.length);
    return OK;
}

static enum status set_list(struct config *config, const struct option *option, const char *text,
                            struct error *reterr)
{
    list_done(target(config, option));
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        TRY(list_add(config, option, (struct view){text, length}, reterr));
        text += length + (text[length] == ',' ? 1 : 0);
    }
    return OK;
}

static enum status set_value(struct config *config, const struct option *option, const char *text,
                             struct error *reterr)
{
    int64_t index;
    double value;
    switch (option->type) {
    case TYPE_ADDRESS:
        TRY(check_address(option, text, reterr));
        return set_text(config, option, text);
    case TYPE_TEXT:
        return set_text(config, option, text);
    case TYPE_LIST:
        return set_list(config, option, text, reterr);
    case TYPE_CHOICE:
        TRY(parse_choice(option, text, &index, reterr));
        if (option->choices == ACTUATOR_WORDS) {
            xfree(config->actuator_kind);
            config->actuator_kind = xstrdup(text);
        } else {
            *(int64_t *)target(config, option) = index;
        }
        return OK;
    case TYPE_BOOL:
        if (strcmp(text, "true") != 0 && strcmp(text, "false") != 0)
            return error_set(reterr, ERR_INVALID, "'%s' must be true or false, not '%s'",
                             option->name, text);
        *(bool *)target(config, option) = strcmp(text, "true") == 0;
        return OK;
    case TYPE_NUMBER:
        return parse_number_like(option, text, target(config, option), reterr);
    case TYPE_COUNT:
    case TYPE_BYTES:
    case TYPE_DURATION:
        TRY(parse_number_like(option, text, &value, reterr));
        *(int64_t *)target(config,
                           option) = (int64_t)(option->type == TYPE_DURATION ? value * 1e9 : value);
        return OK;
    }
    return OK;
}

/* ---- life ---- */

struct config *config_new(void)
{
    struct config *config = xcalloc(1, sizeof *config);
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        ignore_status(set_value(config, &OPTIONS[i], OPTIONS[i].fallback,
                                NULL)); /* a unit test holds them good */
    return config;
}

void config_free(struct config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        if (OPTIONS[i].type == TYPE_TEXT || OPTIONS[i].type == TYPE_ADDRESS)
            xfree(*(const char **)target(config, &OPTIONS[i]));
        if (OPTIONS[i].type == TYPE_LIST)
            list_done(target(config, &OPTIONS[i]));
    }
    xfree(config->actuator_kind);
    xfree(config);
}

/* ---- from a file ---- */

static const struct option *option_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (strcmp(OPTIONS[i].name, name) == 0)
            return &OPTIONS[i];
    return NULL;
}

/* A whole option, or a section where only that was mistyped. */
static const char *option_nearest(const char *name)
{
    static const char *const sections[] = {"listen",   "tls",      "auth",      "limits",
                                           "recorder", "spool",    "detection", "actuator",
                                           "webhook",  "topology", "log",       "retention"};
    const char *names[ARRAY_LEN(OPTIONS) + ARRAY_LEN(sections)];
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        names[i] = OPTIONS[i].name;
    for (size_t i = 0; i < ARRAY_LEN(sections); i++)
        names[ARRAY_LEN(OPTIONS) + i] = sections[i];
    return text_nearest(name, names, ARRAY_LEN(names));
}

static bool is_section(const char *name)
{
    size_t length = strlen(name);
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (strncmp(OPTIONS[i].name, name, length) == 0 && OPTIONS[i].name[length] == '.')
            return true;
    return false;
}

static void take_list(struct config *config, const struct option *option,
                      const struct tree_node *node, struct findings *findings)
{
    struct error error;
    list_done(target(config, option));
    for (const struct tree_node *item = node->first; item != NULL; item = item->next) {
        if (item->kind != TREE_SCALAR)
            findings_add(findings, true, "wrong-type", item->line, item->column,
                         "'%s' takes plain values", option->name);
        else if (list_add(config, option, view_of(item->scalar), &error) != OK)
            findings_add(findings, true, "bad-value", item->line, item->column, "%s",
                         error.message);
    }
}

static void take_member(struct config *config, const char *name, const struct tree_node *node,
                        struct findings *findings)
{
    struct error error;
    const struct option *option = option_find(name);
    if (option == NULL) {
        const char *near = option_nearest(name);
        findings_add(findings, true, "unknown-key", node->key_line, node->key_column,
                     near != NULL ? "unknown option '%s'; did you mean '%s'?"
                                  : "unknown option '%s'",
                     name, near);
    } else if (option->type == TYPE_LIST && node->kind == TREE_SEQUENCE) {
        take_list(config, option, node, findings);
    } else if (node->kind != TREE_SCALAR) {
        findings_add(findings, true, "wrong-type", node->line, node->column, "'%s' takes one value",
                     name);
    } else if (set_value(config, option, node->scalar, &error) != OK) {
        findings_add(findings, true, "bad-value", node->line, node->column, "%s", error.message);
    }
}

void config_parse(struct config *config, const struct tree_node *root, struct findings *findings)
{
    if (root == NULL)
        return;
    if (root->kind != TREE_MAPPING) {
        findings_add(findings, true, "wrong-type", root->line, root->column,
                     "a configuration is a mapping");
        return;
    }
    for (const struct tree_node *node = root->first; node != NULL; node = node->next) {
        if (!is_section(node->key) || node->kind != TREE_MAPPING) {
            take_member(config, node->key, node, findings);
            continue;
        }
        for (const struct tree_node *member = node->first; member != NULL; member = member->next) {
            AUTO_TEXT name = {0};
            text_addf(&name, "%s.%s", node->key, member->key);
            take_member(config, name.bytes, member, findings);
        }
    }
}

enum status config_set(struct config *config, const char *assignment, struct error *reterr)
{
    const char *equals = strchr(assignment, '=');
    if (equals == NULL)
        return error_set(reterr, ERR_INVALID, "'%s' is not section.key=value", assignment);
    AUTO_FREE char *name = xstrndup(assignment, (size_t)(equals - assignment));
    const struct option *option = option_find(name);
    if (option == NULL) {
        const char *near = option_nearest(name);
        return error_set(reterr, ERR_INVALID, "unknown option '%s'%s%s%s", name,
                         near != NULL ? "; did you mean '" : "", near != NULL ? near : "",
                         near != NULL ? "'?" : "");
    }
    return set_value(config, option, equals + 1, reterr);
}

bool config_is_loopback(const char *address)
{
    return address[0] == '\0' || strncmp(address, "unix:", 5) == 0 ||
           strncmp(address, "127.", 4) == 0 || strncmp(address, "[::1]:", 6) == 0 ||
           strncmp(address, "localhost:", 10) == 0;
}

/* Rules that join several options, such as who may speak off loopback. */
static enum status check_together(const struct config *config, struct error *reterr)
{
    bool has_tls = config->tls_certificate[0] != '\0';
    bool has_identity = config->auth_tokens[0] != '\0' || config->tls_client_ca[0] != '\0';
    if (has_tls != (config->tls_key[0] != '\0'))
        return error_set(reterr, ERR_INVALID, "tls.certificate and tls.key go together");
    if (config->tls_client_ca[0] != '\0' && !has_tls)
        return error_set(reterr, ERR_INVALID, "tls.client_ca needs tls.certificate and tls.key");
    if (!config_is_loopback(config->listen_api) && config->mode == MODE_ENFORCE &&
        !(has_tls && has_identity))
        return error_set(
            reterr, ERR_REFUSED,
            "mode enforce with listen.api on '%s': whoever reaches it could have a machine taken "
            "out "
            "of a job; set tls.certificate, tls.key and auth.tokens or tls.client_ca, or listen on "
            "127.0.0.1, or use mode observe",
            config->listen_api);
    bool has_webhook = config->webhook_url[0] != '\0';
    if (has_webhook != (config->webhook_secret[0] != '\0'))
        return error_set(reterr, ERR_INVALID, "webhook.url and webhook.secret go together");
    if (strcmp(config->actuator_kind, "webhook") == 0 && !has_webhook)
        return error_set(reterr, ERR_INVALID, "actuator.kind webhook needs webhook.url");
    if (strcmp(config->actuator_kind, "rehearsal") == 0 && config->actuator_url[0] == '\0')
        return error_set(reterr, ERR_INVALID, "actuator.kind %s needs actuator.url",
                         config->actuator_kind);
    return OK;
}

static enum status parse_file(struct config *config, const char *path, struct text *findings_text,
                              struct error *reterr)
{
    AUTO_TEXT bytes = {0};
    struct yaml_document document = {0};
    struct findings findings = {0};
    TRY(policy_file_read(path, &bytes, reterr));
    yaml_parse((struct view){bytes.bytes, bytes.length}, &document, &findings);
    config_parse(config, document.root, &findings);
    if (findings.count == 1 && strcmp(findings.items[0].rule, "empty") == 0)
        findings_done(&findings); /* a file that says nothing leaves every option at its default */
    findings_print(&findings, path, findings_text);
    size_t errors = findings.errors;
    findings_done(&findings);
    yaml_done(&document);
    return errors == 0 ? OK
                       : error_set(reterr, ERR_INVALID, "%zu error%s in '%s'", errors,
                                   errors == 1 ? "" : "s", path);
}

enum status config_load(const char *path, bool is_required, const char *const *overrides,
                        size_t override_count, struct config **ret_config, struct text *findings,
                        struct error *reterr)
{
    AUTO(config_free) struct config *config = config_new();
    struct stat info;
    if (path != NULL && (is_required || stat(path, &info) == 0))
        TRY(parse_file(config, path, findings, reterr));
    for (size_t i = 0; i < override_count; i++)
        TRY(config_set(config, overrides[i], reterr));
    TRY(check_together(config, reterr));
    *ret_config = TAKE(config);
    return OK;
}

/* ---- what people read ---- */

void config_print_help(struct text *out)
{
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        text_addf(out, "  %-26s %s%s%s%s%s\n", OPTIONS[i].name, OPTIONS[i].help,
                  OPTIONS[i].fallback[0] != '\0' ? " (default " : "", OPTIONS[i].fallback,
                  OPTIONS[i].fallback[0] != '\0' ? ")" : "",
                  OPTIONS[i].flags & RELOADABLE ? " [SIGHUP]" : "");
}

void config_print_example(struct text *out)
{
    AUTO_TEXT section = {0};
    text_add(out, "# /etc/broomwagon/broomd.yaml: every option at its default. [SIGHUP]: a reload "
                  "takes it over.\n");
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        const struct option *option = &OPTIONS[i];
        const char *dot = strchr(option->name, '.');
        size_t length = dot != NULL ? (size_t)(dot - option->name) : 0;
        const char *key = dot != NULL ? dot + 1 : option->name;
        if (dot != NULL && !view_equals((struct view){option->name, length},
                                        section.length > 0 ? section.bytes : "")) {
            text_clear(&section);
            text_add_bytes(&section, option->name, length);
            text_addf(out, "\n%s:\n", section.bytes);
        }
        text_addf(out, "%s# %s%s\n", dot != NULL ? "  " : "", option->help,
                  option->flags & RELOADABLE ? " [SIGHUP]" : "");
        const char *quote = option->fallback[0] == '\0' && option->type != TYPE_LIST ? "\"\"" : "";
        text_addf(out, "%s%s: %s%s\n", dot != NULL ? "  " : "", key,
                  option->type == TYPE_LIST ? "[]" : option->fallback, quote);
    }
}

static bool is_same_list(const struct config_list *a, const struct config_list *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

static bool is_same_value(const struct option *option, const struct config *a,
                          const struct config *b)
{
    switch (option->type) {
    case TYPE_ADDRESS:
    case TYPE_TEXT:
        return strcmp(*(const char **)target(a, option), *(const char **)target(b, option)) == 0;
    case TYPE_LIST:
        return is_same_list(target(a, option), target(b, option));
    case TYPE_CHOICE:
        if (option->choices == ACTUATOR_WORDS)
            return strcmp(a->actuator_kind, b->actuator_kind) == 0;
        return *(int64_t *)target(a, option) == *(int64_t *)target(b, option);
    case TYPE_BOOL:
        return *(bool *)target(a, option) == *(bool *)target(b, option);
    case TYPE_NUMBER:
        return memcmp(target(a, option), target(b, option), sizeof(double)) == 0;
    case TYPE_COUNT:
    case TYPE_BYTES:
    case TYPE_DURATION:
        return *(int64_t *)target(a, option) == *(int64_t *)target(b, option);
    }
    return true;
}

bool config_needs_restart(const struct config *old, const struct config *new, struct text *out)
{
    bool needs = false;
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++) {
        if ((OPTIONS[i].flags & RELOADABLE) || is_same_value(&OPTIONS[i], old, new))
            continue;
        text_addf(out, "%s%s", needs ? ", " : "", OPTIONS[i].name);
        needs = true;
    }
    return needs;
}

static void copy_value(struct config *config, const struct option *option,
                       const struct config *from)
{
    switch (option->type) {
    case TYPE_ADDRESS:
    case TYPE_TEXT:
        ignore_status(
            set_text(config, option, *(const char **)target(from, option))); /* cannot fail */
        return;
    case TYPE_LIST: {
        const struct config_list *list = target(from, option);
        list_done(target(config, option));
        for (size_t i = 0; i < list->count; i++)
            ignore_status(
                list_add(config, option, view_of(list->items[i]), NULL)); /* it fitted there */
        return;
    }
    case TYPE_BOOL:
        *(bool *)target(config, option) = *(bool *)target(from, option);
        return;
    case TYPE_NUMBER:
        *(double *)target(config, option) = *(double *)target(from, option);
        return;
    case TYPE_CHOICE:
    case TYPE_COUNT:
    case TYPE_BYTES:
    case TYPE_DURATION:
        *(int64_t *)target(config, option) = *(int64_t *)target(from, option);
        return;
    }
}

void config_take_reloadable(struct config *config, const struct config *from)
{
    for (size_t i = 0; i < ARRAY_LEN(OPTIONS); i++)
        if (OPTIONS[i].flags & RELOADABLE)
            copy_value(config, &OPTIONS[i], from);
}
