"""Figures of the paper, which are empty in its source, and two that it should have had.

Every function returns a Matplotlib figure; `save` writes it as vector graphics and as PNG.
"""

import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from sfmab_jax import losses, strategies
from sfmab_jax.potentials import Potential, log_barrier
from sfmab_jax.results.plot_style import LINE_STYLES, mark_doubtful
from sfmab_jax.simulate import simulate
from sfmab_jax.theory import bounds
from sfmab_jax.theory.local_norms import local_norm, up_to
from sfmab_jax.theory.verify.claims_potentials import POTENTIALS, region_boundary

__all__ = [
    "FIGURES",
    "corollary_region",
    "potential_functions",
    "regret_and_scale",
    "regret_and_sparsity",
    "save",
    "triangles",
]

_OPTIONS: tuple[bounds.Exploration, ...] = ("adaptive", "decaying")
_BARS = "mean, 95% interval given each sequence"
_BLUE, _RED, _GREEN = "#0072B2", "#D55E00", "#009E73"


def save(figure: Figure, path: str | os.PathLike) -> list[Path]:
    """Write the figure as .pdf, .svg and .png, with these suffixes on ``path``."""
    paths = [Path(path).with_suffix(suffix) for suffix in (".pdf", ".svg", ".png")]
    for one in paths:
        figure.savefig(one, dpi=200)
    return paths


def _values(function, x: np.ndarray) -> np.ndarray:
    return np.asarray(function(jnp.asarray(x)))


def potential_functions() -> Figure:
    """Draw figure 1: the potentials of the three regularisers used here."""
    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    axes = figure.subplots()
    for (name, potential), style in zip(POTENTIALS.items(), LINE_STYLES):
        end = float(potential.inverse(jnp.asarray(3.0)))
        u = np.linspace(-4, end, 400)
        axes.plot(u, _values(potential.psi, u), label=f"{name}: {_FORMULAS[name]}", **style)
    axes.axvline(0, color="0.6", lw=0.8)
    axes.annotate("$a = 0$", (0, 2.55), (0.12, 2.55), color="0.4")
    axes.set(xlim=(-4, 1.3), ylim=(0, 3), xlabel="$u$", ylabel=r"$\psi(u)$")
    axes.set_title("Potentials: convex, increasing from 0 to infinity", fontsize=11)
    axes.legend(frameon=False, loc="upper left")
    axes.grid(alpha=0.3)
    return figure


_FORMULAS = {
    "log barrier": r"$-1/u$",
    "negative entropy": r"$e^u$",
    "Tsallis 1/2": r"$1/(4u^2)$",
}


def triangles(potential: Potential | None = None, x: float = 0.45) -> Figure:
    """Draw figures 2 and 3: the divergence is an area under psi, and a triangle fits into it.

    The area between psi and the level y, from v to u, is Breg_f(y || x) with x = psi(u) and
    y = psi(v); the triangle under the chord from u to u + phi(u) has area (x - y)^2 / (2m).
    """
    potential = log_barrier() if potential is None else potential
    top = 1.0
    bound = local_norm(potential, up_to(potential, top))
    u, end = (float(potential.inverse(jnp.asarray(z))) for z in (x, top))
    slope = float(bound.w(jnp.asarray([x]))[0])
    figure = Figure(figsize=(9.2, 3.9), layout="constrained")
    cases = ((0.5 * x, r"$v \leq u$"), (0.5 * (x + top), r"$u \leq v \leq u + \varphi(u)$"))
    for axes, (y, title) in zip(figure.subplots(1, 2), cases):
        v = float(potential.inverse(jnp.asarray(y)))
        low = min(u, v) - 0.35 * (end - u)
        curve = np.linspace(low, end + 0.02 * (end - u), 300)
        axes.plot(curve, _values(potential.psi, curve), color="black", lw=1.4, label=r"$\psi$")
        axes.plot([u, end], [x, top], color=_BLUE, ls="--", lw=1.2, label="chord, slope $m(u)$")
        between = np.linspace(min(u, v), max(u, v), 200)
        axes.fill_between(
            between, _values(potential.psi, between), y, color=_GREEN, alpha=0.2, lw=0
        )
        edge = _values(potential.psi, between)
        axes.plot(
            [*between, u, v],
            [*edge, y, y],
            color=_GREEN, lw=1.6, label=r"$\mathrm{Breg}_f(y\Vert x)$: the area",
        )  # fmt: skip
        axes.plot([u, u], [x, y], color=_GREEN, lw=1.6)
        corner = u + (y - x) / slope
        axes.fill(
            [u, u, corner], [x, y, y], color=_RED, alpha=0.45, lw=0,
            label=r"triangle: $(x-y)^2/(2m)$",
        )  # fmt: skip
        for place, name in ((u, "$u$"), (v, "$v$"), (end, r"$u+\varphi(u)$")):
            axes.axvline(place, ymax=0.84, color="0.75", lw=0.7, zorder=0)
            axes.annotate(name, (place, 0.02), (2, 0), textcoords="offset points", fontsize=9)
        for level, name in ((x, "$x$"), (y, "$y$"), (top, r"$\psi(u+\varphi(u))$")):
            axes.axhline(level, color="0.75", lw=0.7, zorder=0)
            axes.annotate(name, (low, level), (2, 2), textcoords="offset points", fontsize=9)
        axes.set(title=title, xlabel="argument of the potential", ylim=(0, 1.35 * top))
        axes.set_xlim(low, end + 0.16 * (end - low))
        axes.legend(frameon=False, fontsize=8, loc="upper left", ncols=2)
    figure.axes[0].set_ylabel(r"$\psi$")
    return figure


def corollary_region() -> Figure:
    """Draw figure 4: where y/x - 1 - ln(y/x) >= (x - y)^2/(2x), which contains the unit square."""
    figure = Figure(figsize=(4.8, 4.6), layout="constrained")
    axes = figure.subplots()
    ratio = np.geomspace(1e-6, 1e6, 4000)
    x = region_boundary(ratio)
    y = ratio * x
    axes.fill(
        np.concatenate([[0], x[::-1], [x[0]]]), np.concatenate([[0], y[::-1], [0]]),
        color=_BLUE, alpha=0.18, lw=0, label="the inequality holds",
    )  # fmt: skip
    axes.plot(x, y, color=_BLUE, lw=1.6, label="boundary: equality")
    axes.plot([0, 2], [0, 2], color="0.4", lw=0.9, ls=":", label="$x = y$: equality, 0 = 0")
    axes.plot([0, 1, 1], [1, 1, 0], color=_RED, lw=1.6, ls="--", label=r"the corollary: $(0, 1]^2$")
    axes.plot([1], [1], "o", color=_RED, ms=4)
    axes.annotate("(1, 1), slope $-1/2$", (1, 1), (1.12, 1.0), fontsize=9)
    axes.set(xlim=(0, 2), ylim=(0, 2.2), xlabel="$x$", ylabel="$y$", aspect="equal")
    axes.set_title(r"$\frac{y}{x} - 1 - \ln\frac{y}{x} \geq \frac{(x-y)^2}{2x}$", fontsize=12)
    axes.legend(fontsize=8, loc="upper right", framealpha=0.9)
    return figure


def regret_and_sparsity(
    *, num_arms: int = 10, num_rounds: int = 10_000, num_seeds: int = 256, size: float = 10.0
) -> Figure:
    """Draw the regret and both bounds on sparse losses as L_2 varies, at a fixed L_inf.

    The paper's case for itself: the bounds fall with L_2, where bounds in L_inf sqrt(nT) do not.
    """
    rates = np.geomspace(1e-3, 1, 7)
    sequences = [losses.sparse(num_arms=num_arms, rate=float(rate), size=size) for rate in rates]
    results = _play_both_options(sequences, num_rounds, num_seeds)
    figure = Figure(figsize=(6.2, 4.6), layout="constrained")
    axes = figure.subplots()
    l_2 = [result["adaptive"].norms.l_2[0, -1] for result in results]
    for option, style in zip(_OPTIONS, LINE_STYLES):
        _draw_regret(axes, l_2, [result[option] for result in results], option, style)
        lines = [bounds.scale_free(result[option].norms, option) for result in results]
        for reading, width in (("corrected", 1.8), ("tight", 0.9)):
            values = [getattr(line, reading)[0, -1] for line in lines]
            label = f"{option}: bound" + (", tight" if reading == "tight" else "")
            axes.plot(l_2, values, color=style["color"], ls=(0, (1, 1)), lw=width, label=label)
    flat = size * np.sqrt(num_arms * num_rounds)
    axes.axhline(flat, color="0.5", lw=1, label=r"$L_\infty\sqrt{nT}$, for comparison")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="$L_2$",
        ylabel=f"regret after {num_rounds:,} rounds\n{_BARS}",
    )
    axes.set_title(f"Sparse losses of size {size:g}, {num_arms} arms", fontsize=11)
    figure.legend(fontsize=8, frameon=False, loc="outside lower center", ncols=3)
    axes.grid(alpha=0.3)
    return figure


def regret_and_scale(
    *, num_arms: int = 10, num_rounds: int = 5_000, num_seeds: int = 256
) -> Figure:
    """Draw regret / scale as the scale varies: flat for large losses, not for small ones.

    The 1 in the learning rate and the 2n in the adaptive exploration carry the unit of the
    losses, so the algorithm is scale-free only in its bounds.
    """
    scales = np.geomspace(1e-6, 1e6, 13)
    sequences = [losses.uniform(num_arms=num_arms, scale=float(scale)) for scale in scales]
    results = _play_both_options(sequences, num_rounds, num_seeds)
    figure = Figure(figsize=(6.2, 4.0), layout="constrained")
    axes = figure.subplots()
    for option, style in zip(_OPTIONS, LINE_STYLES):
        _draw_regret(axes, scales, [result[option] for result in results], option, style, scales)
    norms = results[-1]["adaptive"].norms
    uniform = (norms.mean - norms.best)[0, -1] / scales[-1]
    axes.axhline(uniform, color="0.5", lw=1, ls="-.", label="uniform play")
    axes.set(xscale="log", xlabel="scale of the losses", ylabel=f"regret / scale\n{_BARS}")
    axes.set_ylim(bottom=0)
    axes.set_title(f"{num_arms} arms, {num_rounds:,} rounds, uniform losses", fontsize=11)
    axes.legend(fontsize=9, frameon=False)
    axes.grid(alpha=0.3)
    return figure


def _play_both_options(
    sequences: list[losses.LossSequence], num_rounds: int, num_seeds: int
) -> Any:
    """Return the `Results` of Algorithm 1, with both options, on each of the sequences."""
    return [
        simulate(
            {option: strategies.scale_free(option) for option in _OPTIONS},
            sequence,
            num_rounds=num_rounds,
            num_seeds=num_seeds,
            num_sequences=1,
            checkpoints=64,
            progress=False,
        )
        for sequence in sequences
    ]


def _draw_regret(axes, x, results, option: str, style: dict[str, Any], unit=1.0) -> None:
    """Draw the mean regret of each result at its x, with the 95% interval."""
    means = np.array([result.mean()[0, -1] for result in results]) / unit
    low, high = (np.array([r.interval(0.95)[k][0, -1] for r in results]) / unit for k in (0, 1))
    # Both can be seen even where they coincide.
    marker = {"marker": "o", "ms": 4} if option == _OPTIONS[0] else {"marker": "s", "ms": 7}
    axes.errorbar(
        x, means, yerr=[means - low, high - means], mfc="none", capsize=2,
        label=f"{option}: regret", **marker, **style,
    )  # fmt: skip
    doubtful = np.array([result.is_doubtful()[0, -1] for result in results])
    if doubtful.any():
        mark_doubtful(axes, np.asarray(x)[doubtful], means[doubtful], style["color"])


# By name, all with default arguments.
FIGURES = {
    "potential": potential_functions,
    "triangles": triangles,
    "region": corollary_region,
    "sparsity": regret_and_sparsity,
    "scale": regret_and_scale,
}
