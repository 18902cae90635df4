#include "controller/kube/kube_config.h"

#include "controller/sys/file.h"
#include "tests/harness/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char WHOLE[] = "apiVersion: v1\n"
                            "kind: Config\n"
                            "clusters:\n"
                            "- name: other\n"
                            "  cluster: {server: 'https://10.0.0.9:6443'}\n"
                            "- name: lab\n"
                            "  cluster:\n"
                            "    server: https://10.0.0.1:6443/\n"
                            "    certificate-authority: pki/ca.crt\n"
                            "users:\n"
                            "- name: u\n"
                            "  user: {token: secret}\n"
                            "contexts:\n"
                            "- name: lab\n"
                            "  context: {cluster: lab, user: u, namespace: training}\n"
                            "- name: bare\n"
                            "  context: {cluster: other}\n"
                            "current-context: lab\n";

static enum status parse(const char *text, const char *context, struct kube_config **ret_config,
                         struct error *reterr)
{
    return kube_config_parse(view_of(text), "/etc/broom/kubeconfig", context, ret_config, reterr);
}

TEST(the_current_context_says_where_and_who)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    CU_ASSERT_EQUAL_FATAL(parse(WHOLE, "", &config, NULL), OK);
    CU_ASSERT_STRING_EQUAL(config->server, "https://10.0.0.1:6443");
    CU_ASSERT_STRING_EQUAL(config->ca_file, "/etc/broom/pki/ca.crt");
    CU_ASSERT_STRING_EQUAL(config->token, "secret");
    CU_ASSERT_STRING_EQUAL(config->token_file, "");
    CU_ASSERT_STRING_EQUAL(config->certificate_file, "");
    CU_ASSERT_STRING_EQUAL(config->default_namespace, "training");
}

TEST(another_context_may_be_named)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    CU_ASSERT_EQUAL_FATAL(parse(WHOLE, "bare", &config, NULL), OK);
    CU_ASSERT_STRING_EQUAL(config->server, "https://10.0.0.9:6443");
    CU_ASSERT_STRING_EQUAL(config->token, "");
    CU_ASSERT_STRING_EQUAL(config->default_namespace, "default");
}

TEST(json_is_read_as_yaml_is)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    CU_ASSERT_EQUAL_FATAL(
        parse("{\"clusters\":[{\"name\":\"a\",\"cluster\":{\"server\":\"https://x\"}}],"
              "\"contexts\":[{\"name\":\"a\",\"context\":{\"cluster\":\"a\",\"user\":\"b\"}}],"
              "\"users\":[{\"name\":\"b\",\"user\":{\"tokenFile\":\"token\"}}],"
              "\"current-context\":\"a\",\"preferences\":{}}",
              "", &config, NULL),
        OK);
    CU_ASSERT_STRING_EQUAL(config->token_file, "/etc/broom/token");
}

TEST(inline_credentials_are_files_that_no_disk_holds)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    CU_ASSERT_EQUAL_FATAL(
        parse("clusters: [{name: a, cluster: {server: 'https://x', certificate-authority: gone,"
              " certificate-authority-data: Y2EgaGVyZQo=}}]\n"
              "users: [{name: b, user: {client-certificate-data: Y2VydA==, client-key-data: "
              "a2V5}}]\n"
              "contexts: [{name: a, context: {cluster: a, user: b}}]\n"
              "current-context: a\n",
              "", &config, NULL),
        OK);
    AUTO_TEXT text = {0};
    CU_ASSERT_EQUAL(file_read(config->ca_file, 100, &text, NULL), OK);
    CU_ASSERT_EQUAL(file_read(config->certificate_file, 100, &text, NULL), OK);
    CU_ASSERT_EQUAL(file_read(config->key_file, 100, &text, NULL), OK);
    CU_ASSERT_STRING_EQUAL(text.bytes, "ca here\ncertkey");
    for (int i = 0; i < KUBE_INLINE_FILES; i++)
        CU_ASSERT((fcntl(config->inline_fds[i], F_GETFD) & FD_CLOEXEC) != 0);
}

#define USER(user)                                                                                 \
    "clusters: [{name: a, cluster: {server: 'https://x'}}]\nusers:\n- name: b\n  user: " user      \
    "\ncontexts: [{name: a, context: {cluster: a, user: b}}]\ncurrent-context: a\n"
#define CLUSTER(cluster)                                                                           \
    "clusters: [{name: a, cluster: " cluster "}]\n"                                                \
    "contexts: [{name: a, context: {cluster: a}}]\ncurrent-context: a\n"

TEST(what_is_not_done_is_refused_with_its_place_and_a_way_out)
{
    static const struct {
        const char *text, *place, *words;
    } cases[] = {
        {USER("{exec: {command: aws}}"),
         ":4:16:", "'exec' is not supported: give the user a token"},
        {USER("{auth-provider: {name: gcp}}"), ":4:", "'auth-provider' is not supported"},
        {USER("{username: admin, password: x}"), ":4:", "'username' is not supported"},
        {USER("{token: t, as: admin}"), ":4:", "'as' is not supported"},
        {USER("{client-certificate: c}"), ":4:", "give both"},
        {USER("{client-certificate-data: '%%', client-key: k}"), ":4:", "is not base64"},
        {USER("{client-certificate-data: 'QQ=', client-key: k}"), ":4:", "is not base64"},
        {USER("{token: [a]}"), ":4:", "give one text"},
        {USER("{token: \"a\\r\\nX-Evil: b\"}"), ":4:", "control characters"},
        {CLUSTER("{server: 'https://x', insecure-skip-tls-verify: true}"),
         ":1:", "'insecure-skip-tls-verify' is not supported"},
        {CLUSTER("{server: 'https://x', proxy-url: 'http://p'}"), ":1:", "'proxy-url'"},
        {CLUSTER("{server: 'https://x', tls-server-name: y}"), ":1:", "'tls-server-name'"},
        {CLUSTER("{server: 'x:6443'}"), ":1:", "give a URL such as"},
        {CLUSTER("{}"), ":1:", "has no server"},
        {"current-context: a\n", ":1:", "'a' is not among the contexts"},
        {"contexts: []\n", ":1:1:", "no current-context"},
        {"contexts: [{name: a, context: {cluster: b}}]\ncurrent-context: a\nclusters: []\n",
         ":3:", "'b' is not among the clusters"},
        {"contexts: [{name: a}]\ncurrent-context: a\n", ":1:", "has no such part"},
        {"a: 1\na: 2\n", ":2:", "stands twice"},
        {"", ":1:1:", "is empty"},
        {"- 1\n", ":1:1:", "not a kubeconfig"},
        {"a: [", "/etc/broom/kubeconfig:", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        AUTO(kube_config_free) struct kube_config *config = NULL;
        struct error error = {0};
        CU_ASSERT_EQUAL(parse(cases[i].text, "", &config, &error), ERR_INVALID);
        bool is_told = strstr(error.message, cases[i].place) != NULL &&
                       strstr(error.message, cases[i].words) != NULL;
        CU_ASSERT(is_told);
        if (!is_told)
            printf("case %zu: %s\n", i, error.message);
    }
}

TEST(a_verified_cluster_may_say_so)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    CU_ASSERT_EQUAL(
        parse(CLUSTER("{server: 'https://x', insecure-skip-tls-verify: false}"), "", &config, NULL),
        OK);
}

TEST(a_file_that_is_not_there_is_named)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    struct error error = {0};
    CU_ASSERT_EQUAL(kube_config_load("/nowhere/kubeconfig", "", &config, &error), ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "/nowhere/kubeconfig"));
}

TEST(outside_a_pod_a_kubeconfig_must_be_named)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    struct error error = {0};
    unsetenv("KUBERNETES_SERVICE_HOST");
    CU_ASSERT_EQUAL(kube_config_load("", "", &config, &error), ERR_NOT_FOUND);
    CU_ASSERT_PTR_NOT_NULL(strstr(error.message, "name a kubeconfig"));
}

TESTS(T(the_current_context_says_where_and_who), T(another_context_may_be_named),
      T(json_is_read_as_yaml_is), T(inline_credentials_are_files_that_no_disk_holds),
      T(what_is_not_done_is_refused_with_its_place_and_a_way_out), T(a_verified_cluster_may_say_so),
      T(a_file_that_is_not_there_is_named), T(outside_a_pod_a_kubeconfig_must_be_named))
