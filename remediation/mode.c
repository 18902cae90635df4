/* A mode that changes while incidents are open. */
#include "remediation/core_state.h"

void remediation_set_mode(struct remediation *core, enum mode mode, int64_t now_ns)
{
    core->daemon_mode = mode == MODE_UNSET ? MODE_OBSERVE : mode;
    for (size_t i = 0; i < core->incident_count; i++) {
        struct incident *incident = core->incidents[i];
        if (incident_has_ended(incident) || incident->mode <= core->daemon_mode)
            continue;
        incident->mode = core->daemon_mode;
        incident->dirty = true;
    }
    remediation_tick(core, now_ns);
}
