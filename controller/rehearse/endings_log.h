/* The cluster's log, read back: which operations were asked of it and how they ended. */
#ifndef BROOM_REHEARSE_ENDINGS_LOG_H
#define BROOM_REHEARSE_ENDINGS_LOG_H

#include "controller/base/text.h"

struct logged {
    char id[64];
    char verb[32];
    char outcome[32]; /* "" while it runs */
    int64_t time_ns;
    bool repeated; /* this line asks for an operation that was there before */
};

struct endings_log {
    struct logged *items; /* one a request; the end of a running one is put into its first line */
    size_t count, capacity;
    int job_starts;
    int64_t last_start_step;
    int bad_lines;
};

void endings_log_read(struct endings_log *log, struct view lines);
void endings_log_done(struct endings_log *log);
const struct logged *endings_log_find(const struct endings_log *log, const char *id); /* or NULL */
int endings_log_count(const struct endings_log *log, const char *verb, const char *outcome);

#endif
