/* Slurm as an actuator, by its own tools: scontrol and scancel, run by argv. Tried with 22.05,
 * whose REST API can neither drain a node nor requeue a job; where slurmrestd of a newer version
 * can, and is configured, nodes and jobs are read from it (slurm_rest.h).
 *
 * What a verb does, for the job that workload_json names
 * ({"kind":"slurm","cluster":"c1","job_id":12}):
 *   cordon              State=DRAIN with the reason "broom:INC-3 ...". A node that somebody else
 * took out keeps their reason; Slurm's own words on a node that is down are kept behind ours. Read
 * before and after uncordon            State=UNDRAIN, which leaves a node that is down as it is,
 * and only where the reason is this incident's promise_spare       the reservation broom-job-ID is
 * made, or grows, so that nobody else's job gets the spares release_spare       it shrinks, or goes
 *   request_checkpoint  a signal to the job, where its workload names one: "checkpoint_signal"
 *                       ("USR1"), "checkpoint_target" (all: batch script and steps, the default;
 *                       batch; steps), "checkpoint_file" (its change says that the save is done) or
 *                       "checkpoint_wait_s" (60). A job that names none is not asked: a signal that
 *                       it does not handle would end it
 *   restart_job         requeuehold, ExcNodeList of the nodes to leave, ReqNodeList and reservation
 * of those that it shall have where spares are named, release. A job that Slurm has requeued by
 * itself only gets its lists. Not requeueable (srun, salloc,
 *                       --no-requeue, ended): refused, and why
 *   drain               nothing is evicted: a drained node's jobs end by themselves. Succeeds once
 *                       nothing but this job is left on the nodes; refused on a node not drained
 *   fence, hand_over    refused: Slurm cannot vouch for a node's power; the webhook does these
 *   force_delete        refused: Slurm ends the jobs of a dead node itself
 *
 * The requeue leaves a mark in the job's AdminComment, "broom:OPERATION restarts=N", before it is
 * made; from it and the job's restart count poll tells whether it happened. A restart that was cut
 * off between requeue and release is `absent` to poll, and start goes on where it stopped: one
 * requeue an operation.
 *
 * slurmctld down or slow, an answer that is cut, words that nobody knows: the world is unknown,
 * never "gone" and never "drained". An acknowledged drain that slurmctld lost because it was killed
 * (its BOOT_TIME changed, the drain and its reason are gone) is made again once by describe; a
 * drain that is gone while slurmctld ran on was taken off by a person and is not.
 */
#ifndef BROOM_ACTUATORS_SLURM_H
#define BROOM_ACTUATORS_SLURM_H

#include "controller/io/http_client.h"
#include "controller/io/loop.h"
#include "remediation/actuator.h"

struct slurm_params {
    const char *scontrol, *scancel; /* paths; NULL or "": looked up on PATH */
    const char *conf;          /* slurm.conf for the tools; NULL or "": where Slurm looks itself */
    const char *cluster;       /* ClusterName that must answer; NULL or "": any */
    const char *user;          /* of the token; NULL or "": the tools' own way (munge) */
    const char *token_file;    /* a JWT, read anew for each call; NULL or "": none */
    const char *rest_url;      /* slurmrestd, "http://127.0.0.1:6820"; NULL or "": none */
    const char *spare_feature; /* nodes with it are spares; NULL: "spare" */
    const char *spare_reservation; /* so are those in it; NULL: "broom-spares" */
    bool requeue_always; /* also batch jobs submitted with --no-requeue: Requeue=1 is set first */
    /* Asked before a lost drain is made again; NULL: yes. */
    bool (*may_act)(void *context);
    void *may_act_context;
};

/* params is copied. loop and client (may be NULL without rest_url) are lent and must outlive every
 * call. actuator->free(actuator->self) frees it, port included, after the client; calls under way
 * are dropped without an answer. */
struct actuator *slurm_new(struct loop *loop, struct http_client *client,
                           const struct slurm_params *params);

#endif
