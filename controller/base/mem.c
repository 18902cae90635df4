/* The process's only callers of malloc and its kin. */
#include "controller/base/mem.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "broom: out of memory allocating %zu bytes\n", bytes);
    abort();
}

bool size_add(size_t a, size_t b, size_t *ret_sum)
{
    return !__builtin_add_overflow(a, b, ret_sum);
}

static bool size_mul(size_t a, size_t b, size_t *ret_product)
{
    return !__builtin_mul_overflow(a, b, ret_product);
}

void *xmalloc(size_t bytes)
{
    void *memory = malloc(bytes > 0 ? bytes : 1);
    if (memory == NULL)
        out_of_memory(bytes);
    return memory;
}

void *try_calloc(size_t count, size_t bytes)
{
    size_t total;
    if (!size_mul(count, bytes, &total))
        return NULL;
    return calloc(1, total > 0 ? total : 1);
}

void *xcalloc(size_t count, size_t bytes)
{
    void *memory = try_calloc(count, bytes);
    if (memory == NULL)
        out_of_memory(bytes);
    return memory;
}

void *xrealloc(void *memory, size_t count, size_t bytes)
{
    size_t total;
    if (!size_mul(count, bytes, &total))
        out_of_memory(SIZE_MAX);
    void *moved = realloc(memory, total > 0 ? total : 1);
    if (moved == NULL)
        out_of_memory(total);
    return moved;
}

char *xstrndup(const char *text, size_t bytes)
{
    size_t length = bytes > 0 ? strnlen(text, bytes) : 0; /* an empty view's pointer may be NULL */
    char *copy = xmalloc(length + 1);
    if (length > 0)
        memcpy(copy, text, length);
    copy[length] = '\0';
    return copy;
}

char *xstrdup(const char *text)
{
    return xstrndup(text, strlen(text));
}

void xfree(const void *memory)
{
    /* Names are kept as const char *; free() is the one place that may drop the qualifier. */
    union {
        const void *lent;
        void *owned;
    } cast = {.lent = memory};
    free(cast.owned);
}

void *array_grow(void *array, size_t count, size_t *capacity, size_t bytes)
{
    assert(count <= *capacity);
    if (count < *capacity)
        return array;
    *capacity = *capacity > 0 ? *capacity * 2 : 8;
    return xrealloc(array, *capacity, bytes);
}

size_t array_lower_bound(const void *key, const void *array, size_t count, size_t bytes,
                         array_compare_fn *compare)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(key, (const char *)array + middle * bytes) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void auto_xfree_(void *pointer_to_pointer)
{
    void *memory;
    memcpy(&memory, pointer_to_pointer, sizeof memory);
    xfree(memory);
}
