/* xoshiro256** seeded by splitmix64; t5 by inverting its distribution function. */
#include "controller/rehearse/random.h"

#include <assert.h>
#include <math.h>

enum { TAIL_BINS = 4096, BISECTIONS = 60 };

static uint64_t rotate(uint64_t value, int bits)
{
    return (value << bits) | (value >> (64 - bits));
}

void random_seed(struct random *random, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        uint64_t z = (seed += UINT64_C(0x9e3779b97f4a7c15));
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        random->state[i] = z ^ (z >> 31);
    }
}

uint64_t random_bits(struct random *random)
{
    uint64_t *s = random->state;
    uint64_t result = rotate(s[1] * 5, 7) * 9;
    uint64_t shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate(s[3], 45);
    return result;
}

double random_unit(struct random *random)
{
    return (double)(random_bits(random) >> 11) * 0x1p-53;
}

uint32_t random_below(struct random *random, uint32_t bound)
{
    assert(bound > 0);
    return (uint32_t)(((random_bits(random) >> 32) * bound) >> 32);
}

double random_normal(struct random *random)
{
    double radius = sqrt(-2.0 * log(1.0 - random_unit(random)));
    return radius * cos(6.283185307179586 * random_unit(random));
}

static double t5_below(double t)
{
    double square = 1.0 + t * t / 5.0;
    double x = t / sqrt(5.0);
    return 0.5 + (atan(x) + x / square * (1.0 + 2.0 / (3.0 * square))) / 3.141592653589793;
}

static double t5_quantile(double p)
{
    double low = -1e4;
    double high = 1e4;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = 0.5 * (low + high);
        if (t5_below(middle) < p)
            low = middle;
        else
            high = middle;
    }
    return 0.5 * (low + high);
}

void heavy_tail_init(struct heavy_tail *tail)
{
    double scale = sqrt(3.0 / 5.0); /* t5 has variance 5/3 */
    for (int i = 1; i < TAIL_BINS; i++)
        tail->edges[i] = scale * t5_quantile((double)i / TAIL_BINS);
    tail->edges[0] = -INFINITY; /* the outermost bins are inverted exactly */
    tail->edges[TAIL_BINS] = INFINITY;
}

double heavy_tail_draw(const struct heavy_tail *tail, struct random *random)
{
    uint64_t bits = random_bits(random);
    uint32_t bin = (uint32_t)(bits >> 52);
    double part = (double)(bits & UINT64_C(0xfffffffffff)) * 0x1p-44;
    if (bin == 0 || bin == TAIL_BINS - 1)
        return sqrt(3.0 / 5.0) * t5_quantile((bin + fmax(part, 1e-9)) / TAIL_BINS);
    return tail->edges[bin] + part * (tail->edges[bin + 1] - tail->edges[bin]);
}

double heavy_tail_part_above(double least)
{
    return t5_below(-least / sqrt(3.0 / 5.0));
}

double heavy_tail_draw_above(double least, struct random *random)
{
    double part = heavy_tail_part_above(least) * (1.0 - random_unit(random));
    return -sqrt(3.0 / 5.0) * t5_quantile(part);
}
