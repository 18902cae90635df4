/* Hostlists: any bytes; what expands must fold into a list that expands to the same names. */
#include "remediation/actuators/slurm_hostlist.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct names names = {0}, back = {0};
    AUTO_TEXT folded = {0};
    enum status status = hostlist_expand((struct view){(const char *)data, size}, &names, NULL);
    if (names.count > HOSTLIST_NAMES_MAX)
        abort();
    if (status == OK && names.count > 0 && names.count < 200) {
        hostlist_add(&folded, (const char *const *)names.items, names.count);
        if (hostlist_expand((struct view){folded.bytes, folded.length}, &back, NULL) != OK ||
            back.count > names.count)
            abort();
        for (size_t i = 0; i < names.count; i++)
            if (!names_has(&back, names.items[i]))
                abort();
    }
    names_done(&names);
    names_done(&back);
    return 0;
}
