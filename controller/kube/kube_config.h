/* Where the API server is and who we are there: a kubeconfig file, or the files that a pod is
 * given. Secrets are read from their files again at every use, so that a rotated token or
 * certificate is taken up without a restart.
 */
#ifndef BROOM_KUBE_CONFIG_H
#define BROOM_KUBE_CONFIG_H

#include "controller/base/mem.h"
#include "controller/base/status.h"
#include "controller/base/text.h"

enum { KUBE_INLINE_FILES = 3 };

/* Strings are owned; "" is "not set". */
struct kube_config {
    char *server;           /* "https://10.96.0.1:443", no slash at the end */
    char *ca_file;          /* of the server's certificate; "" takes the system's */
    char *certificate_file; /* of the client; "" none */
    char *key_file;
    char *token_file; /* read at every call; "" none */
    char *token;      /* as written in the kubeconfig; "" none */
    char *default_namespace;
    /* *-data members: files in memory alone, whose names under /proc/self/fd stand above; they
     * leave nothing on disk, however this process ends. -1 none. */
    int inline_fds[KUBE_INLINE_FILES];
};

/* path: a kubeconfig file; "" takes the pod's own (KUBERNETES_SERVICE_HOST and _PORT, and the files
 * under /var/run/secrets/kubernetes.io/serviceaccount). context "" takes current-context. Exec and
 * auth-provider users are refused by name, and so is all that would weaken TLS. The caller frees
 * *ret_config. ERR_INVALID names file, line and what to do; ERR_NOT_FOUND and ERR_IO the file. */
MUST_CHECK enum status kube_config_load(const char *path, const char *context,
                                        struct kube_config **ret_config, struct error *reterr);
/* The same from a kubeconfig's text; path is what messages call it, and relative file names in it
 * are relative to its folder. */
MUST_CHECK enum status kube_config_parse(struct view text, const char *path, const char *context,
                                         struct kube_config **ret_config, struct error *reterr);
void kube_config_free(struct kube_config *config);
DEFINE_AUTO(struct kube_config, kube_config_free)

#endif
