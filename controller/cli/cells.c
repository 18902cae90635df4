/* Small formats of the shell: times, spans, numbers, ranges, and text made harmless. */
#include "controller/cli/cli.h"

#include <math.h>
#include <string.h>

void cli_add_query(struct text *path, const char *name, const char *value)
{
    if (value == NULL)
        return;
    text_addf(path, "%c%s=", strchr(path->bytes, '?') == NULL ? '?' : '&', name);
    text_add_percent(path, value);
}

bool cli_parse_ref(struct cli *cli, const char *command, const char *given, char ret_ref[32])
{
    const char *digits = given;
    if (strncasecmp(digits, "inc-", 4) == 0)
        digits += 4;
    int64_t number;
    if (!text_parse_int(view_of(digits), &number) || number < 1) {
        fprintf(cli->err,
                "broom %s: '%s' is no incident: give its reference, such as INC-3 "
                "('broom incidents' lists them)\n",
                command, given);
        return false;
    }
    snprintf(ret_ref, 32, "INC-%lld", (long long)number);
    return true;
}

int cli_take_ref(struct cli *cli, const struct usage *usage, int argc, char **argv,
                 char ret_ref[32])
{
    struct arguments arguments;
    int code = options_parse(usage, argc, argv, cli->out, cli->err, &arguments);
    if (code != OPTIONS_RUN)
        return code;
    return cli_parse_ref(cli, usage->command, arguments.items[0], ret_ref) ? OPTIONS_RUN
                                                                           : EXIT_USAGE;
}

void cli_add_clean(struct text *out, const char *text)
{
    for (const unsigned char *c = (const unsigned char *)text; *c != '\0'; c++) {
        bool c1 = *c == 0xc2 && c[1] >= 0x80 && c[1] <= 0x9f;
        if ((*c < 0x20 && *c != '\n') || *c == 0x7f || c1)
            text_add(out, "?");
        else
            text_add_bytes(out, c, 1);
        c += c1;
    }
}

void cli_print_json(struct cli *cli, const struct json *root)
{
    AUTO_TEXT out = {0};
    cli_add_pretty_json(&out, root);
    text_add(&out, "\n");
    fwrite(out.bytes, 1, out.length, cli->out);
}

void cli_add_time(struct text *out, int64_t time_ns)
{
    AUTO_TEXT full = {0}; /* 2026-05-28T20:29:02.512Z */
    if (time_ns > 0)
        text_add_time(&full, time_ns);
    if (full.length < 19) {
        text_add(out, "-");
        return;
    }
    text_add_bytes(out, full.bytes, 10);
    text_add(out, " ");
    text_add_bytes(out, full.bytes + 11, 8);
}

void cli_add_clock(struct text *out, int64_t time_ns)
{
    AUTO_TEXT full = {0};
    cli_add_time(&full, time_ns);
    text_add(out, full.length == 19 ? full.bytes + 11 : "-");
}

void cli_add_span(struct text *out, int64_t span_ns)
{
    int64_t seconds = (span_ns + 500000000) / 1000000000;
    if (span_ns < 0)
        text_add(out, "-");
    else if (span_ns < 9950000000)
        text_addf(out, "%.1fs", (double)span_ns / 1e9);
    else if (seconds < 60)
        text_addf(out, "%llds", (long long)seconds);
    else if (seconds < 3600)
        text_addf(out, "%lldm%02llds", (long long)seconds / 60, (long long)seconds % 60);
    else if (seconds < 86400)
        text_addf(out, "%lldh%02lldm", (long long)seconds / 3600, (long long)seconds / 60 % 60);
    else
        text_addf(out, "%lldd%02lldh", (long long)seconds / 86400, (long long)seconds / 3600 % 24);
}

void cli_add_grouped(struct text *out, double value, int decimals)
{
    if (!isfinite(value) || fabs(value) > 1e15) {
        text_add(out, "-");
        return;
    }
    char digits[64];
    snprintf(digits, sizeof digits, "%.*f", decimals, fabs(value));
    size_t whole = strcspn(digits, ".");
    if (value < 0 && strspn(digits, "0.") != strlen(digits))
        text_add(out, "-");
    for (size_t i = 0; i < whole; i++) {
        if (i > 0 && (whole - i) % 3 == 0)
            text_add(out, ",");
        text_add_bytes(out, &digits[i], 1);
    }
    text_add(out, digits + whole);
}

static void add_run(struct text *out, int64_t first, int64_t last, bool is_first)
{
    text_addf(out, is_first ? "%lld" : ", %lld", (long long)first);
    if (last > first)
        text_addf(out, "-%lld", (long long)last);
}

void cli_add_ranges(struct text *out, const struct json *numbers)
{
    const struct json *item = json_first(numbers);
    if (item == NULL) {
        text_add(out, "none");
        return;
    }
    bool is_first = true;
    int64_t first = json_int(item, -1);
    int64_t last = first;
    while ((item = json_next(item)) != NULL) {
        int64_t number = json_int(item, -1);
        if (number != last + 1) {
            add_run(out, first, last, is_first);
            is_first = false;
            first = number;
        }
        last = number;
    }
    add_run(out, first, last, is_first);
}
