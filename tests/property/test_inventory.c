/* The inventory against a naive one: what a node's answer is follows from what each source said
 * last. */
#include "controller/topology/inventory.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

enum { NODES = 12, NAMES = 5 };

/* What a source said last of a node; index of a name, -1 never or withdrawn. */
struct word {
    int rack, domain;
    bool rack_speaks, domain_speaks;
};

struct model {
    struct word words[NODES][INVENTORY_SOURCE_COUNT];
};

static int below(uint64_t *state, int limit)
{
    return (int)(test_random(state) % (uint64_t)limit);
}

static const char *name(char buffer[16], const char *letter, int number)
{
    if (number < 0)
        return NULL;
    snprintf(buffer, 16, "%s%d", letter, number);
    return buffer;
}

static void model_say(int *value, bool *speaks, int said)
{
    *speaks = said >= 0;
    if (said >= 0)
        *value = said;
}

/* Cliques are left to unit tests: here every source names its racks itself. */
static void step(struct inventory *inventory, struct model *model, uint64_t *state, int64_t time_ns)
{
    static const enum inventory_source sources[] = {
        INVENTORY_FILE, INVENTORY_LABEL, INVENTORY_HYPERNODE, INVENTORY_SLURM, INVENTORY_HELLO};
    enum inventory_source source = sources[below(state, ARRAY_LEN(sources))];
    int node = below(state, NODES);
    char node_name[16], rack[16], domain[16];
    name(node_name, "n", node);
    struct word *word = &model->words[node][source];
    if (below(state, 10) == 0) {
        inventory_withdraw(inventory, source, node_name, time_ns);
        *word = (struct word){.rack = -1, .domain = -1};
        return;
    }
    int said_rack = below(state, NAMES + 1) - 1;
    int said_domain = below(state, NAMES + 1) - 1;
    CU_ASSERT(inventory_observe(
        inventory, &(struct inventory_observation){source, node_name, name(rack, "r", said_rack),
                                                   name(domain, "d", said_domain),
                                                   INVENTORY_UNKNOWN, INVENTORY_UNKNOWN, time_ns}));
    model_say(&word->rack, &word->rack_speaks, said_rack);
    model_say(&word->domain, &word->domain_speaks, said_domain);
}

static int best(const struct model *model, int node, bool is_rack)
{
    int last_word = -1;
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++) {
        const struct word *word = &model->words[node][s];
        int value = is_rack ? word->rack : word->domain;
        if (value >= 0 && (is_rack ? word->rack_speaks : word->domain_speaks))
            return value;
        if (last_word < 0)
            last_word = value;
    }
    return last_word;
}

static bool is_same(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

static void compare(const struct inventory *inventory, const struct model *model)
{
    for (int n = 0; n < NODES; n++) {
        struct inventory_node answer;
        char node_name[16], rack[16], domain[16];
        if (!inventory_find(inventory, name(node_name, "n", n), &answer))
            continue;
        CU_ASSERT(is_same(answer.rack, name(rack, "r", best(model, n, true))));
        CU_ASSERT(is_same(answer.nvlink_domain, name(domain, "d", best(model, n, false))));
    }
    for (size_t i = 1; i < inventory_count(inventory); i++)
        CU_ASSERT(strcmp(inventory_at(inventory, i - 1).node, inventory_at(inventory, i).node) < 0);
}

/* Records, played in order, lead to the same answers. */
static void replay(struct inventory *inventory, struct model *seen)
{
    for (;;) {
        AUTO_TEXT record = {0};
        AUTO(json_free) struct json *root = NULL;
        if (!inventory_take_record(inventory, &record))
            return;
        CU_ASSERT_EQUAL_FATAL(json_parse((struct view){record.bytes, record.length}, &root, NULL),
                              OK);
        int node = json_get_string(root, "node", "n0")[1] - '0';
        if (strlen(json_get_string(root, "node", "n0")) > 2)
            node = 10 + (json_get_string(root, "node", "n0")[2] - '0');
        const char *answer = json_get_string(json_get(root, "answer"), "rack", NULL);
        seen->words[node][0].rack = answer != NULL ? answer[1] - '0' : -1;
    }
}

TEST(answers_are_those_of_the_last_words_of_the_most_trusted)
{
    uint64_t state = test_seed();
    int rounds = test_rounds(60);
    for (int round = 0; round < rounds; round++) {
        AUTO(inventory_free) struct inventory *inventory = inventory_new();
        struct model model;
        struct model seen = {0};
        for (int n = 0; n < NODES; n++)
            for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++)
                model.words[n][s] = (struct word){.rack = -1, .domain = -1};
        for (int n = 0; n < NODES; n++)
            seen.words[n][0].rack = -1;
        for (int i = 0; i < 200; i++) {
            step(inventory, &model, &state, 1 + i);
            compare(inventory, &model);
        }
        replay(inventory, &seen);
        for (int n = 0; n < NODES; n++)
            CU_ASSERT_EQUAL(seen.words[n][0].rack, best(&model, n, true));
    }
}

TESTS(T(answers_are_those_of_the_last_words_of_the_most_trusted))
