/* For each pod two reads: its labels, then the budgets of its namespace. */
#include "remediation/actuators/kubernetes_budgets.h"

#include "remediation/actuators/kubernetes_selector.h"
#include "remediation/names.h"

#include <string.h>

enum { PODS_MAX = 4 };

struct kept_pod {
    struct budget_search *search;
    char *namespace_name, *name;
    struct json *labels; /* of the pod, until the budgets are read */
    struct text budgets;
};

struct budget_search {
    struct kube_client *client;
    loop_fn *done;
    void *context;
    struct kept_pod pods[PODS_MAX];
    size_t count, running;
};

struct budget_search *budget_search_new(struct kube_client *client, loop_fn *done, void *context)
{
    struct budget_search *search = xcalloc(1, sizeof *search);
    search->client = client;
    search->done = done;
    search->context = context;
    return search;
}

void budget_search_free(struct budget_search *search)
{
    if (search == NULL)
        return;
    for (size_t i = 0; i < search->count; i++) {
        xfree(search->pods[i].namespace_name);
        xfree(search->pods[i].name);
        json_free(search->pods[i].labels);
        text_done(&search->pods[i].budgets);
    }
    xfree(search);
}

bool budget_search_is_busy(const struct budget_search *search)
{
    return search->running > 0;
}

static void answered(struct budget_search *search)
{
    if (--search->running == 0)
        search->done(search->context);
}

static void get(struct kept_pod *pod, const char *path, kube_answer_fn *fn)
{
    struct kube_call call = {.method = "GET", .path = path, .priority = KUBE_READ};
    kube_call_start(pod->search->client, &call, fn, pod);
}

static const char *label_of(void *context, const char *key)
{
    return json_get_string(context, key, NULL);
}

static void on_budgets(void *context, const struct kube_answer *answer)
{
    struct kept_pod *pod = context;
    const struct json *items = answer->result == KUBE_OK ? json_get(answer->body, "items") : NULL;
    for (const struct json *each = json_first(items); each != NULL; each = json_next(each)) {
        AUTO(selector_free)
        struct selector *selector = selector_read(json_get(json_get(each, "spec"), "selector"));
        const char *name = json_get_string(json_get(each, "metadata"), "name", "");
        if (selector != NULL && selector_matches(selector, label_of, pod->labels))
            text_addf(&pod->budgets, "%s%s", pod->budgets.length > 0 ? ", " : "", name);
    }
    answered(pod->search);
}

static void on_pod(void *context, const struct kube_answer *answer)
{
    struct kept_pod *pod = context;
    AUTO_TEXT labels = {0};
    AUTO_TEXT path = {0};
    const struct json *found = json_get(json_get(answer->body, "metadata"), "labels");
    if (answer->result != KUBE_OK || found == NULL) {
        answered(pod->search);
        return;
    }
    json_print(found, &labels);
    ignore_status(json_parse((struct view){labels.bytes, labels.length}, &pod->labels,
                             NULL)); /* just printed */
    text_add(&path, "/apis/policy/v1/namespaces");
    kube_path_add(&path, pod->namespace_name);
    text_add(&path, "/poddisruptionbudgets");
    get(pod, path.bytes, on_budgets);
}

static const struct kept_pod *find(const struct budget_search *search, const char *namespace_name,
                                   const char *pod)
{
    for (size_t i = 0; i < search->count; i++)
        if (strcmp(search->pods[i].name, pod) == 0 &&
            strcmp(search->pods[i].namespace_name, namespace_name) == 0)
            return &search->pods[i];
    return NULL;
}

void budget_search_want(struct budget_search *search, const char *namespace_name, const char *pod)
{
    AUTO_TEXT path = {0};
    if (search->count == PODS_MAX || find(search, namespace_name, pod) != NULL)
        return;
    struct kept_pod *kept = &search->pods[search->count++];
    kept->search = search;
    kept->namespace_name = xstrdup(namespace_name);
    kept->name = xstrdup(pod);
    search->running++;
    text_add(&path, "/api/v1/namespaces");
    kube_path_add(&path, namespace_name);
    text_add(&path, "/pods");
    kube_path_add(&path, pod);
    get(kept, path.bytes, on_pod);
}

const char *budget_search_name(const struct budget_search *search, const char *namespace_name,
                               const char *pod)
{
    const struct kept_pod *found = find(search, namespace_name, pod);
    return found != NULL && found->budgets.length > 0 ? found->budgets.bytes : NULL;
}
