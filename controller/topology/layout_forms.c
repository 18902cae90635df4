/* A layout in the forms that launchers read. */
#include "controller/topology/layout.h"

#include "controller/topology/layout_state.h"

#include <string.h>

static const char *const FORM_NAMES[LAYOUT_FORM_COUNT] = {[LAYOUT_JSON] = "json",
                                                          [LAYOUT_HOSTFILE] = "hostfile",
                                                          [LAYOUT_RANKFILE] = "rankfile",
                                                          [LAYOUT_SLURM] = "slurm",
                                                          [LAYOUT_NCCL] = "nccl-topology"};

bool layout_form_parse(const char *name, enum layout_form *ret_form)
{
    for (int form = 0; form < LAYOUT_FORM_COUNT; form++)
        if (strcmp(name, FORM_NAMES[form]) == 0) {
            *ret_form = (enum layout_form)form;
            return true;
        }
    return false;
}

/* ---- JSON ---- */

static void write_violations(const struct layout *layout, struct json_writer *writer)
{
    json_add_key(writer, "broken");
    json_open_object(writer);
    for (int rule = 0; rule < LAYOUT_RULE_COUNT; rule++)
        json_put_int(writer, layout_rule_name((enum layout_rule)rule), layout->broken[rule]);
    json_close(writer);
    json_add_key(writer, "violations");
    json_open_array(writer);
    const char *line = layout->violations.bytes != NULL ? layout->violations.bytes : "";
    for (size_t length; *line != '\0'; line += length + 1) {
        length = strcspn(line, "\n");
        json_add_view(writer, (struct view){line, length});
    }
    json_close(writer);
}

static void write_json(const struct layout *layout, struct text *out)
{
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_put_string(&writer, "job", layout->job);
    json_put_int(&writer, "world_size", layout->world_size);
    json_put_int(&writer, "gpus_per_node", layout->gpus_per_node);
    json_put_bool(&writer, "by_counting", layout->is_by_counting);
    json_put_bool(&writer, "in_order", layout->is_in_order);
    json_put_bool(&writer, "domains_known", !layout->domains_unknown);
    json_put_int(&writer, "moved", layout->moved);
    write_violations(layout, &writer);
    json_add_key(&writer, "nodes");
    json_open_array(&writer);
    for (size_t n = 0; n < layout->node_count; n++) {
        json_open_object(&writer);
        json_put_string(&writer, "node", layout->nodes[n]);
        json_put_string(&writer, "nvlink_domain", layout->domains[n]);
        json_close(&writer);
    }
    json_close(&writer);
    json_add_key(&writer, "ranks");
    json_open_array(&writer);
    for (int32_t r = 0; r < layout->world_size; r++) {
        json_open_object(&writer);
        json_put_int(&writer, "rank", r);
        json_put_string(&writer, "node", layout->nodes[layout->ranks[r].node]);
        json_put_int(&writer, "gpu", layout->ranks[r].gpu);
        json_put_int(&writer, "rail", layout->ranks[r].rail);
        json_close(&writer);
    }
    json_close(&writer);
    json_close(&writer);
}

static void read_nodes(struct layout *layout, const struct json *nodes)
{
    size_t room = json_size(nodes) + 1;
    layout->nodes = xcalloc(room, sizeof *layout->nodes);
    layout->domains = xcalloc(room, sizeof *layout->domains);
    for (const struct json *node = json_first(nodes); node != NULL; node = json_next(node)) {
        const char *domain = json_get_string(node, "nvlink_domain", NULL);
        layout->nodes[layout->node_count] = xstrdup(json_get_string(node, "node", ""));
        layout->domains[layout->node_count++] = domain != NULL ? xstrdup(domain) : NULL;
    }
}

/* Nodes of neighbouring ranks are mostly the same or the next one. */
static int32_t find_node(const struct layout *layout, const char *name, int32_t near)
{
    int32_t count = (int32_t)layout->node_count;
    for (int32_t i = 0; i < count; i++) {
        int32_t node = (near + i) % count;
        if (strcmp(layout->nodes[node], name) == 0)
            return node;
    }
    return JOB_NONE;
}

static enum status read_ranks(struct layout *layout, const struct json *ranks, struct error *reterr)
{
    int32_t near = 0;
    int32_t at = 0;
    for (const struct json *item = json_first(ranks); item != NULL; item = json_next(item), at++) {
        near = find_node(layout, json_get_string(item, "node", ""), near);
        int64_t gpu = json_get_int(item, "gpu", -1);
        if (json_get_int(item, "rank", -1) != at || near == JOB_NONE || gpu < 0 ||
            gpu >= LAYOUT_GPUS_MOST || !is_host_name(layout->nodes[near]))
            return error_set(reterr, ERR_INVALID, "ranks[%d]: is not a rank of a layout", at);
        layout->ranks[at] = (struct layout_place){
            .node = near, .gpu = (int16_t)gpu, .rail = (int16_t)json_get_int(item, "rail", gpu)};
    }
    return OK;
}

enum status layout_read(const struct json *root, struct layout **ret_layout, struct error *reterr)
{
    AUTO(layout_free) struct layout *layout = xcalloc(1, sizeof *layout);
    const struct json *broken = json_get(root, "broken");
    size_t world = json_size(json_get(root, "ranks"));
    int64_t gpus = json_get_int(root, "gpus_per_node", 0);
    if (world < 1 || world > JOB_RANKS_MAX || gpus < 1 || gpus > LAYOUT_GPUS_MOST)
        return error_set(reterr, ERR_INVALID, "the answer is not a layout");
    layout->job = xstrdup(json_get_string(root, "job", ""));
    layout->world_size = (int32_t)world;
    layout->gpus_per_node = (int32_t)gpus;
    layout->is_by_counting = json_get_bool(root, "by_counting", false);
    layout->is_in_order = json_get_bool(root, "in_order", false);
    layout->domains_unknown = !json_get_bool(root, "domains_known", true);
    layout->moved = (int32_t)json_get_int(root, "moved", 0);
    for (int rule = 0; rule < LAYOUT_RULE_COUNT; rule++)
        layout->broken[rule] = (int32_t)json_get_int(broken,
                                                     layout_rule_name((enum layout_rule)rule), 0);
    for (const struct json *line = json_first(json_get(root, "violations")); line != NULL;
         line = json_next(line))
        text_addf(&layout->violations, "%s\n", json_string(line, ""));
    layout->ranks = xcalloc(world, sizeof *layout->ranks);
    read_nodes(layout, json_get(root, "nodes"));
    TRY(read_ranks(layout, json_get(root, "ranks"), reterr));
    *ret_layout = TAKE(layout);
    return OK;
}

/* ---- lists ---- */

static enum status write_hostfile(const struct layout *layout, struct text *out,
                                  struct error *reterr)
{
    int32_t gpus = layout->gpus_per_node;
    if (!layout->is_by_counting)
        return error_set(reterr, ERR_REFUSED,
                         "a list of hosts gives ranks by counting, and this layout is none of "
                         "these: use rankfile or slurm");
    for (int32_t r = 0; r < layout->world_size; r += gpus) {
        int32_t left = layout->world_size - r;
        text_addf(out, "%s slots=%d\n", layout->nodes[layout->ranks[r].node],
                  left < gpus ? left : gpus);
    }
    return OK;
}

enum { NVL72_GPUS = 4, CORES_OF_GRACE = 72 };

/* A slot of a rankfile is where the rank may run, not its GPU: on an NVL72 tray half of the Grace
 * that its GPU hangs on, elsewhere one place a rank. */
static void write_rankfile(const struct layout *layout, struct text *out)
{
    enum { HALF = CORES_OF_GRACE / 2 };
    for (int32_t r = 0; r < layout->world_size; r++) {
        const struct layout_place *place = &layout->ranks[r];
        text_addf(out, "rank %d=%s slot=", r, layout->nodes[place->node]);
        if (layout->gpus_per_node == NVL72_GPUS)
            text_addf(out, "%d:%d-%d\n", place->gpu / 2, place->gpu % 2 * HALF,
                      place->gpu % 2 * HALF + HALF - 1);
        else
            text_addf(out, "%d\n", place->gpu);
    }
}

static void write_slurm(const struct layout *layout, struct text *out)
{
    for (int32_t r = 0; r < layout->world_size; r++)
        text_addf(out, "%s\n", layout->nodes[layout->ranks[r].node]);
}

/* ---- NCCL ---- */

/* One GPU of a GB300 tray and the NIC of its rail. */
struct tray_gpu {
    int numa;
    const char *gpu, *nic, *nic_name;
};

static const struct tray_gpu NVL72_TRAY[NVL72_GPUS] = {
    {0, "0008:06:00.0", "0000:03:00.0", "mlx5_0"},
    {0, "0009:06:00.0", "0002:03:00.0", "mlx5_1"},
    {1, "0018:06:00.0", "0010:03:00.0", "mlx5_2"},
    {1, "0019:06:00.0", "0012:03:00.0", "mlx5_3"},
};

/* NCCL's reader takes comments, but no XML declaration, and one blank between attributes. What it
 * can read from the machine (affinity, vendor, device, link speed) is left to it. */
static const char NCCL_NOTES[] =
    "<!-- One compute tray of a GB300 NVL72: 2 Grace, 4 Blackwell, 4 ConnectX-8. The same file for "
    "every node. -->\n"
    "<!-- Use: NCCL_TOPO_FILE=this file, NCCL_MNNVL_ENABLE=1, NCCL_CROSS_NIC=0 -->\n"
    "<!-- Assumed: the bus ids, and that mlx5_N is the rail of GPU N. Compare with nvidia-smi topo "
    "-m "
    "and with -->\n"
    "<!-- NCCL_TOPO_DUMP_FILE of a healthy single tray; where they differ, the dump is right. "
    "-->\n";

static void write_nccl(struct text *out)
{
    text_add(out, NCCL_NOTES);
    text_add(out, "<system version=\"1\">\n");
    for (int numa = 0; numa < 2; numa++) {
        text_addf(out, "  <cpu numaid=\"%d\" arch=\"arm64\">\n", numa);
        for (int i = 0; i < NVL72_GPUS; i++) {
            const struct tray_gpu *at = &NVL72_TRAY[i];
            if (at->numa != numa)
                continue;
            text_addf(
                out,
                "    <pci busid=\"%s\" class=\"0x030200\">\n"
                "      <gpu dev=\"%d\" sm=\"103\" gdr=\"1\">\n"
                "        <nvlink target=\"fffffff:ff:ff.0\" count=\"18\" tclass=\"0x068000\"/>\n"
                "        <c2c bw=\"44712\" count=\"5\"/>\n"
                "      </gpu>\n"
                "    </pci>\n"
                "    <pci busid=\"%s\" class=\"0x020700\">\n"
                "      <nic>\n"
                "        <net name=\"%s\" dev=\"%d\" speed=\"800000\" gdr=\"1\"/>\n"
                "      </nic>\n"
                "    </pci>\n",
                at->gpu, i, at->nic, at->nic_name, i);
        }
        text_add(out, "  </cpu>\n");
    }
    text_add(out, "</system>\n");
}

enum status layout_write(const struct layout *layout, enum layout_form form, struct text *out,
                         struct error *reterr)
{
    switch (form) {
    case LAYOUT_HOSTFILE:
        return write_hostfile(layout, out, reterr);
    case LAYOUT_RANKFILE:
        write_rankfile(layout, out);
        break;
    case LAYOUT_SLURM:
        write_slurm(layout, out);
        break;
    case LAYOUT_NCCL:
        if (layout->gpus_per_node != NVL72_GPUS)
            return error_set(reterr, ERR_REFUSED,
                             "the topology of an NVL72 tray is one of 4 GPUs, this job has %d a "
                             "node: dump its own with NCCL_TOPO_DUMP_FILE",
                             layout->gpus_per_node);
        write_nccl(out);
        break;
    case LAYOUT_JSON:
    case LAYOUT_FORM_COUNT:
        write_json(layout, out);
        break;
    }
    return OK;
}
