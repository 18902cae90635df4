/* What a picture of many large nodes costs: memory, time and CPU of the first list and of the
 * watch.
 *
 *     bench_kube_watch [--nodes 5000] [--bytes 30000] [--events 1000] [--seconds 10]
 *     bench_kube_watch --kubeconfig FILE [--path /api/v1/nodes] [--seconds 10]
 *
 * Without a kubeconfig a child process plays the API server: pages on demand, then `events` changes
 * spread over the seconds. Exit 1 when the picture is not whole, or over --rss-max MB.
 */
#include "controller/base/json.h"
#include "controller/kube/kube_watch.h"
#include "controller/sys/clock.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct options {
    const char *kubeconfig, *path;
    int nodes, bytes, events, seconds, rss_max_mb;
};

/* ---- the API server's part, in a child ---- */

/* A node as real ones are: managed fields, images and conditions make up most of it. */
static void write_node(struct text *out, int number, int64_t version, int bytes)
{
    size_t start = out->length;
    text_addf(out,
              "{\"metadata\":{\"name\":\"gb300-%05d\",\"uid\":\"7f3c0000-0000-4000-8000-%012d\","
              "\"resourceVersion\":\"%lld\",\"labels\":{\"kubernetes.io/hostname\":\"gb300-%05d\","
              "\"nvidia.com/gpu.clique\":\"7f3c.%d\"},\"managedFields\":[{\"manager\":\"kubelet\","
              "\"operation\":\"Update\",\"fieldsV1\":{\"f:metadata\":{\"f:annotations\":{",
              number, number, (long long)version, number, number / 18);
    for (int i = 0; (int)(out->length - start) < bytes / 3; i++)
        text_addf(out, "%s\"f:volumes.kubernetes.io/field-%d\":{}", i > 0 ? "," : "", i);
    text_add(out,
             "}}}}]},\"spec\":{\"podCIDR\":\"10.0.0.0/24\"},\"status\":{\"capacity\":{\"cpu\":"
             "\"144\",\"nvidia.com/gpu\":\"4\"},\"conditions\":[{\"type\":\"Ready\",\"status\":"
             "\"True\",\"reason\":\"KubeletReady\"}],\"images\":[");
    for (int i = 0; (int)(out->length - start) < bytes - 200; i++)
        text_addf(
            out, "%s{\"names\":[\"registry.example/team/image-%d@sha256:%064d\"],\"sizeBytes\":%d}",
            i > 0 ? "," : "", i, i, 1000000 + i);
    text_add(out, "]}}");
}

static void send_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t sent = send(fd, bytes, length, MSG_NOSIGNAL);
        if (sent <= 0)
            _exit(0);
        bytes += sent;
        length -= (size_t)sent;
    }
}

static int number_after(const char *request, const char *key)
{
    const char *at = strstr(request, key);
    return at != NULL ? (int)strtol(at + strlen(key), NULL, 10) : 0;
}

static void serve_page(int fd, const char *request, const struct options *options)
{
    AUTO_TEXT body = {0};
    AUTO_TEXT head = {0};
    int from = number_after(request, "continue="), count = number_after(request, "limit=");
    int to = from + count < options->nodes ? from + count : options->nodes;
    text_add(&body, "{\"kind\":\"NodeList\",\"metadata\":{\"resourceVersion\":\"100000\"");
    if (to < options->nodes)
        text_addf(&body, ",\"continue\":\"%d\"", to);
    text_add(&body, "},\"items\":[");
    for (int i = from; i < to; i++) {
        text_add(&body, i > from ? "," : "");
        write_node(&body, i, 1000 + i, options->bytes);
    }
    text_add(&body, "]}");
    text_addf(&head,
              "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
              body.length);
    send_all(fd, head.bytes, head.length);
    send_all(fd, body.bytes, body.length);
}

static void send_chunk(int fd, const struct text *line)
{
    AUTO_TEXT head = {0};
    text_addf(&head, "%zx\r\n", line->length);
    send_all(fd, head.bytes, head.length);
    send_all(fd, line->bytes, line->length);
    send_all(fd, "\r\n", 2);
}

static void serve_watch(int fd, const struct options *options)
{
    static const char HEAD[] = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    int events = options->events > 0 ? options->events : 1;
    send_all(fd, HEAD, sizeof HEAD - 1);
    for (int i = 0;; i++) {
        AUTO_TEXT line = {0};
        poll(NULL, 0, options->seconds * 1000 / events);
        if (i < options->events) {
            text_add(&line, "{\"type\":\"MODIFIED\",\"object\":");
            write_node(&line, i % options->nodes, 100001 + i, options->bytes);
            text_add(&line, "}\n");
        } else {
            text_addf(&line,
                      "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":"
                      "\"%d\"}}}\n",
                      100001 + i);
        }
        send_chunk(fd, &line);
    }
}

static void serve_connection(int fd, const struct options *options)
{
    char request[8192];
    size_t have = 0;
    for (;;) {
        ssize_t got = recv(fd, request + have, sizeof request - 1 - have, 0);
        if (got <= 0)
            _exit(0);
        have += (size_t)got;
        request[have] = '\0';
        if (strstr(request, "\r\n\r\n") == NULL)
            continue;
        have = 0;
        if (strstr(request, "watch=1") != NULL)
            serve_watch(fd, options);
        else
            serve_page(fd, request, options);
    }
}

static void serve(int listener, const struct options *options)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    signal(SIGCHLD, SIG_IGN);
    for (int fd; (fd = accept(listener, NULL, NULL)) >= 0; close(fd)) {
        if (fork() != 0)
            continue;
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        serve_connection(fd, options);
    }
    _exit(0);
}

static int listen_local(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(fd, 64) != 0 || getsockname(fd, (struct sockaddr *)&address, &length) != 0)
        return -1;
    *ret_port = ntohs(address.sin_port);
    return fd;
}

/* ---- the client's part ---- */

struct bench {
    struct options options;
    struct loop *loop;
    struct loop_timer *timer;
    struct kube_watch *watch;
    int64_t started_ns, started_cpu_ns, synced_ns, synced_cpu_ns;
    int64_t objects, gone;
    bool is_synced;
};

static double megabytes(const char *key)
{
    FILE *file = fopen("/proc/self/status", "re");
    char line[256];
    double kb = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0)
            kb = strtod(line + strlen(key), NULL);
    if (file != NULL)
        fclose(file);
    return kb / 1024;
}

static void on_object(void *context, const struct json *object)
{
    struct bench *bench = context;
    (void)object;
    bench->objects++;
}

static void on_gone(void *context, const char *namespace_name, const char *name)
{
    struct bench *bench = context;
    (void)namespace_name;
    (void)name;
    bench->gone++;
}

static void on_state(void *context, bool is_synced, const char *reason)
{
    struct bench *bench = context;
    if (!is_synced) {
        printf("not synced: %s\n", reason);
        return;
    }
    if (bench->is_synced)
        return;
    bench->is_synced = true;
    bench->synced_ns = clock_read().monotonic_ns;
    bench->synced_cpu_ns = clock_cpu_ns();
    printf("list:  %lld objects in %.2f s, %.2f s of CPU, RSS %.1f MB, peak %.1f MB\n",
           (long long)bench->objects, (double)(bench->synced_ns - bench->started_ns) / 1e9,
           (double)(bench->synced_cpu_ns - bench->started_cpu_ns) / 1e9, megabytes("VmRSS:"),
           megabytes("VmHWM:"));
    loop_timer_set(bench->timer, (int64_t)bench->options.seconds * 1000000000);
}

static void on_time(void *context)
{
    struct bench *bench = context;
    loop_stop(bench->loop);
}

static bool report(struct bench *bench)
{
    struct kube_watch_counts counts = kube_watch_counts(bench->watch);
    double wall_s = (double)(clock_read().monotonic_ns - bench->synced_ns) / 1e9;
    double cpu_s = (double)(clock_cpu_ns() - bench->synced_cpu_ns) / 1e9;
    const char *reason;
    bool is_whole = bench->is_synced && kube_watch_is_synced(bench->watch, 60000000000, &reason);
    double peak_mb = megabytes("VmHWM:");
    printf("watch: %lld events and %lld bookmarks in %.1f s, %.3f s of CPU: %.2f %% of a core\n"
           "end:   %zu objects, %zu kB of names and versions, RSS %.1f MB, peak %.1f MB, %s\n",
           (long long)counts.events, (long long)counts.bookmarks, wall_s, cpu_s,
           cpu_s / wall_s * 100, counts.objects, counts.bytes / 1000, megabytes("VmRSS:"), peak_mb,
           is_whole ? "whole" : "NOT whole");
    if (bench->options.rss_max_mb > 0 && peak_mb > bench->options.rss_max_mb) {
        printf("peak over %d MB\n", bench->options.rss_max_mb);
        return false;
    }
    return is_whole;
}

static bool measure(const struct options *options, const struct kube_config *config)
{
    struct kube_limits limits = kube_limits_default();
    struct bench bench = {.options = *options, .loop = loop_new()};
    bench.timer = loop_timer_new(bench.loop, on_time, &bench);
    loop_timer_set(bench.timer, 120000000000);
    struct http_client *http = http_client_new(bench.loop);
    struct kube_client *client = kube_client_new(bench.loop, http, config, &limits);
    bench.started_ns = clock_read().monotonic_ns;
    bench.started_cpu_ns = clock_cpu_ns();
    bench.watch = kube_watch_new(client, &(struct kube_watch_params){.path = options->path,
                                                                     .on_object = on_object,
                                                                     .on_gone = on_gone,
                                                                     .on_state = on_state,
                                                                     .context = &bench});
    loop_run(bench.loop);
    bool is_good = report(&bench);
    kube_watch_free(bench.watch);
    kube_client_free(client);
    http_client_free(http);
    loop_timer_free(bench.timer);
    loop_free(bench.loop);
    return is_good;
}

static bool read_options(int count, char **words, struct options *options)
{
    struct {
        const char *name;
        int *number;
        const char **text;
    } const rows[] = {
        {"--nodes", &options->nodes, NULL},        {"--bytes", &options->bytes, NULL},
        {"--events", &options->events, NULL},      {"--seconds", &options->seconds, NULL},
        {"--rss-max", &options->rss_max_mb, NULL}, {"--kubeconfig", NULL, &options->kubeconfig},
        {"--path", NULL, &options->path},
    };
    for (int i = 1; i + 1 < count; i += 2) {
        size_t row = 0;
        while (row < ARRAY_LEN(rows) && strcmp(rows[row].name, words[i]) != 0)
            row++;
        if (row == ARRAY_LEN(rows))
            return false;
        if (rows[row].number != NULL)
            *rows[row].number = (int)strtol(words[i + 1], NULL, 10);
        else
            *rows[row].text = words[i + 1];
    }
    return count % 2 == 1;
}

int main(int count, char **words)
{
    struct options options = {
        .path = "/api/v1/nodes", .nodes = 5000, .bytes = 30000, .events = 1000, .seconds = 10};
    AUTO(kube_config_free) struct kube_config *config = NULL;
    AUTO_TEXT text = {0};
    struct error error;
    int port = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    clock_init(1, 0, 0);
    if (!read_options(count, words, &options)) {
        fprintf(stderr, "bench_kube_watch: see the head of bench_kube_watch.c for its options\n");
        return 2;
    }
    if (options.kubeconfig == NULL) {
        int listener = listen_local(&port);
        if (listener < 0)
            return 1;
        if (fork() == 0)
            serve(listener, &options);
        close(listener);
        text_addf(&text,
                  "{clusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}], contexts: "
                  "[{name: c, context: {cluster: c}}], current-context: c}",
                  port);
    }
    enum status status = options.kubeconfig != NULL
                             ? kube_config_load(options.kubeconfig, "", &config, &error)
                             : kube_config_parse((struct view){text.bytes, text.length}, "bench",
                                                 "", &config, &error);
    if (status != OK) {
        fprintf(stderr, "bench_kube_watch: %s\n", error.message);
        return 1;
    }
    return measure(&options, config) ? 0 : 1;
}
