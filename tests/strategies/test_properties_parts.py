"""Properties of the parts: sampling schemes, estimation schemes, full-information strategies."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import strategies as st
from properties import (
    EPS,
    NUM_ARMS,
    arrays,
    not_positive_numbers,
    points,
    powers_of_two,
    property_of,
)

import sfmab_jax as sf
from sfmab_jax import estimation, full_information, potentials, sampling

ROUNDS = 6
tables = arrays(ROUNDS, NUM_ARMS, low=0.0, high=1.0)
signed_tables = arrays(ROUNDS, NUM_ARMS)
histories = st.lists(st.integers(0, NUM_ARMS - 1), min_size=ROUNDS, max_size=ROUNDS)
plays = st.lists(points(), min_size=ROUNDS, max_size=ROUNDS).map(np.array)


@jax.jit
def laws(scheme, plays, arms, table, unit):
    """p'_1 ... p'_T [T, n] of a sampling scheme on plays [T, n], in float64."""

    def step(state, now):
        play, arm, losses = now
        law = scheme.probabilities(state, play)
        seen = sf.Round(play, law, arm, losses[arm], losses)
        return scheme.update(state, seen), law

    first = scheme.init(NUM_ARMS, plays.dtype, unit)
    return jax.lax.scan(step, first, (plays, arms, table))[1]


def schedule(t, n):
    return 1 / (t + n)


def level(n):
    return 0.5 / n


SAMPLINGS = {
    sampling.as_played: sampling.as_played(),
    sampling.fixed: sampling.fixed(0.25),
    sampling.decaying: sampling.decaying(),
    sampling.adaptive: sampling.adaptive(),
    sampling.scheduled: sampling.scheduled(schedule),
    sampling.truncated: sampling.truncated(level),
    sampling.gap_exploration: sampling.gap_exploration(),
    sampling.lifted: sampling.lifted(),
    sampling.favouring_last: sampling.favouring_last(schedule),
    sampling.in_batches: sampling.in_batches(3),
    sampling.stability_matched: sampling.stability_matched(),
    sampling.each_arm_first: sampling.each_arm_first(sampling.fixed(0.25)),
}


def wanted_laws(name, play, arms, table, unit=1.0):
    """The docstrings' rules in a plain loop; None where the rule is too long for one."""
    n, gamma, mass, lifts, rows = NUM_ARMS, 0.5, 2 * NUM_ARMS * unit, 0.0, []
    for t, p in enumerate(play):
        mixing = {"as_played": 0.0, "fixed": 0.25, "each_arm_first": 0.25, "adaptive": gamma}
        mixing |= {"decaying": min(0.5, np.sqrt(n / t)) if t else 0.5, "scheduled": 1 / (t + n)}
        if name == "truncated":
            kept = np.where(p >= 0.5 / n, p, 0)
            law = kept / kept.sum()
        elif name == "lifted":
            rho = 2 * n**2 + np.sqrt(lifts)
            moves = np.where(p < 1 / rho, 1.0, 0.0)
            moves[p.argmax()] -= moves.sum()
            law = p + moves / rho
            lifts += 2 * abs(table[t, arms[t]] * moves[arms[t]]) / unit
        elif name == "favouring_last":
            # A loss below 0 gains more than a_t, one of 1 nothing.
            favour = (1 - table[t - 1, arms[t - 1]] / unit) / (t + n) if t else 0
            law = (p + favour * np.eye(n)[arms[t - 1]]) / (1 + favour)
        elif name == "each_arm_first" and t < n:
            law = np.eye(n)[t]
        elif name == "in_batches":
            law = np.eye(n)[arms[t - 1]] if t % 3 else p
        elif name in mixing:
            law = (1 - mixing[name]) * p + mixing[name] / n
        else:
            return None
        rows.append(law)
        mass += gamma * abs(table[t, arms[t]]) / law[arms[t]] if name == "adaptive" else 0
        gamma = n * unit / mass
    return np.array(rows)


@property_of(*SAMPLINGS, play=plays, arms=histories, table=signed_tables, unit=powers_of_two)
def test_sampling_schemes(play, arms, table, unit):
    """On the simplex and as stated; in another unit of the losses the same, bit for bit."""
    given = jnp.asarray(play), jnp.asarray(arms, jnp.int32)
    for make, scheme in SAMPLINGS.items():
        got = np.asarray(laws(scheme, *given, jnp.asarray(table), jnp.float64(1)))
        assert got.min() >= 0
        np.testing.assert_allclose(got.sum(axis=1), 1, rtol=1e-12, err_msg=make.__name__)
        wanted = wanted_laws(make.__name__, play, arms, table)
        if wanted is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-15, err_msg=make.__name__)
        scaled = laws(scheme, *given, jnp.asarray(table * unit), jnp.float64(unit))
        np.testing.assert_array_equal(np.asarray(scaled), got, err_msg=make.__name__)


@property_of(sampling.gap_exploration, play=plays, arms=histories, table=tables)
def test_gap_exploration_keeps_half_of_the_play(play, arms, table):
    """e_t(a) <= 1/(2n) for every arm: p' >= p / 2, and p' exceeds p by 1/(2n) at most."""
    how = jnp.asarray(play), jnp.asarray(arms, jnp.int32), jnp.asarray(table), jnp.float64(1)
    got = np.asarray(laws(SAMPLINGS[sampling.gap_exploration], *how))
    assert (got >= play / 2).all()
    assert (got <= play + 1 / (2 * NUM_ARMS) + 1e-15).all()


@property_of(sampling.fixed, exploration=st.sampled_from([-0.1, 1.5, float("nan"), "x", None]))
def test_an_exploration_is_a_probability(exploration):
    with pytest.raises(ValueError, match="exploration"):
        sampling.fixed(exploration)


def threshold(t, n):
    return 0.3


def limit(t, chance):
    return 0.4 * t * chance


ESTIMATIONS = {
    estimation.importance_weighted: estimation.importance_weighted(),
    estimation.clipped_below: estimation.clipped_below(),
    estimation.within_range: estimation.within_range(),
    estimation.in_batches: estimation.in_batches(1),
    estimation.implicit_exploration: estimation.implicit_exploration(schedule),
    estimation.reduced_variance: estimation.reduced_variance(threshold, 2.0),
    estimation.gain_weighted: estimation.gain_weighted(2.0),
    estimation.skipping: estimation.skipping(limit),
    estimation.skipping_above: estimation.skipping_above(level),
    estimation.centred: estimation.centred(0.7),
    estimation.centred_on_mean: estimation.centred_on_mean(),
    estimation.centred_on_best: estimation.centred_on_best(),
    estimation.centred_on_last: estimation.centred_on_last(),
    estimation.predicted_by_regression: estimation.predicted_by_regression("GD", 2.0),
    estimation.predicted_by_last_seen: estimation.predicted_by_last_seen(),
}


@jax.jit
def estimates(scheme, law, arms, table, unit):
    """The estimates [T, n], and their means over the arm that is drawn [T, n]."""

    def step(state, now):
        arm, losses = now
        every = jnp.arange(NUM_ARMS, dtype=jnp.int32)
        one = partial(scheme.estimate, state, law, law)
        all_of_them = jax.vmap(lambda i: one(i, losses[i]))(every)
        seen = sf.Round(law, law, arm, losses[arm], all_of_them[arm])
        return scheme.update(state, seen), (all_of_them[arm], law @ all_of_them)

    first = scheme.init(NUM_ARMS, table.dtype, unit)
    return jax.lax.scan(step, first, (arms, table))[1]


def wanted_means(name, law, arms, table):
    """E l~_t as the docstrings state it, [T, n]."""
    seen = table[np.arange(ROUNDS), arms]
    rounds = np.arange(ROUNDS)[:, None]
    if name == "clipped_below":
        size, floors = 1.0, []
        for loss in seen:
            floors.append(-2 * size)
            size = max(size, -max(loss, -2 * size))
        return np.maximum(table, np.array(floors)[:, None])
    if name == "within_range":
        return table  # all are within 1
    known = {"centred_on_mean": NUM_ARMS, "centred_on_best": NUM_ARMS - 1}
    if name in known:
        first = seen[: known[name]]
        centre = first.mean() if name == "centred_on_mean" else first.min()
        return np.where(rounds >= known[name], table - centre, 0)
    return {
        "implicit_exploration": table * law / (law + 1 / (rounds + NUM_ARMS)),
        "gain_weighted": table - 2,
        "skipping_above": np.where(np.abs(table) <= 0.5 / NUM_ARMS, table, 0),
        "skipping": np.where(np.abs(table) <= 0.4 * (rounds + 1) * law, table, 0),
    }.get(name, table)


@property_of(*ESTIMATIONS, law=points(), arms=histories, table=signed_tables, unit=powers_of_two)
def test_estimation_schemes(law, arms, table, unit):
    """The mean over the arms is the one stated; in another unit of loss the same in that unit."""
    given = jnp.asarray(law), jnp.asarray(arms, jnp.int32)
    for make, scheme in ESTIMATIONS.items():
        name = make.__name__
        got, mean = map(np.asarray, estimates(scheme, *given, jnp.asarray(table), jnp.float64(1)))
        wanted = wanted_means(name, law, np.array(arms), table)
        np.testing.assert_allclose(mean, wanted, rtol=0, atol=1e-12, err_msg=name)
        scaled, _ = estimates(scheme, *given, jnp.asarray(table * unit), jnp.float64(unit))
        np.testing.assert_array_equal(np.asarray(scaled), got * unit, err_msg=name)


LEARNT_SKIPPING = (estimation.doubling_skipping, estimation.balanced_skipping)


@property_of(
    *LEARNT_SKIPPING, law=points(), arms=histories, table=signed_tables, unit=powers_of_two
)
def test_skipping_by_a_learnt_scale(law, arms, table, unit):
    """The mean is the loss or 0, arm by arm; in another unit of loss the same in that unit."""
    given = jnp.asarray(law), jnp.asarray(arms, jnp.int32)
    for make in LEARNT_SKIPPING:
        scheme = make(num_rounds=ROUNDS)
        got, mean = map(np.asarray, estimates(scheme, *given, jnp.asarray(table), jnp.float64(1)))
        off = np.minimum(np.abs(mean - table), np.abs(mean))
        np.testing.assert_allclose(off, 0, rtol=0, atol=1e-12, err_msg=make.__name__)
        scaled, _ = estimates(scheme, *given, jnp.asarray(table * unit), jnp.float64(unit))
        np.testing.assert_array_equal(np.asarray(scaled), got * unit, err_msg=make.__name__)


@property_of(estimation.gain_weighted, estimation.reduced_variance, scale=not_positive_numbers)
def test_a_range_is_positive(scale):
    for make in (estimation.gain_weighted, partial(estimation.reduced_variance, threshold)):
        with pytest.raises(ValueError, match="scale is"):
            make(scale=scale)


def rate(t):
    return 1 / (t + 1)


def bonus(t, plays):
    return 1 / plays


barrier, entropy = potentials.log_barrier(), potentials.negative_entropy()
STRATEGIES = {
    full_information.ftrl: full_information.ftrl(entropy, rate),
    full_information.ftrl_by_arms: full_information.ftrl_by_arms(barrier, schedule),
    full_information.ada_ftrl: full_information.ada_ftrl(barrier),
    full_information.balanced_ftrl: full_information.balanced_ftrl(barrier, ROUNDS),
    full_information.barrier_descent: full_information.barrier_descent(0.02),
    full_information.clipped_ftrl: full_information.clipped_ftrl(barrier),
    full_information.restarting_ftrl: full_information.restarting_ftrl(entropy, ROUNDS),
    full_information.constant: full_information.constant(1),
    full_information.delayed_ftrl: full_information.delayed_ftrl(),
    full_information.doubling_ftrl: full_information.doubling_ftrl(potentials.tsallis(), ROUNDS),
    full_information.fixed_share: full_information.fixed_share(0.5, 0.01),
    full_information.hybrid_barrier_ftrl: full_information.hybrid_barrier_ftrl(scale=2.0),
    full_information.stability_matched_ftrl: full_information.stability_matched_ftrl(),
    full_information.variance_adaptive_ftrl: full_information.variance_adaptive_ftrl(ROUNDS),
    full_information.follow_the_leader: full_information.follow_the_leader(),
    full_information.lowest_index: full_information.lowest_index(bonus),
}


@jax.jit
def points_played(scheme, arms, table, unit):
    """p_2 ... p_{T+1} [T, n] of a full-information strategy that sees the losses [T, n]."""

    def step(state, now):
        arm, losses = now
        state = scheme.update(state, sf.Round(state.play, state.play, arm, losses[arm], losses))
        return state, state.play

    first = scheme.init(NUM_ARMS, table.dtype, unit)
    return jax.lax.scan(step, first, (arms, table))[1]


def wanted_points(name, arms, table):
    """The rules that have a closed form, [T, n]; None for the others."""
    totals, t = table.cumsum(axis=0), np.arange(1, ROUNDS + 1)[:, None]
    if name == "constant":
        return np.tile(np.eye(NUM_ARMS)[1], (ROUNDS, 1))
    if name == "follow_the_leader":
        return np.eye(NUM_ARMS)[totals.argmin(axis=1)]
    if name == "fixed_share":
        weights, points = np.full(NUM_ARMS, 1 / NUM_ARMS), []
        for losses in table:
            weights = weights * np.exp(-0.5 * losses) + np.e * 0.01 / NUM_ARMS
            weights = weights / weights.sum()
            points.append(weights)
        return np.array(points)
    if name == "ftrl":
        weights = np.exp(-(totals - totals.min(axis=1, keepdims=True)) / (t + 1))
        return weights / weights.sum(axis=1, keepdims=True)
    if name == "lowest_index":
        here = np.eye(NUM_ARMS)[arms]
        counts = here.cumsum(axis=0)
        mean = (here * table).cumsum(axis=0) / np.maximum(counts, 1)
        index = np.where(counts > 0, mean - 1 / np.maximum(counts, 1), -np.inf)
        return np.eye(NUM_ARMS)[index.argmin(axis=1)]
    return None


# Whole 64ths: sums and means of few are exact, so that ties are ties for the oracle, too.
whole = st.lists(
    st.lists(st.integers(0, 64).map(lambda k: k / 64), min_size=NUM_ARMS, max_size=NUM_ARMS),
    min_size=ROUNDS,
    max_size=ROUNDS,
).map(np.array)


@property_of(*STRATEGIES, arms=histories, table=whole, unit=powers_of_two)
def test_full_information_strategies(arms, table, unit):
    """On the simplex and as stated; in another unit of loss the same points, bit for bit."""
    given = jnp.asarray(arms, jnp.int32)
    for make, scheme in STRATEGIES.items():
        name = make.__name__
        got = np.asarray(points_played(scheme, given, jnp.asarray(table), jnp.float64(1)))
        assert got.min() >= 0
        np.testing.assert_allclose(got.sum(axis=1), 1, rtol=1e-12, err_msg=name)
        wanted = wanted_points(name, np.array(arms), table)
        if wanted is not None:
            np.testing.assert_allclose(got, wanted, rtol=1e-11, err_msg=name)
        scaled = points_played(scheme, given, jnp.asarray(table * unit), jnp.float64(unit))
        np.testing.assert_array_equal(np.asarray(scaled), got, err_msg=name)


@property_of(
    full_information.ada_ftrl, full_information.ftrl, full_information.barrier_descent,
    rate=not_positive_numbers.filter(lambda value: value is not None),
)  # fmt: skip
def test_rates_are_positive(rate):
    for make in (
        partial(full_information.ftrl, entropy),
        full_information.barrier_descent,
        partial(full_information.ada_ftrl, entropy),
    ):
        with pytest.raises(ValueError, match="is"):
            make(rate)


@property_of(
    full_information.proxy_gap,
    play=points(),
    arm=st.integers(0, NUM_ARMS - 1),
    loss=st.floats(0, 8, width=32),
    rate=st.floats(2.0**-10, 2.0**10),
)
def test_the_proxy_is_above_the_gap(play, arm, loss, rate):
    """min(l, 2 eta l^2 / sqrt(p)) >= M for the Tsallis entropy of power 1/2."""
    estimate = np.where(np.arange(NUM_ARMS) == arm, loss / play[arm], 0.0)
    numbers = [jnp.asarray(x) for x in (play, play)]
    seen = sf.Round(*numbers, jnp.int32(arm), jnp.float64(loss), jnp.asarray(estimate))
    gap = jax.jit(sf.mixability_gap)(potentials.tsallis(0.5), *seen[:1], seen[4], jnp.float64(rate))
    proxy = float(full_information.proxy_gap(seen, jnp.float64(rate)))
    assert 0 <= float(gap) <= proxy * (1 + 1e-10) + EPS**2
