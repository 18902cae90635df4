/* Options from tables. Whatever is wrong is answered in one line that names the nearest right word.
 */
#include "controller/cli/options.h"

#include <string.h>

struct parse {
    const struct usage *usage;
    int argc;
    char **argv;
    int next;
    FILE *out, *err;
};

static const struct option_row *find_row(const struct usage *usage, struct view name, char letter)
{
    const struct option_table *tables[] = {&usage->own, &usage->shared};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++) {
        for (size_t i = 0; i < tables[t]->count; i++) {
            const struct option_row *row = &tables[t]->rows[i];
            if (letter != 0 ? row->letter == letter : view_equals(name, row->name))
                return row;
        }
    }
    return NULL;
}

static int point_to_help(struct parse *parse)
{
    fprintf(parse->err, "try 'broom help %s'\n", parse->usage->command);
    return EXIT_USAGE;
}

static int unknown_option(struct parse *parse, const char *given)
{
    const char *names[128] = {"help"};
    size_t count = 1;
    const struct option_table *tables[] = {&parse->usage->own, &parse->usage->shared};
    for (size_t t = 0; t < ARRAY_LEN(tables); t++)
        for (size_t i = 0; i < tables[t]->count && count < ARRAY_LEN(names); i++)
            names[count++] = tables[t]->rows[i].name;
    char word[64];
    text_copy(word, sizeof word, given + strspn(given, "-"));
    word[strcspn(word, "=")] = '\0';
    const char *near = given[0] == '-' && given[1] == '-' ? text_nearest(word, names, count) : NULL;
    fprintf(parse->err, "broom %s: unknown option '%s'", parse->usage->command, given);
    if (near != NULL)
        fprintf(parse->err, "; did you mean '--%s'?", near);
    fputc('\n', parse->err);
    return point_to_help(parse);
}

static int wrong_value(struct parse *parse, const struct option_row *row, const char *value,
                       const char *wanted)
{
    fprintf(parse->err, "broom %s: --%s '%s' is not %s\n", parse->usage->command, row->name, value,
            wanted);
    return point_to_help(parse);
}

static int take_choice(struct parse *parse, const struct option_row *row, const char *value)
{
    size_t count = 0;
    for (; row->choices[count] != NULL; count++) {
        if (strcmp(row->choices[count], value) == 0) {
            *(const char **)row->target = row->choices[count];
            return OPTIONS_RUN;
        }
    }
    AUTO_TEXT wanted = {0};
    text_add(&wanted, "one of");
    for (size_t i = 0; i < count; i++)
        text_addf(&wanted, "%s %s", i > 0 ? "," : "", row->choices[i]);
    const char *near = text_nearest(value, row->choices, count);
    if (near != NULL)
        text_addf(&wanted, "; did you mean '%s'?", near);
    return wrong_value(parse, row, value, wanted.bytes);
}

static int take_value(struct parse *parse, const struct option_row *row, const char *value)
{
    int64_t span_ns;
    double number;
    switch (row->kind) {
    case OPTION_FLAG:
        *(bool *)row->target = true;
        return OPTIONS_RUN;
    case OPTION_TEXT:
        *(const char **)row->target = value;
        return OPTIONS_RUN;
    case OPTION_CHOICE:
        return take_choice(parse, row, value);
    case OPTION_NUMBER:
        if (!text_parse_number(view_of(value), &number) || !(number > 0))
            return wrong_value(parse, row, value, "a number above 0");
        *(double *)row->target = number;
        return OPTIONS_RUN;
    case OPTION_DURATION:
        if (!text_parse_duration(view_of(value), &span_ns))
            return wrong_value(parse, row, value, "a duration such as 10m, 24h or 7d");
        *(int64_t *)row->target = span_ns;
        return OPTIONS_RUN;
    }
    return EXIT_USAGE;
}

/* value is what stood behind "=" or the letter, or NULL. */
static int take_option(struct parse *parse, const struct option_row *row, const char *value)
{
    if (row->kind == OPTION_FLAG) {
        if (value == NULL)
            return take_value(parse, row, "");
        fprintf(parse->err, "broom %s: --%s takes no value\n", parse->usage->command, row->name);
        return point_to_help(parse);
    }
    if (value == NULL && parse->next < parse->argc)
        value = parse->argv[parse->next++];
    if (value == NULL) {
        fprintf(parse->err, "broom %s: --%s needs a value: --%s %s\n", parse->usage->command,
                row->name, row->name, row->value);
        return point_to_help(parse);
    }
    return take_value(parse, row, value);
}

static int take_long(struct parse *parse, const char *given)
{
    const char *equals = strchr(given, '=');
    struct view name = {given + 2,
                        equals != NULL ? (size_t)(equals - given) - 2 : strlen(given) - 2};
    const struct option_row *row = find_row(parse->usage, name, 0);
    if (row == NULL)
        return unknown_option(parse, given);
    return take_option(parse, row, equals != NULL ? equals + 1 : NULL);
}

static int take_short(struct parse *parse, const char *given)
{
    const struct option_row *row = find_row(parse->usage, view_of(""), given[1]);
    if (row == NULL)
        return unknown_option(parse, given);
    return take_option(parse, row,
                       given[2] == '\0'  ? NULL
                       : given[2] == '=' ? given + 3
                                         : given + 2);
}

static int check_count(struct parse *parse, const struct arguments *arguments)
{
    const struct usage *usage = parse->usage;
    if (arguments->count < usage->least) {
        fprintf(parse->err, "broom %s: an argument is missing: broom %s %s\n", usage->command,
                usage->command, usage->arguments);
        return point_to_help(parse);
    }
    if (usage->most >= 0 && arguments->count > usage->most) {
        fprintf(parse->err, "broom %s: '%s' is one argument too many\n", usage->command,
                arguments->items[usage->most]);
        return point_to_help(parse);
    }
    return OPTIONS_RUN;
}

static void print_rows(const struct option_table *table, const char *title, FILE *out)
{
    if (table->count == 0)
        return;
    fprintf(out, "\n%s\n", title);
    for (size_t i = 0; i < table->count; i++) {
        const struct option_row *row = &table->rows[i];
        AUTO_TEXT left = {0};
        if (row->letter != 0)
            text_addf(&left, "-%c, ", row->letter);
        else
            text_add(&left, "    ");
        text_addf(&left, "--%s%s%s", row->name, row->value != NULL ? " " : "",
                  row->value != NULL ? row->value : "");
        fprintf(out, "  %-30s %s\n", left.bytes, row->help);
    }
}

static void print_help(const struct usage *usage, FILE *out)
{
    fprintf(out, "broom %s: %s\n\n", usage->command, usage->summary);
    fprintf(out, "Usage: broom %s%s%s%s\n", usage->command, usage->arguments[0] != '\0' ? " " : "",
            usage->arguments, usage->own.count + usage->shared.count > 0 ? " [options]" : "");
    if (usage->details != NULL)
        fprintf(out, "\n%s", usage->details);
    if (usage->examples != NULL)
        fprintf(out, "\nExamples\n%s", usage->examples);
    print_rows(&usage->own, "Options", out);
    print_rows(&usage->shared, "Options of every command that asks broomd", out);
}

int options_parse(const struct usage *usage, int argc, char **argv, FILE *out, FILE *err,
                  struct arguments *ret_arguments)
{
    struct parse parse = {
        .usage = usage, .argc = argc, .argv = argv, .next = 1, .out = out, .err = err};
    bool options_over = false;
    ret_arguments->count = 0;
    while (parse.next < argc) {
        const char *given = argv[parse.next++];
        int code = OPTIONS_RUN;
        if (options_over || given[0] != '-' || given[1] == '\0') {
            if (ret_arguments->count == ARGUMENTS_MAX) {
                fprintf(err, "broom %s: more than %d arguments\n", usage->command, ARGUMENTS_MAX);
                return point_to_help(&parse);
            }
            ret_arguments->items[ret_arguments->count++] = given;
        } else if (strcmp(given, "--") == 0) {
            options_over = true;
        } else if (strcmp(given, "--help") == 0 || strcmp(given, "-h") == 0) {
            print_help(usage, out);
            return EXIT_DONE;
        } else {
            code = given[1] == '-' ? take_long(&parse, given) : take_short(&parse, given);
        }
        if (code != OPTIONS_RUN)
            return code;
    }
    return check_count(&parse, ret_arguments);
}
