/* The daemon's configuration: broomd.yaml and `--set section.key=value`. One table of options
 * (options.c's rows in config.c) makes the parser, range errors, help, the example file and the
 * list of what a reload changes. Secrets are only ever named as files.
 */
#ifndef BROOM_CONFIG_CONFIG_H
#define BROOM_CONFIG_CONFIG_H

#include "controller/base/tree.h"
#include "remediation/policy.h"

enum { CONFIG_LIST_MAX = 64 };

struct config_list {
    const char *items[CONFIG_LIST_MAX]; /* owned */
    size_t count;
};

/* Strings are owned by the configuration and never NULL; "" is "not set". */
struct config {
    const char *data_dir, *run_dir, *database, *policies;
    int64_t mode; /* enum mode */
    const char *listen_api, *listen_health, *listen_socket;
    const char *tls_certificate, *tls_key, *tls_client_ca;
    const char *auth_tokens;
    struct config_list auth_admin_uids, auth_operator_uids, auth_certificates;
    int64_t body_bytes, inflated_bytes, memory_bytes, series_bytes;
    int64_t connections, jobs, ranks;
    bool recorder_enabled;
    int64_t recorder_bytes, recorder_warm_ns, spool_bytes;
    bool detection_enabled;
    double false_evictions, min_slowdown;
    int64_t event_hold_ns;
    const char *actuator_kind, *actuator_url;
    int64_t describe_every_ns;
    const char *slurm_tools, *slurm_conf, *slurm_cluster, *slurm_user, *slurm_token_file;
    const char *slurm_spare_feature, *slurm_spare_reservation;
    bool slurm_requeue_always;
    const char *kubeconfig, *kube_context, *rack_label;
    bool write_topology_labels;
    double kube_calls_per_s;
    const char *webhook_url, *webhook_secret, *webhook_ca;
    const char *topology_file;
    int64_t log_level; /* enum log_level */
    int64_t retention_events_ns;
};

struct config *config_new(void); /* every option at its default */
void config_free(struct config *config);
DEFINE_AUTO(struct config, config_free)

/* Takes what the tree says; every mistake is a finding with its place and the near key. */
void config_parse(struct config *config, const struct tree_node *root, struct findings *findings);
/* "section.key=value", as after --set. */
MUST_CHECK enum status config_set(struct config *config, const char *assignment,
                                  struct error *reterr);

/* path may be NULL or a missing default file (is_required false): defaults alone. Overrides come
 * last. On error findings hold "FILE:LINE:COLUMN: ..." lines. The caller frees the configuration.
 */
MUST_CHECK enum status config_load(const char *path, bool is_required, const char *const *overrides,
                                   size_t override_count, struct config **ret_config,
                                   struct text *findings, struct error *reterr);

void config_print_help(struct text *out);    /* one line an option: name, default, what it means */
void config_print_example(struct text *out); /* deploy/broomd.example.yaml */
/* Names of options that differ and take effect only after a restart, comma separated; false when
 * none. */
bool config_needs_restart(const struct config *old, const struct config *new, struct text *out);

/* Takes over from `from` what a reload may change. */
void config_take_reloadable(struct config *config, const struct config *from);

/* True for 127.0.0.0/8, ::1, localhost and Unix sockets. */
bool config_is_loopback(const char *address);

#endif
