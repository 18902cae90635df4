/* What the parts of the daemon share: app.c builds it, app_backend.c answers the API from it,
 * app_store.c joins it with the database, app_health.c says how it is.
 */
#ifndef BROOM_CONTROLLER_APP_STATE_H
#define BROOM_CONTROLLER_APP_STATE_H

#include "controller/admin/api.h"
#include "controller/admin/auth.h"
#include "controller/admin/health.h"
#include "controller/admin/metrics.h"
#include "controller/app.h"
#include "controller/config/config.h"
#include "controller/io/http_client.h"
#include "controller/io/recorder.h"
#include "controller/pipeline.h"
#include "controller/rails.h"
#include "controller/store/embedded/embedded.h"
#include "controller/store/store.h"
#include "controller/topology/inventory.h"

struct app {
    const struct app_options *options;
    struct config *config;
    struct loop *loop;
    struct http_client *client;
    struct actuator *actuator;
    struct actuator *kubernetes; /* the same, or what it wraps; NULL: of another kind */
    struct actuator dry_run;     /* what actuator points to when no other is configured */
    struct inventory *inventory; /* where nodes stand; app_topology.h */
    struct rails *rails;         /* NULL: not read yet */
    int64_t inventory_told_ns;   /* real time at which jobs and world last told both */
    struct pipeline *pipeline;
    struct embedded *embedded; /* NULL with a database of the site */
    struct store *store;       /* NULL until there is something to connect to */
    struct recorder *recorder; /* NULL: not recording */
    int64_t saved_layouts;     /* of the documents beside the recording */
    struct auth *auth;
    struct api *api;
    struct pending_query *queries; /* that the store has not answered */
    struct timed_submit *submits;  /* the same */
    struct http_server *api_server, *health_server;
    struct metrics *metrics;
    struct health *health;
    struct loop_timer *tick_timer, *stop_timer;
    struct loop_signal *signals[3];
    int64_t started_ns; /* pipeline time */
    bool is_stopping;
    bool is_restoring, is_restored; /* the core holds what the database knows */
    int64_t restored_epoch;         /* of the lease under which it was read, or is being read */
    int64_t restoring_ns;  /* real time at which the last reading began: a state that cannot be used
                              is  not read in a loop */
    bool is_greeted;       /* systemd and /readyz were told that we are ready */
    char systemd_line[64]; /* told last */
    int64_t greeted_ns;    /* real time of the last second's duties */
    char database_reason[ERROR_MESSAGE_BYTES]; /* why there is no store yet */
    char policy_reason[ERROR_MESSAGE_BYTES];   /* why the last policy files were not taken; "" */
    struct text policy_names;                  /* "nvl72-default (hash)" */
    int64_t last_wall_ns, last_monotonic_ns, clock_trusted_from_ns; /* real time, for jumps */
    int64_t clock_jumps;
    int exit_code;
};

/* app_store.c */
struct pipeline_ports app_ports(struct app *app);
MUST_CHECK enum status app_store_open(struct app *app, const char *conninfo, bool is_private,
                                      struct error *reterr);
void app_store_changed(void *app);
bool app_store_is_up(const struct app *app);
/* The policies as the files stand now, or NULL: what is wrong is logged and in policy_reason.
 * Caller owns. */
struct policy_set *app_load_policies(struct app *app);
/* A core without incidents under the policies that hold now. */
struct remediation *app_core_new(struct app *app);
void app_tell_guards(struct app *app);
void app_drop_submits(struct app *app); /* forgets the batches that a freed store will not answer */

/* app_backend.c */
struct api_backend app_backend(struct app *app);
void app_drop_queries(struct app *app); /* forgets the queries that a freed store will not answer */

/* app_health.c: brings checks and gauges up to date; a loop_fn. */
void app_refresh_health(void *app);

#endif
