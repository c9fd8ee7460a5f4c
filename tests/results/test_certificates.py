"""Pathwise certificates against a plain NumPy transcription, and along many paths."""

import itertools

import jax
import numpy as np
import paper_loop
import pytest
from scipy.optimize import minimize_scalar
from tiers import some_in_default

import sfmab_jax as sf
from sfmab_jax.results import certificate
from sfmab_jax.theory import certificates

OPTIONS = ("decaying", "adaptive")
FAMILIES = sf.losses.LOSSES
SOME = ["sparse", "random_walk"]
BOTH = {option: sf.strategies.scale_free(option) for option in OPTIONS}


def least(function):
    """The minimum over epsilon in (0, 1] of a function that is convex in it."""
    found = minimize_scalar(
        lambda x: function(np.exp(x)), bounds=(-60, 0), method="bounded", options={"xatol": 1e-10}
    )
    return min(found.fun, function(1.0))


def by_hand(losses, exploration, arms):
    """The certificates and terms after each round, from the plain loop's trajectory."""
    game = paper_loop.play_game(losses, exploration, arms=arms)
    num_rounds, n = losses.shape
    plays = np.vstack([np.full(n, 1 / n), game.play])

    def barrier(q):
        return -np.sum(np.log(q)) - n * np.log(n)

    rows = []
    played = sampling = weighted = squares = largest = 0.0
    for t in range(num_rounds):
        estimate = game.estimates[t] - (game.estimates[t - 1] if t else 0)
        played += estimate @ plays[t]
        sampling += losses[t] @ (game.probabilities[t] - plays[t])
        weighted += game.gaps[t] * barrier(plays[t + 1])
        squares += plays[t] @ estimate**2
        largest = max(largest, np.abs(estimate).max())
        total, gaps, eta = game.estimates[t], game.gaps[: t + 1].sum(), game.learning_rate[t]
        phi = barrier(plays[t + 1]) / eta + total @ plays[t + 1]
        i = np.argmin(losses[: t + 1].sum(axis=0))
        excess = total.mean() - total[i]

        def vertex(epsilon, eta=eta, excess=excess):
            point = np.full(n, epsilon / n)
            point[0] += 1 - epsilon
            return barrier(point) / eta + epsilon * excess

        def star(epsilon, excess=excess, largest=largest, squares=squares):
            log = np.log(1 / epsilon)
            return (
                log * (1 + 2 * largest) + 2 * largest
                + np.sqrt(n * squares) * (log + 1) + epsilon * excess
            )  # fmt: skip

        estimated = played - total[i]
        rows.append(
            [
                gaps - weighted / n + phi - total[i] - estimated,
                gaps + phi - total[i] - estimated,
                gaps + least(vertex) - estimated,
                least(star) - estimated,
                estimated,
                sampling,
            ]
        )
    return np.array(rows)


ROUNDS = 200  # of every game that is followed: one program for each strategy, dtype and arms


@jax.jit
def follow(bandit, observer, losses, arms):
    """Rows of the observer when these arms are played, [T, R]."""

    def step(carry, now):
        state, carried = carry
        arm, loss = now
        play, probabilities = state.full_information.play, bandit.probabilities(state)
        seen = sf.Round(play, probabilities, arm, loss[arm], play)
        after = bandit.update(state, arm, loss[arm])
        carried = observer.follow(carried, state, seen, loss, after)
        return (after, carried), observer.row(carried, after)

    start = bandit.init(losses.shape[1], losses.dtype)
    return jax.lax.scan(step, (start, observer.init(start)), (arms, losses))[1]


def followed(bandit, losses, arms, dtype):
    """The certificates from the package's observer, [T] each; rounds of no loss are added."""
    num_rounds, num_arms = losses.shape
    given = np.zeros((ROUNDS, num_arms), dtype), np.zeros(ROUNDS, np.int32)
    given[0][:num_rounds], given[1][:num_rounds] = losses, arms
    rows = np.asarray(follow(bandit, certificate.observe_certificates(bandit), *given))
    return certificate.certificate_from_rows(rows[:num_rounds], num_arms, 1.0)


@pytest.mark.parametrize(
    ("num_arms", "exploration"),
    some_in_default(
        itertools.product([2, 5, 70], OPTIONS),
        [(5, "adaptive"), (5, "decaying"), (70, "adaptive")],
    ),
)
def test_certificates_agree_with_a_plain_loop(num_arms, exploration):
    """In float64 to 1e-9 of the numbers they come from; also the arm grouping above 64 arms."""
    generator = np.random.default_rng(num_arms)
    losses = generator.normal(size=(60, num_arms)) * np.exp(generator.normal(size=(60, 1)))
    arms = generator.integers(num_arms, size=60)
    wanted = by_hand(losses, exploration, arms)
    got = followed(BOTH[exploration], losses, arms, np.float64)
    size = np.abs(wanted).max()
    for column, name in enumerate(certificate.Certificate._fields[:6]):
        np.testing.assert_allclose(
            getattr(got, name), wanted[:, column], rtol=1e-7, atol=1e-9 * size, err_msg=name
        )
    assert got.violations[-1] == 0


@pytest.mark.parametrize(
    ("num_arms", "exploration", "dtype"),
    some_in_default(
        itertools.product([1, 4, 9], OPTIONS, [np.float32, np.float64]),
        [(1, "adaptive", np.float32), (4, "adaptive", np.float32), (4, "decaying", np.float32)],
    ),
)
def test_no_violation_on_adversarial_histories(num_arms, exploration, dtype):
    """Forced arms with losses over many powers of ten: what sampling would hardly ever show."""
    for seed in range(4):
        generator = np.random.default_rng([5, num_arms, seed])
        sizes = np.exp(4 * generator.normal(size=(150, 1)))
        losses = sizes * generator.normal(size=(150, num_arms))
        got = followed(BOTH[exploration], losses, generator.integers(num_arms, size=150), dtype)
        assert got.violations[-1] == 0
        slack = 1e-5 * max(np.abs(field).max() for field in got[:6])
        for below, above in itertools.pairwise(got[:4]):
            assert (above >= below - slack).all()


def test_a_broken_game_is_noticed():
    """With gaps taken at half their size the certificates fail, and are counted."""
    full = sf.full_information.ada_ftrl(sf.potentials.log_barrier())

    def halved(state, seen):
        after = full.update(state, seen)
        gaps = after.gaps._replace(value=(after.gaps.value + state.gaps.value) / 2)
        return after._replace(gaps=gaps)

    broken = sf.compose(
        sf.sampling.decaying(),
        sf.estimation.importance_weighted(),
        full._replace(update=jax.tree_util.Partial(halved)),
    )
    generator = np.random.default_rng(0)
    losses = generator.normal(size=(200, 3)) - [1.0, 0, 0]
    with pytest.raises(ValueError, match="no certificate is known"):
        certificate.observe_certificates(broken)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(certificate, "_check", lambda bandit: None)
        got = followed(broken, losses, generator.integers(3, size=200), np.float64)
    assert got.violations[-1] > 0


@pytest.mark.parametrize("exploration", some_in_default(OPTIONS, ["adaptive"]))
def test_simulate_streams_certificates(exploration, tmp_path):
    """The terms add up, the estimated regret has the mean of the true one, files keep it all."""
    # The sizes of `certified_families` below, and so its program; whole batches of each sequence.
    losses = np.random.default_rng(1).uniform(-1, 1, size=(2, 400, 5)) - [0.3, 0, 0, 0, 0]
    result = sf.simulate(BOTH[exploration], losses, certificate=True, num_seeds=512)
    known = result.certificate
    assert known.refined.shape == (2, 512, 64)
    assert known.violations.max() == 0
    terms = certificates.decomposition(result)
    np.testing.assert_allclose(sum(terms), result.expected_regret, atol=1e-9)
    # Term (2) is a martingale: its mean is zero, here to four standard errors.
    late = terms.estimation[..., [-20, -1]]
    deviation = late.std(axis=1, ddof=1) / np.sqrt(512)
    assert (np.abs(late.mean(axis=1)) < 4 * deviation).all()
    rungs = certificates.ladder(result, exploration)
    assert tuple(rungs) == certificates.ORDER
    for below, above in zip(certificates.ORDER, certificates.ORDER[1:]):
        assert (rungs[below] <= rungs[above] + 1e-6 * np.abs(rungs[above])).all(), (below, above)
    read = sf.load(result.save(tmp_path / "x.npz"))["strategy"].certificate
    for mine, other in zip(known, read, strict=True):
        np.testing.assert_array_equal(mine, other)
    plain = sf.simulate(sf.strategies.uniform(), losses, num_seeds=2)
    assert plain.certificate is None
    with pytest.raises(ValueError, match="certificate=True"):
        certificates.decomposition(plain)


def test_certificates_follow_the_unit_of_the_losses():
    """Losses of 1e30 are counted in a power of two; the certificates come back in their unit."""
    losses = np.random.default_rng(2).normal(size=(400, 5))
    scaled = 2.0**100
    options = {"num_seeds": 32, "certificate": True}
    huge = sf.simulate(BOTH["decaying"], scaled * losses, **options).certificate
    same = sf.strategies.scale_free("decaying", beta=1 / scaled)
    one = sf.simulate(same, losses, **options).certificate
    assert huge.violations.max() == 0
    for name in certificate.CERTIFICATES:
        np.testing.assert_allclose(getattr(huge, name) / scaled, getattr(one, name), rtol=1e-3)


@pytest.mark.parametrize(
    "full_information",
    [
        sf.full_information.ftrl(sf.potentials.log_barrier(), 0.1),
        sf.full_information.ada_ftrl(sf.potentials.tsallis()),
    ],
)
def test_other_strategies_are_refused(full_information):
    bandit = sf.compose(
        sf.sampling.decaying(), sf.estimation.importance_weighted(), full_information
    )
    with pytest.raises(ValueError, match="no certificate is known"):
        sf.simulate(bandit, [[1.0, 2.0]], certificate=True)


@pytest.mark.parametrize("families", some_in_default([list(FAMILIES), SOME], [SOME]))
def test_every_family_in_one_table(families):
    """Rounds times seeds of checks on each family and option, none violated, means in order."""
    made = {name: FAMILIES[name] for name in families}
    rows = certificates.certified_families(made, num_rounds=400, num_seeds=256)
    assert len(rows) == 2 * len(families)
    for row in rows:
        assert row.checks == 400 * 256
        assert row.violations == 0
        assert row.ordered, row


def test_all_zero_losses_are_in_order():
    """Every rung is 0 there with decaying exploration: nothing rises, nothing is undefined."""
    family = {"zero": sf.losses.LOSSES["zero"]}
    rows = certificates.certified_families(family, num_rounds=400, num_seeds=256)
    assert all(row.ordered and np.isfinite(row.rises).all() for row in rows)
    assert any(max(row.rungs) == 0 for row in rows)
