/* `broom topology`: where the nodes stand, who says so, and where that is contradicted. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/rows.h"

#include <string.h>

static const struct table_column rack_columns[] = {
    {"RACK", "rack", false, false, NULL},
    {"TRAYS", "trays", true, false, NULL},
    {"NVLINK DOMAINS", "nvlink_domains", false, false, NULL},
    {"NODES", "nodes", false, false, NULL},
};

enum { NODES_SHOWN = 3 };

static void add_names(struct text *text, const struct json *names, size_t most)
{
    size_t count = 0;
    for (const struct json *name = json_first(names); name != NULL; name = json_next(name), count++)
        if (count < most)
            text_addf(text, "%s%s", count > 0 ? ", " : "", json_string(name, ""));
    if (count > most)
        text_addf(text, " and %zu more", count - most);
}

static void add_rack(struct table *table, const struct json *rack)
{
    AUTO_TEXT domains = {0};
    AUTO_TEXT nodes = {0};
    AUTO_TEXT all = {0};
    const struct json *list = json_get(rack, "nodes");
    add_names(&domains, json_get(rack, "nvlink_domains"), NODES_SHOWN);
    add_names(&nodes, list, NODES_SHOWN);
    add_names(&all, list, json_size(list));
    row_add_string(table, rack, "rack");
    table_addf(table, "%zu", json_size(list));
    table_add(table, domains.bytes);
    table_add_both(table, nodes.bytes, all.bytes);
}

static const struct table_column node_columns[] = {
    {"NODE", "node", false, false, NULL},
    {"RACK", "rack", false, false, NULL},
    {"TRAY", "tray", true, false, NULL},
    {"RAILS", "rails", true, true, NULL},
    {"NVLINK DOMAIN", "nvlink_domain", false, false, NULL},
    {"BY", "source", false, false, NULL},
    {"SINCE (UTC)", "since", false, false, NULL},
    {"SILENT SINCE (UTC)", "silent_since", false, true, NULL},
};

static void add_node(struct table *table, const struct json *node)
{
    row_add_string(table, node, "node");
    row_add_string(table, node, "rack");
    row_add_number(table, node, "tray", ROW_WHOLE);
    row_add_number(table, node, "rails", ROW_WHOLE);
    row_add_string(table, node, "nvlink_domain");
    row_add_string(table, node, "source");
    row_add_time(table, node, "since");
    row_add_time(table, node, "silent_since");
}

static const struct table_column said_columns[] = {
    {"BY", "source", false, false, NULL},
    {"RACK", "rack", false, false, NULL},
    {"TRAY", "tray", true, false, NULL},
    {"RAILS", "rails", true, true, NULL},
    {"NVLINK DOMAIN", "nvlink_domain", false, false, NULL},
    {"SINCE (UTC)", "since", false, false, NULL},
    {"SILENT SINCE (UTC)", "silent_since", false, false, NULL},
};

static void add_said(struct table *table, const struct json *said)
{
    row_add_string(table, said, "source");
    row_add_string(table, said, "rack");
    row_add_number(table, said, "tray", ROW_WHOLE);
    row_add_number(table, said, "rails", ROW_WHOLE);
    row_add_string(table, said, "nvlink_domain");
    row_add_time(table, said, "since");
    row_add_time(table, said, "silent_since");
}

/* On err, so that a table stays a table. */
static int print_findings(struct cli *cli, const struct json *findings)
{
    for (const struct json *item = json_first(findings); item != NULL; item = json_next(item)) {
        AUTO_TEXT clean = {0};
        cli_add_clean(&clean, json_get_string(item, "text", "?"));
        fprintf(cli->err, "%s [%s]\n", clean.bytes != NULL ? clean.bytes : "",
                json_get_string(item, "rule", "?"));
    }
    return json_size(findings) > 0 ? EXIT_FINDINGS : EXIT_DONE;
}

static int print_node(struct cli *cli, const struct cli_common *common, const struct json *root,
                      const char *name)
{
    const struct json *node = json_first(json_get(root, "nodes"));
    while (node != NULL && strcmp(json_get_string(node, "node", ""), name) != 0)
        node = json_next(node);
    if (node == NULL) {
        fprintf(cli->err,
                "broom: no source names the node '%s'; 'broom topology --nodes' lists them\n",
                name);
        return EXIT_NOT_FOUND;
    }
    if (strcmp(common->output, "json") == 0)
        cli_print_json(cli, node);
    else
        rows_print(cli, common, json_get(node, "says"), said_columns, ARRAY_LEN(said_columns),
                   add_said);
    return EXIT_DONE;
}

int cmd_topology(struct cli *cli, int argc, char **argv)
{
    bool nodes = false;
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"nodes", 0, OPTION_FLAG, NULL, "a row a node, not a row a rack", &nodes, NULL}};
    const struct usage usage = {
        .command = "topology",
        .arguments = "[NODE]",
        .summary = "racks and nodes, who says where they stand",
        .details = "Of several sources the most trusted that speaks wins: the topology file, "
                   "labels of the "
                   "site,\n"
                   "HyperNodes, Slurm, nvidia.com/gpu.clique, the ranks themselves. With NODE: "
                   "what each of "
                   "them says.\n"
                   "Contradictions stand on stderr; exit 3 when there are any.\n",
        .examples =
            "  broom topology\n  broom topology --nodes -o csv\n  broom topology gb-8921bc\n",
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    AUTO(json_free) struct json *root = NULL;
    code = cli_get_large(cli, &common, "/api/v1/topology", &root);
    if (code != EXIT_DONE)
        return code;
    if (arguments.count > 0)
        return print_node(cli, &common, root, arguments.items[0]);
    if (strcmp(common.output, "json") == 0)
        cli_print_json(cli, root);
    else if (nodes)
        rows_print(cli, &common, json_get(root, "nodes"), node_columns, ARRAY_LEN(node_columns),
                   add_node);
    else
        rows_print(cli, &common, json_get(root, "racks"), rack_columns, ARRAY_LEN(rack_columns),
                   add_rack);
    if (json_size(json_get(root, "nodes")) == 0)
        fputs("no source has named a node yet: see topology.file, or runbooks/layout.md\n",
              cli->err);
    return print_findings(cli, json_get(root, "findings"));
}
