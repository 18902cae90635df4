/* The process's only caller of clock_gettime. */
#include "controller/sys/clock.h"

#include "controller/sys/file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NS_PER_SECOND = 1000000000 };

static const uint64_t SHARED_MAGIC = UINT64_C(0x6b636f6c63726f6d);
static const int64_t NOBODY_FOLLOWS = INT64_MAX;

/* The whole of a shared clock's file. */
struct shared {
    uint64_t magic;
    double scale;
    atomic_llong now_ns;
    atomic_llong followed_ns; /* NOBODY_FOLLOWS: as it says */
};

static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "processes share these through a file");

static struct {
    double scale;
    int64_t origin_ns;
    int64_t wall_origin_ns;
    struct shared *shared; /* NULL: a clock of this process alone */
} clock_state = {.scale = 1.0};

static int64_t read_ns(clockid_t id)
{
    struct timespec time;
    int failed = clock_gettime(id, &time);
    assert(failed == 0); /* the ids are constants that every Linux knows */
    (void)failed;
    return (int64_t)time.tv_sec * NS_PER_SECOND + time.tv_nsec;
}

void clock_init(double scale, int64_t origin_ns, int64_t wall_origin_ns)
{
    assert(scale >= 1.0);
    clock_state.scale = scale;
    clock_state.origin_ns = origin_ns;
    clock_state.wall_origin_ns = wall_origin_ns;
    if (clock_state.shared != NULL)
        munmap(clock_state.shared, sizeof *clock_state.shared);
    clock_state.shared = NULL;
}

double clock_scale(void)
{
    return clock_state.scale;
}

static int64_t pipeline_ns(int64_t wall_ns)
{
    if (clock_state.shared != NULL)
        return atomic_load(&clock_state.shared->now_ns);
    int64_t elapsed_ns = wall_ns - clock_state.wall_origin_ns;
    /* Plain time keeps its last digits: a double has none to spare for 1.8e18. */
    int64_t scaled_ns = clock_state.scale > 1.0 ? (int64_t)((double)elapsed_ns * clock_state.scale)
                                                : elapsed_ns;
    return clock_state.origin_ns + scaled_ns;
}

struct clock_reading clock_read(void)
{
    int64_t wall_ns = read_ns(CLOCK_REALTIME);
    return (struct clock_reading){
        .wall_ns = wall_ns,
        .monotonic_ns = read_ns(CLOCK_MONOTONIC),
        .now_ns = pipeline_ns(wall_ns),
    };
}

int64_t clock_now_ns(void)
{
    return clock_read().now_ns;
}

int64_t clock_cpu_ns(void)
{
    return read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* --- a shared clock --- */

enum status clock_share(const char *path, double scale, int64_t origin_ns, struct error *reterr)
{
    struct shared shared = {.magic = SHARED_MAGIC, .scale = scale};
    assert(scale >= 1.0);
    atomic_init(&shared.now_ns, origin_ns);
    atomic_init(&shared.followed_ns, NOBODY_FOLLOWS);
    TRY(file_replace(path, (struct view){(const char *)&shared, sizeof shared}, reterr));
    return clock_join(path, reterr);
}

static enum status map_clock(const char *path, int fd, struct error *reterr)
{
    struct stat found;
    if (fstat(fd, &found) != 0 || found.st_size != sizeof(struct shared))
        return error_set(reterr, ERR_INVALID, "'%s' is no shared clock", path);
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (shared == MAP_FAILED)
        return error_set(reterr, ERR_IO, "cannot map '%s': %s", path, strerror(errno));
    if (shared->magic != SHARED_MAGIC) {
        munmap(shared, sizeof *shared);
        return error_set(reterr, ERR_INVALID, "'%s' is no shared clock", path);
    }
    clock_init(shared->scale, 0, 0);
    clock_state.shared = shared;
    return OK;
}

enum status clock_join(const char *path, struct error *reterr)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0)
        return error_set(reterr, errno == ENOENT ? ERR_NOT_FOUND : ERR_IO, "cannot open '%s': %s",
                         path, strerror(errno));
    enum status status = map_clock(path, fd, reterr);
    close(fd);
    return status;
}

void clock_advance(int64_t by_ns)
{
    if (clock_state.shared != NULL)
        atomic_fetch_add(&clock_state.shared->now_ns, by_ns);
}

void clock_follow(void)
{
    if (clock_state.shared != NULL)
        atomic_store(&clock_state.shared->followed_ns, atomic_load(&clock_state.shared->now_ns));
}

void clock_unfollow(void)
{
    if (clock_state.shared != NULL)
        atomic_store(&clock_state.shared->followed_ns, NOBODY_FOLLOWS);
}

int64_t clock_unfollowed_ns(void)
{
    if (clock_state.shared == NULL)
        return 0;
    int64_t followed_ns = atomic_load(&clock_state.shared->followed_ns);
    return followed_ns == NOBODY_FOLLOWS ? 0
                                         : atomic_load(&clock_state.shared->now_ns) - followed_ns;
}
