/* What racks by HyperNodes cost the loop: the first look at all nodes, one changed label, one
 * changed HyperNode; for members by name, by pattern and by label.
 *
 *     bench_hypernodes [NODES [HYPERNODES]]     5000 and 300 unless told
 *
 * Exit 1 when a look is over 50 ms or a node has no rack. The API server is left out: the watches
 * are called as the client calls them.
 */
#include "controller/sys/clock.h"
#include "remediation/actuators/kubernetes_nodes_inside.h"
#include "remediation/actuators/kubernetes_topology.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t LIMIT_NS = 50000000;

/* ---- in place of controller/kube ---- */

struct kube_watch {
    struct kube_watch_params params;
};

static struct kube_watch *nodes_watch, *hypernodes_watch;

struct kube_watch *kube_watch_new(struct kube_client *client,
                                  const struct kube_watch_params *params)
{
    struct kube_watch *watch = xcalloc(1, sizeof *watch);
    (void)client;
    watch->params = *params;
    *(strcmp(params->path, "/api/v1/nodes") == 0 ? &nodes_watch : &hypernodes_watch) = watch;
    return watch;
}

void kube_watch_free(struct kube_watch *watch)
{
    xfree(watch);
}

bool kube_watch_is_synced(const struct kube_watch *watch, int64_t fresh_ns, const char **ret_reason)
{
    (void)watch;
    (void)fresh_ns;
    (void)ret_reason;
    return true;
}

struct kube_request *kube_call_start(struct kube_client *client, const struct kube_call *call,
                                     kube_answer_fn *fn, void *context)
{
    (void)client;
    (void)call;
    (void)fn;
    (void)context;
    assert(false && "nothing is called");
    return NULL;
}

void kube_request_drop(struct kube_request *request)
{
    (void)request;
}

void kube_path_add(struct text *path, const char *segment)
{
    text_addf(path, "/%s", segment);
}

/* ---- a cluster ---- */

enum members { BY_NAME = 0, BY_PATTERN, BY_LABEL, MEMBERS_COUNT };
static const char *const members_names[] = {"by name", "by pattern", "by label"};

static void tell(const struct kube_watch *watch, const struct text *text)
{
    AUTO(json_free) struct json *object = NULL;
    if (json_parse((struct view){text->bytes, text->length}, &object, NULL) != OK)
        abort();
    watch->params.on_object(watch->params.context, object);
}

static void tell_node(int number, int rack, int row, int version)
{
    AUTO_TEXT text = {0};
    text_addf(&text,
              "{\"metadata\":{\"name\":\"gb300-r%03d-t%05d\",\"uid\":\"u%d\",\"resourceVersion\":"
              "\"%d\",\"labels\":{\"site/row\":\"%d\"}}}",
              rack, number, number, version, row);
    tell(nodes_watch, &text);
}

static void tell_hypernode(enum members members, int rack, int hypernodes, int nodes)
{
    AUTO_TEXT text = {0};
    text_addf(&text, "{\"metadata\":{\"name\":\"rk-%03d\"},\"spec\":{\"tier\":1,\"members\":[",
              rack);
    for (int i = rack; i < nodes && members == BY_NAME; i += hypernodes)
        text_addf(&text,
                  "%s{\"type\":\"Node\",\"selector\":{\"exactMatch\":{\"name\":"
                  "\"gb300-r%03d-t%05d\"}}}",
                  i > rack ? "," : "", rack, i);
    if (members == BY_PATTERN)
        text_addf(&text,
                  "{\"type\":\"Node\",\"selector\":{\"regexMatch\":{\"pattern\":"
                  "\"^gb300-r%03d-t\\\\d+$\"}}}",
                  rack);
    if (members == BY_LABEL)
        text_addf(&text,
                  "{\"type\":\"Node\",\"selector\":{\"labelMatch\":{\"matchLabels\":{\"site/row\":"
                  "\"%d\"}}}}",
                  rack);
    text_add(&text, "]}}");
    tell(hypernodes_watch, &text);
}

static double look_ms(struct topology *topology)
{
    int64_t began_ns = clock_cpu_ns();
    topology_refresh(topology);
    return (double)(clock_cpu_ns() - began_ns) / 1e6;
}

static void stop(void *context)
{
    loop_stop(context);
}

static bool measure(enum members members, int nodes, int hypernodes)
{
    struct loop *loop = loop_new();
    struct loop_timer *timer = loop_timer_new(loop, stop, loop);
    struct node_cache *cache = node_cache_new(NULL, loop, "");
    struct topology_params params = {.loop = loop, .nodes = cache, .rack_label = ""};
    struct topology *topology = topology_new(&params);
    int without = 0;
    for (int i = 0; i < hypernodes; i++)
        tell_hypernode(members, i, hypernodes, nodes);
    loop_timer_set(timer, 1000000); /* wanted labels begin the watch of nodes anew */
    loop_run(loop);
    for (int i = 0; i < nodes; i++)
        tell_node(i, i % hypernodes, i % hypernodes, 1000);
    double first_ms = look_ms(topology);
    tell_node(0, 0, 1 % hypernodes, 1001);
    double label_ms = look_ms(topology);
    tell_hypernode(members, 0, hypernodes, nodes);
    double changed_ms = look_ms(topology);
    for (size_t i = 0; i < node_cache_count(cache); i++)
        without += topology_rack(topology, node_cache_name(cache, i)) == NULL;
    printf("%-10s  first look %6.2f ms, one label %6.3f ms, one HyperNode %6.2f ms; %d without\n",
           members_names[members], first_ms, label_ms, changed_ms, without);
    topology_free(topology);
    node_cache_free(cache);
    loop_timer_free(timer);
    loop_free(loop);
    double limit_ms = (double)LIMIT_NS / 1e6;
    return without == 0 && first_ms < limit_ms && label_ms < limit_ms && changed_ms < limit_ms;
}

int main(int count, char **words)
{
    int nodes = count > 1 ? (int)strtol(words[1], NULL, 10) : 5000;
    int hypernodes = count > 2 ? (int)strtol(words[2], NULL, 10) : 300;
    bool is_good = nodes > 0 && hypernodes > 0;
    clock_init(1, 0, 0);
    for (int i = 0; is_good && i < MEMBERS_COUNT; i++)
        is_good = measure((enum members)i, nodes, hypernodes) && is_good;
    return is_good ? 0 : 1;
}
