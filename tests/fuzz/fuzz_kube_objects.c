/* Any JSON as an object of any kind that is watched: whatever is kept of it is whole, counts are
 * bounded, and what was put can be found and taken away again.
 */
#include "remediation/actuators/kubernetes_domain.h"
#include "remediation/actuators/kubernetes_ranks.h"
#include "remediation/actuators/kubernetes_workload_pods.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void read_as(const struct workload_kind *kind, const struct json *object)
{
    struct workload_item item;
    workload_item_read(kind, object, &item);
    require(item.cannot_restart != NULL && item.budget != NULL && item.uid != NULL);
    require(item.restarts >= -1 && item.restarts_max >= -1 && item.restarts_ours >= 0);
    struct rank_group *groups = xcalloc(item.group_count + 1, sizeof *groups);
    int32_t count = 0;
    for (size_t i = 0; i < item.group_count; i++) {
        require(item.groups[i].pods >= 0 && item.groups[i].gpus >= 0);
        groups[i] = (struct rank_group){item.groups[i].pods, item.groups[i].gpus};
    }
    struct rank_question question = {.groups = groups, .group_count = item.group_count};
    const char **nodes = ranks_find_nodes(&question, &count);
    require(count >= 0 && count <= RANKS_MAX && (nodes == NULL) == (count == 0));
    xfree(nodes);
    xfree(groups);
    workload_item_done(&item);
}

static void keep_as_pod(const struct json *object)
{
    struct pod_table pods = {0};
    pods_put(&pods, object);
    pods_put(&pods, object);
    require(pods.count <= 1);
    const struct pod *pod = pods.first;
    if (pod != NULL) {
        require(pods_find(&pods, pod->namespace_name, pod->name) == pod);
        require(pod->seen == 1 && pod->gpus >= 0);
        pods_remove(&pods, pod->namespace_name, pod->name);
        require(pods.count == 0 && pods.bytes == 0);
    }
    pods_done(&pods);
}

static void keep_as_domain(const struct json *object)
{
    struct domain *domains = NULL;
    domains_put(&domains, object);
    domains_put(&domains, object);
    require(domains != NULL && domains->next == NULL);
    domain_has_ready(domains, "gb-1");
    domains_done(&domains);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(json_free) struct json *object = NULL;
    if (json_parse((struct view){(const char *)data, size}, &object, NULL) != OK)
        return 0;
    for (size_t i = 0; i < WORKLOAD_KIND_COUNT; i++)
        read_as(&WORKLOAD_KINDS[i], object);
    keep_as_pod(object);
    keep_as_domain(object);
    return 0;
}
