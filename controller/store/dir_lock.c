/* flock on DIRECTORY/lock; the file holds the pid of its holder, for the message only. */
#include "controller/store/dir_lock.h"

#include "controller/base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

struct dir_lock {
    int fd;
};

static void read_holder(int fd, char *ret_pid, size_t bytes)
{
    ssize_t got = pread(fd, ret_pid, bytes - 1, 0);
    ret_pid[got > 0 ? got : 0] = '\0';
    ret_pid[strcspn(ret_pid, "\n")] = '\0';
}

static enum status write_holder(int fd, const char *directory, struct error *reterr)
{
    char line[32];
    int length = snprintf(line, sizeof line, "%ld\n", (long)getpid());
    if (ftruncate(fd, 0) != 0 || pwrite(fd, line, (size_t)length, 0) != length)
        return error_set(reterr, ERR_IO, "the lock file in '%s' cannot be written: %s", directory,
                         strerror(errno));
    return OK;
}

enum status dir_lock_take(const char *directory, struct dir_lock **ret_lock, struct error *reterr)
{
    AUTO_TEXT path = {0};
    if (mkdir(directory, 0700) != 0 && errno != EEXIST)
        return error_set(reterr, ERR_IO, "'%s' cannot be made: %s", directory, strerror(errno));
    text_addf(&path, "%s/lock", directory);
    int fd = open(path.bytes, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return error_set(reterr, ERR_IO, "'%s' cannot be opened: %s", path.bytes, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        char pid[32];
        read_holder(fd, pid, sizeof pid);
        close(fd);
        return error_set(reterr, ERR_REFUSED, "'%s' is in use by process %s", directory,
                         pid[0] != '\0' ? pid : "?");
    }
    enum status status = write_holder(fd, directory, reterr);
    if (status != OK) {
        close(fd);
        return status;
    }
    *ret_lock = xmalloc(sizeof **ret_lock);
    (*ret_lock)->fd = fd;
    return OK;
}

void dir_lock_free(struct dir_lock *lock)
{
    if (lock == NULL)
        return;
    close(lock->fd);
    xfree(lock);
}
