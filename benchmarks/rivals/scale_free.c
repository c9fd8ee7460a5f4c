/* Algorithm 1 with adaptive exploration, log barrier, float32: one game per vector lane.
 *
 * Two programs from one file. As it stands it does what sfmab_jax does: 46 random bits a round
 * from Threefry-2x32 with 20 rounds, sums over rounds and the sums from which the arm is drawn in
 * two words, realised and conditional losses kept at every checkpoint. With -DFREE it owes nothing
 * of that: xorshift and 24 bits, plain sums, the realised loss after the last round; meant for
 * -ffast-math.
 *
 * -DARMS=n fixes the number of arms, as the shapes of a JAX program are fixed. Vectors are those
 * of GCC and Clang, so that nothing hangs on what a compiler makes of a loop.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#ifndef FREE
#define FREE 0
#endif
#ifdef __AVX2__
#include <immintrin.h>
#endif
#if defined(__AVX512F__)
#define LANES 16
#define NATIVE(name) _mm512_##name
#define ANY(mask) _mm512_movepi32_mask((__m512i)(mask))
#elif defined(__AVX2__)
#define LANES 8
#define NATIVE(name) _mm256_##name
#define ANY(mask) _mm256_movemask_ps((__m256)(mask))
#else
#define LANES 4
#define ANY(mask) ((mask)[0] | (mask)[1] | (mask)[2] | (mask)[3])
#endif
#define EACH_ARM for (int i = 0; i < ARMS; i++)

/* |z| up to which z - log(1 + z) is summed as a power series; logarithms of products of GROUP. */
#define NEAR 0.25f
#define GROUP 5
/* Newton squares the relative error, so a step this small leaves one below 1e-7. */
#define SMALL_STEP 2e-4f
/* Never reached but where the sums over very many arms are too coarse to get there. */
#define MOST_STEPS 30

typedef float vec __attribute__((vector_size(4 * LANES)));
typedef int32_t ivec __attribute__((vector_size(4 * LANES)));
typedef uint32_t word __attribute__((vector_size(4 * LANES)));

typedef struct { vec value, low; } sum; /* a sum over rounds and what rounding took from it */

typedef struct {
    vec play[ARMS];         /* p_t */
    vec gaps[ARMS];         /* eta (L - min L), so that p = 1 / (gaps + mu) */
    sum totals[ARMS];       /* L, the cumulative estimates */
    vec mu, play_square;    /* 1 / max p, sum p^2 */
    vec rate, exploration;  /* eta, gamma */
    sum gap, mass;          /* 1 + sum M, 2 n + sum Gamma */
    sum realised, advantage;
    word key0, key1;        /* of the games; FREE: the generator's state in key0 */
} Games;

static inline vec all(float x) { return x - (vec){0}; }
static inline vec where(ivec mask, vec x) { return (vec)(mask & (ivec)x); } /* 0 elsewhere */
static inline vec size_of(vec x) { return (vec)((ivec)x & 0x7fffffff); }

static inline int any(ivec mask) { return ANY(mask) != 0; }
#ifdef NATIVE
static inline vec larger(vec a, vec b) { return (vec)NATIVE(max_ps)(a, b); }
static inline vec smaller(vec a, vec b) { return (vec)NATIVE(min_ps)(a, b); }
#else
static inline vec larger(vec a, vec b) { return where(a > b, a) + where(a <= b, b); }
static inline vec smaller(vec a, vec b) { return where(a < b, a) + where(a >= b, b); }
#endif

/* Knuth's two-sum. */
static inline sum plus(sum total, vec x)
{
    vec a = total.value, value = a + x, b = value - a;
    return (sum){value, FREE ? total.low : total.low + ((a - (value - b)) + (x - b))};
}

static inline vec less(sum a, vec x) { return FREE ? a.value - x : (a.value - x) + a.low; }

/* log x for normal x > 0, to about 1e-7: x = m 2^e, log m = 2 atanh((m - 1) / (m + 1)). */
static inline vec logarithm(vec x)
{
    ivec e = ((ivec)x - 0x3f3504f3) >> 23; /* m in [sqrt(1/2), sqrt(2)) */
    vec m = (vec)((ivec)x - (e << 23));
    vec r = (m - 1) / (m + 1), r2 = r * r;
    vec series = 1.f / 3 + r2 * (1.f / 5 + r2 * (1.f / 7 + r2 * (1.f / 9)));
    return __builtin_convertvector(e, vec) * 0.693147181f + 2 * (r + r * r2 * series);
}

/* z - log(1 + z) for |z| <= NEAR, its series cut off below 1e-8. */
static inline vec log_remainder(vec z)
{
    vec series = -1.f / 11 + z * (1.f / 12);
    series = 1.f / 8 + z * (-1.f / 9 + z * (1.f / 10 + z * series));
    series = -1.f / 5 + z * (1.f / 6 + z * (-1.f / 7 + z * series));
    return z * z * (0.5f + z * (-1.f / 3 + z * (0.25f + z * series)));
}

static inline void threefry(word k0, word k1, word c0, word *x0, word *x1)
{
    word k2 = k0 ^ k1 ^ 0x1BD11BDAu, a = c0 + k0, b = k1;
#define MIX(r) a += b; b = ((b << r) | (b >> (32 - r))) ^ a;
#define EVEN MIX(13) MIX(15) MIX(26) MIX(6)
#define ODD MIX(17) MIX(29) MIX(16) MIX(24)
    EVEN a += k1; b += k2 + 1;
    ODD a += k2; b += k0 + 2;
    EVEN a += k0; b += k1 + 3;
    ODD a += k1; b += k2 + 4;
    EVEN a += k2; b += k0 + 5;
    *x0 = a, *x1 = b;
}

static void begin(Games *g, uint32_t seed, uint32_t first_game)
{
    memset(g, 0, sizeof *g);
    EACH_ARM g->play[i] = all(1.f / ARMS);
    g->mu = g->rate = all(ARMS), g->play_square = all(1.f / ARMS);
    g->exploration = all(0.5f);
    g->gap.value = all(1), g->mass.value = all(2 * ARMS);
    word game;
    for (int s = 0; s < LANES; s++)
        game[s] = first_game + s;
    threefry(seed - (word){0}, 0x5eed - (word){0}, game, &g->key0, &g->key1);
    g->key0 |= 1; /* xorshift must not start at 0 */
}

/* i with C(i-1) <= U C(n-1) < C(i), C the running sums of p' [n]. */
static inline ivec draw(Games *g, const vec *mixed, uint32_t round)
{
    ivec passed = {0};
    sum running[ARMS], total = {{0}, {0}};
    EACH_ARM running[i] = total = plus(total, mixed[i]);
    if (FREE) {
        word x = g->key0;
        x ^= x << 13, x ^= x >> 17, x ^= x << 5;
        g->key0 = x;
        vec target = __builtin_convertvector((ivec)(x >> 8), vec) * 0x1p-24f * total.value;
        EACH_ARM passed -= running[i].value <= target;
    } else {
        word x0, x1;
        threefry(g->key0, g->key1, round - (word){0}, &x0, &x1);
        vec high = __builtin_convertvector((ivec)(x0 >> 8), vec) * 0x1p-24f;
        vec low = __builtin_convertvector((ivec)((x0 & 0xff) << 14 | x1 >> 18), vec) * 0x1p-46f;
        low += high * ((total.value - 1) + total.low); /* the sum is all but 1 */
        EACH_ARM passed -= (running[i].value - high) + (running[i].low - low) <= 0;
    }
    return passed + (passed >= ARMS); /* true is -1 */
}

/* eta M_t for an estimate y / eta: sup_q y.(p - q) - Breg(q || p).
 *
 * q = p / (1 + z), z = p (y + shift), sum q = 1: Newton on 1 / sum q - 1, which rises to the root
 * from the left. Also one_over_top = 1 / max q and square = sum q^2, from which p_{t+1} is sought.
 * An error in the shift costs M only its square. */
static inline vec mixability(const Games *g, const vec *y, vec shift, vec *one_over_top,
                             vec *square)
{
    vec z[ARMS], top = g->gaps[0] + y[0];
    EACH_ARM top = smaller(top, g->gaps[i] + y[i]);
    top += g->mu;
    shift = larger(shift, 1 - top);
    for (int k = 0; k < MOST_STEPS; k++) {
        vec excess = {0}, slope = {0}, size = {0};
        EACH_ARM {
            vec p = g->play[i], move = p * (shift + y[i]), q = p / (1 + move);
            excess -= q * move;
            slope += q * q;
            size += move * move;
        }
        vec step = (1 + excess) * excess / slope;
        shift = larger(shift + step, 1 - top);
        *square = slope;
        if (!any(slope * step * step > 1e-3f * size))
            break;
    }
    *one_over_top = top + shift;
    vec largest = {0}, gap = {0};
    EACH_ARM {
        z[i] = g->play[i] * (shift + y[i]);
        largest = larger(largest, size_of(z[i]));
        gap += log_remainder(z[i]);
    }
    ivec far = largest > NEAR;
    if (!any(far))
        return gap;
    vec far_gap = {0};
    for (int start = 0; start < ARMS; start += GROUP) {
        vec product = all(1);
        for (int i = start; i < start + GROUP && i < ARMS; i++) {
            far_gap += z[i];
            product *= 1 + z[i];
        }
        far_gap -= logarithm(product);
    }
    return where(far, far_gap) + where(~far, gap);
}

/* p = 1 / (gaps + mu), sum p = 1, from a start for mu: Newton on 1 / sum p - 1. */
static inline void follow(Games *g)
{
    vec step, square, mu = g->mu;
    for (int k = 0; k < MOST_STEPS; k++) {
        vec mass = {0};
        square = (vec){0};
        EACH_ARM {
            vec p = 1 / (g->gaps[i] + mu);
            g->play[i] = p;
            mass += p;
            square += p * p;
        }
        vec next = larger(mu + mass * (mass - 1) / square, all(1));
        step = next - mu;
        mu = next;
        if (!any(size_of(step) > SMALL_STEP * mu))
            break;
    }
    /* 1 / (x + step) = p - p^2 step up to the square of a small step: no more divisions. */
    square = (vec){0};
    EACH_ARM {
        vec p = g->play[i];
        p -= p * p * step;
        g->play[i] = p;
        square += p * p;
    }
    g->mu = mu;
    g->play_square = square;
}

static inline void play_round(Games *g, const float *losses, uint32_t round)
{
    vec mixed[ARMS], y[ARMS], keep = 1 - g->exploration, spread = g->exploration / ARMS;
    EACH_ARM mixed[i] = keep * g->play[i] + spread;
    ivec arm = draw(g, mixed, round);
    vec loss = {0}, chance = {0}, play = {0};
    EACH_ARM {
        loss += where(arm == i, all(losses[i]));
        chance += where(arm == i, mixed[i]);
        play += where(arm == i, g->play[i]);
    }
    vec estimate = loss / chance, scaled = g->rate * estimate;
    EACH_ARM y[i] = where(arm == i, scaled);
    g->realised = plus(g->realised, loss);
    if (!FREE) {
        vec advantage = {0};
        EACH_ARM advantage += mixed[i] * (losses[i] - loss);
        g->advantage = plus(g->advantage, advantage);
    }
    vec one_over_top, square, first_order = -play * play * scaled / g->play_square;
    vec gap = mixability(g, y, first_order, &one_over_top, &square);
    g->gap = plus(g->gap, gap / g->rate);
    g->mass = plus(g->mass, g->exploration * size_of(estimate));
    vec rate = ARMS / g->gap.value, kept = rate / g->rate;
    g->rate = rate;
    g->exploration = ARMS / g->mass.value;
    EACH_ARM g->totals[i] = plus(g->totals[i], where(arm == i, estimate));
    vec lowest = g->totals[0].value;
    EACH_ARM lowest = smaller(lowest, g->totals[i].value);
    EACH_ARM g->gaps[i] = rate * less(g->totals[i], lowest);
    /* One Newton step from q towards the smaller rate. */
    g->mu = larger(kept * one_over_top + (1 - kept) / square, all(1));
    follow(g);
}

static void keep(const Games *g, int64_t first_game, int64_t num_games, int num_checkpoints,
                 int slot, double *totals)
{
    for (int s = 0; s < LANES && first_game + s < num_games; s++) {
        double *here = totals + ((first_game + s) * num_checkpoints + slot) * 2;
        here[0] = (double)g->realised.value[s] + g->realised.low[s];
        here[1] = here[0] + ((double)g->advantage.value[s] + g->advantage.low[s]);
    }
}

/* Plays games 0 to num_games - 1 on losses [num_rounds][ARMS].
 *
 * totals [num_games][num_checkpoints][2]: realised and conditional losses up to each checkpoint,
 * an increasing list of rounds that ends with the last. FREE gives realised losses only. */
void play(const float *losses, int32_t num_rounds, int64_t num_games, uint32_t seed,
          const int32_t *checkpoints, int32_t num_checkpoints, double *totals)
{
    int64_t num_blocks = (num_games + LANES - 1) / LANES;
#pragma omp parallel
    {
        Games *g = aligned_alloc(sizeof(vec), sizeof(Games));
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < num_blocks; block++) {
            begin(g, seed, (uint32_t)(block * LANES));
            int slot = 0;
            for (int32_t round = 1; round <= num_rounds; round++) {
                play_round(g, losses + (int64_t)(round - 1) * ARMS, (uint32_t)round);
                if (round == checkpoints[slot])
                    keep(g, block * LANES, num_games, num_checkpoints, slot++, totals);
            }
        }
        free(g);
    }
}
