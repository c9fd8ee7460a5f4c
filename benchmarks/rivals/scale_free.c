/* Algorithm 1 with adaptive exploration, log barrier, float32: one game per vector lane.
 *
 * Two programs from one file. As it stands it does what sfmab_jax does: 46 random bits a round
 * from Threefry-2x32 with 20 rounds, sums over rounds in two words, the arm drawn with sums that
 * carry more than float32, realised and conditional losses kept at every checkpoint. With -DFREE
 * it owes nothing of that: xorshift and 24 bits, plain sums, the realised loss after the last
 * round; meant for -ffast-math.
 *
 * -DARMS=n fixes the number of arms, as the shapes of a JAX program are fixed.
 */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef LANES
#ifdef __AVX512F__
#define LANES 16
#else
#define LANES 8
#endif
#endif
#define EACH_LANE _Pragma("omp simd") for (int s = 0; s < LANES; s++)
#define EACH_ARM for (int i = 0; i < ARMS; i++)

/* |z| up to which z - log(1 + z) is summed as a power series; logarithms of products of GROUP. */
#define NEAR 0.25f
#define GROUP 5
/* Newton squares the relative error, so a step this small leaves one below 1e-7. */
#define SMALL_STEP 2e-4f

typedef float lane[LANES] __attribute__((aligned(4 * LANES)));
typedef int32_t int_lane[LANES] __attribute__((aligned(4 * LANES)));
typedef uint32_t word_lane[LANES] __attribute__((aligned(4 * LANES)));

typedef struct {
    lane play[ARMS];          /* p_t */
    lane gaps[ARMS];          /* eta (L - min L), so that p = 1 / (gaps + mu) */
    lane total[ARMS];         /* L, the cumulative estimates, */
    lane total_low[ARMS];     /* and what rounding took from them */
    lane mu, play_square;     /* 1 / max p, sum p^2 */
    lane rate, exploration;   /* eta, gamma */
    lane sum_gap, sum_gap_low, sum_mass, sum_mass_low;
    lane realised, realised_low, advantage, advantage_low;
    word_lane key0, key1;     /* of the games; FREE: the state of the generator in key0 */
} Games;

/* Unlike fmaxf and fminf these are one instruction: they need not look for NaN. */
static inline float larger(float a, float b) { return a > b ? a : b; }
static inline float smaller(float a, float b) { return a < b ? a : b; }

/* total += x, by Knuth's two-sum. */
static inline void add(float *total, float *low, float x)
{
#ifdef FREE
    *total += x;
    (void)low;
#else
    float a = *total, sum = a + x, b = sum - a;
    *low += (a - (sum - b)) + (x - b);
    *total = sum;
#endif
}

/* log x for normal x > 0, to about 1e-7: x = m 2^e, log m = 2 atanh((m - 1) / (m + 1)). */
static inline float logarithm(float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    int32_t e = (bits - 0x3f3504f3) >> 23; /* m in [sqrt(1/2), sqrt(2)) */
    bits -= e * (1 << 23);
    float m;
    memcpy(&m, &bits, sizeof m);
    float r = (m - 1) / (m + 1), r2 = r * r;
    float series = 1.f / 3 + r2 * (1.f / 5 + r2 * (1.f / 7 + r2 * (1.f / 9)));
    return (float)e * 0.693147181f + 2 * (r + r * r2 * series);
}

/* z - log(1 + z) for |z| <= NEAR. */
static inline float log_remainder(float z)
{
    float series = -1.f / 11 + z * (1.f / 12 - z * (1.f / 13));
    series = 1.f / 8 + z * (-1.f / 9 + z * (1.f / 10 + z * series));
    series = -1.f / 5 + z * (1.f / 6 + z * (-1.f / 7 + z * series));
    return z * z * (0.5f + z * (-1.f / 3 + z * (0.25f + z * series)));
}

static inline uint32_t rotate(uint32_t x, int by) { return (x << by) | (x >> (32 - by)); }

static inline void threefry(uint32_t k0, uint32_t k1, uint32_t c0, uint32_t c1, uint32_t *x0,
                            uint32_t *x1)
{
    uint32_t k2 = k0 ^ k1 ^ 0x1BD11BDAu, a = c0 + k0, b = c1 + k1;
#define MIX(r) a += b; b = rotate(b, r) ^ a;
#define EVEN MIX(13) MIX(15) MIX(26) MIX(6)
#define ODD MIX(17) MIX(29) MIX(16) MIX(24)
    EVEN a += k1; b += k2 + 1;
    ODD a += k2; b += k0 + 2;
    EVEN a += k0; b += k1 + 3;
    ODD a += k1; b += k2 + 4;
    EVEN a += k2; b += k0 + 5;
    *x0 = a;
    *x1 = b;
}

static void begin(Games *g, uint32_t seed, uint32_t first_game)
{
    memset(g, 0, sizeof *g);
    for (int s = 0; s < LANES; s++) {
        EACH_ARM {
            g->play[i][s] = 1.f / ARMS;
            g->gaps[i][s] = 0;
        }
        g->mu[s] = ARMS;
        g->play_square[s] = 1.f / ARMS;
        g->rate[s] = ARMS;
        g->exploration[s] = 0.5f;
        g->sum_gap[s] = 1;
        g->sum_mass[s] = 2 * ARMS;
        threefry(seed, 0x5eed, first_game + s, 0, &g->key0[s], &g->key1[s]);
        g->key0[s] |= 1; /* xorshift must not start at 0 */
    }
}

/* i with C(i-1) <= U C(n-1) < C(i), C the running sums of p'. */
static inline void draw(Games *g, uint32_t round, int_lane arm)
{
    lane keep, floor_;
    EACH_LANE {
        keep[s] = 1 - g->exploration[s];
        floor_[s] = g->exploration[s] / ARMS;
    }
#ifdef FREE
    lane target;
    EACH_LANE {
        uint32_t x = g->key0[s];
        x ^= x << 13;
        x ^= x >> 17;
        x ^= x << 5;
        g->key0[s] = x;
        float total = 0;
        EACH_ARM total += g->play[i][s];
        target[s] = (x >> 8) * 0x1p-24f * (keep[s] * total + ARMS * floor_[s]);
    }
    EACH_LANE {
        float running = 0;
        int32_t passed = 0;
        EACH_ARM {
            running += keep[s] * g->play[i][s] + floor_[s];
            passed += running <= target[s];
        }
        arm[s] = passed < ARMS ? passed : ARMS - 1;
    }
    (void)round;
#else
    double target[LANES] __attribute__((aligned(64)));
    word_lane x0, x1;
    EACH_LANE threefry(g->key0[s], g->key1[s], round, 0, &x0[s], &x1[s]);
    EACH_LANE {
        double total = 0;
        EACH_ARM total += (double)(keep[s] * g->play[i][s] + floor_[s]);
        double u = (double)(int32_t)(x0[s] >> 1) * 0x1p-31 + (double)(int32_t)(x1[s] >> 17) * 0x1p-46;
        target[s] = u * total;
    }
    EACH_LANE {
        double running = 0;
        int64_t passed = 0;
        EACH_ARM {
            running += (double)(keep[s] * g->play[i][s] + floor_[s]);
            passed += running <= target[s];
        }
        arm[s] = passed < ARMS ? (int32_t)passed : ARMS - 1;
    }
#endif
}

/* eta M_t for the estimate y / eta of one arm: sup_q y.(p - q) - Breg(q || p).
 *
 * q = p / (1 + z), z = p (y + shift), sum q = 1: Newton on 1 / sum q - 1, which rises to the root
 * from the left. Also one_over_top = 1 / max q and square = sum q^2, from which p_{t+1} is sought.
 * An error in the shift costs M only its square. */
static inline void mixability(const Games *g, const int_lane arm, const lane y, lane gap,
                              lane one_over_top, lane square)
{
    lane shift, top;
    EACH_LANE {
        float lowest = FLT_MAX, p = 0;
        EACH_ARM {
            lowest = smaller(lowest, g->gaps[i][s] + (i == arm[s] ? y[s] : 0));
            p += i == arm[s] ? g->play[i][s] : 0;
        }
        float first_order = -p * p * y[s] / g->play_square[s];
        top[s] = lowest + g->mu[s];
        shift[s] = larger(first_order, 1 - top[s]);
    }
    int unfinished;
    do {
        unfinished = 0;
        _Pragma("omp simd reduction(| : unfinished)") for (int s = 0; s < LANES; s++) {
            float excess = 0, slope = 0, size = 0;
            EACH_ARM {
                float p = g->play[i][s];
                float z = p * (shift[s] + (i == arm[s] ? y[s] : 0));
                float q = p / (1 + z);
                excess -= q * z;
                slope += q * q;
                size += z * z;
            }
            float step = (1 + excess) * excess / slope;
            shift[s] = larger(shift[s] + step, 1 - top[s]);
            square[s] = slope;
            unfinished |= slope * step * step > 1e-3f * size;
        }
    } while (unfinished);
    lane largest;
    EACH_LANE {
        float sum = 0, most = 0;
        EACH_ARM {
            float z = g->play[i][s] * (shift[s] + (i == arm[s] ? y[s] : 0));
            sum += log_remainder(z);
            most = larger(most, fabsf(z));
        }
        gap[s] = sum;
        largest[s] = most;
        one_over_top[s] = top[s] + shift[s];
    }
    int some_far = 0;
    _Pragma("omp simd reduction(| : some_far)") for (int s = 0; s < LANES; s++)
        some_far |= largest[s] > NEAR;
    if (!some_far)
        return;
    EACH_LANE {
        float sum = 0;
        for (int start = 0; start < ARMS; start += GROUP) {
            float product = 1;
            for (int i = start; i < start + GROUP && i < ARMS; i++) {
                float z = g->play[i][s] * (shift[s] + (i == arm[s] ? y[s] : 0));
                sum += z;
                product *= 1 + z;
            }
            sum -= logarithm(product);
        }
        gap[s] = largest[s] > NEAR ? sum : gap[s];
    }
}

/* p = 1 / (gaps + mu), sum p = 1, from a start for mu; Newton on 1 / sum p - 1. */
static inline void follow(Games *g)
{
    lane step;
    int unfinished;
    do {
        unfinished = 0;
        _Pragma("omp simd reduction(| : unfinished)") for (int s = 0; s < LANES; s++) {
            float sum = 0, square = 0;
            EACH_ARM {
                float p = 1 / (g->gaps[i][s] + g->mu[s]);
                g->play[i][s] = p;
                sum += p;
                square += p * p;
            }
            float next = larger(g->mu[s] + sum * (sum - 1) / square, 1);
            step[s] = next - g->mu[s];
            g->mu[s] = next;
            unfinished |= fabsf(step[s]) > SMALL_STEP * next;
        }
    } while (unfinished);
    /* 1 / (x + step) = p - p^2 step up to the square of a small step: no more divisions. */
    EACH_LANE {
        float square = 0;
        EACH_ARM {
            float p = g->play[i][s];
            p -= p * p * step[s];
            g->play[i][s] = p;
            square += p * p;
        }
        g->play_square[s] = square;
    }
}

static inline void play_round(Games *g, const float *losses, uint32_t round)
{
    int_lane arm;
    lane y, estimate, gap, one_over_top, square, lowest;
    draw(g, round, arm);
    EACH_LANE {
        float gamma = g->exploration[s], p = 0, seen = 0;
        EACH_ARM {
            p += i == arm[s] ? g->play[i][s] : 0;
            seen += i == arm[s] ? losses[i] : 0;
        }
        estimate[s] = seen / ((1 - gamma) * p + gamma / ARMS);
        y[s] = g->rate[s] * estimate[s];
        add(&g->sum_mass[s], &g->sum_mass_low[s], gamma * fabsf(estimate[s]));
        add(&g->realised[s], &g->realised_low[s], seen);
#ifndef FREE
        float advantage = 0;
        EACH_ARM advantage += ((1 - gamma) * g->play[i][s] + gamma / ARMS) * (losses[i] - seen);
        add(&g->advantage[s], &g->advantage_low[s], advantage);
#endif
    }
    mixability(g, arm, y, gap, one_over_top, square);
    for (int s = 0; s < LANES; s++)
        add(&g->total[arm[s]][s], &g->total_low[arm[s]][s], estimate[s]);
    EACH_LANE {
        float least = FLT_MAX;
        EACH_ARM least = smaller(least, g->total[i][s]);
        lowest[s] = least;
    }
    EACH_LANE {
        float before = g->rate[s];
        add(&g->sum_gap[s], &g->sum_gap_low[s], gap[s] / before);
        float after = ARMS / g->sum_gap[s], kept = after / before;
        g->rate[s] = after;
        g->exploration[s] = ARMS / g->sum_mass[s];
        /* One Newton step from q towards the smaller rate. */
        g->mu[s] = larger(kept * one_over_top[s] + (1 - kept) / square[s], 1);
        EACH_ARM {
#ifdef FREE
            g->gaps[i][s] = after * (g->total[i][s] - lowest[s]);
#else
            g->gaps[i][s] = after * ((g->total[i][s] - lowest[s]) + g->total_low[i][s]);
#endif
        }
    }
    follow(g);
}

/* Plays games 0 to num_games - 1 on losses [num_rounds][ARMS].
 *
 * totals [num_games][num_checkpoints][2]: realised and conditional losses up to each checkpoint,
 * an increasing list of rounds that ends with the last; FREE: only the realised loss at its end. */
void play(const float *losses, int32_t num_rounds, int64_t num_games, uint32_t seed,
          const int32_t *checkpoints, int32_t num_checkpoints, double *totals)
{
    int64_t num_blocks = (num_games + LANES - 1) / LANES;
    (void)checkpoints;
#pragma omp parallel
    {
        Games *g = aligned_alloc(64, (sizeof(Games) + 63) / 64 * 64);
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < num_blocks; block++) {
            begin(g, seed, (uint32_t)(block * LANES));
            int slot = 0;
            for (int32_t round = 1; round <= num_rounds; round++) {
                play_round(g, losses + (int64_t)(round - 1) * ARMS, (uint32_t)round);
#ifdef FREE
                if (round < num_rounds)
                    continue;
                slot = num_checkpoints - 1;
#else
                if (round != checkpoints[slot])
                    continue;
#endif
                for (int s = 0; s < LANES && block * LANES + s < num_games; s++) {
                    double *here = totals + ((block * LANES + s) * num_checkpoints + slot) * 2;
                    here[0] = (double)g->realised[s] + g->realised_low[s];
                    here[1] = here[0] + ((double)g->advantage[s] + g->advantage_low[s]);
                }
                slot++;
            }
        }
        free(g);
    }
}
