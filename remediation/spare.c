/* The spare ledger is the incidents' own promises: nothing else has to be kept in step with them.
 */
#include "remediation/spare.h"

#include <stdio.h>
#include <string.h>

static bool taken_by_other(const struct spare_view *view, const struct incident *incident,
                           const char *node)
{
    for (size_t i = 0; i < view->incident_count; i++) {
        const struct incident *other = view->incidents[i];
        if (incident_has_ended(other))
            continue;
        if (incident_find_node(other, node) != NULL)
            return true;
        if (other != incident && names_has(&other->spares, node))
            return true;
    }
    return false;
}

static bool held_by_job(const struct spare_view *view, const char *node)
{
    for (size_t i = 0; i < view->world->job_count; i++)
        if (names_has(&view->world->jobs[i].nodes, node))
            return true;
    return names_has(view->job_nodes, node);
}

static bool node_is_usable(const struct spare_view *view, const struct incident *incident,
                           const struct view_node *node)
{
    bool ours = names_has(&incident->spares, node->name);
    return node->ready && !node->cordoned && node->gpus >= incident->gpus_per_node &&
           node->gpus > 0 && (ours || (node->spare && node->promised_to[0] == '\0')) &&
           !taken_by_other(view, incident, node->name) && !held_by_job(view, node->name);
}

bool spare_is_usable(const struct spare_view *view, const struct incident *incident,
                     const char *node)
{
    const struct view_node *seen = world_view_node(view->world, node);
    return view->world->known && seen != NULL && node_is_usable(view, incident, seen);
}

static const char *rack_of(const struct spare_view *view, const struct incident *incident,
                           const char *name)
{
    const struct view_node *node = world_view_node(view->world, name);
    if (node != NULL && node->rack[0] != '\0')
        return node->rack;
    const struct incident_node *known = incident_find_node(incident, name);
    return known != NULL ? known->rack : "";
}

/* The incident's nodes in one rack that hold ranks of its job. */
static void lost_in_rack(const struct spare_view *view, const struct incident *incident,
                         const char *rack, struct names *lost)
{
    for (size_t i = 0; i < incident->node_count; i++) {
        const char *name = incident->nodes[i].name;
        if (names_has(view->job_nodes, name) && strcmp(rack_of(view, incident, name), rack) == 0)
            names_add_new(lost, name);
    }
}

static const char *domain_of(const struct spare_view *view, const char *name, const char *rack)
{
    const struct view_node *node = world_view_node(view->world, name);
    return node != NULL && node->domain[0] != '\0' ? node->domain : rack;
}

/* One usable spare of the lost node's domain that this choice has not taken yet, or NULL. */
static const char *same_domain_spare(const struct spare_view *view, const struct incident *incident,
                                     const struct names *taken, const char *domain)
{
    for (size_t i = 0; i < view->world->node_count; i++) {
        const struct view_node *node = &view->world->nodes[i];
        if (domain[0] != '\0' && strcmp(node->domain, domain) == 0 &&
            !names_has(taken, node->name) && node_is_usable(view, incident, node))
            return node->name;
    }
    return NULL;
}

/* How many of the lost nodes find a spare in their own domain; added to the choice when all do. */
static size_t try_same_domain(const struct spare_view *view, const struct incident *incident,
                              const struct names *lost, const char *rack,
                              struct spare_choice *choice)
{
    struct names found = {0};
    struct names taken = {0};
    names_copy(&taken, &choice->spares);
    for (size_t i = 0; i < lost->count; i++) {
        const char *domain = domain_of(view, lost->items[i], rack);
        const char *spare = same_domain_spare(view, incident, &taken, domain);
        if (spare == NULL)
            continue;
        names_add(&found, spare);
        names_add(&taken, spare);
    }
    size_t count = found.count;
    for (size_t i = 0; count == lost->count && i < count; i++) {
        names_add(&choice->leaving, lost->items[i]);
        names_add(&choice->spares, found.items[i]);
    }
    names_done(&found);
    names_done(&taken);
    return count;
}

/* All nodes of the job in this rack: they move together or not at all. */
static void segment_of(const struct spare_view *view, const struct incident *incident,
                       const char *rack, struct names *segment)
{
    for (size_t i = 0; i < view->job_nodes->count; i++) {
        const char *name = view->job_nodes->items[i];
        if (strcmp(rack_of(view, incident, name), rack) == 0)
            names_add(segment, name);
    }
}

static bool rack_holds_incident(const struct spare_view *view, const char *rack)
{
    for (size_t i = 0; i < view->incident_count; i++) {
        const struct incident *other = view->incidents[i];
        if (!incident_has_ended(other) && other->scope == SCOPE_RACK &&
            strcmp(other->domain, rack) == 0)
            return true;
    }
    return false;
}

/* A spare rack holds no rank of this job and no open rack incident. */
static bool is_spare_rack(const struct spare_view *view, const struct incident *incident,
                          const char *rack)
{
    if (rack[0] == '\0' || rack_holds_incident(view, rack))
        return false;
    for (size_t i = 0; i < view->job_nodes->count; i++)
        if (strcmp(rack_of(view, incident, view->job_nodes->items[i]), rack) == 0)
            return false;
    return true;
}

static void usable_in_rack(const struct spare_view *view, const struct incident *incident,
                           const char *rack, const struct names *taken, struct names *usable)
{
    for (size_t i = 0; i < view->world->node_count; i++) {
        const struct view_node *node = &view->world->nodes[i];
        if (strcmp(node->rack, rack) == 0 && !names_has(taken, node->name) &&
            node_is_usable(view, incident, node))
            names_add(usable, node->name);
    }
}

/* The rack with the fewest spares that still suffice; all of one rack's segment or nothing. */
static size_t try_spare_rack(const struct spare_view *view, const struct incident *incident,
                             const char *rack, struct spare_choice *choice)
{
    struct names segment = {0}, best = {0}, seen = {0};
    size_t most = 0;
    segment_of(view, incident, rack, &segment);
    for (size_t i = 0; i < view->world->node_count; i++) {
        const char *candidate = view->world->nodes[i].rack;
        if (names_has(&seen, candidate) || !is_spare_rack(view, incident, candidate))
            continue;
        names_add(&seen, candidate);
        struct names usable = {0};
        usable_in_rack(view, incident, candidate, &choice->spares, &usable);
        most = usable.count > most ? usable.count : most;
        if (usable.count >= segment.count && (best.count == 0 || usable.count < best.count))
            names_copy(&best, &usable);
        names_done(&usable);
    }
    for (size_t i = 0; best.count > 0 && i < segment.count; i++) {
        names_add(&choice->leaving, segment.items[i]);
        names_add(&choice->spares, best.items[i]);
    }
    size_t found = best.count > 0 ? segment.count : most < segment.count ? most : 0;
    names_done(&segment);
    names_done(&best);
    names_done(&seen);
    return found;
}

static void say_missing(struct spare_choice *choice, const char *rack, size_t lost,
                        size_t in_domain, size_t segment, size_t in_rack, bool asks_domain,
                        bool asks_rack)
{
    AUTO_TEXT text = {0};
    size_t missing = asks_domain ? lost - in_domain : segment - in_rack;
    choice->missing += (int)missing;
    text_addf(&text, "%zu missing spare tray%s", missing, missing == 1 ? "" : "s");
    if (asks_domain)
        text_addf(&text, ": %zu of %zu free in the NVLink domain of rack %s", in_domain, lost,
                  rack);
    if (asks_rack)
        text_addf(&text, "%s no spare rack has %zu free trays (the best has %zu)",
                  asks_domain ? ", and" : ":", segment, in_rack);
    snprintf(choice->sentence, sizeof choice->sentence, "%s", text.bytes);
}

static void choose_for_rack(const struct spare_view *view, const struct incident *incident,
                            const struct plan_step *step, const char *rack,
                            struct spare_choice *choice)
{
    struct names lost = {0}, segment = {0};
    size_t in_domain = 0, in_rack = 0;
    bool asks_domain = false, asks_rack = false, found = false;
    lost_in_rack(view, incident, rack, &lost);
    segment_of(view, incident, rack, &segment);
    for (int i = 0; i < step->prefer_count && !found && lost.count > 0; i++) {
        switch (step->prefer[i]) {
        case SPARE_SAME_NVLINK_DOMAIN:
            asks_domain = true;
            in_domain = try_same_domain(view, incident, &lost, rack, choice);
            found = in_domain == lost.count;
            break;
        case SPARE_RACK:
            asks_rack = true;
            in_rack = try_spare_rack(view, incident, rack, choice);
            found = in_rack == segment.count;
            break;
        case SPARE_SOURCE_COUNT:
            break;
        }
    }
    if (!found && lost.count > 0)
        say_missing(choice, rack, lost.count, in_domain, segment.count, in_rack, asks_domain,
                    asks_rack);
    names_done(&lost);
    names_done(&segment);
}

struct spare_choice spare_choose(const struct spare_view *view, const struct incident *incident,
                                 const struct plan_step *step)
{
    struct spare_choice choice = {0};
    struct names racks = {0};
    for (size_t i = 0; i < incident->node_count; i++)
        names_add_new(&racks, rack_of(view, incident, incident->nodes[i].name));
    for (size_t i = 0; i < racks.count; i++)
        choose_for_rack(view, incident, step, racks.items[i], &choice);
    names_done(&racks);
    return choice;
}

void spare_choice_done(struct spare_choice *choice)
{
    names_done(&choice->leaving);
    names_done(&choice->spares);
}
