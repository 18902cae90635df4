#include "controller/config/config.h"
#include "controller/config/yaml.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct rig {
    char folder[32];
    char path[64];
    struct config *config;
    struct text findings;
    struct error error;
};

static void rig_open(struct rig *rig)
{
    *rig = (struct rig){.folder = "/tmp/broom_test_XXXXXX"};
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(rig->folder));
    snprintf(rig->path, sizeof rig->path, "%s/broomd.yaml", rig->folder);
    text_add(&rig->findings, "");
}

static void rig_close(struct rig *rig)
{
    config_free(rig->config);
    text_done(&rig->findings);
    unlink(rig->path);
    rmdir(rig->folder);
}

static enum status load(struct rig *rig, const char *yaml, const char *const *overrides,
                        size_t count)
{
    FILE *file = fopen(rig->path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(yaml, file);
    fclose(file);
    config_free(TAKE(rig->config));
    text_clear(&rig->findings);
    return config_load(rig->path, true, overrides, count, &rig->config, &rig->findings,
                       &rig->error);
}

static bool found(const struct rig *rig, const char *finding)
{
    AUTO_TEXT line = {0};
    text_addf(&line, "%s%s", rig->path, finding);
    return strstr(rig->findings.bytes, line.bytes) != NULL;
}

TEST(without_a_file_every_option_has_its_default)
{
    struct config *config = NULL;
    AUTO_TEXT findings = {0};
    struct error error;
    CU_ASSERT_EQUAL_FATAL(
        config_load("/nowhere/broomd.yaml", false, NULL, 0, &config, &findings, &error), OK);
    CU_ASSERT_STRING_EQUAL(config->data_dir, "/var/lib/broomwagon");
    CU_ASSERT_STRING_EQUAL(config->listen_api, "127.0.0.1:7430");
    CU_ASSERT_STRING_EQUAL(config->listen_health, "127.0.0.1:7431");
    CU_ASSERT_EQUAL(config->mode, MODE_OBSERVE);
    CU_ASSERT_EQUAL(config->body_bytes, 16 << 20);
    CU_ASSERT_STRING_EQUAL(config->actuator_kind, "dry_run");
    config_free(config);
    CU_ASSERT_NOT_EQUAL(
        config_load("/nowhere/broomd.yaml", true, NULL, 0, &config, &findings, &error), OK);
    CU_ASSERT(strstr(error.message, "/nowhere/broomd.yaml") != NULL);
}

TEST(values_are_read_by_their_type)
{
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL_FATAL(load(&rig,
                               "mode: approve\nlimits: {body_bytes: 1MiB, connections: 7}\n"
                               "recorder:\n  enabled: false\ndetection: {min_slowdown: 0.1}\n"
                               "auth:\n  admin_uids: [1000, 1001]\nretention: {events: 30d}\n"
                               "listen: {api: \"[::1]:9000\", health: ''}\n",
                               NULL, 0),
                          OK);
    CU_ASSERT_EQUAL(rig.config->mode, MODE_APPROVE);
    CU_ASSERT_EQUAL(rig.config->body_bytes, 1048576);
    CU_ASSERT_EQUAL(rig.config->connections, 7);
    CU_ASSERT_FALSE(rig.config->recorder_enabled);
    CU_ASSERT_DOUBLE_EQUAL(rig.config->min_slowdown, 0.1, 1e-12);
    CU_ASSERT_EQUAL(rig.config->auth_admin_uids.count, 2);
    CU_ASSERT_STRING_EQUAL(rig.config->auth_admin_uids.items[1], "1001");
    CU_ASSERT_EQUAL(rig.config->retention_events_ns, INT64_C(30) * 86400 * 1000000000);
    CU_ASSERT_STRING_EQUAL(rig.config->listen_api, "[::1]:9000");
    CU_ASSERT_STRING_EQUAL(rig.config->listen_health, "");
    rig_close(&rig);
}

TEST(every_mistake_of_a_file_is_told_at_its_place)
{
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL(load(&rig,
                         "mod: observe\n"
                         "limits:\n"
                         "  body_bytes: lots\n"
                         "  conections: 7\n"
                         "  connections: 0\n"
                         "  connections: 8\n"
                         "recorder: {enabled: yes}\n"
                         "listen: {api: 'broomd.example:7430'}\n"
                         "mode: enforced\n"
                         "retention: {events: 5}\n"
                         "tls: [a]\n"
                         "auth: {admin_uids: [{a: b}]}\n",
                         NULL, 0),
                    ERR_INVALID);
    CU_ASSERT(found(&rig, ":1:1: error: unknown option 'mod'; did you mean 'mode'? [unknown-key]"));
    CU_ASSERT(
        found(&rig, ":3:15: error: 'limits.body_bytes' must be a size such as 64MiB, not 'lots'"));
    CU_ASSERT(found(
        &rig,
        ":4:3: error: unknown option 'limits.conections'; did you mean 'limits.connections'?"));
    CU_ASSERT(found(&rig, ":5:16: error: 'limits.connections' must be from 1 to 60000"));
    CU_ASSERT(found(&rig, ":6:3: error: key 'connections' stands twice"));
    CU_ASSERT(found(&rig, ":7:21: error: 'recorder.enabled' must be true or false, not 'yes'"));
    CU_ASSERT(found(&rig, ":8:15: error: 'listen.api' must be such as 127.0.0.1:7430"));
    CU_ASSERT(found(
        &rig, ":9:7: error: 'mode' must be one of observe, approve, enforce, not 'enforced'"));
    CU_ASSERT(
        found(&rig, ":10:21: error: 'retention.events' must be a duration such as 10m, not '5'"));
    CU_ASSERT(found(&rig, ":11:"));
    CU_ASSERT(found(&rig, ":12:"));
    CU_ASSERT(strstr(rig.error.message, "11 errors") != NULL);
    rig_close(&rig);
}

TEST(the_command_line_comes_last_and_names_the_near_option)
{
    struct rig rig;
    rig_open(&rig);
    const char *const overrides[] = {"mode=approve", "limits.jobs=3", "limits.jobs=4"};
    CU_ASSERT_EQUAL_FATAL(load(&rig, "mode: observe\n", overrides, 3), OK);
    CU_ASSERT_EQUAL(rig.config->mode, MODE_APPROVE);
    CU_ASSERT_EQUAL(rig.config->jobs, 4);
    const char *const unknown[] = {"limit.jobs=3"};
    CU_ASSERT_EQUAL(load(&rig, "mode: observe\n", unknown, 1), ERR_INVALID);
    CU_ASSERT(strstr(rig.error.message, "did you mean 'limits.jobs'?") != NULL);
    const char *const shapeless[] = {"mode"};
    CU_ASSERT_EQUAL(load(&rig, "mode: observe\n", shapeless, 1), ERR_INVALID);
    rig_close(&rig);
}

static enum status check(const char *const *overrides, size_t count, struct error *reterr)
{
    AUTO(config_free) struct config *config = NULL;
    AUTO_TEXT findings = {0};
    return config_load(NULL, false, overrides, count, &config, &findings, reterr);
}

TEST(enforce_off_the_loopback_needs_tls_and_identities)
{
    struct error error;
    const char *const bare[] = {"listen.api=0.0.0.0:7430", "mode=enforce"};
    CU_ASSERT_EQUAL(check(bare, 2, &error), ERR_REFUSED);
    CU_ASSERT(strstr(error.message, "tls.certificate") != NULL);
    const char *const tokens_alone[] = {"listen.api=0.0.0.0:7430", "mode=enforce",
                                        "auth.tokens=/t"};
    CU_ASSERT_EQUAL(check(tokens_alone, 3, &error), ERR_REFUSED);
    const char *const tls_alone[] = {"listen.api=0.0.0.0:7430", "mode=enforce",
                                     "tls.certificate=/c", "tls.key=/k"};
    CU_ASSERT_EQUAL(check(tls_alone, 4, &error), ERR_REFUSED);
    const char *const both[] = {"listen.api=0.0.0.0:7430", "mode=enforce", "tls.certificate=/c",
                                "tls.key=/k", "auth.tokens=/t"};
    CU_ASSERT_EQUAL(check(both, 5, &error), OK);
    const char *const observing[] = {"listen.api=0.0.0.0:7430", "mode=observe"};
    CU_ASSERT_EQUAL(check(observing, 2, &error), OK);
    const char *const local[] = {"listen.api=127.0.0.1:7430", "mode=enforce"};
    CU_ASSERT_EQUAL(check(local, 2, &error), OK);
}

TEST(options_that_belong_together_are_checked_together)
{
    struct error error;
    const char *const no_key[] = {"tls.certificate=/c"};
    CU_ASSERT_EQUAL(check(no_key, 1, &error), ERR_INVALID);
    const char *const no_certificate[] = {"tls.client_ca=/ca"};
    CU_ASSERT_EQUAL(check(no_certificate, 1, &error), ERR_INVALID);
    const char *const no_url[] = {"actuator.kind=rehearsal"};
    CU_ASSERT_EQUAL(check(no_url, 1, &error), ERR_INVALID);
    CU_ASSERT(strstr(error.message, "actuator.url") != NULL);
    const char *const unsigned_webhook[] = {"webhook.url=https://repair.example.com"};
    CU_ASSERT_EQUAL(check(unsigned_webhook, 1, &error), ERR_INVALID);
    CU_ASSERT(strstr(error.message, "webhook.secret") != NULL);
    const char *const no_webhook[] = {"actuator.kind=webhook"};
    CU_ASSERT_EQUAL(check(no_webhook, 1, &error), ERR_INVALID);
    const char *const webhook[] = {"actuator.kind=webhook",
                                   "webhook.url=https://repair.example.com", "webhook.secret=/s"};
    CU_ASSERT_EQUAL(check(webhook, 3, &error), OK);
}

TEST(a_reload_tells_what_needs_a_restart)
{
    AUTO(config_free) struct config *old = config_new(), *fresh = config_new();
    struct error error;
    AUTO_TEXT names = {0};
    CU_ASSERT_FALSE(config_needs_restart(old, fresh, &names));
    CU_ASSERT_EQUAL(config_set(fresh, "mode=approve", &error), OK);
    CU_ASSERT_EQUAL(config_set(fresh, "auth.admin_uids=1,2", &error), OK);
    CU_ASSERT_FALSE(config_needs_restart(old, fresh, &names));
    CU_ASSERT_EQUAL(config_set(fresh, "listen.api=127.0.0.1:1", &error), OK);
    CU_ASSERT_EQUAL(config_set(fresh, "actuator.kind=rehearsal", &error), OK);
    CU_ASSERT(config_needs_restart(old, fresh, &names));
    CU_ASSERT_STRING_EQUAL(names.bytes, "listen.api, actuator.kind");
    config_take_reloadable(old, fresh);
    CU_ASSERT_EQUAL(old->mode, MODE_APPROVE);
    CU_ASSERT_EQUAL(old->auth_admin_uids.count, 2);
    CU_ASSERT_STRING_EQUAL(old->listen_api, "127.0.0.1:7430");
}

TEST(the_example_is_current_and_reads_back_as_the_defaults)
{
    AUTO_TEXT example = {0};
    config_print_example(&example);
    AUTO_FREE char *shipped = test_read_file(BROOM_SOURCE_DIR "/deploy/broomd.example.yaml");
    CU_ASSERT_PTR_NOT_NULL_FATAL(shipped);
    /* To renew it: build/broomd --print-example > deploy/broomd.example.yaml */
    CU_ASSERT_STRING_EQUAL(shipped, example.bytes);
    struct rig rig;
    rig_open(&rig);
    CU_ASSERT_EQUAL_FATAL(load(&rig, example.bytes, NULL, 0), OK);
    AUTO(config_free) struct config *defaults = config_new();
    AUTO_TEXT names = {0};
    CU_ASSERT_FALSE(config_needs_restart(defaults, rig.config, &names));
    CU_ASSERT_EQUAL(rig.config->retention_events_ns, defaults->retention_events_ns);
    rig_close(&rig);
}

TEST(help_names_every_option_of_the_example)
{
    AUTO_TEXT help = {0}, example = {0};
    config_print_help(&help);
    config_print_example(&example);
    struct yaml_document document;
    struct findings findings = {0};
    yaml_parse((struct view){example.bytes, example.length}, &document, &findings);
    CU_ASSERT_PTR_NOT_NULL_FATAL(document.root);
    for (const struct tree_node *node = document.root->first; node != NULL; node = node->next) {
        for (const struct tree_node *member = node->first; member != NULL; member = member->next) {
            AUTO_TEXT name = {0};
            text_addf(&name, "  %s.%s ", node->key, member->key);
            CU_ASSERT(strstr(help.bytes, name.bytes) != NULL);
        }
    }
    yaml_done(&document);
    findings_done(&findings);
}

TEST(only_local_addresses_are_loopback)
{
    CU_ASSERT(config_is_loopback("127.0.0.1:7430") && config_is_loopback("[::1]:7430") &&
              config_is_loopback(""));
    CU_ASSERT(config_is_loopback("127.9.9.9:1") && config_is_loopback("localhost:7430"));
    CU_ASSERT_FALSE(config_is_loopback("0.0.0.0:7430") || config_is_loopback("[::]:7430"));
    CU_ASSERT_FALSE(config_is_loopback("10.0.0.1:7430") ||
                    config_is_loopback("[::ffff:10.0.0.1]:7430"));
}

TESTS(T(without_a_file_every_option_has_its_default), T(values_are_read_by_their_type),
      T(every_mistake_of_a_file_is_told_at_its_place),
      T(the_command_line_comes_last_and_names_the_near_option),
      T(enforce_off_the_loopback_needs_tls_and_identities),
      T(options_that_belong_together_are_checked_together), T(a_reload_tells_what_needs_a_restart),
      T(the_example_is_current_and_reads_back_as_the_defaults),
      T(help_names_every_option_of_the_example), T(only_local_addresses_are_loopback))
