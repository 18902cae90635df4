/* Workloads over the fake client: one bench a test, and short ways to make pods and objects. */
#ifndef BROOM_TESTS_ACTUATORS_WORK_BENCH_H
#define BROOM_TESTS_ACTUATORS_WORK_BENCH_H

#include "remediation/actuators/kubernetes_workload.h"
#include "tests/unit/actuators/fake_kube.h"

#define VOLCANO_LIST    "/apis/batch.volcano.sh/v1alpha1/jobs"
#define JOBSET_LIST     "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
#define JOB_LIST        "/apis/batch/v1/jobs"
#define PYTORCHJOB_LIST "/apis/kubeflow.org/v1/pytorchjobs"
#define TRAINJOB_LIST   "/apis/trainer.kubeflow.org/v1alpha1/trainjobs"
#define WORKFLOW_LIST   "/apis/argoproj.io/v1alpha1/workflows"
#define DOMAIN_LIST     "/apis/resource.nvidia.com/v1beta1/computedomains"
#define PODS_LIST       "/api/v1/pods"

struct bench {
    struct loop *loop;
    struct kube_client client;
    struct workloads *workloads;
    struct action_result result;
    char reason[400];
    int answers;
    int64_t began_ns;
};

/* scale: how much faster than the wall; what has to happen within some seconds of pipeline time
 * needs a slow one, lest a busy machine fails it. */
static void bench_open_at(struct bench *bench, double scale)
{
    clock_init(scale, clock_read().wall_ns, clock_read().wall_ns);
    *bench = (struct bench){.loop = loop_new()};
    fake_open(&bench->client, bench->loop);
    fake_unsynced = NULL;
    memset(fake_down, 0, sizeof fake_down);
    bench->workloads = workloads_new(&bench->client, bench->loop, NULL, false);
    bench->began_ns = clock_now_ns();
}

static inline void bench_open(struct bench *bench)
{
    bench_open_at(bench, 200);
}

static void bench_close(struct bench *bench)
{
    workloads_free(bench->workloads);
    fake_close(&bench->client);
    loop_free(bench->loop);
}

static inline void on_result(void *context, const struct action_result *result)
{
    struct bench *bench = context;
    bench->result = *result;
    bench->answers++;
    text_copy(bench->reason, sizeof bench->reason, result->reason != NULL ? result->reason : "");
    loop_stop(bench->loop);
}

static const char *const LEAVING[] = {"gb-2"};

static inline struct action restart_action(const char *operation, const char *workload)
{
    struct action action = {.verb = VERB_RESTART_JOB,
                            .incident_ref = "INC-3",
                            .job = "default/llm",
                            .workload_json = workload,
                            .nodes = LEAVING,
                            .node_count = 1,
                            .reason = "tray gb-2 is slow",
                            .params_json = "{\"timeout_ns\":1200000000000}"};
    text_copy(action.operation_id, sizeof action.operation_id, operation);
    return action;
}

static inline void run_start(struct bench *bench, const struct action *action)
{
    int answers = bench->answers;
    workloads_start(bench->workloads, action, on_result, bench);
    CU_ASSERT_EQUAL(bench->answers, answers); /* never from inside the call */
    loop_run(bench->loop);
    CU_ASSERT_EQUAL(bench->answers, answers + 1);
}

static inline void run_poll(struct bench *bench, const struct action *action)
{
    int answers = bench->answers;
    workloads_poll(bench->workloads, action, on_result, bench);
    CU_ASSERT_EQUAL(bench->answers, answers);
    loop_run(bench->loop);
    CU_ASSERT_EQUAL(bench->answers, answers + 1);
}

/* Writes of one method whose path holds a part. */
static inline size_t count_writes(const struct bench *bench, const char *method, const char *part)
{
    size_t count = 0;
    for (size_t i = 0; i < bench->client.call_count; i++)
        count += strcmp(bench->client.calls[i].method, method) == 0 &&
                 strstr(bench->client.calls[i].path, part) != NULL;
    return count;
}

/* The n-th of them, from 0; its body is "" when there is none. */
static inline const char *body_of(const struct bench *bench, const char *method, const char *part,
                                  size_t n)
{
    for (size_t i = 0; i < bench->client.call_count; i++) {
        const struct fake_call *call = &bench->client.calls[i];
        if (strcmp(call->method, method) == 0 && strstr(call->path, part) != NULL && n-- == 0)
            return call->body;
    }
    return "";
}

/* What is said of a pod; members that are NULL or 0 are left out. */
struct pod_words {
    const char *name, *uid, *owner, *owner_uid;
    const char *labels; /* members of the object of labels */
    const char *node, *phase, *deleted;
    const char *template; /* of its claim */
    const char *message;  /* why it cannot be placed */
    int gpus;
};

static inline void tell_pod(struct bench *bench, const struct pod_words *pod)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"%s\",\"uid\":\"%s\","
              "\"labels\":{%s},\"ownerReferences\":[{\"kind\":\"%s\",\"uid\":\"%s\","
              "\"controller\":true}]",
              pod->name, pod->uid != NULL ? pod->uid : pod->name,
              pod->labels != NULL ? pod->labels : "", pod->owner, pod->owner_uid);
    if (pod->deleted != NULL)
        text_addf(&json, ",\"deletionTimestamp\":\"%s\"", pod->deleted);
    text_add(&json, "},\"spec\":{");
    if (pod->node != NULL)
        text_addf(&json, "\"nodeName\":\"%s\",", pod->node);
    if (pod->template != NULL)
        text_addf(&json,
                  "\"resourceClaims\":[{\"name\":\"x\",\"resourceClaimTemplateName\":\"other\"},"
                  "{\"name\":\"c\",\"resourceClaimTemplateName\":\"%s\"}],",
                  pod->template);
    text_addf(&json,
              "\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"%d\"}}}]},"
              "\"status\":{\"phase\":\"%s\",\"conditions\":[",
              pod->gpus, pod->phase != NULL ? pod->phase : "Running");
    if (pod->message != NULL)
        text_addf(&json,
                  "{\"type\":\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\","
                  "\"message\":\"%s\"}",
                  pod->message);
    text_add(&json, "]}}");
    fake_tell(&bench->client, PODS_LIST, json.bytes);
}

/* A recorded answer with one member replaced: what stands at `from`, if it is there. The caller
 * frees. */
static inline char *recorded(const char *file, const char *from, const char *to)
{
    AUTO_TEXT path = {0};
    AUTO_TEXT out = {0};
    text_addf(&path, BROOM_SOURCE_DIR "/tests/unit/actuators/data/%s", file);
    AUTO_FREE char *whole = test_read_file(path.bytes);
    CU_ASSERT_PTR_NOT_NULL_FATAL(whole);
    const char *place = from != NULL ? strstr(whole, from) : NULL;
    CU_ASSERT_FATAL(from == NULL || place != NULL);
    if (place == NULL)
        return xstrdup(whole);
    text_add_bytes(&out, whole, (size_t)(place - whole));
    text_add(&out, to);
    text_add(&out, place + strlen(from));
    return text_take(&out);
}

/* A pod of a Volcano job. deleted: deletionTimestamp, or NULL. node "": not placed. */
static inline void tell_volcano_pod(struct bench *bench, const char *job_uid, const char *task,
                                    int index, const char *uid, const char *node, const char *phase,
                                    const char *deleted)
{
    AUTO_TEXT json = {0};
    text_addf(&json,
              "{\"metadata\":{\"namespace\":\"default\",\"name\":\"llm-%s-%d\",\"uid\":\"%s\","
              "\"labels\":{\"volcano.sh/job-name\":\"llm\",\"volcano.sh/task-spec\":\"%s\","
              "\"volcano.sh/task-index\":\"%d\"},\"ownerReferences\":[{\"kind\":\"Job\","
              "\"apiVersion\":\"batch.volcano.sh/v1alpha1\",\"uid\":\"%s\",\"controller\":true}]",
              task, index, uid, task, index, job_uid);
    if (deleted != NULL)
        text_addf(&json, ",\"deletionTimestamp\":\"%s\"", deleted);
    text_addf(&json,
              "},\"spec\":{\"nodeName\":\"%s\",\"containers\":[{\"resources\":{\"limits\":"
              "{\"nvidia.com/gpu\":\"4\"}}}]},\"status\":{\"phase\":\"%s\"}}",
              node, phase);
    fake_tell(&bench->client, PODS_LIST, json.bytes);
}

#endif
