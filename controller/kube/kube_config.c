/* Kubeconfig files and a pod's own credentials. What this client does not do (programs that make
 * tokens, proxies, unchecked certificates) is refused when the file is read, not at the first call.
 */
#include "controller/kube/kube_config.h"

#include "controller/config/yaml.h"
#include "controller/sys/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define POD_FILES "/var/run/secrets/kubernetes.io/serviceaccount"
static const size_t KUBECONFIG_BYTES_MAX = 1u << 20;

struct reader {
    const char *path;
    struct kube_config *config;
    size_t inline_files;
};

/* Members that change how the server is reached or who we are, and that this client does not do. */
static const struct {
    const char *key, *instead;
} REFUSED[] = {
    {"exec", "give the user a token, a tokenFile or a client certificate"},
    {"auth-provider", "give the user a token, a tokenFile or a client certificate"},
    {"username", "give the user a token, a tokenFile or a client certificate"},
    {"password", "give the user a token, a tokenFile or a client certificate"},
    {"as", "use credentials of the account itself"},
    {"as-uid", "use credentials of the account itself"},
    {"as-groups", "use credentials of the account itself"},
    {"as-user-extra", "use credentials of the account itself"},
    {"proxy-url", "name the API server's own address"},
    {"tls-server-name", "name the API server as its certificate does"},
};

static struct kube_config *config_new(void)
{
    struct kube_config *config = xcalloc(1, sizeof *config);
    char **const members[] = {
        &config->server,     &config->ca_file, &config->certificate_file, &config->key_file,
        &config->token_file, &config->token,   &config->default_namespace};
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        *members[i] = xstrdup("");
    for (size_t i = 0; i < KUBE_INLINE_FILES; i++)
        config->inline_fds[i] = -1;
    return config;
}

void kube_config_free(struct kube_config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < KUBE_INLINE_FILES; i++)
        if (config->inline_fds[i] >= 0)
            close(config->inline_fds[i]);
    xfree(config->server);
    xfree(config->ca_file);
    xfree(config->certificate_file);
    xfree(config->key_file);
    xfree(config->token_file);
    xfree(config->token);
    xfree(config->default_namespace);
    xfree(config);
}

static void set(char **member, char *take_value)
{
    xfree(*member);
    *member = take_value;
}

static bool is_line(const char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            return false;
    return true;
}

static enum status invalid(const struct reader *reader, const struct tree_node *node,
                           const char *what, const char *instead, struct error *reterr)
{
    return error_set(reterr, ERR_INVALID, "%s:%d:%d: %s: %s", reader->path, node->line,
                     node->column, what, instead);
}

/* A scalar member without control bytes, or NULL when it is not there (or is null). */
static enum status read_scalar(const struct reader *reader, const struct tree_node *mapping,
                               const char *key, const struct tree_node **ret_node,
                               struct error *reterr)
{
    const struct tree_node *node = tree_get(mapping, key);
    *ret_node = NULL;
    if (node == NULL)
        return OK;
    if (node->kind != TREE_SCALAR)
        return invalid(reader, node, key, "give one text here", reterr);
    if (!is_line(node->scalar))
        return invalid(reader, node, key, "take the control characters out", reterr);
    bool is_null = !node->quoted &&
                   (strcmp(node->scalar, "null") == 0 || strcmp(node->scalar, "~") == 0);
    if (node->scalar[0] != '\0' && !is_null)
        *ret_node = node;
    return OK;
}

/* The member `inner` of the item of list `list` that is called `name`. */
static enum status find_named(const struct reader *reader, const struct tree_node *root,
                              const char *list, const char *name, const char *inner,
                              const struct tree_node **ret_node, struct error *reterr)
{
    const struct tree_node *items = tree_get(root, list);
    for (const struct tree_node *item = items != NULL ? items->first : NULL; item != NULL;
         item = item->next) {
        const struct tree_node *own_name;
        TRY(read_scalar(reader, item, "name", &own_name, reterr));
        if (own_name == NULL || strcmp(own_name->scalar, name) != 0)
            continue;
        *ret_node = tree_get(item, inner);
        if (*ret_node != NULL && (*ret_node)->kind == TREE_MAPPING)
            return OK;
        return invalid(reader, item, list, "the item has no such part", reterr);
    }
    return error_set(reterr, ERR_INVALID, "%s:%d:%d: '%.80s' is not among the %s", reader->path,
                     items != NULL ? items->line : 1, items != NULL ? items->column : 1, name,
                     list);
}

static enum status refuse_members(const struct reader *reader, const struct tree_node *mapping,
                                  struct error *reterr)
{
    for (size_t i = 0; i < ARRAY_LEN(REFUSED); i++) {
        const struct tree_node *node = tree_get(mapping, REFUSED[i].key);
        if (node == NULL || (node->kind == TREE_SCALAR && node->scalar[0] == '\0'))
            continue;
        AUTO_TEXT what = {0};
        text_addf(&what, "'%s' is not supported", REFUSED[i].key);
        return invalid(reader, node, what.bytes, REFUSED[i].instead, reterr);
    }
    const struct tree_node *skip = tree_get(mapping, "insecure-skip-tls-verify");
    if (skip != NULL && (skip->kind != TREE_SCALAR || strcmp(skip->scalar, "false") != 0))
        return invalid(reader, skip, "'insecure-skip-tls-verify' is not supported",
                       "give certificate-authority or certificate-authority-data", reterr);
    return OK;
}

static int base64_value(char c)
{
    static const char DIGITS[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c != '\0' ? strchr(DIGITS, c) : NULL;
    return at != NULL ? (int)(at - DIGITS) : -1;
}

/* Padded base64, white space ignored as YAML's folding leaves it; false on anything else. */
static bool base64_decode(const char *text, struct text *out)
{
    unsigned bits = 0;
    int have = 0, padding = 0;
    for (; *text != '\0'; text++) {
        if (*text == ' ')
            continue;
        int value = base64_value(*text);
        if (*text == '=' ? ++padding > 2 : value < 0 || padding > 0)
            return false;
        bits = bits << 6 | (unsigned)(*text == '=' ? 0 : value);
        if (++have < 4)
            continue;
        const unsigned char bytes[3] = {(unsigned char)(bits >> 16), (unsigned char)(bits >> 8),
                                        (unsigned char)bits};
        text_add_bytes(out, bytes, (size_t)(3 - padding));
        bits = 0;
        have = 0;
    }
    return have == 0 && out->length > 0;
}

/* Puts bytes into a file that has no place on disk; *ret_name is how libraries open it. */
static enum status keep_inline(struct reader *reader, struct view bytes, char **ret_name,
                               struct error *reterr)
{
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "cannot keep a credential of '%s': %s", reader->path,
                         strerror(errno));
    reader->config->inline_fds[reader->inline_files++] = fd;
    for (size_t done = 0; done < bytes.length;) {
        ssize_t wrote = write(fd, bytes.bytes + done, bytes.length - done);
        if (wrote <= 0)
            return error_set(reterr, ERR_IO, "cannot keep a credential of '%s': %s", reader->path,
                             strerror(errno));
        done += (size_t)wrote;
    }
    AUTO_TEXT name = {0};
    text_addf(&name, "/proc/self/fd/%d", fd);
    *ret_name = text_take(&name);
    return OK;
}

static char *beside(const char *path, const char *file)
{
    const char *slash = strrchr(path, '/');
    AUTO_TEXT name = {0};
    if (file[0] != '/' && slash != NULL)
        text_add_bytes(&name, path, (size_t)(slash - path) + 1);
    text_add(&name, file);
    return text_take(&name);
}

/* `key` names a file; `key`-data, which wins as in kubectl, holds its contents. */
static enum status read_file_member(struct reader *reader, const struct tree_node *mapping,
                                    const char *key, char **member, struct error *reterr)
{
    AUTO_TEXT data_key = {0};
    text_addf(&data_key, "%s-data", key);
    const struct tree_node *name, *data;
    TRY(read_scalar(reader, mapping, key, &name, reterr));
    TRY(read_scalar(reader, mapping, data_key.bytes, &data, reterr));
    if (data == NULL) {
        if (name != NULL)
            set(member, beside(reader->path, name->scalar));
        return OK;
    }
    AUTO_TEXT bytes = {0};
    char *file = NULL;
    if (!base64_decode(data->scalar, &bytes))
        return invalid(reader, data, data_key.bytes, "is not base64", reterr);
    TRY(keep_inline(reader, (struct view){bytes.bytes, bytes.length}, &file, reterr));
    set(member, file);
    return OK;
}

static enum status read_cluster(struct reader *reader, const struct tree_node *cluster,
                                struct error *reterr)
{
    const struct tree_node *server;
    TRY(refuse_members(reader, cluster, reterr));
    TRY(read_scalar(reader, cluster, "server", &server, reterr));
    if (server == NULL)
        return invalid(reader, cluster, "the cluster has no server", "give its URL", reterr);
    bool is_url = strncmp(server->scalar, "https://", 8) == 0 ||
                  strncmp(server->scalar, "http://", 7) == 0;
    if (!is_url || strpbrk(server->scalar, " ?#@") != NULL)
        return invalid(reader, server, "server", "give a URL such as https://10.0.0.1:6443",
                       reterr);
    size_t length = strlen(server->scalar);
    while (length > 0 && server->scalar[length - 1] == '/')
        length--;
    set(&reader->config->server, xstrndup(server->scalar, length));
    return read_file_member(reader, cluster, "certificate-authority", &reader->config->ca_file,
                            reterr);
}

static enum status read_user(struct reader *reader, const struct tree_node *user,
                             struct error *reterr)
{
    struct kube_config *config = reader->config;
    const struct tree_node *token, *token_file;
    TRY(refuse_members(reader, user, reterr));
    TRY(read_file_member(reader, user, "client-certificate", &config->certificate_file, reterr));
    TRY(read_file_member(reader, user, "client-key", &config->key_file, reterr));
    if ((config->certificate_file[0] == '\0') != (config->key_file[0] == '\0'))
        return invalid(reader, user, "the user has one of client-certificate and client-key",
                       "give both", reterr);
    TRY(read_scalar(reader, user, "token", &token, reterr));
    TRY(read_scalar(reader, user, "tokenFile", &token_file, reterr));
    if (token_file != NULL)
        set(&config->token_file, beside(reader->path, token_file->scalar));
    else if (token != NULL)
        set(&config->token, xstrdup(token->scalar));
    return OK;
}

static enum status read_context(struct reader *reader, const struct tree_node *root,
                                const char *wanted, struct error *reterr)
{
    const struct tree_node *current, *context, *cluster, *user, *name;
    TRY(read_scalar(reader, root, "current-context", &current, reterr));
    if (wanted[0] == '\0' && current == NULL)
        return invalid(reader, root, "no current-context", "name the context to use", reterr);
    TRY(find_named(reader, root, "contexts", wanted[0] != '\0' ? wanted : current->scalar,
                   "context", &context, reterr));
    TRY(read_scalar(reader, context, "namespace", &name, reterr));
    set(&reader->config->default_namespace, xstrdup(name != NULL ? name->scalar : "default"));
    TRY(read_scalar(reader, context, "cluster", &name, reterr));
    if (name == NULL)
        return invalid(reader, context, "the context has no cluster", "name one", reterr);
    TRY(find_named(reader, root, "clusters", name->scalar, "cluster", &cluster, reterr));
    TRY(read_cluster(reader, cluster, reterr));
    TRY(read_scalar(reader, context, "user", &name, reterr));
    if (name == NULL)
        return OK;
    TRY(find_named(reader, root, "users", name->scalar, "user", &user, reterr));
    return read_user(reader, user, reterr);
}

static enum status read_root(struct reader *reader, const struct yaml_document *document,
                             const struct findings *findings, const char *context,
                             struct error *reterr)
{
    for (size_t i = 0; i < findings->count; i++)
        if (findings->items[i].is_error)
            return error_set(reterr, ERR_INVALID, "%s:%d:%d: %s", reader->path,
                             findings->items[i].line, findings->items[i].column,
                             findings->items[i].message);
    if (document->root == NULL || document->root->kind != TREE_MAPPING)
        return error_set(reterr, ERR_INVALID, "%s:1:1: not a kubeconfig", reader->path);
    return read_context(reader, document->root, context, reterr);
}

enum status kube_config_parse(struct view text, const char *path, const char *context,
                              struct kube_config **ret_config, struct error *reterr)
{
    AUTO(kube_config_free) struct kube_config *config = config_new();
    struct reader reader = {.path = path, .config = config};
    struct yaml_document document;
    struct findings findings = {0};
    yaml_parse(text, &document, &findings);
    enum status status = read_root(&reader, &document, &findings, context, reterr);
    findings_done(&findings);
    yaml_done(&document);
    if (status == OK)
        *ret_config = TAKE(config);
    return status;
}

static enum status load_pod(struct kube_config **ret_config, struct error *reterr)
{
    const char *host = getenv("KUBERNETES_SERVICE_HOST");
    const char *port = getenv("KUBERNETES_SERVICE_PORT");
    if (host == NULL || port == NULL || host[0] == '\0' || port[0] == '\0')
        return error_set(reterr, ERR_NOT_FOUND,
                         "KUBERNETES_SERVICE_HOST and _PORT are not set: not in a pod, so name a "
                         "kubeconfig");
    AUTO_TEXT own_namespace = {0};
    TRY(file_read(POD_FILES "/namespace", 1024, &own_namespace, reterr));
    AUTO_TEXT token = {0};
    TRY(file_read(POD_FILES "/token", 1u << 16, &token, reterr));
    struct kube_config *config = config_new();
    AUTO_TEXT server = {0};
    bool is_ipv6 = strchr(host, ':') != NULL;
    text_addf(&server, "https://%s%s%s:%s", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", port);
    set(&config->server, text_take(&server));
    set(&config->ca_file, xstrdup(POD_FILES "/ca.crt"));
    set(&config->token_file, xstrdup(POD_FILES "/token"));
    set(&config->default_namespace,
        xstrndup(own_namespace.bytes, strcspn(own_namespace.bytes, "\r\n")));
    *ret_config = config;
    return OK;
}

enum status kube_config_load(const char *path, const char *context, struct kube_config **ret_config,
                             struct error *reterr)
{
    if (path[0] == '\0')
        return load_pod(ret_config, reterr);
    AUTO_TEXT text = {0};
    TRY(file_read(path, KUBECONFIG_BYTES_MAX, &text, reterr));
    return kube_config_parse((struct view){text.bytes, text.length}, path, context, ret_config,
                             reterr);
}
