/* A pickle of plain data as JSON text. Pickle is a program for a stack machine; here only the
 * instructions that make dictionaries, lists, tuples, strings, numbers, booleans and None exist, so
 * nothing in a file can name or call anything. Work and memory are bounded by the file's size, what
 * comes out by OUT_BYTES_MAX: a value that is used again and again is written as often. */
#include "detectors/flight_state.h"

#include <math.h>
#include <string.h>

enum { DEPTH_MAX = 48, NOTHING = -1 };
static const size_t OUT_BYTES_MAX = (size_t)256 << 20;

enum kind {
    KIND_MARK = 0,
    KIND_NONE,
    KIND_BOOL,
    KIND_INT,
    KIND_NUMBER,
    KIND_TEXT,
    KIND_LIST,
    KIND_DICT
};

struct node {
    enum kind kind;
    int64_t integer; /* also the truth of a boolean */
    double number;
    struct view text;
    int32_t first, last; /* of a list or dictionary: its cells */
};

/* One place in a list; of a dictionary keys and values take turns. */
struct cell {
    int32_t node, next;
};

struct machine {
    struct view bytes;
    size_t at;
    struct node *nodes;
    size_t node_count, node_capacity;
    struct cell *cells;
    size_t cell_count, cell_capacity;
    int32_t *stack, *memo; /* memo: node by place, NOTHING */
    size_t stack_count, stack_capacity, memo_count;
};

static enum status fail(const struct machine *machine, struct error *reterr, const char *what)
{
    return error_set(reterr, ERR_INVALID, "pickle: %s at byte %zu", what, machine->at);
}

static bool take(struct machine *machine, size_t count, const unsigned char **ret_bytes)
{
    if (count > machine->bytes.length - machine->at)
        return false;
    *ret_bytes = (const unsigned char *)machine->bytes.bytes + machine->at;
    machine->at += count;
    return true;
}

/* A little-endian number of so many bytes, at most eight, without a sign. */
static bool take_size(struct machine *machine, size_t count, uint64_t *ret_value)
{
    const unsigned char *bytes;

    if (!take(machine, count, &bytes))
        return false;
    *ret_value = 0;
    for (size_t i = count; i-- > 0;)
        *ret_value = *ret_value << 8 | bytes[i];
    return true;
}

static int32_t push(struct machine *machine, struct node node)
{
    machine->nodes = array_grow(machine->nodes, machine->node_count, &machine->node_capacity,
                                sizeof *machine->nodes);
    machine->nodes[machine->node_count] = node;
    machine->stack = array_grow(machine->stack, machine->stack_count, &machine->stack_capacity,
                                sizeof *machine->stack);
    machine->stack[machine->stack_count++] = (int32_t)machine->node_count;
    return (int32_t)machine->node_count++;
}

static void push_kind(struct machine *machine, enum kind kind, int64_t integer)
{
    (void)push(machine,
               (struct node){.kind = kind, .integer = integer, .first = NOTHING, .last = NOTHING});
}

static void append(struct machine *machine, int32_t list, int32_t node)
{
    struct node *to = &machine->nodes[list];

    machine->cells = array_grow(machine->cells, machine->cell_count, &machine->cell_capacity,
                                sizeof *machine->cells);
    machine->cells[machine->cell_count] = (struct cell){.node = node, .next = NOTHING};
    if (to->last == NOTHING)
        to->first = (int32_t)machine->cell_count;
    else
        machine->cells[to->last].next = (int32_t)machine->cell_count;
    to->last = (int32_t)machine->cell_count++;
}

/* Index in the stack of what lies above the newest mark; the stack's length when there is none. */
static size_t above_mark(const struct machine *machine)
{
    for (size_t i = machine->stack_count; i-- > 0;)
        if (machine->nodes[machine->stack[i]].kind == KIND_MARK)
            return i + 1;
    return machine->stack_count + 1;
}

/* Puts what lies on the stack from `from` on into the container below it (below `keep` entries). */
static bool fill(struct machine *machine, size_t from, size_t keep, enum kind kind)
{
    size_t count = machine->stack_count;

    if (from > count || from < keep || from - keep < 1)
        return false;
    int32_t container = machine->stack[from - keep - 1];
    if (machine->nodes[container].kind != kind || (kind == KIND_DICT && (count - from) % 2 != 0))
        return false;
    for (size_t i = from; i < count; i++)
        append(machine, container, machine->stack[i]);
    machine->stack_count = from - keep;
    return true;
}

/* The last `count` entries of the stack, or those above the mark, become one list. */
static bool make_tuple(struct machine *machine, size_t from, size_t keep)
{
    size_t count = machine->stack_count;

    if (from > count || from < keep)
        return false;
    push_kind(machine, KIND_LIST, 0);
    int32_t list = machine->stack[count];
    for (size_t i = from; i < count; i++)
        append(machine, list, machine->stack[i]);
    machine->stack[from - keep] = list;
    machine->stack_count = from - keep + 1;
    return true;
}

static bool push_text(struct machine *machine, size_t size_bytes)
{
    uint64_t length;
    const unsigned char *bytes;

    if (!take_size(machine, size_bytes, &length) || length > machine->bytes.length ||
        !take(machine, (size_t)length, &bytes))
        return false;
    (void)push(machine, (struct node){.kind = KIND_TEXT,
                                      .text = {(const char *)bytes, (size_t)length},
                                      .first = NOTHING,
                                      .last = NOTHING});
    return true;
}

/* bytes of a number with a sign; more than eight do not fit. */
static bool push_int(struct machine *machine, size_t count, bool has_sign)
{
    uint64_t value = 0;

    if (count > 8 || !take_size(machine, count, &value))
        return false;
    if (has_sign && count > 0 && count < 8 && (value >> (8 * count - 1) & 1) != 0)
        value |= UINT64_MAX << (8 * count);
    push_kind(machine, KIND_INT, (int64_t)value);
    return true;
}

static bool push_long(struct machine *machine)
{
    uint64_t count;

    return take_size(machine, 1, &count) && push_int(machine, (size_t)count, true);
}

static bool push_number(struct machine *machine)
{
    const unsigned char *bytes;
    uint64_t bits = 0;
    double value;

    if (!take(machine, 8, &bytes))
        return false;
    for (int i = 0; i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value, &bits, sizeof value);
    (void)push(
        machine,
        (struct node){.kind = KIND_NUMBER, .number = value, .first = NOTHING, .last = NOTHING});
    return true;
}

static bool put(struct machine *machine, uint64_t place)
{
    /* A file has no more places than bytes. */
    if (place >= machine->bytes.length || machine->stack_count == 0)
        return false;
    machine->memo[place] = machine->stack[machine->stack_count - 1];
    if (place >= machine->memo_count)
        machine->memo_count = (size_t)place + 1;
    return true;
}

static bool get(struct machine *machine, uint64_t place)
{
    if (place >= machine->memo_count || machine->memo[place] == NOTHING)
        return false;
    machine->stack = array_grow(machine->stack, machine->stack_count, &machine->stack_capacity,
                                sizeof *machine->stack);
    machine->stack[machine->stack_count++] = machine->memo[place];
    return true;
}

static bool skip(struct machine *machine, size_t count)
{
    const unsigned char *bytes;

    return take(machine, count, &bytes);
}

/* Instructions with the place in a memo. */
static bool use_memo(struct machine *machine, unsigned char code)
{
    uint64_t place;

    if (code == 0x94)
        return put(machine, machine->memo_count);
    if (!take_size(machine, code == 'q' || code == 'h' ? 1 : 4, &place))
        return false;
    return code == 'q' || code == 'r' ? put(machine, place) : get(machine, place);
}

/* One instruction; false when it is none of ours or does not fit the stack. */
static bool run(struct machine *machine, unsigned char code)
{
    size_t count = machine->stack_count;

    switch (code) {
    case 0x80:
        return skip(machine, 1);
    case 0x95:
        return skip(machine, 8);
    case '(':
        push_kind(machine, KIND_MARK, 0);
        return true;
    case '}':
        push_kind(machine, KIND_DICT, 0);
        return true;
    case ']':
    case ')':
        push_kind(machine, KIND_LIST, 0);
        return true;
    case 'N':
        push_kind(machine, KIND_NONE, 0);
        return true;
    case 0x88:
    case 0x89:
        push_kind(machine, KIND_BOOL, code == 0x88);
        return true;
    case 'J':
        return push_int(machine, 4, true);
    case 'K':
        return push_int(machine, 1, false);
    case 'M':
        return push_int(machine, 2, false);
    case 0x8a:
        return push_long(machine);
    case 'G':
        return push_number(machine);
    case 'X':
    case 'T':
        return push_text(machine, 4);
    case 0x8c:
    case 'U':
        return push_text(machine, 1);
    case 'q':
    case 'r':
    case 'h':
    case 'j':
    case 0x94:
        return use_memo(machine, code);
    case 'a':
        return count > 0 && fill(machine, count - 1, 0, KIND_LIST);
    case 's':
        return count > 1 && fill(machine, count - 2, 0, KIND_DICT);
    case 'e':
        return fill(machine, above_mark(machine), 1, KIND_LIST);
    case 'u':
        return fill(machine, above_mark(machine), 1, KIND_DICT);
    case 't':
        return make_tuple(machine, above_mark(machine), 1);
    case 0x85:
    case 0x86:
    case 0x87:
        return count >= (size_t)(code - 0x84) &&
               make_tuple(machine, count - (size_t)(code - 0x84), 0);
    default:
        return false;
    }
}

static bool write_node(const struct machine *machine, int32_t index, int depth,
                       struct json_writer *writer);

static bool write_pairs(const struct machine *machine, const struct node *node, int depth,
                        struct json_writer *writer)
{
    json_open_object(writer);
    for (int32_t i = node->first; i != NOTHING; i = machine->cells[i].next) {
        const struct node *key = &machine->nodes[machine->cells[i].node];
        AUTO_TEXT name = {0};

        if (key->kind == KIND_TEXT)
            text_add_bytes(&name, key->text.bytes, key->text.length);
        else if (key->kind == KIND_INT)
            text_addf(&name, "%lld", (long long)key->integer);
        else
            return false;
        i = machine->cells[i].next;
        json_add_key(writer, name.bytes != NULL ? name.bytes : "");
        if (!write_node(machine, machine->cells[i].node, depth, writer))
            return false;
    }
    json_close(writer);
    return true;
}

static bool write_node(const struct machine *machine, int32_t index, int depth,
                       struct json_writer *writer)
{
    const struct node *node = &machine->nodes[index];

    if (depth > DEPTH_MAX || writer->out->length > OUT_BYTES_MAX)
        return false;
    switch (node->kind) {
    case KIND_MARK:
        return false;
    case KIND_NONE:
        json_add_null(writer);
        return true;
    case KIND_BOOL:
        json_add_bool(writer, node->integer != 0);
        return true;
    case KIND_INT:
        json_add_int(writer, node->integer);
        return true;
    case KIND_NUMBER:
        json_add_number(writer, node->number);
        return true;
    case KIND_TEXT:
        json_add_view(writer, node->text);
        return true;
    case KIND_DICT:
        return write_pairs(machine, node, depth + 1, writer);
    case KIND_LIST:
        break;
    }
    json_open_array(writer);
    for (int32_t i = node->first; i != NOTHING; i = machine->cells[i].next)
        if (!write_node(machine, machine->cells[i].node, depth + 1, writer))
            return false;
    json_close(writer);
    return true;
}

static enum status execute(struct machine *machine, struct text *out, struct error *reterr)
{
    const unsigned char *code;
    struct json_writer writer = json_writer(out);

    for (;;) {
        if (!take(machine, 1, &code))
            return fail(machine, reterr, "cut short");
        if (*code == '.')
            break;
        if (!run(machine, *code))
            return fail(machine, reterr, "not plain data");
    }
    if (machine->stack_count != 1)
        return fail(machine, reterr, "not one value");
    if (!write_node(machine, machine->stack[0], 0, &writer))
        return fail(machine, reterr, "too deep, too large, or a key that is no text");
    return OK;
}

enum status flight_pickle_to_json(struct view bytes, struct text *out, struct error *reterr)
{
    struct machine machine = {.bytes = bytes};

    if (bytes.length >= INT32_MAX / 2)
        return error_set(reterr, ERR_LIMIT, "pickle: too large");
    machine.memo = xcalloc(bytes.length + 1, sizeof *machine.memo);
    for (size_t i = 0; i <= bytes.length; i++)
        machine.memo[i] = NOTHING;
    enum status status = execute(&machine, out, reterr);
    xfree(machine.nodes);
    xfree(machine.cells);
    xfree(machine.stack);
    xfree(machine.memo);
    return status;
}
