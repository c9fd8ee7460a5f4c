"""Properties of loss families, of what is made of them, and of their measures."""

import inspect
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from fuzzing import NOT_NUMBERS, RIGHT
from hypothesis import strategies as st
from loss_samples import rows
from properties import NUM_ARMS, arrays, not_positive_numbers, powers_of_two, property_of, seeds

import sfmab_jax as sf
from sfmab_jax import losses
from sfmab_jax.losses import LOSSES

ROUNDS = 8
tables = arrays(ROUNDS, NUM_ARMS)
base = losses.gaussian(num_arms=NUM_ARMS)


def first_rows(sequence, seed):
    return np.asarray(rows(sequence, ROUNDS, seed))


@st.composite
def parameters(draw, name):
    known = set(inspect.signature(LOSSES[name]).parameters) - {"num_arms", "scale"}
    chosen = draw(st.sets(st.sampled_from(sorted(known)))) if known else ()
    return {one: draw(st.sampled_from(RIGHT[one])) for one in sorted(chosen)}


@pytest.mark.parametrize("name", LOSSES)
@property_of(*LOSSES.values(), examples=4, data=st.data(), seed=seeds, unit=powers_of_two)
def test_families(name, data, seed, unit):
    """Finite, a function of the seed alone; a power of two in the scale is one in the losses."""
    given = data.draw(parameters(name))
    one, other = (LOSSES[name](num_arms=NUM_ARMS, scale=c, **given) for c in (1.0, unit))
    drawn = first_rows(one, seed)
    assert drawn.shape == (ROUNDS, NUM_ARMS)
    assert drawn.dtype == np.float32
    assert np.isfinite(drawn).all()
    np.testing.assert_array_equal(first_rows(one, seed), drawn)
    np.testing.assert_array_equal(first_rows(other, seed), drawn * np.float32(unit))
    assert other.magnitude == pytest.approx(one.magnitude * unit)
    assert one.magnitude > 0


@property_of(
    *LOSSES.values(),
    examples=150,
    name=st.sampled_from(sorted(LOSSES)),
    place=st.integers(0, 9),
    value=st.sampled_from([value for value in NOT_NUMBERS if value != []]),
)
def test_wrong_parameters_are_refused(name, place, value):
    names = list(inspect.signature(LOSSES[name]).parameters)
    with pytest.raises(ValueError, match=r"(?s).+"):
        LOSSES[name](**{names[place % len(names)]: value})


@property_of(
    losses.scaled,
    losses.shifted,
    losses.clipped,
    losses.enveloped,
    losses.permuted,
    seed=seeds,
    factor=st.floats(2.0**-10, 2.0**10, width=32),
    vector=arrays(NUM_ARMS),
    ends=arrays(2).map(sorted),
)
def test_sequences_made_of_one(seed, factor, vector, ends):
    """Each against the plain arithmetic on the rows of the sequence it is made of."""
    plain = first_rows(base, seed)
    scaled = first_rows(losses.scaled(base, factor), seed)
    np.testing.assert_array_equal(scaled, plain * np.float32(factor))
    shifted = first_rows(losses.shifted(base, vector), seed)
    np.testing.assert_array_equal(shifted, plain + np.float32(vector))
    clipped = first_rows(losses.clipped(base, *map(float, ends)), seed)
    np.testing.assert_array_equal(clipped, np.clip(plain, *np.float32(ends)))
    envelope = losses.enveloped(base, falling, peak=1.0, start=factor)
    rounds = np.arange(1, ROUNDS + 1, dtype=np.float32)[:, None]
    np.testing.assert_allclose(
        first_rows(envelope, seed), plain * np.float32(factor) / rounds, rtol=1e-6
    )
    # Rows of arms in one order; which rows, another test says: the key of the base is another.
    table = np.arange(ROUNDS * NUM_ARMS, dtype=np.float64).reshape(ROUNDS, NUM_ARMS)
    permuted = first_rows(losses.permuted(table), seed)
    order = permuted[0].astype(int)
    assert sorted(order) == list(range(NUM_ARMS))
    np.testing.assert_array_equal(permuted, table[:, order])


def falling(t, start):
    return start / t


@property_of(
    losses.mixed,
    losses.concatenated,
    seed=seeds,
    table=tables,
    other=tables,
    length=st.integers(1, ROUNDS - 1),
    weights=st.sampled_from([(1.0, 0.0), (0.0, 2.0), (1.0, 3.0)]),
)
def test_sequences_made_of_several(seed, table, other, length, weights):
    """Every row of a mixture is one of theirs; parts follow each other from their own round 1."""
    table, other = np.float32(table), np.float32(other)
    mixed = first_rows(losses.mixed([table, other], weights), seed)
    of_first = (mixed == table).all(axis=1)
    of_second = (mixed == other).all(axis=1)
    assert (of_first | of_second).all()
    assert of_first.all() or weights[1] > 0
    assert of_second.all() or weights[0] > 0
    joined = losses.concatenated([table, other], [length])
    assert joined.num_rounds == length + ROUNDS
    wanted = np.concatenate([table[:length], other])[:ROUNDS]
    np.testing.assert_array_equal(first_rows(joined, seed), wanted)


@property_of(
    losses.scaled,
    losses.shifted,
    losses.clipped,
    losses.enveloped,
    losses.mixed,
    losses.concatenated,
    value=not_positive_numbers.filter(lambda value: not isinstance(value, float) or value != value),
)
def test_wrong_combinations_are_refused(value):
    for make in (
        lambda: losses.scaled(base, value),
        lambda: losses.shifted(base, [value] * NUM_ARMS),
        lambda: losses.shifted(base, [0.0] * (NUM_ARMS + 1)),
        lambda: losses.clipped(base, value, 1.0),
        lambda: losses.enveloped(base, falling, peak=value),
        lambda: losses.mixed([base], [0.0]),
        lambda: losses.mixed([base, losses.zero(num_arms=NUM_ARMS + 1)], [1.0, 1.0]),
        lambda: losses.concatenated([base, base], [value]),
        lambda: losses.concatenated([base, base], []),
    ):
        with pytest.raises(ValueError, match=r"(?s).+"):
            make()


@property_of(losses.from_array, losses.as_loss_sequence, table=tables, bad=st.integers(0, 23))
def test_arrays_are_sequences(table, bad):
    """The table itself, its size, and a hole in it named by its place."""
    sequence = losses.as_loss_sequence(table)
    assert losses.as_loss_sequence(sequence) is sequence
    other = losses.from_array(table)
    assert vars(sequence) == vars(replace(other, table=sequence.table))
    assert sequence != other
    np.testing.assert_array_equal(sequence.table[0], table)
    assert (sequence.num_rounds, sequence.num_arms, sequence.num_sequences) == (ROUNDS, NUM_ARMS, 1)
    assert sequence.magnitude == (np.abs(table).max() or 1.0)
    holed = table.copy()
    holed.flat[bad] = np.nan
    t, i = divmod(bad, NUM_ARMS)
    with pytest.raises(ValueError, match=f"round {t + 1}, arm {i} "):
        losses.from_array(holed)


@property_of(
    losses.from_file, table=tables, suffix=st.sampled_from([".npy", ".npz", ".csv", ".parquet"]),
    cut=st.integers(1, 60),
)  # fmt: skip
def test_files_hold_their_tables(tmp_path_factory, table, suffix, cut):
    """What was written is what is read, and a file that was cut short is refused by its name."""
    path = tmp_path_factory.mktemp("losses") / f"table{suffix}"
    if suffix == ".npy":
        np.save(path, table)
    elif suffix == ".npz":
        np.savez(path, table)
    elif suffix == ".csv":
        path.write_text("\n".join(",".join(map(repr, row.tolist())) for row in table))
    else:
        import pandas as pd

        pd.DataFrame(table, columns=list("abc")).to_parquet(path)
    sequence = losses.from_file(path)
    np.testing.assert_array_equal(np.asarray(sequence.table[0, :]), table)
    assert sequence.magnitude == (np.abs(table).max() or 1.0)
    if suffix == ".npy":
        path.write_bytes(path.read_bytes()[:-cut])
        with pytest.raises(ValueError, match=r"table\.npy"):
            losses.from_file(path)


def coin(key, t, chance):
    return jax.random.bernoulli(key, chance, (NUM_ARMS,)).astype(jnp.float32)


def count(total, key, t, step):
    total = total + step
    return total, jnp.full(NUM_ARMS, total)


def nothing(key, step):
    return jnp.float32(0)


@property_of(
    losses.from_function, losses.from_recurrence, seed=seeds, chance=st.floats(0, 1, width=32),
    step=st.integers(-8, 8).map(float),
)  # fmt: skip
def test_sequences_from_functions(seed, chance, step):
    """The key of a round is the sequence's with the round folded in; memory is carried along."""
    drawn = first_rows(losses.from_function(coin, NUM_ARMS, chance=chance), seed)
    key = jax.random.key(seed)
    wanted = [coin(jax.random.fold_in(key, t), t, np.float32(chance)) for t in (1, ROUNDS)]
    np.testing.assert_array_equal(drawn[[0, -1]], np.stack(wanted))
    counted = first_rows(losses.from_recurrence(nothing, count, NUM_ARMS, step=step), seed)
    np.testing.assert_array_equal(counted[:, 0], step * np.arange(1, ROUNDS + 1))
    for make in (losses.from_function, lambda *given: losses.from_recurrence(nothing, *given)):
        for wrong in (0, -1, 2.5):
            with pytest.raises(ValueError, match="num_arms"):
                make(coin, wrong)


@property_of(sf.hardness, table=tables, unit=powers_of_two)
def test_hardness_is_the_plain_formula(table, unit):
    """Against NumPy on the whole table; homogeneous in the losses."""
    got, scaled = sf.hardness(table), sf.hardness(table * unit)
    totals = table.sum(axis=0)
    wanted = {
        "l_1": np.abs(table).sum(),
        "l_2": (table**2).sum(),
        "l_inf": np.abs(table).max(),
        "s_inf": np.abs(totals).max(),
        "small_loss": totals.min(),
        "variance": ((table - table.mean(axis=0)) ** 2).sum(),
        "path_length": np.abs(np.diff(table, axis=0)).max(axis=1).sum(),
        "effective_range": np.ptp(table, axis=1).max(),
        "sparsity": np.count_nonzero(table, axis=1).max(),
    }
    degrees = {"l_2": 2, "variance": 2, "sparsity": 0}
    for name, value in wanted.items():
        np.testing.assert_allclose(getattr(got, name), [value], rtol=1e-12, atol=1e-13)
        bigger = getattr(got, name) * unit ** degrees.get(name, 1)
        np.testing.assert_array_equal(getattr(scaled, name), bigger)
    np.testing.assert_allclose(scaled.tail_index, got.tail_index, rtol=1e-9)
