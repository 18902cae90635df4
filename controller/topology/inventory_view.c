/* What people and records see of the inventory. */
#include "controller/topology/inventory_state.h"

#include <stdlib.h>
#include <string.h>

enum { CHANGES_SHOWN = 200 };

const char *inventory_source_name(enum inventory_source source)
{
    static const char *const names[INVENTORY_SOURCE_COUNT] = {
        [INVENTORY_FILE] = "file",           [INVENTORY_LABEL] = "label",
        [INVENTORY_HYPERNODE] = "hypernode", [INVENTORY_SLURM] = "slurm",
        [INVENTORY_CLIQUE] = "clique",       [INVENTORY_HELLO] = "hello"};
    return source < INVENTORY_SOURCE_COUNT ? names[source] : NULL;
}

static void put_int_or_null(struct json_writer *writer, const char *key, int32_t value)
{
    json_add_key(writer, key);
    if (value == INVENTORY_UNKNOWN)
        json_add_null(writer);
    else
        json_add_int(writer, value);
}

/* ---- records ---- */

static void put_change(struct json_writer *writer, const struct change *change)
{
    json_put_string(writer, "node", change->node);
    json_put_string(writer, "source", inventory_source_name(change->source));
    json_put_string(writer, "rack", change->rack);
    json_put_string(writer, "nvlink_domain", change->domain);
    put_int_or_null(writer, "tray", change->tray);
    put_int_or_null(writer, "rails", change->rails);
    json_put_bool(writer, "silent", change->silent);
}

static const struct change *change_at(const struct inventory *inventory, int64_t number)
{
    return &inventory->changes[(size_t)number % inventory->change_room];
}

bool inventory_take_record(struct inventory *inventory, struct text *ret_json)
{
    if (inventory->taken_count == inventory->change_count)
        return false;
    int64_t number = inventory->taken_count++;
    const struct change *change = change_at(inventory, number);
    struct json_writer writer = json_writer(ret_json);
    AUTO_TEXT key = {0};
    text_addf(&key, "topology/%s/%s/%lld/%lld", change->node, inventory_source_name(change->source),
              (long long)change->time_ns, (long long)number);
    json_open_object(&writer);
    json_put_string(&writer, "type", "topology");
    json_put_string(&writer, "key", key.bytes);
    json_put_int(&writer, "time_ns", change->time_ns);
    put_change(&writer, change);
    json_add_key(&writer, "answer");
    json_open_object(&writer);
    json_put_string(&writer, "rack", change->answer_rack);
    json_put_string(&writer, "source", inventory_source_name(change->answer_source));
    json_put_string(&writer, "nvlink_domain", change->answer_domain);
    json_close(&writer);
    json_close(&writer);
    return true;
}

/* ---- the whole of it ---- */

static void write_said(struct json_writer *writer, const struct stand *stand,
                       enum inventory_source source)
{
    const struct said *said = &stand->said[source];
    if (said->rack.value == NULL && said->domain.value == NULL && said->tray == INVENTORY_UNKNOWN &&
        said->rails == INVENTORY_UNKNOWN)
        return;
    const struct said_name *dated = said->rack.value != NULL ? &said->rack : &said->domain;
    json_open_object(writer);
    json_put_string(writer, "source", inventory_source_name(source));
    json_put_string(writer, "rack", said->rack.value);
    json_put_string(writer, "nvlink_domain", said->domain.value);
    put_int_or_null(writer, "tray", said->tray);
    put_int_or_null(writer, "rails", said->rails);
    json_put_time(writer, "since", dated->since_ns);
    json_put_time(writer, "silent_since", dated->silent_ns);
    json_close(writer);
}

static void write_node(struct json_writer *writer, const struct stand *stand)
{
    const struct inventory_node *answer = &stand->answer;
    json_open_object(writer);
    json_put_string(writer, "node", answer->node);
    json_put_string(writer, "rack", answer->rack);
    json_put_string(writer, "nvlink_domain", answer->nvlink_domain);
    put_int_or_null(writer, "tray", answer->tray);
    put_int_or_null(writer, "rails", answer->rails);
    json_put_string(writer, "source", inventory_source_name(answer->rack_source));
    json_put_time(writer, "since", answer->rack_since_ns);
    json_put_time(writer, "silent_since", answer->silent_since_ns);
    json_add_key(writer, "says");
    json_open_array(writer);
    for (int s = 0; s < INVENTORY_SOURCE_COUNT; s++)
        write_said(writer, stand, (enum inventory_source)s);
    json_close(writer);
    json_close(writer);
}

static int by_rack_then_node(const void *left, const void *right)
{
    const struct inventory_node *a = &(*(const struct stand *const *)left)->answer;
    const struct inventory_node *b = &(*(const struct stand *const *)right)->answer;
    int racks = strcmp(a->rack != NULL ? a->rack : "", b->rack != NULL ? b->rack : "");
    return racks != 0 ? racks : strcmp(a->node, b->node);
}

static int by_pointer(const void *left, const void *right)
{
    return strcmp(*(const char *const *)left, *(const char *const *)right);
}

static void write_domains(struct json_writer *writer, struct stand **stands, size_t count)
{
    AUTO_FREE const char **domains = xcalloc(count, sizeof *domains);
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (stands[i]->answer.nvlink_domain != NULL)
            domains[known++] = stands[i]->answer.nvlink_domain;
    qsort(domains, known, sizeof *domains, by_pointer);
    json_add_key(writer, "nvlink_domains");
    json_open_array(writer);
    for (size_t i = 0; i < known; i++)
        if (i == 0 || domains[i] != domains[i - 1])
            json_add_string(writer, domains[i]);
    json_close(writer);
}

static void write_rack(struct json_writer *writer, struct stand **stands, size_t count)
{
    json_open_object(writer);
    json_put_string(writer, "rack", stands[0]->answer.rack);
    write_domains(writer, stands, count);
    json_add_key(writer, "nodes");
    json_open_array(writer);
    for (size_t i = 0; i < count; i++)
        json_add_string(writer, stands[i]->name);
    json_close(writer);
    json_close(writer);
}

static void write_racks(struct json_writer *writer, const struct inventory *inventory)
{
    size_t count = inventory->stand_count;
    AUTO_FREE struct stand **sorted = xcalloc(count + 1, sizeof(struct stand *));
    for (size_t i = 0; i < count; i++)
        sorted[i] = inventory->stands[i];
    qsort(sorted, count, sizeof(struct stand *), by_rack_then_node);
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1;
             end < count && sorted[end]->answer.rack == sorted[first]->answer.rack;)
            end++;
        if (sorted[first]->answer.rack != NULL)
            write_rack(writer, &sorted[first], end - first);
    }
}

static void write_finding(void *context, const char *rule, const char *sentence)
{
    struct json_writer *writer = context;
    json_open_object(writer);
    json_put_string(writer, "rule", rule);
    json_put_string(writer, "text", sentence);
    json_close(writer);
}

static void write_changes(struct json_writer *writer, const struct inventory *inventory)
{
    int64_t oldest = inventory->change_count - CHANGES_SHOWN;
    for (int64_t n = inventory->change_count - 1; n >= 0 && n >= oldest; n--) {
        const struct change *change = change_at(inventory, n);
        json_open_object(writer);
        json_put_time(writer, "time", change->time_ns);
        put_change(writer, change);
        json_close(writer);
    }
}

void inventory_write(const struct inventory *inventory, struct json_writer *writer)
{
    json_open_object(writer);
    json_add_key(writer, "nodes");
    json_open_array(writer);
    for (size_t i = 0; i < inventory->stand_count; i++)
        write_node(writer, inventory->stands[i]);
    json_close(writer);
    json_add_key(writer, "racks");
    json_open_array(writer);
    write_racks(writer, inventory);
    json_close(writer);
    json_add_key(writer, "findings");
    json_open_array(writer);
    inventory_findings(inventory, write_finding, writer);
    json_close(writer);
    json_add_key(writer, "changes");
    json_open_array(writer);
    write_changes(writer, inventory);
    json_close(writer);
    json_close(writer);
}
