/* Command-line options from a table: parsing, range errors, near names and help come from the same
 * rows.
 *
 *     int64_t since_ns = DAY;
 *     const struct option_row rows[] = {
 *         {"since", 0, OPTION_DURATION, "SPAN", "only what changed within it", &since_ns, NULL},
 *     };
 *     const struct usage usage = {.command = "incidents", .summary = "...",
 *                                 .own = {rows, ARRAY_LEN(rows)}};
 *     int code = options_parse(&usage, argc, argv, stdout, stderr, &arguments);
 *     if (code != OPTIONS_RUN)
 *         return code;
 */
#ifndef BROOM_CLI_OPTIONS_H
#define BROOM_CLI_OPTIONS_H

#include "controller/base/text.h"

#include <stdio.h>

enum {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,
    EXIT_USAGE = 2,
    EXIT_FINDINGS = 3,
    EXIT_NOT_FOUND = 4,
    EXIT_DENIED = 5,
    EXIT_UNREACHABLE = 6,
    EXIT_REFUSED = 7,
    EXIT_TIMED_OUT = 8
};

enum option_kind {
    OPTION_FLAG = 0, /* bool: set to true */
    OPTION_TEXT,     /* const char *: borrowed from argv */
    OPTION_CHOICE,   /* const char *: one of choices */
    OPTION_NUMBER,   /* double, > 0 */
    OPTION_DURATION  /* int64_t nanoseconds: "10m" */
};

struct option_row {
    const char *name; /* without the dashes */
    char letter;      /* 0: none */
    enum option_kind kind;
    const char *value; /* word for the help: "DURATION"; NULL for flags */
    const char *help;
    void *target;               /* what the kind says; holds the default beforehand */
    const char *const *choices; /* OPTION_CHOICE: NULL-terminated */
};

struct option_table {
    const struct option_row *rows;
    size_t count;
};

struct usage {
    const char *command;   /* "incidents show" */
    const char *arguments; /* "INC-n", or "" */
    const char *summary;   /* one sentence */
    const char *details;   /* paragraphs, or NULL */
    const char *examples;  /* "  broom ...\n" lines, or NULL */
    int least, most;       /* number of arguments; most -1: any */
    struct option_table own;
    struct option_table shared; /* those of every command */
};

enum { ARGUMENTS_MAX = 256 };

struct arguments {
    const char *items[ARGUMENTS_MAX];
    int count;
};

enum { OPTIONS_RUN = -1 };

/* argv[0] is the command's own name. Options and arguments may be mixed; "--" ends options.
 * OPTIONS_RUN: go on. Else help or the mistake is printed, and this is the exit code. */
int options_parse(const struct usage *usage, int argc, char **argv, FILE *out, FILE *err,
                  struct arguments *ret_arguments);

#endif
