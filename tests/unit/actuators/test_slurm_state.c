#include "remediation/actuators/slurm_drains.h"
#include "remediation/actuators/slurm_state.h"
#include "remediation/actuators/slurm_text.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

/* --- states --- */

TEST(a_state_is_a_base_and_flags_in_every_spelling)
{
    static const struct {
        const char *text;
        enum slurm_base base;
        unsigned flags;
    } ROWS[] = {
        {"IDLE", SLURM_BASE_IDLE, 0},
        {"IDLE+DRAIN", SLURM_BASE_IDLE, SLURM_DRAIN},
        {"ALLOCATED+DRAIN+NOT_RESPONDING", SLURM_BASE_ALLOCATED,
         SLURM_DRAIN | SLURM_NOT_RESPONDING},
        {"MIXED+COMPLETING", SLURM_BASE_MIXED, SLURM_COMPLETING},
        {"DOWN*", SLURM_BASE_DOWN, SLURM_NOT_RESPONDING},
        {"idle~", SLURM_BASE_IDLE, SLURM_POWER},
        {"idle#", SLURM_BASE_IDLE, SLURM_POWER},
        {"idle!", SLURM_BASE_IDLE, SLURM_POWER},
        {"idle%", SLURM_BASE_IDLE, SLURM_POWER},
        {"mixed@", SLURM_BASE_MIXED, SLURM_REBOOT},
        {"mixed^", SLURM_BASE_MIXED, SLURM_REBOOT},
        {"idle$", SLURM_BASE_IDLE, SLURM_MAINT},
        {"idle-", SLURM_BASE_IDLE, SLURM_PLANNED},
        {"allocated+", SLURM_BASE_ALLOCATED, SLURM_COMPLETING},
        {"drained*", SLURM_BASE_IDLE, SLURM_DRAIN | SLURM_NOT_RESPONDING},
        {"draining", SLURM_BASE_ALLOCATED, SLURM_DRAIN},
        {"IDLE+RESERVED+PLANNED", SLURM_BASE_IDLE, SLURM_RESERVED | SLURM_PLANNED},
        {"UNKNOWN+NOT_RESPONDING", SLURM_BASE_UNKNOWN, SLURM_NOT_RESPONDING},
        {"IDLE+SINGING", SLURM_BASE_IDLE, SLURM_STRANGE},
        {"", SLURM_BASE_UNKNOWN, SLURM_STRANGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        struct slurm_state state = slurm_state_parse(view_of(ROWS[i].text));
        CU_ASSERT_EQUAL(state.base, ROWS[i].base);
        CU_ASSERT_EQUAL(state.flags, ROWS[i].flags);
        if (state.flags != ROWS[i].flags || state.base != ROWS[i].base)
            printf("%s: base %d flags %x\n", ROWS[i].text, (int)state.base, state.flags);
    }
}

static bool drained(const char *text)
{
    return slurm_is_drained(slurm_state_parse(view_of(text)));
}

/* NVSentinel PR #919, soperator PR #2635: the way of a drain, in order. */
TEST(drained_is_drain_and_confirmed_to_hold_no_job)
{
    CU_ASSERT_FALSE(drained("MIXED+DRAIN"));
    CU_ASSERT_FALSE(drained("ALLOCATED+DRAIN"));
    CU_ASSERT_FALSE(drained("IDLE+COMPLETING+DRAIN"));
    CU_ASSERT(drained("IDLE+DRAIN"));
    CU_ASSERT(drained("DOWN+DRAIN"));
    CU_ASSERT_FALSE(drained("IDLE"));
    CU_ASSERT_FALSE(drained("DOWN"));
    CU_ASSERT_FALSE(drained("IDLE+DRAIN+NOT_RESPONDING"));
    CU_ASSERT_FALSE(drained("UNKNOWN+DRAIN"));
    CU_ASSERT_FALSE(drained("IDLE+DRAIN+SINGING"));
    CU_ASSERT_FALSE(drained(""));
}

TEST(ready_is_up_and_nothing_doubtful)
{
    static const char *const READY[] = {"IDLE",          "ALLOCATED",  "MIXED+PLANNED",
                                        "IDLE+RESERVED", "IDLE+DRAIN", "IDLE+CLOUD"};
    static const char *const NOT[] = {"DOWN",      "IDLE*",        "UNKNOWN", "IDLE+POWERED_DOWN",
                                      "IDLE+FAIL", "IDLE+INVAL",   "idle@",   "IDLE+MAINTENANCE",
                                      "FUTURE",    "IDLE+STRANGE", "ERROR",   ""};
    for (size_t i = 0; i < ARRAY_LEN(READY); i++)
        CU_ASSERT(slurm_is_ready(slurm_state_parse(view_of(READY[i]))));
    for (size_t i = 0; i < ARRAY_LEN(NOT); i++)
        CU_ASSERT_FALSE(slurm_is_ready(slurm_state_parse(view_of(NOT[i]))));
}

/* --- nodes --- */

#define NODE(state, reason)                                                                        \
    "NodeName=r1n01 Arch=x86_64 CoresPerSocket=1 \n"                                               \
    "   AvailableFeatures=rack1,nvl72,spare\n"                                                     \
    "   ActiveFeatures=rack1,nvl72\n"                                                              \
    "   Gres=gpu:gb300:4(S:0-1),nic:2\n"                                                           \
    "   OS=Linux 6.1 State=FUTURE #1 SMP\n"                                                        \
    "   State=" state " ThreadsPerCore=1 Weight=1 Owner=N/A\n"                                     \
    "   Partitions=train \n" reason "\n"

static struct slurm_node read_node(const char *text)
{
    struct view rest = view_of(text), record;
    struct slurm_node node;
    CU_ASSERT_FATAL(slurm_next_record(&rest, "NodeName=", &record));
    slurm_node_read(record, &node);
    return node;
}

TEST(a_node_is_read_from_what_scontrol_prints)
{
    struct slurm_node node = read_node(
        NODE("IDLE+DRAIN", "   Reason=fan swap, JIRA-12 [root@2026-12-01T04:15:01]\n"));
    CU_ASSERT_STRING_EQUAL(node.name, "r1n01");
    CU_ASSERT_STRING_EQUAL(node.reason, "fan swap, JIRA-12");
    CU_ASSERT_EQUAL(node.gpus, 4);
    CU_ASSERT_EQUAL(node.state.base, SLURM_BASE_IDLE);
    CU_ASSERT(slurm_has_feature(&node, "nvl72"));
    CU_ASSERT_FALSE(slurm_has_feature(&node, "spare")); /* available, not active */
    CU_ASSERT_FALSE(slurm_has_feature(&node, "nvl7"));
    slurm_node_done(&node);
}

TEST(a_reason_of_several_lines_forges_nothing)
{
    struct slurm_node node = read_node(
        NODE("DOWN", "   Reason=broken\n          State=IDLE NodeName=r9n09\n"
                     "          Reason=broom:INC-1 x [root@2026-12-01T04:15:01]\n"));
    CU_ASSERT_STRING_EQUAL(node.name, "r1n01");
    CU_ASSERT_STRING_EQUAL(node.reason, "broken");
    CU_ASSERT_EQUAL(node.state.base, SLURM_BASE_DOWN);
    slurm_node_done(&node);
}

TEST(gpus_are_counted_over_all_their_entries)
{
    static const struct {
        const char *gres;
        int gpus;
    } ROWS[] = {{"gpu:4", 4},
                {"gpu:gb300:4(S:0-1,3)", 4},
                {"gpu:a:2,gpu:b:2,nic:8", 4},
                {"(null)", 0},
                {"gpus:9", 0},
                {"gpu", 1},
                {"nic:4", 0},
                {"gpu:gb300:4(IDX:0-3)", 4}};
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        AUTO_TEXT text = {0};
        text_addf(&text, "NodeName=a\n   Gres=%s\n   State=IDLE\n\n", ROWS[i].gres);
        struct slurm_node node = read_node(text.bytes);
        CU_ASSERT_EQUAL(node.gpus, ROWS[i].gpus);
        slurm_node_done(&node);
    }
}

static bool cordoned(const char *text)
{
    struct slurm_node node = read_node(text);
    bool answer = slurm_is_cordoned(&node);
    slurm_node_done(&node);
    return answer;
}

TEST(a_node_is_cordoned_by_a_drain_or_by_a_person_who_set_it_down)
{
    CU_ASSERT(cordoned(NODE("ALLOCATED+DRAIN", "")));
    CU_ASSERT(cordoned(NODE("IDLE+FAIL", "")));
    CU_ASSERT(cordoned(NODE("DOWN", "   Reason=bad riser [root@2026-12-01T04:15:01]\n")));
    CU_ASSERT_FALSE(cordoned(NODE("DOWN*", "   Reason=Not responding [slurm@2026-12-01T04:15]\n")));
    CU_ASSERT_FALSE(cordoned(NODE("IDLE", "   Reason=a note [root@2026-12-01T04:15:01]\n")));
}

static void check_incident(const char *reason, const char *expected)
{
    CU_ASSERT(view_equals(slurm_reason_incident(reason), expected));
}

TEST(only_a_reason_with_our_prefix_and_a_whole_reference_is_ours)
{
    check_incident("broom:INC-3 slow of tray r1n02: cordon", "INC-3");
    check_incident("broom:INC-12", "INC-12");
    check_incident("broom:INC-3: x", "");
    check_incident("broom:INC-x", "");
    check_incident("Broom:INC-3 x", "");
    check_incident("not broom:INC-3 x", "");
    check_incident("broom: sweep under rack", "");
    check_incident("", "");
}

/* --- jobs --- */

static const char JOB[] =
    "JobId=12 JobName=lr=0.1 JobState run\n"
    "   UserId=alice(1000) GroupId=users(100) MCS_label=N/A\n"
    "   Priority=0 Nice=0 Account=(null) QOS=(null)\n"
    "   JobState=PENDING Reason=job_requeued_in_held_state Dependency=(null)\n"
    "   Requeue=1 Restarts=2 BatchFlag=1 Reboot=0 ExitCode=0:0\n"
    "   SubmitTime=2026-12-01T04:15:03 EligibleTime=2026-12-01T04:15:09\n"
    "   ReqNodeList=r1n[01,03] ExcNodeList=(null)\n"
    "   NodeList=\n"
    "   NumNodes=4-4 NumCPUs=16 NumTasks=16 CPUs/Task=1 ReqB:S:C:T=0:0:*:*\n"
    "   Reservation=broom-job-12\n"
    "   AdminComment=seen by ops broom:INC-3/1/4/1 restarts=1 nodes=r1n[01-04] \n"
    "   Power=\n\n";

TEST(a_job_is_read_from_what_scontrol_prints)
{
    struct view rest = view_of(JOB), record;
    struct slurm_job job;
    struct slurm_mark mark;
    CU_ASSERT_FATAL(slurm_next_record(&rest, "JobId=", &record));
    slurm_job_read(record, &job);
    CU_ASSERT_STRING_EQUAL(job.id, "12");
    CU_ASSERT_STRING_EQUAL(job.user, "alice");
    CU_ASSERT_STRING_EQUAL(job.state, "PENDING");
    CU_ASSERT_STRING_EQUAL(job.nodes, "");
    CU_ASSERT_STRING_EQUAL(job.required_nodes, "r1n[01,03]");
    CU_ASSERT_STRING_EQUAL(job.excluded_nodes, "");
    CU_ASSERT_EQUAL(job.restarts, 2);
    CU_ASSERT_EQUAL(job.tasks, 16);
    CU_ASSERT_EQUAL(job.node_count, 4);
    CU_ASSERT(job.is_batch && job.may_requeue);
    CU_ASSERT(slurm_job_is_held(&job));
    CU_ASSERT(slurm_mark_read(job.admin_comment, &mark));
    CU_ASSERT_STRING_EQUAL(mark.operation_id, "INC-3/1/4/1");
    CU_ASSERT_EQUAL(mark.restarts, 1);
    CU_ASSERT(view_equals(mark.nodes, "r1n[01-04]"));
    slurm_job_done(&job);
}

TEST(a_mark_takes_the_place_of_the_one_before_and_leaves_the_rest)
{
    AUTO_TEXT out = {0};
    struct slurm_mark mark;
    slurm_mark_write(&out, "", "INC-3/1/4/1", 0, "");
    CU_ASSERT_STRING_EQUAL(out.bytes, "broom:INC-3/1/4/1 restarts=0");
    text_clear(&out);
    slurm_mark_write(&out, "seen by ops broom:INC-3/1/4/1 restarts=0 nodes=a", "INC-9/1/4/2", 1,
                     "r1n[01-04]");
    CU_ASSERT_STRING_EQUAL(out.bytes, "seen by ops broom:INC-9/1/4/2 restarts=1 nodes=r1n[01-04]");
    CU_ASSERT_FALSE(slurm_mark_read("", &mark));
    CU_ASSERT_FALSE(slurm_mark_read("broom:INC-3/1/4/1", &mark));
    CU_ASSERT_FALSE(slurm_mark_read("broom:INC-3/1/4/1 restarts=x", &mark));
    CU_ASSERT_FALSE(slurm_mark_read("xbroom:INC-3/1/4/1 restarts=1", &mark));
}

TEST(config_lines_are_found_by_their_whole_key)
{
    struct view config = view_of("Configuration data as of 2026-12-01T04:15:01\n"
                                 "BOOT_TIME               = 2026-12-01T04:14:40\n"
                                 "ClusterName             = lab\n");
    CU_ASSERT(view_equals(slurm_config_value(config, "BOOT_TIME"), "2026-12-01T04:14:40"));
    CU_ASSERT(view_equals(slurm_config_value(config, "ClusterName"), "lab"));
    CU_ASSERT(view_equals(slurm_config_value(config, "Cluster"), ""));
    CU_ASSERT(view_equals(slurm_config_value(config, "NoSuch"), ""));
}

/* --- lost drains --- */

static void judge(struct slurm_drains *drains, const char *node_text, const char *boot)
{
    struct slurm_node node = read_node(node_text);
    slurm_drains_judge(drains, node.name, &node, view_of(boot));
    slurm_node_done(&node);
}

#define OURS "   Reason=broom:INC-1 slow [root@2026-12-01T04:15:01]\n"

TEST(a_drain_is_lost_only_when_slurmctld_was_restarted_without_it)
{
    struct slurm_drains drains = {0};
    judge(&drains, NODE("IDLE+DRAIN", OURS), "boot-1"); /* found standing: learned */
    CU_ASSERT_EQUAL(drains.count, 1);
    judge(&drains, NODE("IDLE", ""), "boot-2");
    CU_ASSERT_FATAL(drains.count == 1 && drains.items[0].is_lost);
    judge(&drains, NODE("IDLE", ""), "boot-2"); /* not made again yet */
    CU_ASSERT_FATAL(drains.count == 1 && drains.items[0].is_lost);
    slurm_drains_add(&drains, "r1n01", "broom:INC-1 slow", view_of("boot-2"));
    judge(&drains, NODE("IDLE", ""), "boot-2"); /* a person's resume is not fought */
    CU_ASSERT_EQUAL(drains.count, 0);
    slurm_drains_done(&drains);
}

TEST(a_node_that_a_person_took_over_or_that_is_gone_is_forgotten)
{
    struct slurm_drains drains = {0};
    slurm_drains_add(&drains, "r1n01", "broom:INC-1 slow", view_of("boot-1"));
    judge(&drains, NODE("IDLE+DRAIN", "   Reason=ops [root@2026-12-01T04:15:01]\n"), "boot-2");
    CU_ASSERT_EQUAL(drains.count, 0);
    slurm_drains_add(&drains, "r1n01", "broom:INC-1 slow", view_of("boot-1"));
    judge(&drains, NODE("DOWN", "   Reason=riser [root@2026-12-01T04:15:01]\n"), "boot-2");
    CU_ASSERT_EQUAL(drains.count, 0);
    slurm_drains_add(&drains, "r1n01", "broom:INC-1 slow", view_of("boot-1"));
    slurm_drains_judge(&drains, "r1n01", NULL, view_of("boot-2"));
    CU_ASSERT_EQUAL(drains.count, 0);
    slurm_drains_done(&drains);
}

TEST(any_text_is_read_without_harm)
{
    static const char ALPHABET[] = "aA=\n \0[]+(),:-0189NodeName=State=Reason=JobId=";
    uint64_t state = test_seed();
    for (int round = 0; round < test_rounds(3000); round++) {
        char bytes[200];
        size_t length = test_random(&state) % sizeof bytes;
        for (size_t i = 0; i < length; i++)
            bytes[i] = ALPHABET[test_random(&state) % (sizeof ALPHABET - 1)];
        AUTO_TEXT text = {0};
        text_add(&text, round % 2 == 0 ? "NodeName=" : "JobId=");
        text_add_bytes(&text, bytes, length);
        struct view rest = {text.bytes, text.length}, record;
        while (slurm_next_record(&rest, round % 2 == 0 ? "NodeName=" : "JobId=", &record)) {
            struct slurm_node node;
            struct slurm_job job;
            slurm_node_read(record, &node);
            slurm_job_read(record, &job);
            CU_ASSERT_FALSE(slurm_is_ready(node.state) && (node.state.flags & SLURM_STRANGE) != 0);
            slurm_node_done(&node);
            slurm_job_done(&job);
        }
    }
}

TESTS(T(a_state_is_a_base_and_flags_in_every_spelling),
      T(drained_is_drain_and_confirmed_to_hold_no_job), T(ready_is_up_and_nothing_doubtful),
      T(a_node_is_read_from_what_scontrol_prints), T(a_reason_of_several_lines_forges_nothing),
      T(gpus_are_counted_over_all_their_entries),
      T(a_node_is_cordoned_by_a_drain_or_by_a_person_who_set_it_down),
      T(only_a_reason_with_our_prefix_and_a_whole_reference_is_ours),
      T(a_job_is_read_from_what_scontrol_prints),
      T(a_mark_takes_the_place_of_the_one_before_and_leaves_the_rest),
      T(config_lines_are_found_by_their_whole_key),
      T(a_drain_is_lost_only_when_slurmctld_was_restarted_without_it),
      T(a_node_that_a_person_took_over_or_that_is_gone_is_forgotten),
      T(any_text_is_read_without_harm))
