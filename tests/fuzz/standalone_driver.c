/* Runs a fuzz target over its corpus without libFuzzer: every file as it is, then cut short and
 * with bytes changed, by a seeded generator, so that two runs do the same. Prints the file before a
 * crash can happen. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FILE_BYTES_MAX = 1 << 20, MUTATIONS = 200 };

static uint64_t random_next(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* A copy of exactly size bytes, so that the sanitizer sees a read beyond it. */
static void run_exact(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);
    if (exact == NULL)
        abort();
    memcpy(exact, bytes, size);
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
}

static void run_mutations(const uint8_t *bytes, size_t size)
{
    uint64_t state = 1;
    uint8_t *changed = malloc(size > 0 ? size : 1);
    if (changed == NULL)
        abort();
    for (int i = 0; i < MUTATIONS && size > 0; i++) {
        memcpy(changed, bytes, size);
        size_t length = i % 4 == 0 ? random_next(&state) % size : size;
        for (uint64_t flips = random_next(&state) % 8; flips > 0; flips--)
            changed[random_next(&state) % size] = (uint8_t)random_next(&state);
        run_exact(changed, length);
    }
    free(changed);
}

static int run_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *bytes = malloc(FILE_BYTES_MAX);
    if (file == NULL || bytes == NULL)
        return 1;
    size_t size = fread(bytes, 1, FILE_BYTES_MAX, file);
    fclose(file);
    printf("%s (%zu bytes)\n", path, size);
    fflush(stdout);
    run_exact(bytes, size);
    run_mutations(bytes, size);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    struct dirent **entries = NULL;
    int files = 0;
    if (argc != 2) {
        fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
        return 2;
    }
    int count = scandir(argv[1], &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", argv[1], entries[i]->d_name);
        if (entries[i]->d_name[0] != '.')
            files += run_file(path) == 0 ? 1 : 0;
        free(entries[i]);
    }
    free(entries);
    printf("%d files\n", files);
    return files > 0 ? 0 : 1;
}
