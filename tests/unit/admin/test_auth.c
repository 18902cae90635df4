#include "controller/admin/auth.h"
#include "controller/io/digest.h"
#include "controller/io/http_connection.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char TOKENS[] = "# who          name        what\n"
                             "operator-token-0001 alice operator\n"
                             "\n"
                             "  job-token-00000001\tllm-17-sender  job:default/llm-17  \n"
                             "ingest-token-000001 relay ingest+reader\n";

struct rig {
    char folder[32];
    char path[64];
    struct config *config;
    struct auth *auth;
    struct text findings;
    struct error error;
};

static void write_tokens(struct rig *rig, const char *text, mode_t mode)
{
    FILE *file = fopen(rig->path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    chmod(rig->path, mode);
}

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){.folder = "/tmp/broom_test_XXXXXX", .config = config_new()};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(rig->folder));
    snprintf(rig->path, sizeof rig->path, "%s/tokens", rig->folder);
}

static void set(struct rig *rig, const char *name, const char *value)
{
    AUTO_TEXT assignment = {0};
    text_addf(&assignment, "%s=%s", name, value);
    CU_ASSERT_EQUAL_FATAL(config_set(rig->config, assignment.bytes, &rig->error), OK);
}

static void load(struct rig *rig)
{
    enum status status = auth_new(rig->config, &rig->findings, &rig->auth, &rig->error);
    CU_ASSERT_EQUAL_FATAL(status, OK);
}

static void rig_close(struct rig *rig)
{
    auth_free(rig->auth);
    config_free(rig->config);
    text_done(&rig->findings);
    unlink(rig->path);
    rmdir(rig->folder);
}

/* A request as the server makes it: with this peer, and one header when `name` is there. */
static enum status identify(struct rig *rig, const struct http_peer *peer, const char *name,
                            const char *value, struct identity *ret_identity)
{
    struct http_request *request = http_request_new();
    request->peer = *peer;
    if (name != NULL) {
        request->head.fields[0] = (struct http_field){view_of(name), view_of(value)};
        request->head.field_count = 1;
    }
    enum status status = auth_identify(rig->auth, request, ret_identity, &rig->error);
    http_request_free(request);
    return status;
}

static const struct http_peer LOCAL = {.is_loopback = true};
static const struct http_peer REMOTE = {.is_tls = true, .address = "10.0.0.9:4242"};

static struct http_peer unix_peer(uid_t uid)
{
    return (struct http_peer){.is_unix = true, .uid = uid};
}

TEST(the_unix_socket_proves_a_user_and_the_users_role)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    set(&rig, "auth.operator_uids", "60001");
    set(&rig, "auth.admin_uids", "60002");
    load(&rig);
    struct http_peer root = unix_peer(0), self = unix_peer(geteuid()), other = unix_peer(60003);
    struct http_peer operator_peer = unix_peer(60001), admin_peer = unix_peer(60002);
    CU_ASSERT_EQUAL(identify(&rig, &root, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "root");
    CU_ASSERT(auth_allows(&who, PERMISSION_ADMIN, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &self, NULL, NULL, &who), OK);
    CU_ASSERT(auth_allows(&who, PERMISSION_OPERATE, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &operator_peer, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "uid:60001");
    CU_ASSERT(auth_allows(&who, PERMISSION_OPERATE, NULL));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_ADMIN, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &admin_peer, NULL, NULL, &who), OK);
    CU_ASSERT(auth_allows(&who, PERMISSION_ADMIN, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &other, NULL, NULL, &who), OK);
    CU_ASSERT(auth_allows(&who, PERMISSION_READ, NULL));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_OPERATE, NULL));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_INGEST, NULL));
    rig_close(&rig);
}

TEST(the_loopback_sends_and_reads_but_commands_nothing)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    load(&rig);
    CU_ASSERT_EQUAL(identify(&rig, &LOCAL, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "loopback");
    CU_ASSERT(auth_allows(&who, PERMISSION_READ, NULL));
    CU_ASSERT(auth_allows(&who, PERMISSION_INGEST, "any"));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_OPERATE, NULL));
    rig_close(&rig);
}

TEST(a_proxy_on_this_machine_does_not_make_the_world_local)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    set(&rig, "mode", "enforce");
    load(&rig);
    CU_ASSERT_EQUAL(identify(&rig, &LOCAL, "X-Forwarded-For", "10.0.0.9", &who), ERR_DENIED);
    CU_ASSERT_STRING_EQUAL(who.name, "");
    CU_ASSERT_EQUAL(identify(&rig, &LOCAL, "forwarded", "for=10.0.0.9", &who), ERR_DENIED);
    rig_close(&rig);
}

TEST(a_token_is_a_name_and_a_role_or_one_job)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    write_tokens(&rig, TOKENS, 0600);
    set(&rig, "auth.tokens", rig.path);
    load(&rig);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer operator-token-0001", &who),
                    OK);
    CU_ASSERT_STRING_EQUAL(who.name, "alice");
    CU_ASSERT(auth_allows(&who, PERMISSION_OPERATE, NULL));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_INGEST, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "authorization", "bearer job-token-00000001", &who),
                    OK);
    CU_ASSERT_STRING_EQUAL(who.job, "default/llm-17");
    CU_ASSERT(auth_allows(&who, PERMISSION_INGEST, NULL));
    CU_ASSERT(auth_allows(&who, PERMISSION_INGEST, "default/llm-17"));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_INGEST, "default/llm-18"));
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_READ, NULL));
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer ingest-token-000001", &who),
                    OK);
    CU_ASSERT(auth_allows(&who, PERMISSION_INGEST, "any") &&
              auth_allows(&who, PERMISSION_READ, NULL));
    rig_close(&rig);
}

TEST(a_hashed_token_is_known_by_its_secret_and_not_by_its_hash)
{
    struct rig rig;
    struct identity who;
    char digest[DIGEST_HEX_BYTES];
    AUTO_TEXT file = {0}, header = {0};
    rig_open(&rig);
    CU_ASSERT_EQUAL(digest_sha256(view_of("hashed-token-001"), digest, &rig.error), OK);
    text_addf(&file, "sha256:%s carol admin\n", digest);
    write_tokens(&rig, file.bytes, 0640);
    set(&rig, "auth.tokens", rig.path);
    load(&rig);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer hashed-token-001", &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "carol");
    text_addf(&header, "Bearer %s", digest);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", header.bytes, &who), ERR_DENIED);
    rig_close(&rig);
}

TEST(a_wrong_token_is_nobody_even_on_the_loopback)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    write_tokens(&rig, TOKENS, 0600);
    set(&rig, "auth.tokens", rig.path);
    load(&rig);
    static const char *const wrong[] = {"Bearer operator-token-0002", "Bearer ",
                                        "Bearer operator-token-000",  "Basic b3A6b3A=",
                                        "operator-token-0001",        ""};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CU_ASSERT_EQUAL(identify(&rig, &LOCAL, "Authorization", wrong[i], &who), ERR_DENIED);
        CU_ASSERT_STRING_EQUAL(who.name, "");
        CU_ASSERT_PTR_NULL(strstr(rig.error.message, "operator-token"));
    }
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, NULL, NULL, &who), ERR_DENIED);
    rig_close(&rig);
}

TEST(every_wrong_line_of_the_token_file_is_told_and_no_secret_is)
{
    struct rig rig;
    rig_open(&rig);
    write_tokens(&rig,
                 "short alice operator\nlong-enough-secret-1 bob\nlong-enough-secret-2 bob king\n"
                 "long-enough-secret-3 bob reader\nlong-enough-secret-3 eve admin\n"
                 "sha256:12 carol admin\nlong-enough-secret-4 bob reader extra\n",
                 0600);
    set(&rig, "auth.tokens", rig.path);
    CU_ASSERT_EQUAL(auth_new(rig.config, &rig.findings, &rig.auth, &rig.error), ERR_INVALID);
    static const int lines[] = {1, 2, 3, 5, 6, 7};
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        AUTO_TEXT place = {0};
        text_addf(&place, "%s:%d:1: error: ", rig.path, lines[i]);
        CU_ASSERT(strstr(rig.findings.bytes, place.bytes) != NULL);
    }
    CU_ASSERT_PTR_NULL(strstr(rig.findings.bytes, "secret"));
    CU_ASSERT_PTR_NULL(strstr(rig.findings.bytes, ":4:1:"));
    rig_close(&rig);
}

TEST(a_token_file_that_everybody_may_read_is_refused)
{
    struct rig rig;
    rig_open(&rig);
    write_tokens(&rig, TOKENS, 0644);
    set(&rig, "auth.tokens", rig.path);
    CU_ASSERT_EQUAL(auth_new(rig.config, &rig.findings, &rig.auth, &rig.error), ERR_REFUSED);
    CU_ASSERT(strstr(rig.error.message, "chmod") != NULL);
    set(&rig, "auth.tokens", "/nowhere/tokens");
    CU_ASSERT_EQUAL(auth_new(rig.config, &rig.findings, &rig.auth, &rig.error), ERR_IO);
    rig_close(&rig);
}

TEST(a_reload_takes_the_new_tokens_or_keeps_the_old_ones)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    write_tokens(&rig, TOKENS, 0600);
    set(&rig, "auth.tokens", rig.path);
    load(&rig);
    write_tokens(&rig, "broken\n", 0600);
    CU_ASSERT_EQUAL(auth_reload(rig.auth, rig.config, &rig.findings, &rig.error), ERR_INVALID);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer operator-token-0001", &who),
                    OK);
    write_tokens(&rig, "another-token-00001 dora reader\n", 0600);
    CU_ASSERT_EQUAL(auth_reload(rig.auth, rig.config, &rig.findings, &rig.error), OK);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer operator-token-0001", &who),
                    ERR_DENIED);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, "Authorization", "Bearer another-token-00001", &who),
                    OK);
    rig_close(&rig);
}

TEST(a_certificate_is_known_by_the_name_the_configuration_gives_it)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    set(&rig, "auth.certificates", "llm-17=job:default/llm-17,ops.example=operator+ingest");
    load(&rig);
    struct http_peer peer = {.is_tls = true, .certificate_cn = "ops.example"};
    CU_ASSERT_EQUAL(identify(&rig, &peer, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "ops.example");
    CU_ASSERT(auth_allows(&who, PERMISSION_OPERATE, NULL) &&
              auth_allows(&who, PERMISSION_INGEST, NULL));
    text_copy(peer.certificate_cn, sizeof peer.certificate_cn, "llm-17");
    CU_ASSERT_EQUAL(identify(&rig, &peer, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.job, "default/llm-17");
    text_copy(peer.certificate_cn, sizeof peer.certificate_cn, "llm-1");
    CU_ASSERT_EQUAL(identify(&rig, &peer, NULL, NULL, &who), ERR_DENIED);
    set(&rig, "auth.certificates", "llm-17=king");
    CU_ASSERT_EQUAL(auth_reload(rig.auth, rig.config, &rig.findings, &rig.error), ERR_INVALID);
    rig_close(&rig);
}

TEST(strangers_are_heard_only_where_no_identity_is_configured_and_nothing_is_enforced)
{
    struct rig rig;
    struct identity who;
    rig_open(&rig);
    load(&rig);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, NULL, NULL, &who), OK);
    CU_ASSERT_STRING_EQUAL(who.name, "anonymous");
    CU_ASSERT_FALSE(auth_allows(&who, PERMISSION_OPERATE, NULL));
    set(&rig, "mode", "enforce");
    CU_ASSERT_EQUAL(auth_reload(rig.auth, rig.config, &rig.findings, &rig.error), OK);
    CU_ASSERT_EQUAL(identify(&rig, &REMOTE, NULL, NULL, &who), ERR_DENIED);
    rig_close(&rig);
}

TESTS(T(the_unix_socket_proves_a_user_and_the_users_role),
      T(the_loopback_sends_and_reads_but_commands_nothing),
      T(a_proxy_on_this_machine_does_not_make_the_world_local),
      T(a_token_is_a_name_and_a_role_or_one_job),
      T(a_hashed_token_is_known_by_its_secret_and_not_by_its_hash),
      T(a_wrong_token_is_nobody_even_on_the_loopback),
      T(every_wrong_line_of_the_token_file_is_told_and_no_secret_is),
      T(a_token_file_that_everybody_may_read_is_refused),
      T(a_reload_takes_the_new_tokens_or_keeps_the_old_ones),
      T(a_certificate_is_known_by_the_name_the_configuration_gives_it),
      T(strangers_are_heard_only_where_no_identity_is_configured_and_nothing_is_enforced))
