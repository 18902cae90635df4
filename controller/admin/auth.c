/* Identities. Tokens are kept as SHA-256 alone, and all of them are compared in constant time, so
 * that neither memory nor timing gives one away.
 */
#include "controller/admin/auth.h"

#include "controller/io/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TOKEN_BYTES_MIN = 16, TOKEN_FILE_BYTES_MAX = 1 << 20, PASSWD_BYTES = 16384 };

struct grant {
    unsigned roles;
    char job[256];
};

struct token {
    char digest[DIGEST_HEX_BYTES];
    char name[128];
    struct grant grant;
};

struct certificate {
    char name[128]; /* the CN */
    struct grant grant;
};

struct user {
    uid_t uid;
    char name[128];
    unsigned roles;
};

struct auth {
    struct token *tokens;
    size_t token_count, token_capacity;
    struct certificate *certificates;
    size_t certificate_count, certificate_capacity;
    struct user *users;
    size_t user_count, user_capacity;
    bool open; /* no identity is configured, and nothing is enforced */
};

static void auth_clear(struct auth *auth)
{
    xfree(auth->tokens);
    xfree(auth->certificates);
    xfree(auth->users);
    *auth = (struct auth){0};
}

void auth_free(struct auth *auth)
{
    if (auth == NULL)
        return;
    auth_clear(auth);
    xfree(auth);
}

static bool parse_role(struct view word, unsigned *ret_role)
{
    static const struct {
        const char *name;
        enum role role;
    } rows[] = {{"ingest", ROLE_INGEST},
                {"reader", ROLE_READER},
                {"operator", ROLE_OPERATOR},
                {"admin", ROLE_ADMIN}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (view_equals(word, rows[i].name)) {
            *ret_role = rows[i].role;
            return true;
        }
    }
    return false;
}

/* "ROLE", "ROLE+ROLE" or "job:NAME". */
static bool parse_grant(const char *text, struct grant *ret_grant)
{
    static const char job_prefix[] = "job:";
    *ret_grant = (struct grant){0};
    if (strncmp(text, job_prefix, sizeof job_prefix - 1) == 0) {
        const char *job = text + sizeof job_prefix - 1;
        return *job != '\0' && text_copy(ret_grant->job, sizeof ret_grant->job, job);
    }
    while (*text != '\0') {
        size_t length = strcspn(text, "+");
        unsigned role;
        if (!parse_role((struct view){text, length}, &role))
            return false;
        ret_grant->roles |= role;
        text += length + (text[length] == '+' ? 1 : 0);
    }
    return ret_grant->roles != 0;
}

static bool is_digest(const char *text)
{
    return strlen(text) == DIGEST_HEX_BYTES - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

/* A token as the file has it: "sha256:HEX", or the token itself. Gives what is wrong, or NULL. */
static const char *read_token(const char *text, char ret_digest[DIGEST_HEX_BYTES])
{
    static const char digest_prefix[] = "sha256:";
    if (strncmp(text, digest_prefix, sizeof digest_prefix - 1) == 0) {
        const char *digest = text + sizeof digest_prefix - 1;
        if (!is_digest(digest))
            return "after sha256: come 64 lower-case hex digits";
        text_copy(ret_digest, DIGEST_HEX_BYTES, digest);
        return NULL;
    }
    if (strlen(text) < TOKEN_BYTES_MIN)
        return "a token has at least 16 bytes";
    return digest_sha256(view_of(text), ret_digest, NULL) == OK ? NULL : "no SHA-256 in this build";
}

/* Cuts the next word off *rest, which is writable and NUL-ended; NULL at the end. */
static char *next_word(char **rest)
{
    char *word = *rest + strspn(*rest, " \t\r");
    size_t length = strcspn(word, " \t\r");
    if (length == 0)
        return NULL;
    *rest = word + length;
    if (word[length] != '\0') {
        word[length] = '\0';
        (*rest)++;
    }
    return word;
}

/* One line of the token file. Messages never hold the token. */
static const char *take_token_line(struct auth *auth, char *line)
{
    char *secret = next_word(&line);
    if (secret == NULL || secret[0] == '#')
        return NULL;
    const char *name = next_word(&line), *grant = next_word(&line);
    if (name == NULL || grant == NULL || next_word(&line) != NULL)
        return "a line is TOKEN NAME ROLE, or TOKEN NAME job:JOB";
    auth->tokens = array_grow(auth->tokens, auth->token_count, &auth->token_capacity,
                              sizeof *auth->tokens);
    struct token *token = &auth->tokens[auth->token_count];
    *token = (struct token){0};
    const char *wrong = read_token(secret, token->digest);
    if (wrong != NULL)
        return wrong;
    if (!text_copy(token->name, sizeof token->name, name))
        return "a name has at most 127 bytes";
    if (!parse_grant(grant, &token->grant))
        return "a role is ingest, reader, operator or admin, joined by '+', or job:JOB";
    for (size_t i = 0; i < auth->token_count; i++)
        if (strcmp(auth->tokens[i].digest, token->digest) == 0)
            return "this token stands in the file twice";
    auth->token_count++;
    return NULL;
}

static enum status read_private_file(const char *path, struct text *out, struct error *reterr)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "token file '%s': %s", path, strerror(errno));
    struct stat info;
    enum status status = OK;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode))
        status = error_set(reterr, ERR_INVALID, "token file '%s' is not a plain file", path);
    else if ((info.st_mode & S_IRWXO) != 0)
        status = error_set(reterr, ERR_REFUSED,
                           "token file '%s' is open to everybody; chmod 0640 or 0600 it", path);
    else if (info.st_size > TOKEN_FILE_BYTES_MAX)
        status = error_set(reterr, ERR_LIMIT, "token file '%s' is larger than 1 MiB", path);
    char block[4096];
    text_add(out, "");
    for (ssize_t got; status == OK && (got = read(fd, block, sizeof block)) != 0;) {
        if (got < 0)
            status = error_set(reterr, ERR_IO, "token file '%s': %s", path, strerror(errno));
        else
            text_add_bytes(out, block, (size_t)got);
    }
    explicit_bzero(block, sizeof block);
    close(fd);
    return status;
}

static enum status load_tokens(struct auth *auth, const char *path, struct text *findings,
                               struct error *reterr)
{
    if (path[0] == '\0')
        return OK;
    AUTO_TEXT file = {0};
    enum status status = read_private_file(path, &file, reterr);
    int line_number = 1, wrong_count = 0;
    for (char *line = file.bytes; status == OK && *line != '\0'; line_number++) {
        size_t length = strcspn(line, "\n");
        char *next = line + length + (line[length] == '\n' ? 1 : 0);
        line[length] = '\0';
        const char *wrong = take_token_line(auth, line);
        if (wrong != NULL) {
            text_addf(findings, "%s:%d:1: error: %s [bad-token]\n", path, line_number, wrong);
            wrong_count++;
        }
        line = next;
    }
    if (file.bytes != NULL)
        explicit_bzero(file.bytes, file.length);
    if (status == OK && wrong_count > 0)
        return error_set(reterr, ERR_INVALID, "%d errors in '%s'", wrong_count, path);
    return status;
}

static enum status load_certificates(struct auth *auth, const struct config_list *list,
                                     struct error *reterr)
{
    for (size_t i = 0; i < list->count; i++) {
        const char *equals = strchr(list->items[i], '=');
        auth->certificates = array_grow(auth->certificates, auth->certificate_count,
                                        &auth->certificate_capacity, sizeof *auth->certificates);
        struct certificate *entry = &auth->certificates[auth->certificate_count];
        *entry = (struct certificate){0};
        size_t length = equals != NULL ? (size_t)(equals - list->items[i]) : 0;
        if (length == 0 || length >= sizeof entry->name || !parse_grant(equals + 1, &entry->grant))
            return error_set(reterr, ERR_INVALID,
                             "auth.certificates: '%s' is not CN=ROLE or CN=job:JOB, with a role of "
                             "ingest, reader, operator, admin",
                             list->items[i]);
        memcpy(entry->name, list->items[i], length);
        auth->certificate_count++;
    }
    return OK;
}

static void name_uid(uid_t uid, char *name, size_t bytes)
{
    struct passwd entry, *found = NULL;
    AUTO_FREE char *memory = xmalloc(PASSWD_BYTES);
    if (getpwuid_r(uid, &entry, memory, PASSWD_BYTES, &found) == 0 && found != NULL)
        text_copy(name, bytes, found->pw_name);
    else
        snprintf(name, bytes, "uid:%u", (unsigned)uid);
}

static void add_user(struct auth *auth, uid_t uid, unsigned roles)
{
    for (size_t i = 0; i < auth->user_count; i++) {
        if (auth->users[i].uid == uid) {
            auth->users[i].roles |= roles;
            return;
        }
    }
    auth->users = array_grow(auth->users, auth->user_count, &auth->user_capacity,
                             sizeof *auth->users);
    struct user *user = &auth->users[auth->user_count++];
    *user = (struct user){.uid = uid, .roles = roles};
    name_uid(uid, user->name, sizeof user->name);
}

static enum status load_uids(struct auth *auth, const char *option, const struct config_list *list,
                             unsigned roles, struct error *reterr)
{
    for (size_t i = 0; i < list->count; i++) {
        int64_t uid;
        if (!text_parse_int(view_of(list->items[i]), &uid) || uid < 0 || uid >= UINT32_MAX)
            return error_set(reterr, ERR_INVALID, "%s: '%s' is not a uid", option, list->items[i]);
        add_user(auth, (uid_t)uid, roles);
    }
    return OK;
}

static enum status auth_load(struct auth *auth, const struct config *config, struct text *findings,
                             struct error *reterr)
{
    TRY(load_tokens(auth, config->auth_tokens, findings, reterr));
    TRY(load_certificates(auth, &config->auth_certificates, reterr));
    add_user(auth, 0, ROLE_ADMIN);
    add_user(auth, geteuid(), ROLE_ADMIN);
    TRY(load_uids(auth, "auth.admin_uids", &config->auth_admin_uids, ROLE_ADMIN, reterr));
    TRY(load_uids(auth, "auth.operator_uids", &config->auth_operator_uids, ROLE_OPERATOR, reterr));
    auth->open = auth->token_count == 0 && auth->certificate_count == 0 &&
                 config->mode != MODE_ENFORCE;
    return OK;
}

enum status auth_new(const struct config *config, struct text *findings, struct auth **ret_auth,
                     struct error *reterr)
{
    AUTO(auth_free) struct auth *auth = xcalloc(1, sizeof *auth);
    TRY(auth_load(auth, config, findings, reterr));
    *ret_auth = TAKE(auth);
    return OK;
}

enum status auth_reload(struct auth *auth, const struct config *config, struct text *findings,
                        struct error *reterr)
{
    AUTO(auth_free) struct auth *fresh = NULL;
    TRY(auth_new(config, findings, &fresh, reterr));
    struct auth old = *auth;
    *auth = *fresh;
    *fresh = old;
    return OK;
}

/* Every token is looked at, whichever matches. */
static const struct token *find_token(const struct auth *auth, const char *digest)
{
    const struct token *found = NULL;
    for (size_t i = 0; i < auth->token_count; i++) {
        unsigned differs = 0;
        for (size_t at = 0; at < DIGEST_HEX_BYTES - 1; at++)
            differs |= (unsigned char)auth->tokens[i].digest[at] ^ (unsigned char)digest[at];
        if (differs == 0)
            found = &auth->tokens[i];
    }
    return found;
}

static void prove(struct identity *identity, const char *name, const struct grant *grant)
{
    text_copy(identity->name, sizeof identity->name, name);
    text_copy(identity->job, sizeof identity->job, grant->job);
    identity->roles = grant->roles;
}

static enum status identify_token(const struct auth *auth, const char *header,
                                  struct identity *identity, struct error *reterr)
{
    static const char scheme[] = "Bearer ";
    char digest[DIGEST_HEX_BYTES];
    if (strncasecmp(header, scheme, sizeof scheme - 1) != 0)
        return error_set(reterr, ERR_DENIED, "the only Authorization taken is a bearer token");
    const char *secret = header + sizeof scheme - 1;
    secret += strspn(secret, " ");
    TRY(digest_sha256(view_of(secret), digest, reterr));
    const struct token *token = find_token(auth, digest);
    if (token == NULL)
        return error_set(reterr, ERR_DENIED, "this bearer token is not known here");
    prove(identity, token->name, &token->grant);
    return OK;
}

static enum status identify_certificate(const struct auth *auth, const char *name,
                                        struct identity *identity, struct error *reterr)
{
    for (size_t i = 0; i < auth->certificate_count; i++) {
        if (strcmp(auth->certificates[i].name, name) == 0) {
            prove(identity, name, &auth->certificates[i].grant);
            return OK;
        }
    }
    return error_set(reterr, ERR_DENIED, "auth.certificates does not name the certificate of '%s'",
                     name);
}

static void identify_uid(const struct auth *auth, uid_t uid, struct identity *identity)
{
    for (size_t i = 0; i < auth->user_count; i++) {
        if (auth->users[i].uid == uid) {
            prove(identity, auth->users[i].name, &(struct grant){.roles = auth->users[i].roles});
            return;
        }
    }
    /* No name is looked up here: a directory that does not answer would stop the loop. */
    snprintf(identity->name, sizeof identity->name, "uid:%u", (unsigned)uid);
    identity->roles = ROLE_READER;
}

/* A proxy on this machine makes the whole world look local; it says so in these headers. */
static bool is_forwarded(const struct http_request *request)
{
    return http_request_header(request, "X-Forwarded-For") != NULL ||
           http_request_header(request, "Forwarded") != NULL;
}

enum status auth_identify(const struct auth *auth, const struct http_request *request,
                          struct identity *ret_identity, struct error *reterr)
{
    const struct http_peer *peer = http_request_peer(request);
    const char *authorization = http_request_header(request, "Authorization");
    const struct grant local = {.roles = ROLE_INGEST | ROLE_READER};
    *ret_identity = (struct identity){0};
    if (authorization != NULL)
        return identify_token(auth, authorization, ret_identity, reterr);
    if (peer->certificate_cn[0] != '\0')
        return identify_certificate(auth, peer->certificate_cn, ret_identity, reterr);
    if (peer->is_unix)
        identify_uid(auth, peer->uid, ret_identity);
    else if (peer->is_loopback && !is_forwarded(request))
        prove(ret_identity, "loopback", &local);
    else if (auth->open)
        prove(ret_identity, "anonymous", &local);
    else
        return error_set(reterr, ERR_DENIED,
                         "nobody is proved; send a bearer token or a client certificate");
    return OK;
}

bool auth_allows(const struct identity *identity, enum permission permission, const char *job)
{
    static const unsigned needed[PERMISSION_COUNT] = {
        [PERMISSION_READ] = ROLE_READER | ROLE_OPERATOR | ROLE_ADMIN,
        [PERMISSION_INGEST] = ROLE_INGEST | ROLE_ADMIN,
        [PERMISSION_OPERATE] = ROLE_OPERATOR | ROLE_ADMIN,
        [PERMISSION_ADMIN] = ROLE_ADMIN,
    };
    if (identity->job[0] != '\0')
        return permission == PERMISSION_INGEST && (job == NULL || strcmp(identity->job, job) == 0);
    return (identity->roles & needed[permission]) != 0;
}

enum status auth_check(const struct auth *auth, const struct http_request *request,
                       enum permission permission, struct identity *ret_identity,
                       struct error *reterr)
{
    static const char *const roles[PERMISSION_COUNT] = {
        [PERMISSION_READ] = "reader",
        [PERMISSION_INGEST] = "ingest",
        [PERMISSION_OPERATE] = "operator",
        [PERMISSION_ADMIN] = "admin",
    };
    TRY(auth_identify(auth, request, ret_identity, reterr));
    if (auth_allows(ret_identity, permission, NULL))
        return OK;
    return error_set(reterr, ERR_DENIED,
                     "'%s' lacks the role %s; use the Unix socket or a token that has it",
                     ret_identity->name, roles[permission]);
}
