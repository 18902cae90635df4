/* The daemon's inventory and what is asked of it. */
#include "controller/app_topology.h"

#include "controller/config/yaml.h"
#include "controller/sys/clock.h"
#include "controller/sys/file.h"
#include "controller/sys/log.h"

#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES_MAX = 16 << 20, RECORDS_A_BATCH = 1000, WORLD_EVERY_S = 15 };
static const int64_t NS_PER_S = 1000000000;

/* ---- the file ---- */

static enum status parse(struct app *app, struct view bytes, struct text *told,
                         struct error *reterr)
{
    const char *path = app->config->topology_file;
    struct yaml_document document = {0};
    struct findings findings = {0};
    yaml_parse(bytes, &document, &findings);
    bool is_good = document.root != NULL && findings.errors == 0 &&
                   inventory_read_file(app->inventory, document.root, clock_now_ns(), &findings);
    size_t errors = findings.errors;
    findings_print(&findings, path, told);
    yaml_done(&document);
    findings_done(&findings);
    return is_good ? OK
                   : error_set(reterr, ERR_INVALID, "%zu mistakes in the topology file '%s'",
                               errors, path);
}

enum status app_topology_read(struct app *app, struct error *reterr)
{
    AUTO_TEXT bytes = {0};
    AUTO_TEXT told = {0};
    struct error error = {0};
    if (app->inventory == NULL)
        app->inventory = inventory_new();
    if (app->config->topology_file[0] == '\0')
        return OK;
    enum status status = file_read(app->config->topology_file, FILE_BYTES_MAX, &bytes, &error);
    if (status == OK)
        status = parse(app, (struct view){bytes.bytes, bytes.length}, &told, &error);
    if (status == OK)
        return OK;
    log_event(LOG_ERROR, "topology_refused", kv_str("reason", error.message),
              kv_str("findings", told.length > 0 ? told.bytes : ""),
              kv_str("then", "what was read before stays"));
    return error_set(reterr, status, "%s", error.message);
}

/* ---- who tells ---- */

static void observe(struct app *app, enum inventory_source source, const char *node,
                    const char *rack, const char *nvlink_domain)
{
    inventory_observe(app->inventory,
                      &(struct inventory_observation){.source = source,
                                                      .node = node,
                                                      .rack = rack,
                                                      .nvlink_domain = nvlink_domain,
                                                      .tray = INVENTORY_UNKNOWN,
                                                      .rails = INVENTORY_UNKNOWN,
                                                      .time_ns = clock_now_ns()});
}

/* Racks of a job that is known by hello alone are those of the inventory: an echo is no witness. */
static void learn_jobs(struct app *app)
{
    for (struct live_job *live = jobs_first(pipeline_jobs(app->pipeline)); live != NULL;
         live = live->next) {
        const struct job *job = engine_job(live->engine);
        for (int32_t t = 0; live->has_document && t < job->tray_count; t++) {
            int32_t rack = job->trays[t].rack;
            if (rack != JOB_NONE)
                observe(app, INVENTORY_HELLO, job->trays[t].node, job->racks[rack].name,
                        job->racks[rack].nvlink_domain);
        }
    }
}

/* Kubernetes tells the inventory itself, source by source; what others describe is their own word.
 */
static void learn_world(struct app *app)
{
    const struct world *world = pipeline_world(app->pipeline);
    bool is_slurm = strcmp(app->actuator->name, "slurm") == 0;
    if (world == NULL || !world->known || strcmp(app->actuator->name, "kubernetes") == 0)
        return;
    for (size_t n = 0; n < world->node_count; n++)
        observe(app, is_slurm ? INVENTORY_SLURM : INVENTORY_LABEL, world->nodes[n].name,
                world->nodes[n].rack, world->nodes[n].nvlink_domain);
}

/* Before the core is restored an incident that is open would be taken for none. */
static void read_rails(struct app *app)
{
    if (!app->config->write_topology_labels || !app->is_restored)
        return;
    rails_free(app->rails);
    app->rails = rails_read(pipeline_core(app->pipeline), pipeline_jobs(app->pipeline),
                            app->inventory, clock_now_ns());
}

enum rail_state app_topology_rail(void *self, const char *node)
{
    const struct app *app = self;
    return app->rails != NULL ? rails_of(app->rails, node) : RAIL_UNREAD;
}

/* ---- what changed ---- */

/* Only who may write takes them: with another broomd in charge they wait, bounded, and are those of
 * its own anyway. */
static void record_changes(struct app *app)
{
    if (!app_store_is_up(app) || !store_status(app->store).lease_held)
        return;
    AUTO_TEXT batch = {0};
    for (int count = 0; count < RECORDS_A_BATCH && inventory_take_record(app->inventory, &batch);
         count++)
        text_add(&batch, "\n");
    if (batch.length > 0)
        store_submit(app->store, (struct view){batch.bytes, batch.length}, STORE_MAY_SPOOL, NULL,
                     NULL);
}

void app_topology_tick(struct app *app)
{
    int64_t now_ns = clock_read().monotonic_ns;
    if (app->inventory_told_ns == 0 || now_ns - app->inventory_told_ns > WORLD_EVERY_S * NS_PER_S) {
        app->inventory_told_ns = now_ns;
        learn_jobs(app);
        learn_world(app);
        read_rails(app);
    }
    record_changes(app);
}

void app_topology_write(void *app, struct json_writer *writer)
{
    inventory_write(((const struct app *)app)->inventory, writer);
}

/* ---- launch help ---- */

/* Where a node stands, by one witness: names of different witnesses must not be mixed, they may
 * call one rack by two names. */
enum witness { WITNESS_DOMAIN = 0, WITNESS_RACK, WITNESS_WORLD, WITNESS_JOB, WITNESS_COUNT };

static const char *testify(const struct app *app, enum witness witness,
                           const struct layout_node *node, const struct world_node *described)
{
    struct inventory_node answer;
    bool is_known = inventory_find(app->inventory, node->name, &answer);
    switch (witness) {
    case WITNESS_DOMAIN:
        return is_known ? answer.nvlink_domain : NULL;
    case WITNESS_RACK:
        return is_known ? answer.rack : NULL;
    case WITNESS_WORLD:
        if (described == NULL)
            return NULL;
        return described->nvlink_domain != NULL ? described->nvlink_domain : described->rack;
    case WITNESS_JOB:
    case WITNESS_COUNT:
        break;
    }
    return node->nvlink_domain;
}

/* The first witness who knows all of them, else the one who knows most. */
static void find_domains(const struct app *app, struct layout_nodes *nodes,
                         const struct world_node *const *described)
{
    enum witness best = WITNESS_JOB;
    size_t most = 0;
    for (int witness = 0; witness < WITNESS_COUNT; witness++) {
        size_t known = 0;
        for (size_t n = 0; n < nodes->count; n++)
            known += testify(app, (enum witness)witness, &nodes->items[n], described[n]) != NULL;
        if (known > most) {
            best = (enum witness)witness;
            most = known;
        }
    }
    for (size_t n = 0; n < nodes->count; n++)
        nodes->items[n].nvlink_domain = testify(app, best, &nodes->items[n], described[n]);
}

static int by_name(const void *left, const void *right)
{
    const struct world_node *a = *(const struct world_node *const *)left;
    const struct world_node *b = *(const struct world_node *const *)right;
    return strcmp(a->name, b->name);
}

/* How the cluster describes each of the nodes, or NULL; the caller frees the array. */
static const struct world_node **describe_nodes(const struct app *app,
                                                const struct layout_nodes *nodes)
{
    const struct world *world = pipeline_world(app->pipeline);
    size_t count = world != NULL && world->known ? world->node_count : 0;
    const struct world_node **described = xcalloc(nodes->count + 1, sizeof(struct world_node *));
    AUTO_FREE const struct world_node **sorted = xcalloc(count + 1, sizeof(struct world_node *));
    for (size_t i = 0; i < count; i++)
        sorted[i] = &world->nodes[i];
    qsort(sorted, count, sizeof(struct world_node *), by_name);
    for (size_t n = 0; n < nodes->count; n++) {
        const struct world_node wanted = {.name = nodes->items[n].name};
        const struct world_node *key = &wanted;
        const struct world_node **found = bsearch(&key, sorted, count, sizeof(struct world_node *),
                                                  by_name);
        described[n] = found != NULL ? *found : NULL;
    }
    return described;
}

/* A cluster that does not say how many GPUs a node has leaves it at the usual number. */
static void look_up_nodes(const struct app *app, struct layout_nodes *nodes)
{
    AUTO_FREE const struct world_node **described = describe_nodes(app, nodes);
    find_domains(app, nodes, described);
    for (size_t n = 0; n < nodes->count; n++)
        nodes->items[n].gpus = described[n] != NULL ? described[n]->gpus_allocatable : 0;
}

/* What the open incidents of a job take out of it, and what they put in. */
struct swap {
    struct names leaving;
    const char **spares; /* by index with leaving; NULL: none */
    size_t capacity;
};

static void swap_add(struct swap *swap, const char *leaving, const char *spare)
{
    if (!names_add_new(&swap->leaving, leaving))
        return;
    swap->spares = array_grow(swap->spares, swap->leaving.count - 1, &swap->capacity,
                              sizeof *swap->spares);
    swap->spares[swap->leaving.count - 1] = spare;
}

static bool is_over(const struct incident *incident)
{
    return incident->status != INCIDENT_OPEN && incident->status != INCIDENT_MITIGATED;
}

/* Before a plan has chosen, the nodes that should go count as going. */
static void swap_add_incident(struct swap *swap, const struct incident *incident)
{
    for (size_t i = 0; i < incident->leaving.count; i++)
        swap_add(swap, incident->leaving.items[i],
                 i < incident->spares.count ? incident->spares.items[i] : NULL);
    for (size_t i = 0; incident->leaving.count == 0 && incident->evict && i < incident->node_count;
         i++)
        swap_add(swap, incident->nodes[i].name, NULL);
}

static enum status find_swap(const struct app *app, const struct api_layout *question,
                             struct swap *swap, struct error *reterr)
{
    const struct remediation *core = pipeline_core(app->pipeline);
    bool found = question->incident_ref == NULL;
    for (size_t i = 0; i < remediation_incident_count(core); i++) {
        const struct incident *incident = remediation_incident_at(core, i);
        bool is_asked = question->incident_ref != NULL
                            ? strcmp(incident->ref, question->incident_ref) == 0
                            : !is_over(incident);
        if (!is_asked || strcmp(incident->job, question->job) != 0)
            continue;
        found = true;
        swap_add_incident(swap, incident);
    }
    return found ? OK
                 : error_set(reterr, ERR_NOT_FOUND, "job '%s' has no incident '%s'", question->job,
                             question->incident_ref);
}

/* "gb-1,gb-2" cut at its commas; blanks around names are dropped. */
static void split_names(const char *list, struct names *names)
{
    for (const char *at = list; *at != '\0';) {
        at += strspn(at, ", ");
        size_t length = strcspn(at, ", ");
        AUTO_FREE char *name = xstrndup(at, length);
        if (length > 0)
            names_add(names, name);
        at += length;
    }
}

static enum status plan_on(const struct app *app, const struct job *job,
                           const struct api_layout *question, struct layout_nodes *nodes,
                           struct layout **ret_layout, struct error *reterr)
{
    look_up_nodes(app, nodes);
    enum status status = layout_plan(&(struct layout_request){.job = job,
                                                              .nodes = nodes->items,
                                                              .node_count = nodes->count,
                                                              .by_counting = question->by_counting,
                                                              .wanted = nodes->wanted},
                                     ret_layout, reterr);
    xfree(nodes->items);
    xfree(nodes->wanted);
    return status;
}

enum status app_topology_layout(void *self, const struct api_layout *question,
                                struct layout **ret_layout, struct error *reterr)
{
    const struct app *app = self;
    const struct live_job *live = jobs_find(pipeline_jobs(app->pipeline), view_of(question->job));
    if (live == NULL)
        return error_set(reterr, ERR_NOT_FOUND, "no live job '%s'; 'broom jobs' lists them",
                         question->job);
    const struct job *job = engine_job(live->engine);
    struct names named = {0};
    struct swap swap = {0};
    enum status status = OK;
    if (question->nodes != NULL)
        split_names(question->nodes, &named);
    else
        status = find_swap(app, question, &swap, reterr);
    if (status == OK) {
        struct layout_nodes nodes =
            question->nodes != NULL
                ? layout_nodes_named(job, (const char *const *)named.items, named.count)
                : layout_nodes_after(
                      job, &(struct layout_swap){.leaving = (const char *const *)swap.leaving.items,
                                                 .leaving_count = swap.leaving.count,
                                                 .spares = swap.spares,
                                                 .spare_count = swap.leaving.count});
        status = plan_on(app, job, question, &nodes, ret_layout, reterr);
    }
    names_done(&named);
    names_done(&swap.leaving);
    xfree(swap.spares);
    return status;
}
