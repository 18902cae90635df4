/* What scontrol prints: any bytes; a node with a word that nobody knows is neither ready nor
 * drained, and a mark that is read is one that could have been written. */
#include "remediation/actuators/slurm_state.h"
#include "remediation/actuators/slurm_text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_nodes(struct view text)
{
    struct view record;
    while (slurm_next_record(&text, "NodeName=", &record)) {
        struct slurm_node node;
        slurm_node_read(record, &node);
        bool is_strange = (node.state.flags & SLURM_STRANGE) != 0;
        if (is_strange && (slurm_is_ready(node.state) || slurm_is_drained(node.state)))
            abort();
        if (slurm_is_drained(node.state) && !slurm_is_cordoned(&node))
            abort();
        slurm_node_done(&node);
    }
}

static void read_jobs(struct view text)
{
    struct view record;
    while (slurm_next_record(&text, "JobId=", &record)) {
        struct slurm_job job;
        struct slurm_mark mark, again;
        slurm_job_read(record, &job);
        if (slurm_mark_read(job.admin_comment, &mark)) {
            AUTO_TEXT out = {0};
            slurm_mark_write(&out, "", mark.operation_id, mark.restarts, "");
            if (!slurm_mark_read(out.bytes, &again) || again.restarts != mark.restarts ||
                strcmp(again.operation_id, mark.operation_id) != 0)
                abort();
        }
        slurm_job_done(&job);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct view text = {(const char *)data, size};
    read_nodes(text);
    read_jobs(text);
    slurm_config_value(text, "BOOT_TIME");
    return 0;
}
