/* Results of functions that can fail. One enum, one table: name, retry class and the exit code that
 * `broom` ends with. Callers branch on the class; messages are for people.
 */
#ifndef BROOM_BASE_STATUS_H
#define BROOM_BASE_STATUS_H

#include <stdarg.h>
#include <stddef.h>

#define MUST_CHECK                         __attribute__((warn_unused_result))
#define PRINTF_LIKE(fmt_index, args_index) __attribute__((format(printf, fmt_index, args_index)))

enum status {
    OK = 0,
    ERR_INVALID,     /* the caller's input is wrong; the message names the place */
    ERR_NOT_FOUND,   /* no such thing */
    ERR_DENIED,      /* the caller may not do this */
    ERR_REFUSED,     /* a guard said no; final until a person acts */
    ERR_CONFLICT,    /* somebody else changed it; read again and decide again */
    ERR_AGAIN,       /* transient; back off and retry */
    ERR_LIMIT,       /* a bound would be passed; retry later or send less */
    ERR_UNREACHABLE, /* the other side cannot be reached */
    ERR_TIMEOUT,     /* the deadline passed; what happened is unknown */
    ERR_IO,          /* the operating system refused: disk full, bad file */
    ERR_BUG,         /* cannot happen */
    STATUS_COUNT
};

enum { ERROR_MESSAGE_BYTES = 512 };

/* Why something failed. Filled only on failure, by the deepest function that knows; never rewritten
 * on the way up, at most prefixed with error_prefix. */
struct error {
    enum status status;
    char message[ERROR_MESSAGE_BYTES];
};

const char *status_name(enum status status); /* stable identifier, such as "not_found" */
int status_exit_code(enum status status);    /* exit code of `broom`, formats.md section 6 */

/* Fills *reterr (NULL is allowed) and returns status, so that `return error_set(...)` reads well.
 * Messages: lower case, no full stop, values in single quotes. Too long a message is cut. */
enum status error_set(struct error *reterr, enum status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* Puts "context: " before the message that is there; returns the error's status. */
enum status error_prefix(struct error *reterr, const char *format, ...) PRINTF_LIKE(2, 3);

/* For a result that is deliberately not acted on; the call site says why. */
void ignore_status(enum status status);

/* The only macro that hides a return: it passes a failure up. */
#define TRY(expression)                                                                            \
    do {                                                                                           \
        enum status try_status_ = (expression);                                                    \
        if (try_status_ != OK)                                                                     \
            return try_status_;                                                                    \
    } while (0)

#define ARRAY_LEN(array) (sizeof(array) / sizeof((array)[0]))

#endif
