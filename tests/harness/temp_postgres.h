/* A private PostgreSQL for one test program, by the very code that broomd uses, and helpers that
 * run the loop until something holds. Skips the program where no server is installed.
 */
#ifndef BROOM_TESTS_HARNESS_TEMP_POSTGRES_H
#define BROOM_TESTS_HARNESS_TEMP_POSTGRES_H

#include "controller/io/loop.h"
#include "controller/io/pg.h"
#include "controller/store/embedded/embedded.h"
#include "controller/store/store.h"

#include <sys/types.h>

struct temp_postgres {
    struct loop *loop;
    char *dir;
    bool dir_is_ours; /* removed at the end */
    struct embedded *embedded;
    bool ready;
    int ready_count;
};

/* Starts it and waits until it takes connections. */
void temp_postgres_start(struct temp_postgres *temp, bool is_durable);
/* The same in a directory that is there; its owner removes it. */
void temp_postgres_start_in(struct temp_postgres *temp, const char *dir, bool is_durable);
void temp_postgres_stop(struct temp_postgres *temp);
pid_t temp_postgres_pid(const struct temp_postgres *temp);
/* Signals the server, which must be there: a process id of 0 would mean the whole group of the
 * test. */
void temp_postgres_kill(const struct temp_postgres *temp, int signal_number);

/* An empty directory that the account postgres can pass through; the caller gives it to
 * remove_tree. */
char *temp_dir(void);
void remove_tree(char *take_path);

/* Runs the loop until holds(context) or the time is over; answers whether it holds. */
typedef bool holds_fn(void *context);
bool run_until(struct loop *loop, holds_fn *holds, void *context, int timeout_s);
void run_for_ms(struct loop *loop, int ms);

/* Runs one statement as the superuser; first value as text the caller frees, "" for NULL or no row,
 * or "ERROR sqlstate". */
char *temp_sql(struct temp_postgres *temp, const char *sql);
int64_t temp_sql_int(struct temp_postgres *temp, const char *sql); /* -1 when it is no number */

/* A store on it, in a folder NAME of the temporary directory; waits until it is up. */
struct temp_store {
    struct temp_postgres *temp;
    struct store *store;
    char *dir;
    int changes;
};
void temp_store_open(struct temp_store *at, struct temp_postgres *temp, const char *name,
                     bool is_private);
void temp_store_close(struct temp_store *at); /* frees it at once */
void temp_store_stop(struct temp_store *at);  /* gives the lease back, then frees it */
bool temp_store_wait(struct temp_store *at, enum store_state state, int timeout_s);

/* Submits and waits for the answer. */
enum status temp_submit(struct temp_store *at, const char *records, unsigned flags);
/* Reads one function; JSON the caller frees, or NULL. */
char *temp_query(struct temp_store *at, enum store_read read, const char *first_param);

#endif
