#include "controller/sys/clock.h"
#include "tests/harness/test.h"

#include <stdlib.h>
#include <unistd.h>

TEST(plain_time_is_the_wall_clock)
{
    clock_init(1, 0, 0);
    struct clock_reading reading = clock_read();
    CU_ASSERT_EQUAL(reading.now_ns, reading.wall_ns);
    CU_ASSERT(reading.wall_ns > INT64_C(1600000000000000000));
    CU_ASSERT(clock_now_ns() >= reading.now_ns);
    CU_ASSERT(clock_read().monotonic_ns >= reading.monotonic_ns);
    CU_ASSERT(clock_cpu_ns() > 0);
}

TEST(scaled_time_runs_from_its_origin_at_its_speed)
{
    int64_t wall_origin_ns = clock_read().wall_ns - 1000000000;
    clock_init(60, INT64_C(1780000000000000000), wall_origin_ns);
    struct clock_reading reading = clock_read();
    int64_t elapsed_ns = reading.wall_ns - wall_origin_ns;
    int64_t off_ns = reading.now_ns - (INT64_C(1780000000000000000) + elapsed_ns * 60);
    CU_ASSERT(off_ns > -1000 && off_ns < 1000);
    CU_ASSERT_EQUAL((int)clock_scale(), 60);
    clock_init(1, 0, 0);
}

TEST(shared_time_goes_on_when_it_is_told_to)
{
    const int64_t origin_ns = INT64_C(1780000000000000000);
    char path[] = "/tmp/broom-test-clock-XXXXXX";
    int fd = mkstemp(path);
    CU_ASSERT_FATAL(fd >= 0);
    close(fd);
    CU_ASSERT_EQUAL_FATAL(clock_join(path, NULL), ERR_INVALID);
    CU_ASSERT_FATAL(clock_share(path, 60, origin_ns, NULL) == OK);
    CU_ASSERT_EQUAL(clock_now_ns(), origin_ns);
    CU_ASSERT_EQUAL((int)clock_scale(), 60);
    CU_ASSERT_EQUAL(clock_unfollowed_ns(), 0); /* nobody has ever followed */
    clock_follow();
    clock_advance(1000);
    CU_ASSERT_EQUAL(clock_now_ns(), origin_ns + 1000);
    CU_ASSERT_EQUAL(clock_unfollowed_ns(), 1000);
    clock_follow();
    CU_ASSERT_EQUAL(clock_unfollowed_ns(), 0);
    clock_advance(1000);
    CU_ASSERT_FATAL(clock_join(path, NULL) == OK); /* another process sees the same */
    CU_ASSERT_EQUAL(clock_now_ns(), origin_ns + 2000);
    clock_unfollow();
    CU_ASSERT_EQUAL(clock_unfollowed_ns(), 0);
    clock_init(1, 0, 0);
    struct clock_reading plain = clock_read();
    CU_ASSERT_EQUAL(plain.now_ns, plain.wall_ns);
    unlink(path);
    CU_ASSERT_EQUAL(clock_join(path, NULL), ERR_NOT_FOUND);
}

TESTS(T(plain_time_is_the_wall_clock), T(scaled_time_runs_from_its_origin_at_its_speed),
      T(shared_time_goes_on_when_it_is_told_to))
