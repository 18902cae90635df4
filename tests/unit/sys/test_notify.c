#include "controller/base/text.h"
#include "controller/sys/notify.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

struct manager {
    int fd;
    char folder[32];
    char path[64];
    char message[256];
};

static void manager_open(struct manager *manager)
{
    *manager = (struct manager){.folder = "/tmp/broom_test_XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(manager->folder));
    snprintf(manager->path, sizeof manager->path, "%s/notify", manager->folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    text_copy(address.sun_path, sizeof address.sun_path, manager->path);
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    CU_ASSERT_EQUAL_FATAL(bind(manager->fd, (const struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", manager->path, 1);
}

static void manager_close(struct manager *manager)
{
    close(manager->fd);
    unlink(manager->path);
    rmdir(manager->folder);
}

/* The next message, or "" when there is none. */
static const char *next_message(struct manager *manager)
{
    ssize_t length = recv(manager->fd, manager->message, sizeof manager->message - 1, MSG_DONTWAIT);
    manager->message[length > 0 ? length : 0] = '\0';
    return manager->message;
}

TEST(each_state_is_one_message)
{
    struct manager manager;
    manager_open(&manager);
    notify_init();
    notify_ready();
    CU_ASSERT_STRING_EQUAL(next_message(&manager), "READY=1");
    notify_reloading();
    CU_ASSERT_EQUAL(strncmp(next_message(&manager), "RELOADING=1\nMONOTONIC_USEC=", 27), 0);
    notify_status("2 jobs\nREADY=0");
    CU_ASSERT_STRING_EQUAL(next_message(&manager), "STATUS=2 jobs READY=0");
    notify_watchdog();
    CU_ASSERT_STRING_EQUAL(next_message(&manager), "WATCHDOG=1");
    notify_stopping();
    CU_ASSERT_STRING_EQUAL(next_message(&manager), "STOPPING=1");
    manager_close(&manager);
}

TEST(no_child_can_speak_for_us)
{
    struct manager manager;
    manager_open(&manager);
    notify_init();
    CU_ASSERT_PTR_NULL(getenv("NOTIFY_SOCKET"));
    manager_close(&manager);
}

TEST(without_a_manager_every_call_is_harmless)
{
    unsetenv("NOTIFY_SOCKET");
    notify_init();
    notify_ready();
    notify_stopping();
    CU_ASSERT_EQUAL(notify_watchdog_interval_ns(), 0);
    setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
    notify_init();
    notify_ready();
    setenv("NOTIFY_SOCKET", "not-a-path", 1);
    notify_init();
    notify_ready();
}

TEST(the_watchdog_is_fed_twice_as_often_as_it_bites)
{
    struct manager manager;
    char self[32];
    manager_open(&manager);
    setenv("WATCHDOG_USEC", "30000000", 1);
    snprintf(self, sizeof self, "%d", (int)getpid());
    setenv("WATCHDOG_PID", self, 1);
    notify_init();
    CU_ASSERT_EQUAL(notify_watchdog_interval_ns(), INT64_C(15000000000));
    setenv("NOTIFY_SOCKET", manager.path, 1);
    setenv("WATCHDOG_USEC", "30000000", 1);
    setenv("WATCHDOG_PID", "1", 1); /* meant for another process */
    notify_init();
    CU_ASSERT_EQUAL(notify_watchdog_interval_ns(), 0);
    manager_close(&manager);
}

TESTS(T(each_state_is_one_message), T(no_child_can_speak_for_us),
      T(without_a_manager_every_call_is_harmless),
      T(the_watchdog_is_fed_twice_as_often_as_it_bites))
