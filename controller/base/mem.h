/* Small allocations that cannot fail: out of memory ends the process with one line on stderr, since
 * all durable state is in PostgreSQL. What a user can make grow never uses these without a budget.
 * mem.c is the only file that calls malloc, calloc and realloc.
 */
#ifndef BROOM_BASE_MEM_H
#define BROOM_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void *xmalloc(size_t bytes);               /* uninitialised; caller frees with xfree */
void *xcalloc(size_t count, size_t bytes); /* zeroed; count * bytes is checked */
void *xrealloc(void *memory, size_t count, size_t bytes); /* grows or shrinks; checked product */
char *xstrdup(const char *text);                          /* text not NULL; caller frees */
char *xstrndup(const char *text, size_t bytes);           /* NUL-terminated copy of at most bytes */
void xfree(const void *memory); /* NULL is a no-op; takes const to free names */

/* Same as xcalloc, but answers NULL when the system has no memory: for what a user can make grow.
 */
void *try_calloc(size_t count, size_t bytes);

/* A sum of sizes from the wire; false when it overflows. */
bool size_add(size_t a, size_t b, size_t *ret_sum);

/* Makes room for one more element in a doubling array: returns the array (moved or not) and updates
 * *capacity. Elements are bytes large; count elements are in use. */
void *array_grow(void *array, size_t count, size_t *capacity, size_t bytes);

/* Index of the first of count sorted elements, bytes large, that is not before the key; count when
 * all are. compare(key, element) as in bsearch. */
typedef int array_compare_fn(const void *key, const void *element);
size_t array_lower_bound(const void *key, const void *array, size_t count, size_t bytes,
                         array_compare_fn *compare);

/* Cleanup attributes for locals: `AUTO_FREE char *name = ...;`, `AUTO(plan_free) struct plan
 * *plan`. A type that is used with AUTO defines its hook once with DEFINE_AUTO(struct plan,
 * plan_free). */
void auto_xfree_(void *pointer_to_pointer);
#define AUTO_FREE __attribute__((cleanup(auto_xfree_)))
#define DEFINE_AUTO(type, free_function)                                                           \
    static inline __attribute__((unused)) void auto_##free_function(type **pointer)                \
    {                                                                                              \
        if (*pointer != NULL)                                                                      \
            free_function(*pointer);                                                               \
    }
#define AUTO(free_function) __attribute__((cleanup(auto_##free_function)))

/* Hands a pointer over: yields its value and leaves NULL behind. */
#define TAKE(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) taken_ = (pointer);                                                    \
        (pointer) = NULL;                                                                          \
        taken_;                                                                                    \
    })

#endif
