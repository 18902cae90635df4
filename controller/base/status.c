/* The status table and error texts. */
#include "controller/base/status.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

struct status_row {
    const char *name;
    int exit_code;
};

static const struct status_row STATUS_ROWS[STATUS_COUNT] = {
    [OK] = {"ok", 0},
    [ERR_INVALID] = {"invalid", 1},
    [ERR_NOT_FOUND] = {"not_found", 4},
    [ERR_DENIED] = {"denied", 5},
    [ERR_REFUSED] = {"refused", 7},
    [ERR_CONFLICT] = {"conflict", 1},
    [ERR_AGAIN] = {"again", 6},
    [ERR_LIMIT] = {"limit", 1},
    [ERR_UNREACHABLE] = {"unreachable", 6},
    [ERR_TIMEOUT] = {"timeout", 8},
    [ERR_IO] = {"io", 1},
    [ERR_BUG] = {"bug", 1},
};

static const struct status_row *status_row(enum status status)
{
    assert(status >= OK && status < STATUS_COUNT);
    return &STATUS_ROWS[status];
}

const char *status_name(enum status status)
{
    return status_row(status)->name;
}

int status_exit_code(enum status status)
{
    return status_row(status)->exit_code;
}

enum status error_set(struct error *reterr, enum status status, const char *format, ...)
{
    assert(status != OK);
    if (reterr != NULL) {
        va_list args;
        va_start(args, format);
        reterr->status = status;
        vsnprintf(reterr->message, sizeof reterr->message, format, args);
        va_end(args);
    }
    return status;
}

enum status error_prefix(struct error *reterr, const char *format, ...)
{
    if (reterr == NULL)
        return ERR_BUG;
    char prefix[ERROR_MESSAGE_BYTES / 2];
    char message[ERROR_MESSAGE_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(prefix, sizeof prefix, format, args);
    va_end(args);
    memcpy(message, reterr->message, sizeof message);
    size_t used = strlen(prefix);
    memcpy(reterr->message, prefix, used + 1);
    snprintf(reterr->message + used, sizeof reterr->message - used, ": %s", message);
    return reterr->status;
}

void ignore_status(enum status status)
{
    (void)status;
}
