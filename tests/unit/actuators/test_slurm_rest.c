/* Answers of slurmrestd: those of v0.0.38 were recorded from Slurm 22.05, shortened; those of newer
 * versions are in the shape that their OpenAPI documents give, since no newer Slurm could be run.
 */
#include "remediation/actuators/slurm_rest.h"
#include "tests/harness/test.h"

#include <stdio.h>
#include <string.h>

static struct json *parse(const char *text)
{
    struct json *root = NULL;
    CU_ASSERT_FATAL(json_parse(view_of(text), &root, NULL) == OK);
    return root;
}

TEST(the_newest_version_that_both_know_is_taken)
{
    static const struct {
        const char *openapi;
        int version;
    } ROWS[] = {
        {"{\"paths\":{\"/slurm/v0.0.38/ping\":{},\"/slurm/v0.0.38/nodes\":{},\"/slurm/v0.0.38/node/"
         "{node_name}\":{}}}",
         38},
        {"{\"paths\":{\"/slurm/v0.0.39/nodes\":{},\"/slurm/v0.0.41/nodes/\":{},\"/slurm/v0.0.40/"
         "nodes\":{}}}",
         41},
        {"{\"paths\":{\"/slurm/v0.0.99/nodes\":{},\"/slurm/v0.0.40/nodes\":{}}}", 40},
        {"{\"paths\":{\"/slurm/v0.0.36/nodes\":{},\"/slurmdb/v0.0.39/jobs\":{}}}", 0},
        {"{\"paths\":{\"/slurm/v0.0.x/nodes\":{}}}", 0},
        {"{}", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        AUTO(json_free) struct json *root = parse(ROWS[i].openapi);
        CU_ASSERT_EQUAL(slurm_rest_version(root), ROWS[i].version);
    }
    CU_ASSERT_EQUAL(slurm_rest_version(NULL), 0);
}

/* SlinkyProject/slurm-operator PR #79: an error under HTTP 200 was read as "not busy". */
TEST(an_error_is_an_error_under_any_http_code)
{
    static const struct {
        int code;
        const char *body;
        enum status status;
        const char *words;
    } ROWS[] = {
        {200, "{\"errors\":[],\"nodes\":[]}", OK, ""},
        {200, "{\"errors\":[{\"error\":\"Unspecified error\",\"error_number\":-1}],\"nodes\":[]}",
         ERR_IO, "Unspecified"},
        {500,
         "{\"errors\":[{\"description\":\"Unable to find "
         "JobId=999\",\"error_number\":2017,\"error\":\"Invalid job id specified\"}]}",
         ERR_NOT_FOUND, "JobId=999"},
        {500,
         "{\"errors\":[{\"error\":\"Invalid node name specified\",\"errno\":2018}],\"nodes\":[]}",
         ERR_NOT_FOUND, "node name"},
        /* slurmctld is down: the job is not gone. */
        {500,
         "{\"errors\":[{\"description\":\"Unable to find "
         "JobId=1\",\"error_number\":-1,\"error\":\"Unspecified error\"}],\"jobs\":[]}",
         ERR_IO, "Unable to find"},
        {500,
         "{\"errors\":[{\"description\":\"slurmctld config is unable to "
         "load\",\"error_number\":-1}]}",
         ERR_IO, "unable to load"},
        {400, "{\"errors\":[{\"description\":\"Unknown key\"},{\"error_code\":9001}]}", ERR_IO,
         "Unknown key"},
        {304, "{}", ERR_IO, "HTTP 304"},
        {503, "{}", ERR_IO, "HTTP 503"},
    };
    char message[256];
    for (size_t i = 0; i < ARRAY_LEN(ROWS); i++) {
        AUTO(json_free) struct json *root = parse(ROWS[i].body);
        message[0] = '\0';
        CU_ASSERT_EQUAL(slurm_rest_judge(ROWS[i].code, root, message, sizeof message),
                        ROWS[i].status);
        CU_ASSERT_PTR_NOT_NULL(strstr(message, ROWS[i].words));
    }
    CU_ASSERT_EQUAL(slurm_rest_judge(200, NULL, message, sizeof message), ERR_IO);
    CU_ASSERT_EQUAL(slurm_rest_judge(401, NULL, message, sizeof message), ERR_IO);
    CU_ASSERT_PTR_NOT_NULL(strstr(message, "401"));
}

static void check_node(const char *text, enum slurm_base base, unsigned flags)
{
    AUTO(json_free) struct json *root = parse(text);
    struct slurm_node node;
    slurm_rest_read_node(root, &node);
    CU_ASSERT_STRING_EQUAL(node.name, "r1n02");
    CU_ASSERT_EQUAL(node.state.base, base);
    CU_ASSERT_EQUAL(node.state.flags, flags);
    CU_ASSERT_EQUAL(node.gpus, 4);
    CU_ASSERT(slurm_has_feature(&node, "nvl72"));
    CU_ASSERT_STRING_EQUAL(node.reason, "broom:INC-3 slow");
    slurm_node_done(&node);
}

TEST(a_node_is_the_same_in_old_and_new_shapes)
{
    check_node("{\"name\":\"r1n02\",\"state\":\"allocated\",\"state_flags\":[\"DRAIN\"],\"gres\":"
               "\"gpu:gb300:4\","
               "\"features\":\"rack1,nvl72,spare\",\"active_features\":\"rack1,nvl72\",\"reason\":"
               "\"broom:INC-3 slow\"}",
               SLURM_BASE_ALLOCATED, SLURM_DRAIN);
    check_node(
        "{\"name\":\"r1n02\",\"state\":[\"IDLE\",\"DRAIN\",\"NOT_RESPONDING\"],\"gres\":\"gpu:"
        "gb300:4(S:0-1)\","
        "\"active_features\":[\"rack1\",\"nvl72\"],\"reason\":\"broom:INC-3 slow\\nState=IDLE\"}",
        SLURM_BASE_IDLE, SLURM_DRAIN | SLURM_NOT_RESPONDING);
    check_node("{\"name\":\"r1n02\",\"state\":[\"IDLE\",\"SINGING\"],\"gres\":\"gpu:4\",\"active_"
               "features\":[\"nvl72\"],"
               "\"reason\":\"broom:INC-3 slow\"}",
               SLURM_BASE_IDLE, SLURM_STRANGE);
    check_node("{\"name\":\"r1n02\",\"gres\":\"gpu:4\",\"active_features\":[\"nvl72\"],\"reason\":"
               "\"broom:INC-3 slow\"}",
               SLURM_BASE_UNKNOWN, SLURM_STRANGE);
}

static void check_job(const char *text, const char *state)
{
    AUTO(json_free) struct json *root = parse(text);
    struct slurm_job job;
    slurm_rest_read_job(root, &job);
    CU_ASSERT_STRING_EQUAL(job.id, "12");
    CU_ASSERT_STRING_EQUAL(job.state, state);
    CU_ASSERT_STRING_EQUAL(job.user, "alice");
    CU_ASSERT_STRING_EQUAL(job.nodes, "r1n[01-02]");
    CU_ASSERT_STRING_EQUAL(job.submit_time, "1796101857");
    CU_ASSERT_STRING_EQUAL(job.admin_comment, "broom:INC-3/1/4/1 restarts=0");
    CU_ASSERT_EQUAL(job.restarts, 1);
    CU_ASSERT_EQUAL(job.tasks, 8);
    CU_ASSERT(job.is_batch && job.may_requeue);
    slurm_job_done(&job);
}

#define SAME                                                                                       \
    "\"user_name\":\"alice\",\"nodes\":\"r1n[01-02]\",\"state_reason\":\"None\",\"resv_name\":"    \
    "\"\","                                                                                        \
    "\"required_nodes\":\"\",\"excluded_nodes\":\"\",\"batch_flag\":true,\"requeue\":true,"        \
    "\"admin_comment\":\"broom:INC-3/1/4/1 restarts=0\",\"restart_cnt\":1,"
#define NUMBER(n) "{\"set\":true,\"infinite\":false,\"number\":" n "}"

TEST(a_job_is_the_same_in_old_and_new_shapes)
{
    check_job("{" SAME "\"job_id\":12,\"job_state\":\"RUNNING\",\"submit_time\":1796101857,"
              "\"tasks\":8,\"node_count\":2}",
              "RUNNING");
    check_job("{" SAME
              "\"job_id\":12,\"job_state\":[\"PENDING\",\"COMPLETING\"],\"submit_time\":" NUMBER(
                  "1796101857") ",\"tasks\":" NUMBER("8") ",\"node_count\":" NUMBER("2") "}",
              "COMPLETING");
    check_job("{" SAME
              "\"job_id\":12,\"job_state\":[\"PENDING\",\"REQUEUE_HOLD\"],\"submit_time\":" NUMBER(
                  "1796101857") ",\"tasks\":" NUMBER("8") "}",
              "REQUEUE_HOLD");
}

TESTS(T(the_newest_version_that_both_know_is_taken), T(an_error_is_an_error_under_any_http_code),
      T(a_node_is_the_same_in_old_and_new_shapes), T(a_job_is_the_same_in_old_and_new_shapes))
