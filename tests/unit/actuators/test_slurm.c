/* The actuator against tools that answer as told: a script stands for scontrol and scancel. What a
 * real Slurm does is tried in tests/e2e/test_slurm_actuator.py; here is what one cannot bring
 * about. */
#include "controller/sys/clock.h"
#include "remediation/actuators/slurm.h"
#include "tests/harness/test.h"
#include "tests/harness/world.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Answers from files beside it: KEY.once before KEY; KEY.err.once and KEY.err fail. */
static const char SCRIPT[] = "#!/bin/sh\n"
                             "dir=${0%/*}\n"
                             "case $1 in\n"
                             "show) key=show_$2 ;;\n"
                             "update|create|delete) key=$1_${2%%=*} ;;\n"
                             "--*) key=scancel ;;\n"
                             "*) key=$1 ;;\n"
                             "esac\n"
                             "echo \"$*\" >>$dir/calls\n"
                             "echo \"$SLURM_CONF $SLURM_JWT\" >>$dir/environment\n"
                             "for try in $key.err.once $key.once $key.err $key; do\n"
                             "  [ -e $dir/$try ] || continue\n"
                             "  case $try in\n"
                             "  *.err*) cat $dir/$try >&2 ;;\n"
                             "  *) cat $dir/$try ;;\n"
                             "  esac\n"
                             "  case $try in *.once) rm $dir/$try ;; esac\n"
                             "  case $try in *.err*) exit 1 ;; esac\n"
                             "  exit 0\n"
                             "done\n";

struct bench {
    struct loop *loop;
    struct actuator *actuator;
    char folder[64], tool[80], token[80];
    int answers, wanted;
    struct action_result result;
    char reason[512];
    struct world *world;
};

static void put(struct bench *bench, const char *name, const char *text)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", bench->folder, name);
    FILE *file = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
}

static char *calls(const struct bench *bench, const char *name)
{
    char path[160];
    snprintf(path, sizeof path, "%s/%s", bench->folder, name);
    char *text = test_read_file(path);
    return text != NULL ? text : xstrdup("");
}

static void forget_calls(const struct bench *bench)
{
    char path[160];
    snprintf(path, sizeof path, "%s/calls", bench->folder);
    unlink(path);
}

static int count(const char *text, const char *what)
{
    int found = 0;
    for (const char *at = text; (at = strstr(at, what)) != NULL; at += strlen(what))
        found++;
    return found;
}

static int count_calls(const struct bench *bench, const char *what)
{
    AUTO_FREE char *text = calls(bench, "calls");
    return count(text, what);
}

#define NODE(name, state, more)                                                                    \
    "NodeName=" name " Arch=x86_64\n"                                                              \
    "   ActiveFeatures=rack7,nvl72\n   Gres=gpu:4\n   State=" state " Weight=1\n" more "\n"
#define OURS "   Reason=broom:INC-1 a test [root@2026-12-01T04:15:01]\n"
#define CONF "BOOT_TIME               = 2026-12-01T04:14:40\nClusterName             = lab\n"
#define NODES                                                                                      \
    NODE("r1n01", "ALLOCATED", "") NODE("r1n02", "ALLOCATED", "") NODE("r1n17", "IDLE", "")

static const char JOB_TEXT[] = "JobId=12 JobName=train\n"
                               "   UserId=alice(1000) GroupId=users(100)\n"
                               "   JobState=%s Reason=%s Dependency=(null)\n"
                               "   Requeue=1 Restarts=%d BatchFlag=1 Reboot=0\n"
                               "   SubmitTime=2026-12-01T04:15:03\n"
                               "   ReqNodeList=(null) ExcNodeList=(null)\n"
                               "   NodeList=%s\n"
                               "   NumNodes=2 NumCPUs=8 NumTasks=8 CPUs/Task=1\n"
                               "%s   Power=\n\n";

static void put_job(struct bench *bench, const char *state, const char *reason, int restarts,
                    const char *more)
{
    char text[1024];
    const char *nodes = strcmp(state, "RUNNING") == 0 ? "r1n[01-02]" : "";
    snprintf(text, sizeof text, JOB_TEXT, state, reason, restarts, nodes, more);
    put(bench, "show_job", text);
}

static void bench_open(struct bench *bench)
{
    *bench = (struct bench){.loop = loop_new()};
    snprintf(bench->folder, sizeof bench->folder, "/tmp/broom-slurm-unit-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(bench->folder));
    snprintf(bench->tool, sizeof bench->tool, "%s/tool", bench->folder);
    snprintf(bench->token, sizeof bench->token, "%s/token", bench->folder);
    put(bench, "tool", SCRIPT);
    put(bench, "token", "secret-1\n");
    chmod(bench->tool, 0755);
    put(bench, "show_config", CONF);
    put(bench, "show_node", NODES);
    put(bench, "show_topology", "SwitchName=rack1 Level=0 LinkSpeed=1 Nodes=r1n[01-02,17]\n");
    put(bench, "show_reservation", "No reservations in the system\n");
    put_job(bench, "RUNNING", "None", 0, "");
    struct slurm_params params = {.scontrol = bench->tool,
                                  .scancel = bench->tool,
                                  .conf = "/etc/there.conf",
                                  .token_file = bench->token};
    bench->actuator = slurm_new(bench->loop, NULL, &params);
}

static void bench_close(struct bench *bench)
{
    bench->actuator->free(bench->actuator->self);
    loop_free(bench->loop);
    world_free(bench->world);
    DIR *folder = opendir(bench->folder);
    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", bench->folder, entry->d_name);
        unlink(path);
    }
    closedir(folder);
    CU_ASSERT_EQUAL(rmdir(bench->folder), 0);
}

static void on_done(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    bench->result = *result;
    text_copy(bench->reason, sizeof bench->reason, result->reason);
    if (++bench->answers >= bench->wanted)
        loop_stop(bench->loop);
}

static void on_world(void *context, const struct world *world)
{
    struct bench *bench = context;
    world_free(bench->world);
    bench->world = world_copy(world);
    loop_stop(bench->loop);
}

static const char *const LEAVE[] = {"r1n02"}, *const SPARE[] = {"r1n17"};
static const char WORKLOAD[] = "{\"kind\":\"slurm\",\"cluster\":\"lab\",\"job_id\":12}";

static struct action action_of(enum verb verb)
{
    return (struct action){.operation_id = "INC-1/1/4/1",
                           .verb = verb,
                           .incident_ref = "INC-1",
                           .job = "train",
                           .workload_json = WORKLOAD,
                           .nodes = LEAVE,
                           .node_count = 1,
                           .reason = "broom:INC-1 a test"};
}

static void run_action(struct bench *bench, bool polls, const struct action *action)
{
    bench->wanted = bench->answers + 1;
    if (polls)
        bench->actuator->poll(bench->actuator->self, action, on_done, bench);
    else
        bench->actuator->start(bench->actuator->self, action, on_done, bench);
    loop_run(bench->loop);
}

static void check(struct bench *bench, bool polls, struct action action, enum outcome outcome,
                  enum poll_state poll, const char *words)
{
    run_action(bench, polls, &action);
    bool is_good = bench->result.outcome == outcome && bench->result.poll == poll &&
                   strstr(bench->reason, words) != NULL;
    CU_ASSERT(is_good);
    if (!is_good)
        printf("%s, poll %d: %s\n", outcome_name(bench->result.outcome), (int)bench->result.poll,
               bench->reason);
}

enum { START = 0, POLL = 1 };

static const struct world_job *describe(struct bench *bench)
{
    struct job_question job = {"train", WORKLOAD, 8, 4};
    struct world_question question = {&job, 1};
    bench->actuator->describe(bench->actuator->self, &question, on_world, bench);
    loop_run(bench->loop);
    return bench->world->known ? world_find_job(bench->world, "train") : NULL;
}

static void check_unknown(struct bench *bench, const char *words)
{
    describe(bench);
    CU_ASSERT_FALSE(bench->world->known);
    CU_ASSERT_PTR_NOT_NULL(strstr(bench->world->reason, words));
    if (strstr(bench->world->reason, words) == NULL)
        printf("%s\n", bench->world->reason);
}

/* --- the world --- */

TEST(what_slurm_does_not_tell_whole_is_no_world)
{
    struct bench bench;
    bench_open(&bench);
    put(&bench, "show_node.err", "slurm_load_node error: Unable to contact slurm controller\n");
    check_unknown(&bench, "Unable to contact");
    put(&bench, "show_node.err", "");
    check_unknown(&bench, "without a word");
    char path[160];
    snprintf(path, sizeof path, "%s/show_node.err", bench.folder);
    unlink(path);
    put(&bench, "show_node", "");
    check_unknown(&bench, "no nodes");
    put(&bench, "show_node", NODE("r1n01", "IDLE", "") "NodeName=r1n02 Arch=x86_64\n   State=ID");
    check_unknown(&bench, "cut");
    put(&bench, "show_node", NODE("r1n01", "UNKNOWN", "") NODE("r1n02", "UNKNOWN*", ""));
    check_unknown(&bench, "just started");
    put(&bench, "show_node", NODES);
    put(&bench, "show_job.err", "slurm_load_jobs error: Socket timed out on send/recv operation\n");
    check_unknown(&bench, "Socket timed out");
    put(&bench, "show_job.err", "slurm_load_jobs error: Invalid job id specified\n");
    const struct world_job *job = describe(&bench);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    CU_ASSERT_STRING_EQUAL(job->phase, "unknown"); /* never "gone" */
    CU_ASSERT_PTR_NOT_NULL(strstr(job->restart_refusal, "no job 12"));
    bench_close(&bench);
}

TEST(racks_come_from_leaf_switches_or_blocks_and_without_them_from_a_feature)
{
    struct bench bench;
    bench_open(&bench);
    describe(&bench);
    CU_ASSERT_STRING_EQUAL(world_find_node(bench.world, "r1n17")->rack, "rack1");
    put(&bench, "show_topology", "BlockName=b3 BlockIndex=2 Nodes=r1n[01-02] BlockSize=18\n");
    describe(&bench);
    CU_ASSERT_STRING_EQUAL(world_find_node(bench.world, "r1n01")->rack, "b3");
    CU_ASSERT_STRING_EQUAL(world_find_node(bench.world, "r1n17")->rack, "rack7");
    put(&bench, "show_topology.err", "No topology information available\n");
    describe(&bench);
    CU_ASSERT_STRING_EQUAL(world_find_node(bench.world, "r1n01")->rack, "rack7");
    bench_close(&bench);
}

/* ArjunaCluster/ArjunaUsers#63. */
TEST(a_launch_that_failed_is_told_with_the_node_that_slurm_took_out)
{
    struct bench bench;
    bench_open(&bench);
    put_job(&bench, "PENDING", "launch_failed_requeued_held", 1, "");
    put(&bench, "show_node",
        NODES NODE("r1n05", "IDLE+DRAIN", "   Reason=Prolog error [slurm@2026-12-01T04:15:01]\n"));
    const struct world_job *job = describe(&bench);
    CU_ASSERT_PTR_NOT_NULL_FATAL(job);
    CU_ASSERT_STRING_EQUAL(job->phase, "restarting");
    CU_ASSERT_PTR_NULL(job->restart_refusal);
    CU_ASSERT_PTR_NOT_NULL(strstr(job->waiting_for, "launch_failed_requeued_held"));
    CU_ASSERT_PTR_NOT_NULL(strstr(job->waiting_for, "r1n05 ('Prolog error')"));
    bench_close(&bench);
}

TEST(phases_follow_slurms_words)
{
    static const struct {
        const char *state, *reason, *phase;
        int restarts;
        const char *more;
    } ROWS[] = {
        {"RUNNING", "None", "running", 0, ""},
        {"PENDING", "Resources", "pending", 0, ""},
        {"PENDING", "BeginTime", "restarting", 1, ""},
        {"COMPLETING", "None", "unknown", 1, ""},
        {"COMPLETING", "None", "restarting", 1, "   AdminComment=broom:INC-1/1/4/1 restarts=0 \n"},
        {"CONFIGURING", "None", "pending", 0, ""},
        {"COMPLETED", "None", "finished", 0, ""},
        {"NODE_FAIL", "None", "failed", 0, ""},
        {"CANCELLED", "None", "failed", 0, ""},
        {"OUT_OF_MEMORY", "None", "failed", 0, ""},
        {"SUSPENDED", "None", "unknown", 0, ""},
        {"SINGING", "None", "unknown", 0, ""},
    };
    struct bench bench;
    bench_open(&bench);
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        put_job(&bench, ROWS[i].state, ROWS[i].reason, ROWS[i].restarts, ROWS[i].more);
        const struct world_job *job = describe(&bench);
        CU_ASSERT_PTR_NOT_NULL_FATAL(job);
        CU_ASSERT_STRING_EQUAL(job->phase, ROWS[i].phase);
        CU_ASSERT_EQUAL(job->rank_count, i == 0 ? 8 : 0);
    }
    bench_close(&bench);
}

TEST(the_token_is_read_anew_for_each_call_and_its_lack_is_no_world)
{
    struct bench bench;
    bench_open(&bench);
    describe(&bench);
    put(&bench, "token", "secret-2");
    describe(&bench);
    AUTO_FREE char *seen = calls(&bench, "environment");
    CU_ASSERT_EQUAL(count(seen, "/etc/there.conf secret-1\n"), 5);
    CU_ASSERT_EQUAL(count(seen, "/etc/there.conf secret-2\n"), 5);
    unlink(bench.token);
    check_unknown(&bench, "token file");
    check(&bench, START, action_of(VERB_CORDON), OUTCOME_TRANSIENT, POLL_UNREACHABLE, "token");
    bench_close(&bench);
}

/* --- drains --- */

TEST(a_drain_that_slurm_acknowledged_and_does_not_show_did_not_happen)
{
    struct bench bench;
    bench_open(&bench);
    check(&bench, START, action_of(VERB_CORDON), OUTCOME_TRANSIENT, POLL_ABSENT, "shows none");
    CU_ASSERT_EQUAL(count_calls(&bench, "update NodeName=r1n02 State=DRAIN "
                                        "Reason=broom:INC-1 a test\n"),
                    1);
    put(&bench, "show_node.once", NODES);
    put(&bench, "show_node", NODE("r1n02", "ALLOCATED+DRAIN", OURS));
    check(&bench, START, action_of(VERB_CORDON), OUTCOME_SUCCEEDED, POLL_DONE, "1 of 1");
    bench_close(&bench);
}

TEST(a_reason_holds_no_line_ends_and_no_quotes)
{
    struct bench bench;
    struct action action = action_of(VERB_CORDON);
    bench_open(&bench);
    action.reason = "a\nState=RESUME \"x\"";
    run_action(&bench, START, &action);
    CU_ASSERT_EQUAL(count_calls(&bench, "Reason=broom:INC-1 a State=RESUME  x \n"), 1);
    bench_close(&bench);
}

/* --- restarts --- */

static struct action restart_onto_spare(void)
{
    struct action action = action_of(VERB_RESTART_JOB);
    action.spares = SPARE;
    action.spare_count = 1;
    return action;
}

TEST(a_restart_marks_requeues_reserves_lists_and_releases_in_this_order)
{
    struct bench bench;
    bench_open(&bench);
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE,
          "to run on r1n[01,17], away from r1n02");
    AUTO_FREE char *seen = calls(&bench, "calls");
    const char *expected =
        "update JobId=12 AdminComment=broom:INC-1/1/4/1 restarts=0 nodes=r1n[01-02]\n"
        "requeuehold 12\n"
        "create ReservationName=broom-job-12 Nodes=r1n[01,17] Users=alice StartTime=now "
        "Duration=UNLIMITED Flags=IGNORE_JOBS,FLEX,OVERLAP,PURGE_COMP=24:00:00\n"
        "update JobId=12 ExcNodeList=r1n02 ReqNodeList=r1n[01,17] ReservationName=broom-job-12\n"
        "release 12\n";
    CU_ASSERT_PTR_NOT_NULL(strstr(seen, expected));
    if (strstr(seen, expected) == NULL)
        printf("%s\n", seen);
    bench_close(&bench);
}

TEST(a_requeue_whose_answer_is_lost_is_read_and_never_repeated_blindly)
{
    struct bench bench;
    bench_open(&bench);
    put(&bench, "requeuehold.err",
        "slurm_requeue error: Socket timed out on send/recv operation\n");
    check(&bench, START, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_UNREACHABLE, "timed out");
    const char *mark = "   AdminComment=broom:INC-1/1/4/1 restarts=0 nodes=r1n[01-02] \n";
    put_job(&bench, "RUNNING", "None", 0, mark);
    check(&bench, POLL, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_ABSENT, "not been requeued");
    put_job(&bench, "PENDING", "job_requeued_in_held_state", 1, mark);
    check(&bench, POLL, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_ABSENT, "held");
    put_job(&bench, "PENDING", "BeginTime", 1, mark);
    check(&bench, POLL, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "was requeued");
    put_job(&bench, "RUNNING", "None", 1, "   AdminComment=broom:INC-1/1/4/2 restarts=1 \n");
    check(&bench, POLL, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_ABSENT, "by this operation");
    put(&bench, "show_job.err", "slurm_load_jobs error: Unable to contact slurm controller\n");
    check(&bench, POLL, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_UNREACHABLE, "contact");
    CU_ASSERT_EQUAL(count_calls(&bench, "requeuehold 12"), 1);
    bench_close(&bench);
}

TEST(a_restart_that_is_gone_on_with_puts_the_spares_where_the_mark_says_and_does_not_requeue)
{
    struct bench bench;
    bench_open(&bench);
    put_job(&bench, "PENDING", "job_requeued_in_held_state", 1,
            "   AdminComment=broom:INC-1/1/4/1 restarts=0 nodes=r1n[01-02] \n");
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "r1n[01,17]");
    CU_ASSERT_EQUAL(count_calls(&bench, "requeuehold"), 0);
    CU_ASSERT_EQUAL(count_calls(&bench, "ReqNodeList=r1n[01,17]"), 1);
    CU_ASSERT_EQUAL(count_calls(&bench, "release 12"), 1);
    bench_close(&bench);
}

TEST(a_hold_of_somebody_after_a_restart_of_ours_is_never_released)
{
    struct bench bench;
    struct action next = restart_onto_spare();
    bench_open(&bench);
    /* Requeued by us once, and by an operator, into a hold, later. */
    put_job(&bench, "PENDING", "job_requeued_in_held_state", 2,
            "   AdminComment=broom:INC-1/1/4/1 restarts=0 nodes=r1n[01-02] \n");
    check(&bench, POLL, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "was requeued");
    text_copy(next.operation_id, sizeof next.operation_id, "INC-2/1/4/1");
    check(&bench, START, next, OUTCOME_REFUSED, POLL_DONE, "not by broomd");
    CU_ASSERT_EQUAL(count_calls(&bench, "release"), 0);
    CU_ASSERT_EQUAL(count_calls(&bench, "update"), 0);
    bench_close(&bench);
}

TEST(a_host_that_is_no_node_name_is_not_written_into_a_list)
{
    static const char *const leave[] = {"r1n02", "r1n[03-18],r2n01"};
    struct bench bench;
    struct action action = restart_onto_spare();
    bench_open(&bench);
    action.nodes = leave;
    action.node_count = 2;
    check(&bench, START, action, OUTCOME_SUCCEEDED, POLL_DONE, "away from r1n02");
    CU_ASSERT_EQUAL(count_calls(&bench, "ExcNodeList=r1n02 ReqNodeList=r1n[01,17]"), 1);
    bench_close(&bench);
}

TEST(a_mark_of_a_broomd_whose_records_are_gone_does_not_pass_for_a_restart)
{
    struct bench bench;
    bench_open(&bench);
    /* The same operation id, once restarted since, and on the node that it should leave. */
    put_job(&bench, "RUNNING", "None", 1, "   AdminComment=broom:INC-1/1/4/1 restarts=0 \n");
    check(&bench, POLL, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_ABSENT, "by this operation");
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "r1n[01,17]");
    CU_ASSERT_EQUAL(count_calls(&bench, "restarts=1 nodes=r1n[01-02]\nrequeuehold 12\n"), 1);
    bench_close(&bench);
}

TEST(named_nodes_that_slurm_refuses_leave_no_job_held)
{
    struct bench bench;
    bench_open(&bench);
    /* The mark is taken, the lists are not. */
    put_job(&bench, "PENDING", "job_requeued_in_held_state", 1,
            "   AdminComment=broom:INC-1/1/4/1 restarts=0 nodes=r1n[01-02] \n");
    put(&bench, "update_JobId.err.once", "Requested node configuration is not available\n");
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE,
          "the scheduler chooses");
    CU_ASSERT_EQUAL(count_calls(&bench, "update JobId=12 ExcNodeList=r1n02\nrelease 12\n"), 1);
    bench_close(&bench);
}

TEST(a_step_that_fails_after_the_requeue_is_unknown_and_before_it_nothing_happened)
{
    struct bench bench;
    bench_open(&bench);
    put(&bench, "release.err", "slurm_update error: Unable to contact slurm controller\n");
    check(&bench, START, restart_onto_spare(), OUTCOME_UNKNOWN, POLL_UNREACHABLE,
          "requeued, and not released yet");
    forget_calls(&bench);
    put(&bench, "update_JobId.err", "slurm_update error: Unable to contact slurm controller\n");
    check(&bench, START, restart_onto_spare(), OUTCOME_TRANSIENT, POLL_UNREACHABLE, "contact");
    CU_ASSERT_EQUAL(count_calls(&bench, "requeuehold"), 0);
    bench_close(&bench);
}

TEST(a_job_that_slurm_requeued_by_itself_only_gets_its_nodes)
{
    struct bench bench;
    bench_open(&bench);
    put_job(&bench, "PENDING", "BeginTime", 1, "");
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "r1n17");
    CU_ASSERT_EQUAL(count_calls(&bench, "requeuehold"), 0);
    CU_ASSERT_EQUAL(count_calls(&bench, "AdminComment=broom:INC-1/1/4/1 restarts=0"), 1);
    bench_close(&bench);
}

TEST(a_job_in_a_reservation_of_its_users_keeps_it)
{
    struct bench bench;
    struct action promise = restart_onto_spare();
    bench_open(&bench);
    promise.verb = VERB_PROMISE_SPARE;
    put_job(&bench, "RUNNING", "None", 0, "   Reservation=llm\n");
    put(&bench, "show_reservation",
        "ReservationName=llm StartTime=2026-12-01T04:16:41\n"
        "   Nodes=r1n[01-02] NodeCnt=2\n\n");
    check(&bench, START, promise, OUTCOME_REFUSED, POLL_DONE, "'llm', which does not hold all");
    put(&bench, "show_reservation",
        "ReservationName=llm StartTime=2026-12-01T04:16:41\n"
        "   Nodes=r1n[01-20] NodeCnt=20\n\n");
    check(&bench, START, promise, OUTCOME_SUCCEEDED, POLL_DONE, "they stand in reservation 'llm'");
    check(&bench, START, restart_onto_spare(), OUTCOME_SUCCEEDED, POLL_DONE, "r1n[01,17]");
    CU_ASSERT_EQUAL(count_calls(&bench, "ReservationName="), 0);
    bench_close(&bench);
}

/* --- the port --- */

TEST(an_operation_under_way_is_running_to_poll)
{
    struct bench bench;
    struct action action = action_of(VERB_CORDON);
    bench_open(&bench);
    bench.wanted = 2;
    bench.actuator->start(bench.actuator->self, &action, on_done, &bench);
    CU_ASSERT_EQUAL(bench.answers, 0);
    check(&bench, POLL, action, OUTCOME_UNKNOWN, POLL_RUNNING, "under way");
    bench_close(&bench); /* with the start still under way: it is dropped */
}

TEST(a_workload_that_is_no_slurm_job_is_refused)
{
    static const char *const WRONG[][2] = {
        {"{\"kind\":\"volcano\",\"job_id\":12}", "kind slurm"},
        {"{\"kind\":\"slurm\"}", "no Slurm job_id"},
        {"{\"kind\":\"slurm\",\"job_id\":\"12; reboot\"}", "no Slurm job_id"},
        {"{\"kind\":\"slurm\",\"job_id\":-1}", "no Slurm job_id"},
        {"{", "not known"},
        {NULL, "not known"},
    };
    struct bench bench;
    bench_open(&bench);
    for (size_t i = 0; i < ARRAY_LEN(WRONG); i++) {
        struct action action = action_of(VERB_RESTART_JOB);
        action.workload_json = WRONG[i][0];
        check(&bench, START, action, OUTCOME_REFUSED, POLL_DONE, WRONG[i][1]);
        action.verb = VERB_PROMISE_SPARE;
        check(&bench, POLL, action, OUTCOME_REFUSED, POLL_DONE, WRONG[i][1]);
    }
    AUTO_FREE char *seen = calls(&bench, "calls");
    CU_ASSERT_STRING_EQUAL(seen, "");
    bench_close(&bench);
}

TEST(a_job_of_another_slurm_cluster_is_nobodys_here)
{
    struct bench bench;
    struct job_question question_job = {
        "train", "{\"kind\":\"slurm\",\"cluster\":\"prod\",\"job_id\":12}", 8, 4};
    struct world_question question = {&question_job, 1};
    struct action action = action_of(VERB_RESTART_JOB);
    action.workload_json = question_job.workload_json;
    bench_open(&bench);
    for (int i = 0; i < 2; i++) { /* before and after the name of ours is known */
        bench.actuator->describe(bench.actuator->self, &question, on_world, &bench);
        loop_run(bench.loop);
        const struct world_job *job = world_find_job(bench.world, "train");
        CU_ASSERT_PTR_NOT_NULL_FATAL(job);
        CU_ASSERT_STRING_EQUAL(job->phase, "unknown");
        CU_ASSERT_PTR_NOT_NULL(strstr(job->restart_refusal, "cluster"));
    }
    check(&bench, START, action, OUTCOME_REFUSED, POLL_DONE, "another Slurm cluster");
    CU_ASSERT_EQUAL(count_calls(&bench, "requeuehold"), 0);
    bench_close(&bench);
}

TESTS(T(what_slurm_does_not_tell_whole_is_no_world),
      T(racks_come_from_leaf_switches_or_blocks_and_without_them_from_a_feature),
      T(a_launch_that_failed_is_told_with_the_node_that_slurm_took_out),
      T(phases_follow_slurms_words),
      T(the_token_is_read_anew_for_each_call_and_its_lack_is_no_world),
      T(a_drain_that_slurm_acknowledged_and_does_not_show_did_not_happen),
      T(a_reason_holds_no_line_ends_and_no_quotes),
      T(a_restart_marks_requeues_reserves_lists_and_releases_in_this_order),
      T(a_requeue_whose_answer_is_lost_is_read_and_never_repeated_blindly),
      T(a_restart_that_is_gone_on_with_puts_the_spares_where_the_mark_says_and_does_not_requeue),
      T(a_hold_of_somebody_after_a_restart_of_ours_is_never_released),
      T(a_host_that_is_no_node_name_is_not_written_into_a_list),
      T(a_mark_of_a_broomd_whose_records_are_gone_does_not_pass_for_a_restart),
      T(named_nodes_that_slurm_refuses_leave_no_job_held),
      T(a_step_that_fails_after_the_requeue_is_unknown_and_before_it_nothing_happened),
      T(a_job_that_slurm_requeued_by_itself_only_gets_its_nodes),
      T(a_job_in_a_reservation_of_its_users_keeps_it), T(an_operation_under_way_is_running_to_poll),
      T(a_workload_that_is_no_slurm_job_is_refused),
      T(a_job_of_another_slurm_cluster_is_nobodys_here))
