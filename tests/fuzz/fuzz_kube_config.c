/* Any bytes as a kubeconfig: a whole configuration with a usable address, or a message that names
 * the file. Credentials never hold what could start another header line.
 */
#include "controller/kube/kube_config.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    AUTO(kube_config_free) struct kube_config *config = NULL;
    struct error error = {0};
    enum status status = kube_config_parse((struct view){(const char *)data, size}, "dir/fuzzed",
                                           "", &config, &error);
    if (status != OK) {
        require(config == NULL && strstr(error.message, "dir/fuzzed") != NULL);
        return 0;
    }
    require(strncmp(config->server, "http", 4) == 0 && strpbrk(config->server, " \r\n") == NULL);
    require(strpbrk(config->token, "\r\n") == NULL);
    require((config->certificate_file[0] != '\0') == (config->key_file[0] != '\0'));
    return 0;
}
