/* Algorithm 1 with adaptive exploration, log barrier, float32: one game per vector lane.
 *
 * Four programs from one file. As it stands it does what sfmab_jax does: 46 random bits a round
 * from Threefry-2x32 with 20 rounds, sums over rounds and the sums from which the arm is drawn in
 * two words, realised and conditional losses kept at every checkpoint. With -DFREE it owes nothing
 * of that: xorshift and 24 bits, plain sums, the realised loss after the last round; meant for
 * -ffast-math.
 *
 * All games share one table of losses. With -DOWN every game draws its own: uniform on [-1, 1],
 * those of arm 0 less -DGAP, two from a block of Threefry; and measures them, with the sums of each
 * arm and of the norms in two words, and the best arm and the norms kept at every checkpoint. FREE
 * keeps plain sums of each arm, and the best after the last round.
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
#ifndef OWN
#define OWN 0
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

#if OWN
typedef vec loss_type;   /* of each game */
#define KEPT 8           /* numbers at a checkpoint */
#else
typedef float loss_type; /* of all games */
#define KEPT 2
#endif
const int32_t kept = KEPT;

typedef struct {
    vec play[ARMS];         /* p_t */
    vec gaps[ARMS];         /* eta (L - min L), so that p = 1 / (gaps + mu) */
    sum totals[ARMS];       /* L, the cumulative estimates */
    vec mu, play_square;    /* 1 / max p, sum p^2 */
    vec rate, exploration;  /* eta, gamma */
    sum gap, mass;          /* 1 + sum M, 2 n + sum Gamma */
    sum realised, advantage;
    word key0, key1;        /* of the games; FREE: the generator's state in key0 */
    /* OWN */
    word loss_key0, loss_key1;
    sum losses[ARMS];       /* S, the cumulative losses */
    sum l_1, l_2;           /* sum |l|, sum l^2 over rounds and arms */
    vec l_inf;              /* max |l| */
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

/* Two words from each counter (c0, first + j), j < blocks: side by side, as each mixing step of one
 * block waits for the one before. */
static inline __attribute__((always_inline)) void
threefry(word k0, word k1, word c0, uint32_t first, int blocks, word *a, word *b)
{
    word k2 = k0 ^ k1 ^ 0x1BD11BDAu;
#define EACH_BLOCK for (int j = 0; j < blocks; j++)
#define MIX(r) EACH_BLOCK a[j] += b[j], b[j] = ((b[j] << r) | (b[j] >> (32 - r))) ^ a[j];
#define EVEN MIX(13) MIX(15) MIX(26) MIX(6)
#define ODD MIX(17) MIX(29) MIX(16) MIX(24)
#define ADD(x, y) EACH_BLOCK a[j] += x, b[j] += y;
    EACH_BLOCK a[j] = c0 + k0, b[j] = first + j + k1;
    EVEN ADD(k1, k2 + 1)
    ODD ADD(k2, k0 + 2)
    EVEN ADD(k0, k1 + 3)
    ODD ADD(k1, k2 + 4)
    EVEN ADD(k2, k0 + 5)
}

static inline word xorshift(word *state)
{
    word x = *state;
    x ^= x << 13, x ^= x >> 17, x ^= x << 5;
    return *state = x;
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
    threefry(seed - (word){0}, 0x5eed - (word){0}, game, 0, 1, &g->key0, &g->key1);
    threefry(seed - (word){0}, 0x1055 - (word){0}, game, 0, 1, &g->loss_key0, &g->loss_key1);
    g->key0 |= 1; /* xorshift must not start at 0 */
}

/* i with C(i-1) <= U C(n-1) < C(i), C the running sums of p' [n]. */
static inline ivec draw(Games *g, const vec *mixed, uint32_t round)
{
    ivec passed = {0};
    sum running[ARMS], total = {{0}, {0}};
    EACH_ARM running[i] = total = plus(total, mixed[i]);
    if (FREE) {
        word x = xorshift(&g->key0);
        vec target = __builtin_convertvector((ivec)(x >> 8), vec) * 0x1p-24f * total.value;
        EACH_ARM passed -= running[i].value <= target;
    } else {
        word x0, x1;
        threefry(g->key0, g->key1, round - (word){0}, 0, 1, &x0, &x1);
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

static inline void play_round(Games *g, const loss_type *losses, uint32_t round)
{
    vec mixed[ARMS], y[ARMS], keep = 1 - g->exploration, spread = g->exploration / ARMS;
    EACH_ARM mixed[i] = keep * g->play[i] + spread;
    ivec arm = draw(g, mixed, round);
    vec loss = {0}, chance = {0}, play = {0};
    EACH_ARM {
        loss += where(arm == i, losses[i] - (vec){0});
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

#if OWN
/* Odd multiples of 2^-24 in (-1, 1). */
static inline vec symmetric(word x)
{
    return (__builtin_convertvector((ivec)(x >> 8) - (1 << 23), vec) + 0.5f) * 0x1p-23f;
}

/* The losses of a round of every game: arm i has half of block i mod HALF. */
static inline void draw_losses(Games *g, uint32_t round, vec *losses)
{
    enum { HALF = (ARMS + 1) / 2, SIDE_BY_SIDE = HALF < 5 ? HALF : 5 };
    word x[2][HALF + SIDE_BY_SIDE];
    for (int j = 0; j < HALF; j += SIDE_BY_SIDE)
        threefry(g->loss_key0, g->loss_key1, round - (word){0}, j, SIDE_BY_SIDE,
                 x[0] + j, x[1] + j);
    EACH_ARM {
        word own = FREE ? xorshift(&g->key0) : x[i / HALF][i % HALF];
        losses[i] = symmetric(own) - (i == 0 ? GAP : 0);
    }
}

static inline void measure(Games *g, const vec *losses)
{
    vec size = {0}, square = {0};
    EACH_ARM g->losses[i] = plus(g->losses[i], losses[i]);
    if (FREE)
        return;
    EACH_ARM {
        size += size_of(losses[i]);
        square += losses[i] * losses[i];
        g->l_inf = larger(g->l_inf, size_of(losses[i]));
    }
    g->l_1 = plus(g->l_1, size);
    g->l_2 = plus(g->l_2, square);
}
#endif

static inline double in_full(sum total, int s) { return (double)total.value[s] + total.low[s]; }

static void keep(const Games *g, int64_t first_game, int64_t num_games, int num_checkpoints,
                 int slot, double *totals)
{
    sum best = {g->losses[0].value, {0}}, mean = {{0}, {0}};
    vec largest = {0};
    EACH_ARM {
        best.value = smaller(best.value, g->losses[i].value);
        largest = larger(largest, size_of(g->losses[i].value));
    }
    best.low = less(g->losses[0], best.value);
    EACH_ARM {
        best.low = smaller(best.low, less(g->losses[i], best.value));
        mean.low += less(g->losses[i], best.value) / ARMS;
    }
    mean.value = best.value;
    for (int s = 0; s < LANES && first_game + s < num_games; s++) {
        double *here = totals + ((first_game + s) * num_checkpoints + slot) * KEPT;
        here[0] = in_full(g->realised, s);
        here[1] = here[0] + in_full(g->advantage, s);
        if (OWN) {
            here[2] = in_full(best, s);
            here[3] = in_full(mean, s);
            here[4] = largest[s];
            here[5] = in_full(g->l_1, s);
            here[6] = in_full(g->l_2, s);
            here[7] = g->l_inf[s];
        }
    }
}

/* Plays games 0 to num_games - 1 on losses [num_rounds][ARMS], or NULL if OWN.
 *
 * totals [num_games][num_checkpoints][KEPT]: realised and conditional losses up to each checkpoint,
 * an increasing list of rounds that ends with the last; if OWN, also the least and the mean of S,
 * max |S|, sum |l|, sum l^2 and max |l|. FREE gives realised losses and what comes from S only. */
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
#if OWN
                vec now[ARMS];
                draw_losses(g, (uint32_t)round, now);
                measure(g, now);
#else
                const float *now = losses + (int64_t)(round - 1) * ARMS;
#endif
                play_round(g, now, (uint32_t)round);
                if (round == checkpoints[slot])
                    keep(g, block * LANES, num_games, num_checkpoints, slot++, totals);
            }
        }
        free(g);
    }
}
