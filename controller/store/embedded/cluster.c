/* Files of the cluster. As root we make folders and hand them to the account; below root/data only
 * the account's own processes write.
 */
#include "controller/store/embedded/cluster.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SOCKET_PATH_MAX = 85, LOG_BYTES_MAX = 8 * 1024 * 1024, PID_FILE_BYTES = 1024 };

#define INSTALLED_AT "/usr/lib/postgresql"

static char *path_of(const char *directory, const char *name)
{
    struct text path = {0};
    text_addf(&path, "%s/%s", directory, name);
    return text_take(&path);
}

/* ---- programs and account ---- */

static bool has_postgres(const char *bin_dir)
{
    AUTO_FREE char *postgres = path_of(bin_dir, "postgres");
    AUTO_FREE char *initdb = path_of(bin_dir, "initdb");
    return access(postgres, X_OK) == 0 && access(initdb, X_OK) == 0;
}

/* The newest major version that is installed; the caller frees. NULL when none is. */
static char *find_installed(void)
{
    int64_t newest = 0;
    char *found = NULL;
    DIR *listing = opendir(INSTALLED_AT);
    for (const struct dirent *item; listing != NULL && (item = readdir(listing)) != NULL;) {
        int64_t version = 0;
        AUTO_TEXT bin = {0};
        text_addf(&bin, INSTALLED_AT "/%s/bin", item->d_name);
        if (!text_parse_int(view_of(item->d_name), &version) || version <= newest ||
            !has_postgres(bin.bytes))
            continue;
        newest = version;
        xfree(found);
        found = text_take(&bin);
    }
    if (listing != NULL)
        closedir(listing);
    return found;
}

static char *find_in_path(void)
{
    const char *path = getenv("PATH");
    while (path != NULL && *path != '\0') {
        size_t length = strcspn(path, ":");
        AUTO_FREE char *directory = xstrndup(path, length);
        if (directory[0] == '/' && has_postgres(directory))
            return TAKE(directory);
        path += path[length] == ':' ? length + 1 : length;
    }
    return NULL;
}

/* The major version that made the cluster: only that one can run it. False when there is no
 * cluster. */
static bool made_by(const char *data, char ret_version[16])
{
    AUTO_FREE char *path = path_of(data, "PG_VERSION");
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, ret_version, 15);
    close(fd);
    ret_version[got > 0 ? got : 0] = '\0';
    ret_version[strcspn(ret_version, "\n")] = '\0';
    return ret_version[0] != '\0';
}

static enum status find_programs(const char *bin_dir, const char *data, struct cluster *cluster,
                                 struct error *reterr)
{
    char version[16];
    AUTO_FREE char *found = NULL;
    AUTO_TEXT same = {0};
    if (bin_dir != NULL) {
        found = has_postgres(bin_dir) ? xstrdup(bin_dir) : NULL;
    } else if (made_by(data, version)) {
        text_addf(&same, INSTALLED_AT "/%s/bin", version);
        AUTO_FREE char *other = find_installed();
        found = has_postgres(same.bytes) ? xstrdup(same.bytes) : NULL;
        if (found == NULL && other == NULL)
            found =
                find_in_path(); /* not Debian's layout: the server itself compares the versions */
        if (found == NULL)
            return error_set(reterr, ERR_NOT_FOUND,
                             "'%s' was made by PostgreSQL %s, which is not installed in '%s'", data,
                             version, same.bytes);
    } else {
        found = find_installed();
        found = found != NULL ? found : find_in_path();
    }
    if (found == NULL)
        return error_set(reterr, ERR_NOT_FOUND,
                         "no PostgreSQL server in '%s': install postgresql, or give --database URL",
                         bin_dir != NULL ? bin_dir : INSTALLED_AT "/*/bin or PATH");
    cluster->postgres = path_of(found, "postgres");
    cluster->initdb = path_of(found, "initdb");
    return OK;
}

/* PostgreSQL refuses to run as root, rightly. */
static enum status find_account(const char *name, struct cluster *cluster, struct error *reterr)
{
    const struct passwd *entry = geteuid() == 0 ? getpwnam(name) : getpwuid(geteuid());
    if (entry == NULL && geteuid() == 0)
        return error_set(
            reterr, ERR_REFUSED,
            "started as root, and there is no account '%s' to run PostgreSQL as: make it, name "
            "another one, or start broomd as an ordinary user",
            name);
    if (entry == NULL)
        return error_set(reterr, ERR_REFUSED, "the user with id %ld has no account",
                         (long)geteuid());
    if (entry->pw_uid == 0)
        return error_set(reterr, ERR_REFUSED,
                         "PostgreSQL cannot run as root: name another account than '%s'", name);
    cluster->account = (struct child_account){
        .change = geteuid() == 0, .uid = entry->pw_uid, .gid = entry->pw_gid};
    cluster->account_name = xstrdup(entry->pw_name);
    return OK;
}

/* A socket's path is limited to about 100 bytes; a longer one gets a folder of its own, named after
 * it. */
static char *socket_folder(const char *root)
{
    struct text path = {0};
    uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
    text_addf(&path, "%s/socket", root);
    if (path.length <= SOCKET_PATH_MAX)
        return text_take(&path);
    for (const char *at = root; *at != '\0'; at++)
        hash = (hash ^ (unsigned char)*at) * UINT64_C(1099511628211);
    text_clear(&path);
    text_addf(&path, "/tmp/broom-%016llx", (unsigned long long)hash);
    return text_take(&path);
}

static char *absolute(const char *path)
{
    char *working = NULL;
    if (path[0] == '/' || (working = getcwd(NULL, 0)) == NULL)
        return xstrdup(path);
    char *joined = path_of(working, path);
    xfree(working);
    return joined;
}

/* In a connection string a value may hold anything once quotes and backslashes are escaped. */
static void add_quoted(struct text *out, const char *value)
{
    text_add(out, "'");
    for (; *value != '\0'; value++) {
        if (*value == '\'' || *value == '\\')
            text_add(out, "\\");
        text_add_bytes(out, value, 1);
    }
    text_add(out, "'");
}

enum status cluster_find(const struct embedded_params *params, struct cluster *ret_cluster,
                         struct error *reterr)
{
    struct text conninfo = {0};
    struct cluster cluster = {0};
    AUTO_FREE char *data_dir = absolute(params->data_dir);
    cluster.root = path_of(data_dir, "postgres");
    cluster.data = path_of(cluster.root, "data");
    enum status status = find_programs(params->bin_dir, cluster.data, &cluster, reterr);
    if (status == OK)
        status = find_account(params->account != NULL ? params->account : "postgres", &cluster,
                              reterr);
    if (status != OK) {
        cluster_done(&cluster);
        return status;
    }
    cluster.making = path_of(cluster.root, "data.new");
    cluster.conf = path_of(cluster.root, "conf");
    cluster.log = path_of(cluster.root, "server.log");
    cluster.socket = socket_folder(cluster.root);
    text_add(&conninfo, "host=");
    add_quoted(&conninfo, cluster.socket);
    text_add(&conninfo, " user=postgres dbname=postgres");
    cluster.conninfo = text_take(&conninfo);
    *ret_cluster = cluster;
    return OK;
}

void cluster_done(struct cluster *cluster)
{
    const char *const owned[] = {cluster->root,    cluster->data,     cluster->making,
                                 cluster->socket,  cluster->conf,     cluster->log,
                                 cluster->initdb,  cluster->postgres, cluster->account_name,
                                 cluster->conninfo};
    for (size_t i = 0; i < ARRAY_LEN(owned); i++)
        xfree(owned[i]);
    *cluster = (struct cluster){0};
}

/* ---- folders ---- */

static enum status folder_failed(const char *path, struct error *reterr)
{
    return error_set(reterr, ERR_IO, "'%s' cannot be prepared: %s", path, strerror(errno));
}

/* A folder that is there already must be one, and belong to us or to the account: /tmp is
 * everybody's. */
static enum status make_folder(const char *path, mode_t mode, const struct child_account *owner,
                               struct error *reterr)
{
    struct stat info;
    if (mkdir(path, mode) != 0 && errno != EEXIST)
        return folder_failed(path, reterr);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return folder_failed(path, reterr);
    uid_t wanted = owner != NULL ? owner->uid : geteuid();
    gid_t group = owner != NULL ? owner->gid : getegid();
    bool is_fine = fstat(fd, &info) == 0;
    if (is_fine && info.st_uid != wanted && info.st_uid != geteuid()) {
        close(fd);
        return error_set(reterr, ERR_REFUSED, "'%s' belongs to user %ld", path, (long)info.st_uid);
    }
    is_fine = is_fine && (info.st_uid == wanted || fchown(fd, wanted, group) == 0) &&
              fchmod(fd, mode) == 0;
    enum status status = is_fine ? OK : folder_failed(path, reterr);
    close(fd);
    return status;
}

static enum status write_file(const char *directory, const char *name, const char *text,
                              struct error *reterr)
{
    AUTO_FREE char *path = path_of(directory, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (fd < 0)
        return folder_failed(path, reterr);
    size_t length = strlen(text);
    enum status status = write(fd, text, length) == (ssize_t)length && fchmod(fd, 0644) == 0
                             ? OK
                             : folder_failed(path, reterr);
    close(fd);
    return status;
}

/* Who may connect: over the socket, which only the account and root can reach, by what the kernel
 * says of the peer. root and the account administer; anybody else whom a site lets in reads. */
static enum status write_conf(const struct cluster *cluster, struct error *reterr)
{
    AUTO_TEXT ident = {0};
    text_addf(&ident,
              "broom root postgres\nbroom root broom_reader\nbroom \"%s\" postgres\n"
              "broom \"%s\" broom_reader\nbroom /^(.*)$ broom_reader\n",
              cluster->account_name, cluster->account_name);
    TRY(write_file(cluster->conf, "pg_hba.conf", "local all all peer map=broom\n", reterr));
    return write_file(cluster->conf, "pg_ident.conf", ident.bytes, reterr);
}

/* root/ itself stays ours: the account may not rename what we open there. It must be able to pass
 * through the data directory; what else lies there is closed to it by its own modes. */
enum status cluster_make_root(const struct cluster *cluster, struct error *reterr)
{
    struct stat info;
    AUTO_FREE char *data_dir = xstrndup(cluster->root, strlen(cluster->root) - strlen("/postgres"));
    if (mkdir(data_dir, 0711) != 0 && errno != EEXIST)
        return folder_failed(data_dir, reterr);
    if (cluster->account.change &&
        (stat(data_dir, &info) != 0 || chmod(data_dir, (info.st_mode & 07777) | 0011) != 0))
        return folder_failed(data_dir, reterr);
    return make_folder(cluster->root, cluster->account.change ? 0711 : 0700, NULL, reterr);
}

enum status cluster_prepare(const struct cluster *cluster, struct error *reterr)
{
    const struct child_account *owner = cluster->account.change ? &cluster->account : NULL;
    TRY(make_folder(cluster->conf, cluster->account.change ? 0755 : 0700, NULL, reterr));
    TRY(make_folder(cluster->socket, 0700, owner, reterr));
    return write_conf(cluster, reterr);
}

bool cluster_is_made(const struct cluster *cluster)
{
    AUTO_FREE char *version = path_of(cluster->data, "PG_VERSION");
    return access(version, F_OK) == 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *walk)
{
    (void)info;
    (void)kind;
    (void)walk;
    return remove(path);
}

enum status cluster_clear_making(const struct cluster *cluster, struct error *reterr)
{
    const struct child_account *owner = cluster->account.change ? &cluster->account : NULL;
    if (nftw(cluster->making, remove_one, 16, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT)
        return folder_failed(cluster->making, reterr);
    return make_folder(cluster->making, 0700, owner, reterr);
}

enum status cluster_keep_made(const struct cluster *cluster, struct error *reterr)
{
    if (rename(cluster->making, cluster->data) != 0)
        return folder_failed(cluster->data, reterr);
    int fd = open(cluster->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_synced = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_synced ? OK : folder_failed(cluster->root, reterr);
}

/* ---- the running server ---- */

static bool read_pid_file(const struct cluster *cluster, char ret_text[PID_FILE_BYTES])
{
    AUTO_FREE char *path = path_of(cluster->data, "postmaster.pid");
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t got = read(fd, ret_text, PID_FILE_BYTES - 1);
    close(fd);
    ret_text[got > 0 ? got : 0] = '\0';
    return got > 0;
}

/* Line `number` (from 1) of a text, trimmed of blanks at its end; empty when missing. */
static struct view line_of(const char *text, int number)
{
    for (; number > 1 && *text != '\0'; number--) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    size_t length = strcspn(text, "\n");
    while (length > 0 && text[length - 1] == ' ')
        length--;
    return (struct view){text, length};
}

/* A process whose working directory is our cluster is its postmaster; a number alone may have been
 * reused. */
static bool works_in(pid_t pid, const char *directory)
{
    char link[64];
    struct stat theirs, ours;
    snprintf(link, sizeof link, "/proc/%ld/cwd", (long)pid);
    return stat(link, &theirs) == 0 && stat(directory, &ours) == 0 &&
           theirs.st_dev == ours.st_dev && theirs.st_ino == ours.st_ino;
}

pid_t cluster_postmaster(const struct cluster *cluster)
{
    char text[PID_FILE_BYTES];
    int64_t pid = 0;
    if (!read_pid_file(cluster, text) || !text_parse_int(line_of(text, 1), &pid) || pid <= 1)
        return 0;
    return works_in((pid_t)pid, cluster->data) ? (pid_t)pid : 0;
}

bool cluster_is_ready(const struct cluster *cluster)
{
    char text[PID_FILE_BYTES];
    return read_pid_file(cluster, text) && view_equals(line_of(text, 8), "ready");
}

/* ---- the log ---- */

void cluster_last_log_line(const struct cluster *cluster, char *buffer, size_t bytes)
{
    char tail[1024];
    struct stat info;
    buffer[0] = '\0';
    int fd = open(cluster->log, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &info) != 0) {
        if (fd >= 0)
            close(fd);
        return;
    }
    off_t from = info.st_size > (off_t)sizeof tail - 1 ? info.st_size - (off_t)sizeof tail + 1 : 0;
    ssize_t got = pread(fd, tail, sizeof tail - 1, from);
    close(fd);
    size_t length = got > 0 ? (size_t)got : 0;
    while (length > 0 && tail[length - 1] == '\n')
        length--;
    tail[length] = '\0';
    const char *line = strrchr(tail, '\n');
    text_copy(buffer, bytes, line != NULL ? line + 1 : tail);
}

int cluster_open_log(const struct cluster *cluster)
{
    struct stat info;
    AUTO_TEXT old = {0};
    text_addf(&old, "%s.1", cluster->log);
    if (stat(cluster->log, &info) == 0 && info.st_size > LOG_BYTES_MAX)
        (void)rename(cluster->log, old.bytes); /* else it grows on; nothing depends on it */
    return open(cluster->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
}
