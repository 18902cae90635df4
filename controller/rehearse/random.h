/* Seeded random numbers for the job model: xoshiro256**, one state a model, the same on every
 * machine.
 */
#ifndef BROOM_REHEARSE_RANDOM_H
#define BROOM_REHEARSE_RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state[4];
};

void random_seed(struct random *random, uint64_t seed);
uint64_t random_bits(struct random *random);
double random_unit(struct random *random);                    /* [0, 1) */
uint32_t random_below(struct random *random, uint32_t bound); /* 0 .. bound - 1; bound > 0 */
double random_normal(struct random *random);                  /* mean 0, deviation 1 */

/* Student's t with five degrees of freedom, scaled to deviation 1: what step times look like. One
 * table look-up a draw; the tails are exact. */
struct heavy_tail {
    double edges[4097];
};

void heavy_tail_init(struct heavy_tail *tail);
double heavy_tail_draw(const struct heavy_tail *tail, struct random *random);
/* Of those draws, one that lies above `least`, and how large a part of all these are. */
double heavy_tail_draw_above(double least, struct random *random);
double heavy_tail_part_above(double least);

#endif
