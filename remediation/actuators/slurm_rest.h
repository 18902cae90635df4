/* What slurmrestd answers, as nodes and jobs. Pure. Tried against 22.05 (v0.0.38); the shapes of
 * newer versions, where a state is a list of words and a number an object, are read too, against
 * recorded answers.
 *
 * Only reads go this way: v0.0.38 can neither change a node nor requeue a job, and a rack that is
 * drained by one call of scontrol is better than eighteen requests.
 */
#ifndef BROOM_ACTUATORS_SLURM_REST_H
#define BROOM_ACTUATORS_SLURM_REST_H

#include "remediation/actuators/slurm_state.h"

enum { SLURM_REST_OLDEST = 38, SLURM_REST_NEWEST = 45 };

/* The newest version, 38 for v0.0.38, that both this and the document of GET /openapi/v3 know; 0
 * none. */
int slurm_rest_version(const struct json *openapi);

/* OK: an answer without an error. ERR_NOT_FOUND: Slurm knows no such job or node. ERR_IO: anything
 * else, also an error under HTTP 200, which is told in one line. root NULL: the body is no JSON. */
enum status slurm_rest_judge(int code, const struct json *root, char *message, size_t bytes);

void slurm_rest_read_node(const struct json *node, struct slurm_node *ret_node);
void slurm_rest_read_job(const struct json *job, struct slurm_job *ret_job);

#endif
