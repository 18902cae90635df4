/* What every command of `broom` shares: where words and data go, and how broomd is asked.
 * Tests put their own files and their own fetch here.
 */
#ifndef BROOM_CLI_CLI_H
#define BROOM_CLI_CLI_H

#include "controller/base/json.h"
#include "controller/cli/options.h"

struct cli_common {
    const char *server; /* as given, or NULL: BROOM_SERVER, then the defaults */
    const char *token_file;
    const char *ca_file;
    const char *certificate_file;
    const char *key_file;
    const char *output; /* table, wide, json, csv */
    bool no_headers;
    bool no_colour;
};

struct cli_request {
    const char *method; /* "GET", "POST" */
    const char *path;   /* "/api/v1/status", percent-encoded */
    const char *body;   /* JSON or NULL */
    int timeout_ms;     /* 0: 30 s */
    const struct cli_common *common;
};

/* OK: an answer of whatever code came. *ret_body is the caller's. */
typedef enum status cli_fetch_fn(void *context, const struct cli_request *request, int *ret_code,
                                 char **ret_body, struct error *reterr);

struct cli {
    FILE *out;   /* data */
    FILE *err;   /* words */
    bool colour; /* out is a terminal that wants it */
    cli_fetch_fn *fetch;
    void *fetch_context;
};

/* stdout, stderr and HTTP. */
struct cli cli_default(void);

/* Runs `broom` with argv[0] the program: the dispatcher behind broom_main. Returns the exit code.
 */
int cli_run(struct cli *cli, int argc, char **argv);

enum { CLI_COMMON_ROWS = 8 };
/* Fills rows with the options of every command that asks the server; common gets their defaults. */
struct option_table cli_common_options(struct cli_common *common,
                                       struct option_row rows[CLI_COMMON_ROWS]);

/* Asks and parses. EXIT_DONE: *ret_root is the answer (caller frees). Otherwise what went wrong and
 * what to do now stands on err, and the exit code says which kind. */
int cli_get(struct cli *cli, const struct cli_common *common, const char *path,
            struct json **ret_root);
/* As cli_get for a command that shows one answer: with --output json it is printed as it is.
 * OPTIONS_RUN: *ret_root is there, and is still to be shown. */
int cli_get_shown(struct cli *cli, const struct cli_common *common, const char *path,
                  struct json **ret_root);
int cli_send(struct cli *cli, const struct cli_common *common, const char *method, const char *path,
             const char *body, struct json **ret_root);

/* As cli_get, for answers that take minutes to make and send: the samples of a large job. */
int cli_get_large(struct cli *cli, const struct cli_common *common, const char *path,
                  struct json **ret_root);

/* "?name=value" or "&name=value", encoded; nothing when value is NULL. */
void cli_add_query(struct text *path, const char *name, const char *value);
/* "INC-3", "inc-3" or "3" -> "INC-3" in ret_ref; else a usage error on err and false. */
bool cli_parse_ref(struct cli *cli, const char *command, const char *given, char ret_ref[32]);
/* The command line of a command whose one argument is an incident: OPTIONS_RUN, or the exit code.
 */
int cli_take_ref(struct cli *cli, const struct usage *usage, int argc, char **argv,
                 char ret_ref[32]);
/* Writes text with bytes that would steer a terminal made harmless. */
void cli_add_clean(struct text *out, const char *text);
/* What json_print writes, for people: objects on lines of their own, lists of plain values on one.
 */
void cli_add_pretty_json(struct text *out, const struct json *json);
/* Prints a parsed answer, pretty. */
void cli_print_json(struct cli *cli, const struct json *root);

/* "2026-05-28 20:29:02"; "-" when time_ns <= 0. */
void cli_add_time(struct text *out, int64_t time_ns);
/* "20:29:02"; "-" when time_ns <= 0. */
void cli_add_clock(struct text *out, int64_t time_ns);
/* "41s", "12m08s", "3h05m", "2d04h"; "-" when negative. */
void cli_add_span(struct text *out, int64_t span_ns);
/* 1871.25, 1 -> "1,871.2"; "-" when not finite. */
void cli_add_grouped(struct text *out, double value, int decimals);
/* [0,1,2,3,8] -> "0-3, 8"; "none" when empty. */
void cli_add_ranges(struct text *out, const struct json *numbers);

#endif
