"""The picture of a loss sequence: its losses over time, and what each arm costs in total."""

import numpy as np

from sfmab_jax.losses import LossSequence
from sfmab_jax.results.hardness import loss_chunks
from sfmab_jax.results.plot_style import LINE_STYLES, literal

__all__ = ["losses"]

_MOST_ARMS = 6


def losses(sequence: LossSequence, *, num_rounds: int, seed: int = 0, num_columns: int = 300):
    """Plot a loss sequence: its losses over time, and what each arm costs in total.

    Above is a map of the losses, averaged over the rounds of a column; below are the totals of
    the arms that lead at some time, six at most, less that of uniform play.

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.colors import Normalize, SymLogNorm
    from matplotlib.figure import Figure

    columns = min(num_columns, num_rounds)
    sums, count = np.zeros((columns, sequence.num_arms)), 0
    sizes = np.bincount(np.arange(num_rounds) * columns // num_rounds, minlength=columns)
    for rows in loss_chunks(sequence, num_rounds, seed=seed):
        places = np.arange(count, count + len(rows)) * columns // num_rounds
        np.add.at(sums, places, rows)
        count += len(rows)
    averages = sums / sizes[:, None]
    rounds = np.cumsum(sizes)
    relative = np.cumsum(sums - sums.mean(axis=1, keepdims=True), axis=0)

    figure = Figure(figsize=(6.4, 5.6), layout="constrained")
    above, below = figure.subplots(2, 1, sharex=True)
    largest = np.abs(averages).max() or 1.0
    typical = np.median(np.abs(averages)[averages != 0]) if averages.any() else 1.0
    lowest = 0.0 if averages.min() >= 0 else -largest
    norm, ticks = Normalize(lowest, largest), None
    if largest > 100 * typical:  # logarithmic only where the sizes ask for it
        norm = SymLogNorm(typical, vmin=lowest, vmax=largest)
        powers = 10.0 ** np.arange(np.ceil(np.log10(typical)) + 1, np.log10(largest))
        ticks = np.concatenate([-powers[::-1] if lowest else [], [0], powers])
    picture = above.imshow(
        averages.T,
        aspect="auto",
        interpolation="nearest",
        cmap="RdBu_r" if lowest else "Reds",
        norm=norm,
        extent=(0.5, num_rounds + 0.5, sequence.num_arms - 0.5, -0.5),
    )
    label = "loss" if columns == num_rounds else f"loss, mean of {num_rounds / columns:.3g} rounds"
    figure.colorbar(picture, ax=above, label=label, ticks=ticks, pad=0.01)
    above.set_ylabel("arm")
    above.yaxis.get_major_locator().set_params(integer=True)
    above.set_title(literal(f"{sequence.name}, {sequence.num_arms} arms"))
    # The arms that lead at some time.
    leading = np.argsort(relative.min(axis=0), kind="stable")[:_MOST_ARMS]
    for arm, style in zip(sorted(leading), LINE_STYLES, strict=False):
        below.plot(rounds, relative[:, arm], label=f"arm {arm}", lw=1.2, **style)
    below.axhline(0, color="0.5", lw=0.5)
    below.set_xlabel("round")
    below.set_ylabel("total loss less the arms' mean")
    figure.legend(loc="outside lower center", ncols=_MOST_ARMS, fontsize=8, frameon=False)
    return figure
