/* A CA, a server's certificate and a client's, made by the openssl command in a folder of their
 * own. */
#ifndef BROOM_TESTS_UNIT_IO_CERTIFICATES_H
#define BROOM_TESTS_UNIT_IO_CERTIFICATES_H

#include "controller/base/text.h"
#include "tests/harness/test.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct certificates {
    char folder[64];
    char ca[96], server[96], server_key[96], client[96], client_key[96], stranger[96],
        stranger_key[96];
};

static inline bool certificates_run(const char *folder, const char *script)
{
    char shell[] = "sh", flag[] = "-c";
    AUTO_TEXT line = {0};
    text_addf(&line, "cd %s && { %s; } >/dev/null 2>&1", folder, script);
    char *const arguments[] = {shell, flag, line.bytes, NULL};
    char *const environment[] = {NULL};
    pid_t child;
    int result;
    return posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environment) == 0 &&
           waitpid(child, &result, 0) == child && WIFEXITED(result) && WEXITSTATUS(result) == 0;
}

/* Skips the whole program where openssl is not installed. */
static inline void certificates_make(struct certificates *made)
{
    static const char script[] =
        "export PATH=/usr/bin:/bin\n"
        "set -e\n"
        "ca() { openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj "
        "/CN=ca"
        " -keyout $1.key -out $1.pem; }\n"
        "leaf() { openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=$2 "
        "-keyout $1.key"
        " -out $1.csr; printf 'subjectAltName=IP:127.0.0.1' >$1.ext; openssl x509 -req -in $1.csr "
        "-CA $3.pem"
        " -CAkey $3.key -CAcreateserial -days 2 -extfile $1.ext -out $1.pem; }\n"
        "ca ca; ca other; leaf server broomd ca; leaf client llm-17 ca; leaf stranger llm-17 other";
    snprintf(made->folder, sizeof made->folder, "/tmp/broom_test_XXXXXX");
    if (mkdtemp(made->folder) == NULL || !certificates_run(made->folder, script))
        test_skip_all("no openssl command to make certificates with");
    const char *const names[] = {"ca.pem",     "server.pem",   "server.key",  "client.pem",
                                 "client.key", "stranger.pem", "stranger.key"};
    char *const paths[] = {made->ca,         made->server,   made->server_key,  made->client,
                           made->client_key, made->stranger, made->stranger_key};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        snprintf(paths[i], 96, "%s/%s", made->folder, names[i]);
}

static inline void certificates_done(struct certificates *made)
{
    certificates_run(made->folder, "/bin/rm -f *");
    rmdir(made->folder);
}

#endif
