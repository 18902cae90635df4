/* `broom` over real sockets: a small server in a child process says what reached it. */
#include "controller/base/mem.h"
#include "controller/cli/cli.h"
#include "controller/io/http_server.h"
#include "tests/harness/test.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct child {
    pid_t pid;
    int port;
    char folder[32];
    char socket[64];
};

/* Answers with what was asked, as the row of a table of jobs. */
static void route(void *context, struct http_request *request)
{
    AUTO_TEXT json = {0};
    struct json_writer writer = json_writer(&json);
    const char *authorization = http_request_header(request, "Authorization");
    struct view body = http_request_body(request);
    (void)context;
    json_open_object(&writer);
    json_put_string(&writer, "path", http_request_path(request));
    json_put_string(&writer, "authorization", authorization);
    json_put_bool(&writer, "unix", http_request_peer(request)->is_unix);
    json_add_key(&writer, "body");
    json_add_view(&writer, body);
    json_close(&writer);
    http_reply(request, 200, "application/json", (struct view){json.bytes, json.length});
}

static void serve(const char *socket_path, int ready)
{
    struct loop *loop = loop_new();
    struct http_limits limits = http_limits_default();
    struct http_server *server = http_server_new(loop, &limits, route, NULL);
    AUTO_TEXT address = {0};
    text_addf(&address, "unix:%s", socket_path);
    if (http_server_listen(server, "127.0.0.1:0", NULL, NULL) != OK ||
        http_server_listen(server, address.bytes, NULL, NULL) != OK)
        _exit(1);
    int port = http_server_port(server);
    if (write(ready, &port, sizeof port) != sizeof port)
        _exit(1);
    loop_run(loop);
    _exit(0);
}

static struct child child_start(void)
{
    struct child child = {.folder = "/tmp/broom_client_XXXXXX"};
    int ready[2];
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(child.folder));
    snprintf(child.socket, sizeof child.socket, "%s/s", child.folder);
    CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
    child.pid = fork();
    if (child.pid == 0)
        serve(child.socket, ready[1]);
    close(ready[1]);
    CU_ASSERT_EQUAL_FATAL(read(ready[0], &child.port, sizeof child.port),
                          (ssize_t)sizeof child.port);
    close(ready[0]);
    return child;
}

static void child_stop(struct child *child)
{
    kill(child->pid, SIGKILL);
    waitpid(child->pid, NULL, 0);
    unlink(child->socket);
    rmdir(child->folder);
}

/* Runs `broom -o json status` with these options and gives what the server saw. */
static struct json *ask(const char *const *words, int *ret_code)
{
    char *argv[16] = {NULL};
    int argc = 0;
    char *printed = NULL;
    size_t bytes;
    struct json *root = NULL;
    struct cli cli = cli_default();
    cli.out = open_memstream(&printed, &bytes);
    cli.err = fopen("/dev/null", "w");
    argv[argc++] = xstrdup("broom");
    for (size_t i = 0; words[i] != NULL; i++)
        argv[argc++] = xstrdup(words[i]);
    *ret_code = cli_run(&cli, argc, argv);
    fclose(cli.out);
    fclose(cli.err);
    if (*ret_code == 0)
        CU_ASSERT_EQUAL(json_parse(view_of(printed), &root, NULL), OK);
    for (int i = 0; i < argc; i++)
        xfree(argv[i]);
    free(printed);
    return root;
}

TEST(a_url_and_a_unix_socket_lead_to_the_same_server)
{
    struct child child = child_start();
    char url[64];
    char socket_url[96];
    int code;
    snprintf(url, sizeof url, "http://127.0.0.1:%d/", child.port);
    snprintf(socket_url, sizeof socket_url, "unix:%s", child.socket);
    AUTO(json_free)
    struct json *over_tcp = ask(
        (const char *const[]){"ranks", "a/b c", "-o", "json", "--server", url, NULL}, &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_STRING_EQUAL(json_get_string(over_tcp, "path", ""), "/api/v1/jobs/a/b c/ranks");
    CU_ASSERT_FALSE(json_get_bool(over_tcp, "unix", true));
    AUTO(json_free)
    struct json *over_socket = ask((const char *const[]){"-o", "json", "--server", socket_url,
                                                         "approve", "INC-3", "go", "on", NULL},
                                   &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_TRUE(json_get_bool(over_socket, "unix", false));
    CU_ASSERT_STRING_EQUAL(json_get_string(over_socket, "path", ""),
                           "/api/v1/incidents/INC-3/approve");
    CU_ASSERT_STRING_EQUAL(json_get_string(over_socket, "body", ""), "{\"text\":\"go on\"}");
    setenv("BROOM_SERVER", socket_url, 1);
    AUTO(json_free)
    struct json *by_environment = ask((const char *const[]){"status", "-o", "json", NULL}, &code);
    CU_ASSERT_EQUAL(code, 0);
    CU_ASSERT_TRUE(json_get_bool(by_environment, "unix", false));
    unsetenv("BROOM_SERVER");
    child_stop(&child);
}

TEST(a_token_comes_from_a_file_and_its_line_end_is_left_out)
{
    struct child child = child_start();
    char url[64];
    char path[64];
    int code;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", child.port);
    snprintf(path, sizeof path, "%s/token", child.folder);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs("s3cret\n", file);
    fclose(file);
    AUTO(json_free)
    struct json *answer = ask(
        (const char *const[]){"status", "-o", "json", "--server", url, "--token-file", path, NULL},
        &code);
    CU_ASSERT_STRING_EQUAL(json_get_string(answer, "authorization", ""), "Bearer s3cret");
    unlink(path);
    AUTO(json_free)
    struct json *nothing = ask(
        (const char *const[]){"status", "--server", url, "--token-file", path, NULL}, &code);
    CU_ASSERT_EQUAL(code, 1);
    CU_ASSERT_PTR_NULL(nothing);
    child_stop(&child);
}

TEST(a_server_that_is_not_there_is_exit_code_6_and_a_wrong_address_2)
{
    int code;
    ask((const char *const[]){"status", "--server", "http://127.0.0.1:1", NULL}, &code);
    CU_ASSERT_EQUAL(code, 6);
    ask((const char *const[]){"status", "--server", "unix:/nonexistent/broomd.sock", NULL}, &code);
    CU_ASSERT_EQUAL(code, 6);
    ask((const char *const[]){"status", "--server", "broomd.example.com", NULL}, &code);
    CU_ASSERT_EQUAL(code, 2);
}

TESTS(T(a_url_and_a_unix_socket_lead_to_the_same_server),
      T(a_token_comes_from_a_file_and_its_line_end_is_left_out),
      T(a_server_that_is_not_there_is_exit_code_6_and_a_wrong_address_2))
