"""Plot of worst cases: the losses, and their regret beside the bound and the rival's."""

from collections.abc import Mapping

import numpy as np

from sfmab_jax.results.curves import draw_curves, label_y, mean_curves, name_lines
from sfmab_jax.results.plot_style import literal
from sfmab_jax.worst_case.evaluation import WorstCase

__all__ = ["worst_cases"]


def worst_cases(found: Mapping[str, WorstCase]):
    """Plot a row for each strategy: the losses found as a map, and the regret they cause.

    On the right is mean regret against the rounds with its 95% interval: on the sequence found, on
    the best built-in adversary under the same constraint, and the bound at the last round.

    Returns:
      The Matplotlib figure.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 0.6 + 2.1 * len(found)), layout="constrained")
    rows = figure.subplots(len(found), 2, squeeze=False, width_ratios=(1.6, 1))
    for (name, worst), (left, right) in zip(found.items(), rows):
        _draw_losses(figure, left, worst, name)
        _draw_regret(right, worst)
    constraint = next(iter(found.values())).constraint
    figure.suptitle(f"Worst losses found, {constraint}", fontsize=11)
    for axes in rows[-1]:
        axes.set_xlabel("round")
    return figure


def _draw_losses(figure, axes, worst: WorstCase, name: str) -> None:
    num_rounds, num_arms = worst.table.shape
    largest = np.abs(worst.table).max() or 1.0
    lowest = 0.0 if worst.table.min() >= 0 else -largest
    # The best arm in hindsight is the last row of every map.
    order = np.argsort(-worst.table.sum(axis=0), kind="stable")
    picture = axes.imshow(
        worst.table[:, order].T,
        aspect="auto",
        interpolation="nearest",
        cmap="RdBu_r" if lowest else "Reds",
        vmin=lowest,
        vmax=largest,
        extent=(0.5, num_rounds + 0.5, num_arms - 0.5, -0.5),
    )
    figure.colorbar(picture, ax=axes, label="loss")
    axes.set_yticks(range(num_arms), [str(arm) for arm in order])
    axes.set_ylabel("arm, best last")
    axes.set_title(literal(name), fontsize=9)


def _draw_regret(axes, worst: WorstCase) -> None:
    results = {"found": worst.result, worst.rival: worst.rival_result}
    labels = {
        name: literal(f"{name}: {result.mean()[0, -1]:.3g}") for name, result in results.items()
    }
    curves = mean_curves(results)
    words = name_lines(draw_curves(axes, curves), curves, labels)
    axes.yaxis.label.set_size(8)
    label_y(axes, f"mean regret\n{words}")
    axes.grid(alpha=0.3)
    title = "no bound known" if worst.bound is None else f"bound at the end: {worst.bound:.4g}"
    axes.set_title(title, fontsize=9)
    axes.legend(frameon=False, fontsize=8)
