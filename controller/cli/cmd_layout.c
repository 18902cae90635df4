/* `broom layout`: where the ranks of a job should go when it starts again. */
#include "controller/base/mem.h"
#include "controller/cli/commands.h"
#include "controller/cli/job_document.h"
#include "controller/cli/table.h"
#include "controller/topology/layout.h"

#include <string.h>

struct wishes {
    const char *format;   /* NULL: a table */
    const char *nodes;    /* "gb-1,gb-2" or NULL */
    const char *incident; /* or NULL */
    const char *job_file; /* or NULL: ask broomd */
    bool by_counting;
};

static void say(struct cli *cli, const char *words)
{
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, words);
    fprintf(cli->err, "broom: %s\n", clean.bytes != NULL ? clean.bytes : "");
}

/* ---- a layout, by broomd or from a file ---- */

static int ask_layout(struct cli *cli, const struct cli_common *common, const char *job,
                      const struct wishes *wishes, struct layout **ret_layout)
{
    AUTO_TEXT path = {0};
    AUTO(json_free) struct json *root = NULL;
    struct error error = {0};
    text_add(&path, "/api/v1/jobs/");
    text_add_percent(&path, job);
    text_add(&path, "/layout");
    cli_add_query(&path, "nodes", wishes->nodes);
    cli_add_query(&path, "incident", wishes->incident);
    cli_add_query(&path, "by_counting", wishes->by_counting ? "1" : NULL);
    int code = cli_get_large(cli, common, path.bytes, &root);
    if (code != EXIT_DONE)
        return code;
    if (layout_read(root, ret_layout, &error) == OK)
        return EXIT_DONE;
    say(cli, error.message);
    return EXIT_FAILED;
}

/* "gb-1,gb-2" cut in place. */
static const char **split_names(char *list, size_t *ret_count)
{
    size_t capacity = 0;
    const char **names = NULL;
    char *rest = list;
    for (char *name; (name = strsep(&rest, ", ")) != NULL;) {
        if (name[0] == '\0')
            continue;
        names = array_grow(names, *ret_count, &capacity, sizeof *names);
        names[(*ret_count)++] = name;
    }
    return names;
}

static enum status plan_file(const struct wishes *wishes, struct layout **ret_layout,
                             struct error *reterr)
{
    AUTO(job_free) struct job *job = NULL;
    AUTO_FREE char *list = xstrdup(wishes->nodes != NULL ? wishes->nodes : "");
    size_t count = 0;
    TRY(job_document_load(wishes->job_file, &job, reterr));
    AUTO_FREE const char **names = split_names(list, &count);
    struct layout_nodes nodes = wishes->nodes != NULL
                                    ? layout_nodes_named(job, names, count)
                                    : layout_nodes_after(job, &(struct layout_swap){0});
    enum status status = layout_plan(&(struct layout_request){.job = job,
                                                              .nodes = nodes.items,
                                                              .node_count = nodes.count,
                                                              .by_counting = wishes->by_counting,
                                                              .wanted = nodes.wanted},
                                     ret_layout, reterr);
    xfree(nodes.items);
    xfree(nodes.wanted);
    return status;
}

static int read_layout(struct cli *cli, const struct wishes *wishes, struct layout **ret_layout)
{
    struct error error = {0};
    if (plan_file(wishes, ret_layout, &error) == OK)
        return EXIT_DONE;
    say(cli, error.message);
    return status_exit_code(error.status);
}

/* ---- what is printed ---- */

static const struct table_column columns[] = {
    {"NODE", "node", false, false, NULL},   {"NVLINK DOMAIN", "nvlink_domain", false, false, NULL},
    {"RANKS", "ranks", false, false, NULL}, {"GPUS", "gpus", false, false, NULL},
    {"RAILS", "rails", false, false, NULL},
};

/* Numbers of one node's cells, as the writer of ranges wants them. */
struct cells {
    struct text ranks, gpus, rails; /* "[0,1,2" each */
};

static void add_number(struct text *list, int32_t number)
{
    text_addf(list, "%s%d", list->length == 0 ? "[" : ",", number);
}

static void add_cell(struct table *table, struct text *list)
{
    AUTO(json_free) struct json *numbers = NULL;
    AUTO_TEXT cell = {0};
    text_add(list, "]");
    if (json_parse((struct view){list->bytes, list->length}, &numbers, NULL) == OK)
        cli_add_ranges(&cell, numbers);
    table_add(table, cell.bytes);
    text_done(list);
}

static void print_table(struct cli *cli, const struct cli_common *common,
                        const struct layout *layout)
{
    AUTO(table_free) struct table *table = table_new(columns, ARRAY_LEN(columns));
    AUTO_FREE struct cells *cells = xcalloc(layout->node_count + 1, sizeof *cells);
    AUTO_FREE int32_t *order = xcalloc(layout->node_count + 1, sizeof *order);
    size_t used = 0;
    for (int32_t r = 0; r < layout->world_size; r++) {
        const struct layout_place *place = &layout->ranks[r];
        if (cells[place->node].ranks.length == 0)
            order[used++] = place->node;
        add_number(&cells[place->node].ranks, r);
        add_number(&cells[place->node].gpus, place->gpu);
        add_number(&cells[place->node].rails, place->rail);
    }
    for (size_t i = 0; i < used; i++) {
        struct cells *row = &cells[order[i]];
        table_add(table, layout->nodes[order[i]]);
        table_add(table, layout->domains[order[i]]);
        add_cell(table, &row->ranks);
        add_cell(table, &row->gpus);
        add_cell(table, &row->rails);
    }
    table_print(table, common->output, !common->no_headers, cli->colour && !common->no_colour,
                cli->out);
}

static const char *rule_in_words(enum layout_rule rule)
{
    static const char *const words[LAYOUT_RULE_COUNT] = {
        [LAYOUT_TENSOR] = "split tensor groups",
        [LAYOUT_EXPERT] = "expert sets in several NVLink domains",
        [LAYOUT_REPLICA] = "replicas in several NVLink domains",
        [LAYOUT_RAILS] = "data groups that do not meet on their rails"};
    return words[rule];
}

/* What is not as it should be, on err: a layout on out stays what a launcher can read. */
static void print_notes(struct cli *cli, const struct layout *layout)
{
    for (int rule = 0; rule < LAYOUT_RULE_COUNT; rule++)
        if (layout->broken[rule] > 0)
            fprintf(cli->err, "%s: %d\n", rule_in_words((enum layout_rule)rule),
                    layout->broken[rule]);
    if (layout->violations.length > 0) {
        AUTO_FREE char *lines = xstrdup(layout->violations.bytes);
        char *rest = lines;
        for (char *line; (line = strsep(&rest, "\n")) != NULL;) {
            AUTO_TEXT clean = {0};
            cli_add_clean(&clean, line);
            if (clean.length > 0)
                fprintf(cli->err, "  %s\n", clean.bytes);
        }
    }
    if (layout->domains_unknown)
        fputs("no rack is known: only tensor groups within trays were looked after\n", cli->err);
    if (layout->moved > 0)
        fprintf(cli->err, "%d of %d ranks are on another node than today\n", layout->moved,
                layout->world_size);
    if (!layout->is_in_order)
        fputs("ranks of a node are not in the order of its GPUs: take each rank's GPU from "
              "--format json\n",
              cli->err);
}

static int print_form(struct cli *cli, const struct layout *layout, const char *name)
{
    AUTO_TEXT out = {0};
    struct error error = {0};
    enum layout_form form = LAYOUT_JSON;
    bool is_known = layout_form_parse(name, &form);
    if (!is_known || layout_write(layout, form, &out, &error) != OK) {
        say(cli, is_known ? error.message : "no such form");
        return is_known ? status_exit_code(error.status) : EXIT_USAGE;
    }
    fputs(out.bytes, cli->out);
    if (form == LAYOUT_JSON)
        fputs("\n", cli->out);
    return EXIT_DONE;
}

static int run(struct cli *cli, const struct cli_common *common, const char *job,
               const struct wishes *wishes)
{
    AUTO(layout_free) struct layout *layout = NULL;
    int code = wishes->job_file != NULL ? read_layout(cli, wishes, &layout)
                                        : ask_layout(cli, common, job, wishes, &layout);
    if (code != EXIT_DONE)
        return code;
    print_notes(cli, layout);
    const char *format = wishes->format;
    if (format == NULL && strcmp(common->output, "json") == 0)
        format = "json";
    if (format == NULL)
        print_table(cli, common, layout);
    else
        code = print_form(cli, layout, format);
    return code == EXIT_DONE && layout->broken[LAYOUT_TENSOR] > 0 ? EXIT_FINDINGS : code;
}

int cmd_layout(struct cli *cli, int argc, char **argv)
{
    static const char *const formats[] = {"hostfile",      "rankfile", "slurm",
                                          "nccl-topology", "json",     NULL};
    struct wishes wishes = {0};
    struct cli_common common;
    struct option_row shared[CLI_COMMON_ROWS];
    const struct option_row rows[] = {
        {"format", 'f', OPTION_CHOICE, "FORM",
         "hostfile, rankfile, slurm, nccl-topology or json; else a table", &wishes.format, formats},
        {"nodes", 0, OPTION_TEXT, "A,B,...", "the nodes that it will have, in this order",
         &wishes.nodes, NULL},
        {"incident", 0, OPTION_TEXT, "INC-n", "only the nodes that this incident takes out",
         &wishes.incident, NULL},
        {"by-counting", 0, OPTION_FLAG, NULL,
         "only layouts that torchrun or a list of hosts can give", &wishes.by_counting, NULL},
        {"job", 0, OPTION_TEXT, "JOB.json", "plan from a job file, without a server",
         &wishes.job_file, NULL}};
    const struct usage usage = {
        .command = "layout",
        .arguments = "JOB | --job JOB.json",
        .summary = "where the ranks of a job go when it starts again",
        .details =
            "Keeps tensor groups in one tray, experts and replicas in one NVLink domain, and rails "
            "aligned, on\n"
            "the nodes that the job has, without those that leave, with the spares promised for "
            "them. What\n"
            "cannot be kept is said on stderr; exit 3 when a tensor group is split.\n",
        .examples = "  broom layout default/llm-17\n"
                    "  broom layout default/llm-17 -f hostfile > hosts\n"
                    "  broom layout default/llm-17 -f slurm > hosts; SLURM_HOSTFILE=hosts srun "
                    "--distribution=arbitrary ...\n"
                    "  broom layout --job job.json --nodes gb-1,gb-2,gb-9 -f rankfile\n",
        .most = 1,
        .own = {rows, ARRAY_LEN(rows)},
        .shared = cli_common_options(&common, shared)};
    struct arguments arguments;
    int code = options_parse(&usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    if ((arguments.count == 0) == (wishes.job_file == NULL)) {
        fputs("broom layout: name either a JOB of broomd or a file with --job\n"
              "try 'broom help layout'\n",
              cli->err);
        return EXIT_USAGE;
    }
    char ref[32];
    if (wishes.incident != NULL && !cli_parse_ref(cli, "layout", wishes.incident, ref))
        return EXIT_USAGE;
    wishes.incident = wishes.incident != NULL ? ref : NULL;
    return run(cli, &common, arguments.count > 0 ? arguments.items[0] : NULL, &wishes);
}
