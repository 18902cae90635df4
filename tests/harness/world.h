/* What a test looks up in a world: NULL when it is not there. */
#ifndef BROOM_TESTS_HARNESS_WORLD_H
#define BROOM_TESTS_HARNESS_WORLD_H

#include "remediation/actuator.h"

#include <string.h>

static inline const struct world_node *world_find_node(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->node_count; i++)
        if (strcmp(world->nodes[i].name, name) == 0)
            return &world->nodes[i];
    return NULL;
}

static inline const struct world_job *world_find_job(const struct world *world, const char *name)
{
    for (size_t i = 0; i < world->job_count; i++)
        if (strcmp(world->jobs[i].name, name) == 0)
            return &world->jobs[i];
    return NULL;
}

#endif
