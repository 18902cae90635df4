/* Plain files; the temporary folder may be entered by the user that PostgreSQL runs as. */
#include "controller/rehearse/rehearsal_files.h"

#include "controller/rehearse/child.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { COPY_BYTES = 65536, FOLDERS_OPEN = 16, REMOVE_TRIES = 20, REMOVE_WAIT_MS = 100 };

enum status files_open(struct files *files, const char *out, struct error *reterr)
{
    const char *base = getenv("TMPDIR");
    if (out != NULL && mkdir(out, 0755) != 0 && errno != EEXIST)
        return error_set(reterr, ERR_IO, "cannot make '%s': %s", out, strerror(errno));
    files->out = out;
    snprintf(files->folder, sizeof files->folder, "%s/broom-rehearsal-XXXXXX",
             base != NULL && base[0] == '/' ? base : "/tmp");
    if (mkdtemp(files->folder) == NULL) {
        enum status status = error_set(reterr, ERR_IO, "cannot make '%s': %s", files->folder,
                                       strerror(errno));
        files->folder[0] = '\0';
        return status;
    }
    if (chmod(files->folder, 0755) != 0)
        return error_set(reterr, ERR_IO, "cannot open '%s': %s", files->folder, strerror(errno));
    return OK;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *place)
{
    (void)info;
    (void)kind;
    (void)place;
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

/* A PostgreSQL whose broomd was killed may still be tidying up in there. */
static bool remove_folder(const char *folder)
{
    for (int tries = 0; tries < REMOVE_TRIES; tries++) {
        if (nftw(folder, remove_one, FOLDERS_OPEN, FTW_DEPTH | FTW_PHYS) == 0 &&
            access(folder, F_OK) != 0)
            return true;
        wait_ms(REMOVE_WAIT_MS);
    }
    return false;
}

void files_close(struct files *files, bool keep)
{
    if (files->folder[0] == '\0')
        return;
    if (keep)
        fprintf(stderr, "the files are kept in %s\n", files->folder);
    else if (!remove_folder(files->folder))
        fprintf(stderr, "broom: cannot remove '%s': %s\n", files->folder, strerror(errno));
    files->folder[0] = '\0';
}

void files_path(const struct files *files, const char *name, char buffer[PATH_BYTES])
{
    snprintf(buffer, PATH_BYTES, "%.400s/%.100s", files->folder, name);
}

void files_out_path(const struct files *files, const char *name, char buffer[PATH_BYTES])
{
    snprintf(buffer, PATH_BYTES, "%.400s/%.100s", files->out != NULL ? files->out : "", name);
}

enum status files_write(const struct files *files, const char *name, struct view bytes,
                        struct error *reterr)
{
    char path[PATH_BYTES];
    files_path(files, name, path);
    FILE *file = fopen(path, "wb");
    bool written = file != NULL && fwrite(bytes.bytes, 1, bytes.length, file) == bytes.length;
    if (file != NULL && fclose(file) != 0)
        written = false;
    return written ? OK : error_set(reterr, ERR_IO, "cannot write '%s': %s", path, strerror(errno));
}

static bool copy(FILE *from, FILE *to)
{
    char bytes[COPY_BYTES];
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, from)) > 0;)
        if (fwrite(bytes, 1, got, to) != got)
            return false;
    return !ferror(from);
}

enum status files_keep(const struct files *files, const char *name, struct error *reterr)
{
    char from_path[PATH_BYTES];
    char to_path[PATH_BYTES];
    files_path(files, name, from_path);
    files_out_path(files, name, to_path);
    FILE *from = fopen(from_path, "rb");
    FILE *to = from != NULL ? fopen(to_path, "wb") : NULL;
    bool copied = to != NULL && copy(from, to);
    if (from != NULL)
        fclose(from);
    if (to != NULL && fclose(to) != 0)
        copied = false;
    return copied ? OK
                  : error_set(reterr, ERR_IO, "cannot write '%s': %s", to_path, strerror(errno));
}
