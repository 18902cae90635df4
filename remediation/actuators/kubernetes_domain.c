/* A pod joins a domain by a claim made from the template that the domain names, in its namespace.
 */
#include "remediation/actuators/kubernetes_domain.h"

#include <string.h>

static void domain_free(struct domain *domain)
{
    for (size_t i = 0; i < domain->node_count; i++)
        xfree(domain->nodes[i].name);
    xfree(domain->nodes);
    xfree(domain->namespace_name);
    xfree(domain->name);
    xfree(domain->template_name);
    xfree(domain);
}

static struct domain **find_slot(struct domain **first, const char *namespace_name,
                                 const char *name)
{
    struct domain **slot = first;
    while (*slot != NULL && (strcmp((*slot)->name, name) != 0 ||
                             strcmp((*slot)->namespace_name, namespace_name) != 0))
        slot = &(*slot)->next;
    return slot;
}

static void read_nodes(const struct json *nodes, struct domain *domain)
{
    size_t count = json_size(nodes);
    domain->names_nodes = nodes != NULL;
    domain->nodes = count > 0 ? xcalloc(count, sizeof *domain->nodes) : NULL;
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node))
        domain->nodes[domain->node_count++] = (struct domain_node){
            .name = xstrdup(json_get_string(node, "name", "")),
            .is_ready = strcmp(json_get_string(node, "status", "NotReady"), "Ready") == 0};
}

void domains_put(struct domain **first, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    const struct json *channel = json_get(json_get(object, "spec"), "channel");
    struct domain *domain = xcalloc(1, sizeof *domain);
    domain->namespace_name = xstrdup(json_get_string(metadata, "namespace", ""));
    domain->name = xstrdup(json_get_string(metadata, "name", ""));
    domain->template_name = xstrdup(
        json_get_string(json_get(channel, "resourceClaimTemplate"), "name", ""));
    read_nodes(json_get(json_get(object, "status"), "nodes"), domain);
    domains_remove(first, domain->namespace_name, domain->name);
    domain->next = *first;
    *first = domain;
}

void domains_remove(struct domain **first, const char *namespace_name, const char *name)
{
    struct domain **slot = find_slot(first, namespace_name, name);
    struct domain *gone = *slot;
    if (gone == NULL)
        return;
    *slot = gone->next;
    domain_free(gone);
}

void domains_done(struct domain **first)
{
    while (*first != NULL) {
        struct domain *next = (*first)->next;
        domain_free(*first);
        *first = next;
    }
}

/* Is the name one of the lines? */
static bool has_line(const char *lines, const char *name)
{
    size_t length = strlen(name);
    for (const char *line = lines; line[0] != '\0';) {
        const char *end = strchr(line, '\n');
        size_t bytes = end != NULL ? (size_t)(end - line) : strlen(line);
        if (bytes == length && memcmp(line, name, length) == 0)
            return true;
        line = end != NULL ? end + 1 : line + bytes;
    }
    return false;
}

const struct domain *domains_find(const struct domain *first, const struct pod *pod)
{
    if (pod->claims[0] == '\0')
        return NULL;
    for (const struct domain *domain = first; domain != NULL; domain = domain->next)
        if (domain->template_name[0] != '\0' &&
            strcmp(domain->namespace_name, pod->namespace_name) == 0 &&
            has_line(pod->claims, domain->template_name))
            return domain;
    return NULL;
}

bool domain_has_ready(const struct domain *domain, const char *node)
{
    for (size_t i = 0; i < domain->node_count; i++)
        if (strcmp(domain->nodes[i].name, node) == 0)
            return domain->nodes[i].is_ready;
    return !domain->names_nodes;
}
