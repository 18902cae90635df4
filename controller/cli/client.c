/* Asking broomd: which server, as whom, and what its answer means for the exit code. */
#include "controller/base/mem.h"
#include "controller/cli/cli.h"
#include "controller/io/http_client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DEFAULT_SOCKET "/run/broomwagon/broomd.sock"
#define DEFAULT_URL    "http://127.0.0.1:7430"

enum {
    TIMEOUT_MS = 30000,
    LARGE_TIMEOUT_MS = 600000,
    TOKEN_BYTES_MAX = 4096,
    ANSWER_BYTES_MAX = 1 << 30
};

static const char *environment(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && value[0] != '\0' ? value : NULL;
}

static const char *server_of(const struct cli_common *common)
{
    if (common->server != NULL)
        return common->server;
    if (environment("BROOM_SERVER") != NULL)
        return environment("BROOM_SERVER");
    return access(DEFAULT_SOCKET, F_OK) == 0 ? "unix:" DEFAULT_SOCKET : DEFAULT_URL;
}

static enum status read_token(const char *path, struct text *out, struct error *reterr)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return error_set(reterr, ERR_IO, "cannot read the token file '%s': %s", path,
                         strerror(errno));
    char bytes[TOKEN_BYTES_MAX];
    size_t length = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    while (length > 0 && strchr(" \t\r\n", bytes[length - 1]) != NULL)
        length--;
    if (length == 0 || length == sizeof bytes)
        return error_set(reterr, ERR_INVALID, "the token file '%s' holds no token", path);
    text_add_bytes(out, bytes, length);
    return OK;
}

static enum status add_url(const char *server, struct text *url, const char **ret_unix_socket,
                           struct error *reterr)
{
    *ret_unix_socket = NULL;
    if (strncmp(server, "unix:", 5) == 0) {
        *ret_unix_socket = server + 5;
        text_add(url, "http://localhost");
    } else if (strncmp(server, "http://", 7) == 0 || strncmp(server, "https://", 8) == 0) {
        size_t length = strlen(server);
        text_add_bytes(url, server, server[length - 1] == '/' ? length - 1 : length);
    } else {
        return error_set(reterr, ERR_INVALID,
                         "'%s' is no server: give http://HOST:PORT, https://HOST:PORT or unix:PATH",
                         server);
    }
    return OK;
}

/* libcurl's words on a Unix socket name a port that nobody asked for. */
static const char *why_unreachable(const struct http_call *call, const char *message)
{
    if (call->unix_socket == NULL)
        return message;
    return access(call->unix_socket, F_OK) == 0 && access(call->unix_socket, W_OK) != 0
               ? "this account may not use the socket; ask for its group, or use --server with a "
                 "token"
               : "nothing listens on this socket";
}

static enum status fetch_http(void *context, const struct cli_request *request, int *ret_code,
                              char **ret_body, struct error *reterr)
{
    (void)context;
    AUTO_TEXT url = {0};
    AUTO_TEXT token = {0};
    const struct cli_common *common = request->common;
    const char *server = server_of(common);
    const char *token_file = common->token_file != NULL ? common->token_file
                                                        : environment("BROOM_TOKEN_FILE");
    struct http_call call = {.method = request->method,
                             .ca_file = common->ca_file,
                             .certificate_file = common->certificate_file,
                             .key_file = common->key_file,
                             .body = view_of(request->body),
                             .answer_bytes_max = ANSWER_BYTES_MAX,
                             .timeout_ms = request->timeout_ms > 0 ? request->timeout_ms
                                                                   : TIMEOUT_MS};
    TRY(add_url(server, &url, &call.unix_socket, reterr));
    if (token_file != NULL)
        TRY(read_token(token_file, &token, reterr));
    text_add(&url, request->path);
    call.url = url.bytes;
    call.bearer_token = token.length > 0 ? token.bytes : NULL;
    size_t bytes;
    struct error error = {0};
    if (http_call_wait(&call, ret_code, ret_body, &bytes, &error) == OK)
        return OK;
    return error_set(reterr, error.status, "no answer from %s: %s", server,
                     error.status == ERR_UNREACHABLE ? why_unreachable(&call, error.message)
                                                     : error.message);
}

struct cli cli_default(void)
{
    bool terminal = isatty(STDOUT_FILENO) == 1;
    const char *term = environment("TERM");
    bool dumb = term != NULL && strcmp(term, "dumb") == 0;
    return (struct cli){.out = stdout,
                        .err = stderr,
                        .colour = terminal && !dumb && environment("NO_COLOR") == NULL,
                        .fetch = fetch_http};
}

struct option_table cli_common_options(struct cli_common *common,
                                       struct option_row rows[CLI_COMMON_ROWS])
{
    static const char *const outputs[] = {"table", "wide", "json", "csv", NULL};
    *common = (struct cli_common){.output = "table"};
    const struct option_row all[CLI_COMMON_ROWS] = {
        {"output", 'o', OPTION_CHOICE, "FORM", "table, wide, json or csv", &common->output,
         outputs},
        {"no-headers", 0, OPTION_FLAG, NULL, "tables and csv without titles", &common->no_headers,
         NULL},
        {"no-color", 0, OPTION_FLAG, NULL, "no colours on a terminal", &common->no_colour, NULL},
        {"server", 0, OPTION_TEXT, "URL",
         "http://, https:// or unix:PATH; else $BROOM_SERVER, the socket, "
         "127.0.0.1:7430",
         &common->server, NULL},
        {"token-file", 0, OPTION_TEXT, "FILE", "bearer token; else $BROOM_TOKEN_FILE",
         &common->token_file, NULL},
        {"ca-file", 0, OPTION_TEXT, "FILE", "who vouches for the server", &common->ca_file, NULL},
        {"cert", 0, OPTION_TEXT, "FILE", "our client certificate", &common->certificate_file, NULL},
        {"key", 0, OPTION_TEXT, "FILE", "its key", &common->key_file, NULL},
    };
    memcpy(rows, all, sizeof all);
    return (struct option_table){rows, CLI_COMMON_ROWS};
}

static int exit_of_http(int code)
{
    switch (code) {
    case 400:
        return EXIT_USAGE;
    case 401:
    case 403:
        return EXIT_DENIED;
    case 404:
        return EXIT_NOT_FOUND;
    case 422:
        return EXIT_REFUSED;
    case 502:
    case 503:
    case 504:
        return EXIT_UNREACHABLE;
    default:
        return EXIT_FAILED;
    }
}

static void say(struct cli *cli, const char *message)
{
    AUTO_TEXT clean = {0};
    cli_add_clean(&clean, message);
    fprintf(cli->err, "broom: %s\n", clean.bytes != NULL ? clean.bytes : "");
}

static int say_no_answer(struct cli *cli, const struct error *error)
{
    say(cli, error->message);
    if (error->status == ERR_UNREACHABLE)
        fputs(
            "is broomd running? 'systemctl status broomd', or name another server with --server or "
            "BROOM_SERVER\n",
            cli->err);
    if (error->status == ERR_TIMEOUT)
        fputs("what was asked may have been done: look with 'broom status'\n", cli->err);
    if (error->status == ERR_TIMEOUT)
        return EXIT_UNREACHABLE;
    return error->status == ERR_INVALID ? EXIT_USAGE : status_exit_code(error->status);
}

static int say_refusal(struct cli *cli, int code, const char *body)
{
    AUTO(json_free) struct json *root = NULL;
    char fallback[64];
    snprintf(fallback, sizeof fallback, "the server answered HTTP %d", code);
    const char *message = fallback;
    if (json_parse(view_of(body), &root, NULL) == OK)
        message = json_get_string(root, "error", fallback);
    say(cli, message);
    if (code == 401)
        fputs("give a token with --token-file, or use the Unix socket on the host of broomd\n",
              cli->err);
    return exit_of_http(code);
}

static int ask(struct cli *cli, const struct cli_request *request, struct json **ret_root)
{
    AUTO_FREE char *answer = NULL;
    struct error error = {0};
    int code = 0;
    if (cli->fetch(cli->fetch_context, request, &code, &answer, &error) != OK)
        return say_no_answer(cli, &error);
    if (code < 200 || code > 299)
        return say_refusal(cli, code, answer != NULL ? answer : "");
    if (json_parse(view_of(answer), ret_root, &error) != OK) {
        error_prefix(&error, "the answer is not JSON; is this broomd?");
        say(cli, error.message);
        return EXIT_FAILED;
    }
    if (json_get_bool(*ret_root, "from_memory", false))
        fputs("THE DATABASE IS AWAY: this is what broomd has in memory, without timelines and "
              "older incidents\n",
              cli->err);
    return EXIT_DONE;
}

int cli_send(struct cli *cli, const struct cli_common *common, const char *method, const char *path,
             const char *body, struct json **ret_root)
{
    struct cli_request request = {.method = method, .path = path, .body = body, .common = common};
    return ask(cli, &request, ret_root);
}

int cli_get(struct cli *cli, const struct cli_common *common, const char *path,
            struct json **ret_root)
{
    return cli_send(cli, common, "GET", path, NULL, ret_root);
}

int cli_get_shown(struct cli *cli, const struct cli_common *common, const char *path,
                  struct json **ret_root)
{
    int code = cli_get(cli, common, path, ret_root);
    if (code != EXIT_DONE)
        return code;
    if (strcmp(common->output, "json") != 0)
        return OPTIONS_RUN;
    cli_print_json(cli, *ret_root);
    return EXIT_DONE;
}

int cli_get_large(struct cli *cli, const struct cli_common *common, const char *path,
                  struct json **ret_root)
{
    struct cli_request request = {
        .method = "GET", .path = path, .common = common, .timeout_ms = LARGE_TIMEOUT_MS};
    return ask(cli, &request, ret_root);
}
