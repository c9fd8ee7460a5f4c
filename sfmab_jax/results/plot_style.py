"""How plots look: lines that differ without colour, legends that leave room, sizes for print."""

import math
import re
import textwrap
from typing import Any

__all__ = [
    "LINE_STYLES",
    "add_legend",
    "add_shared_legend",
    "inches",
    "line_style",
    "literal",
    "mark_doubtful",
    "paper",
    "shade",
    "wrapped",
]

# Colours for colour-blind readers, Okabe and Ito's and darker ones, light and dark by turns, with a
# dash pattern each. Bounds alone are dotted.
LINE_STYLES: list[dict[str, Any]] = [
    {"color": "#0072B2", "linestyle": "-"},
    {"color": "#E69F00", "linestyle": (0, (5, 2))},
    {"color": "#882255", "linestyle": (0, (6, 1.5, 1.2, 1.5))},
    {"color": "#56B4E9", "linestyle": (0, (2, 1.2))},
    {"color": "#117733", "linestyle": (0, (8, 3.5))},
    {"color": "#CC79A7", "linestyle": (0, (4, 1.2, 1.2, 1.2, 1.2, 1.2))},
    {"color": "#000000", "linestyle": (0, (4, 4))},
    {"color": "#009E73", "linestyle": (0, (10, 2, 3, 2))},
    {"color": "#332288", "linestyle": (0, (3, 1.2, 3, 1.2, 1.2, 1.2))},
    {"color": "#D55E00", "linestyle": (0, (10, 1.5, 1.2, 1.5))},
    {"color": "#7F4F24", "linestyle": (0, (6, 4, 2, 4))},
    {"color": "#999933", "linestyle": (0, (14, 2, 1.2, 1.5, 1.2, 1.5, 1.2, 2))},
]
_MARKERS = "os^DvPX*<>"
_DOUBTFUL = "doubtful: few games or heavy tails"
# A legend inside the axes takes this part of their height at most.
_MOST_OF_AXES = 0.4
# Text of longer ones, in points, at most.
_LONG_LEGEND_SIZE = 8.0
_LEGEND: dict[str, Any] = {"framealpha": 0.7, "edgecolor": "none", "handlelength": 3}
# The width of a letter, in sizes of its font, about.
_LETTER = 0.55
# In print, a figure over one or two columns of text: its width and height in inches.
_PAPER_SIZES = {1: (3.25, 2.4), 2: (6.75, 2.9)}


def line_style(number: int) -> dict[str, Any]:
    """Return colour, dashes and markers of a plot's line by its number, for `Axes.plot`.

    The first ten differ in each of them; after twelve the colours come again with other dashes and
    markers, and the first sixty styles are all different.
    """
    import matplotlib

    colours, turn = len(LINE_STYLES), number // len(LINE_STYLES)
    style = {
        "color": LINE_STYLES[number % colours]["color"],
        "linestyle": LINE_STYLES[(number + 7 * turn) % colours]["linestyle"],
        "marker": _MARKERS[number % len(_MARKERS)],
        "markersize": matplotlib.rcParams["lines.markersize"] * 2 / 3,
        # Along the line, in parts of the diagonal of the axes; not at the same places as others.
        "markevery": (0.03 * (number % 4), 0.12),
    }
    hollow = {"markerfacecolor": "white"} if number // len(_MARKERS) % 2 else {}
    return style | hollow


def literal(name: str) -> str:
    """Return a name such that Matplotlib draws it as it is: not as a formula, and in the legend.

    Dollars are escaped; a space of no width stands before an underscore, which would hide a line.
    """
    return ("\u200b" if name.startswith("_") else "") + name.replace("$", r"\$")


def shade(
    axes: Any, x: Any, low: Any, high: Any, color: str, alpha: float = 0.2, steps: bool = False
) -> None:
    """Shade the band between two curves [C]; a bar if they have a single point."""
    if len(x) == 1:
        axes.vlines(x, low, high, color=color, alpha=min(1.0, 2 * alpha), lw=3)
    else:
        step = "post" if steps else None
        axes.fill_between(x, low, high, color=color, alpha=alpha, lw=0, step=step)


def inches(axes: Any) -> tuple[float, float]:
    """Return the width and the height of axes, as the last layout left them."""
    width, height = axes.get_window_extent().size / _root(axes.figure).dpi
    return width, height


def wrapped(text: str, width: float, size: float) -> str:
    """Break a text of so many points into lines of so many inches, first where it says of what."""
    letters = max(20, int(width * 72 / (_LETTER * size)))
    if any(len(line) > letters for line in text.split("\n")):
        text = re.sub(" (?=over |given )", "\n", text)
    return "\n".join(textwrap.fill(line, letters) for line in text.split("\n"))


def mark_doubtful(axes: Any, x: Any, y: Any, color: str) -> None:
    """Put a question mark beside points whose mean is doubtful; the legend says what it means."""
    from matplotlib.transforms import offset_copy

    mark: dict[str, Any] = {"linestyle": "none", "marker": "$?$", "markersize": 6}
    beside = offset_copy(axes.transData, axes.figure, x=6, units="points")
    axes.plot(x, y, color=color, transform=beside, **mark)
    if _DOUBTFUL not in axes.get_legend_handles_labels()[1]:
        axes.plot([], [], color="0.3", label=_DOUBTFUL, **mark)


def add_legend(axes: Any) -> float:
    """Add a legend inside the axes, or below them if it is long; the figure then grows by it.

    Returns:
      The part of the axes' height that it takes, 0 below them.
    """
    labels = axes.get_legend_handles_labels()[1]
    figure = _root(axes.figure)
    width, height = inches(axes)
    size = _font_size()
    part = (len(labels) + 1) * _line_height(size) / height
    if part <= _MOST_OF_AXES:
        axes.legend(**_LEGEND)
        return part
    from matplotlib.transforms import ScaledTranslation

    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    small = min(size, _LONG_LEGEND_SIZE)
    columns = _fitting_columns(labels, width, small)
    # Below the ticks' labels and the label of the axis.
    below = ScaledTranslation(0, -(10 + 2.6 * size) / 72, figure.dpi_scale_trans)
    axes.legend(
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=axes.transAxes + below,
        ncols=columns,
        fontsize=small,
        **_LEGEND,
    )
    extra = (math.ceil(len(labels) / columns) + 1) * _line_height(small)
    figure.set_size_inches(figure.get_figwidth(), figure.get_figheight() + extra)
    return 0.0


def add_shared_legend(figure: Any, panels: Any, last: tuple[str, ...] = ()) -> None:
    """Add one legend for all panels above them; the figure grows by its rows but the first.

    Args:
      figure: with a constrained layout, and room for a row.
      panels: the axes, whose labels are collected.
      last: how labels begin that come last.
    """
    lines: dict[str, Any] = {}
    for axes in panels:
        lines |= {k: h for h, k in zip(*axes.get_legend_handles_labels()) if k not in lines}
    lines = dict(sorted(lines.items(), key=lambda item: item[0].startswith((*last, _DOUBTFUL))))
    width, height = figure.get_size_inches()
    size = _font_size()
    columns = _fitting_columns(list(lines), width, size)
    figure.legend(lines.values(), lines, loc="outside upper center", ncols=columns, **_LEGEND)
    rows = math.ceil(len(lines) / columns)
    figure.set_size_inches(width, height + (rows - 1) * _line_height(size))


def paper(column: int = 1) -> Any:
    """Set figures for print within a ``with``: their size, that of the text, and fonts in PDFs.

    Text has 8 points and the legend 7, as the captions around them; TrueType fonts are embedded
    (type 42), as IEEE and ACM demand. Include the file without scaling it. Save it inside the
    ``with``; a long legend makes a figure higher, never wider.

    Args:
      column: how many columns of text the figure spans: 1, 3.25 inches, or 2, 6.75 inches.

    >>> import sfmab_jax as sf
    >>> result = sf.simulate(sf.strategies.uniform(), [[1.0, 0.0], [0.0, 0.5]], num_seeds=4)
    >>> with sf.plotting.paper(column=1):
    ...     figure = result.plot().figure  # and figure.savefig("regret.pdf")
    >>> print(*figure.get_size_inches())
    3.25 2.4
    """
    if column not in _PAPER_SIZES:
        raise ValueError(f"column is {column!r}; choose 1 or 2")
    import matplotlib

    return matplotlib.rc_context(
        {
            "figure.figsize": _PAPER_SIZES[column],
            "font.size": 8,
            "axes.labelsize": 8,
            "axes.titlesize": 8,
            "xtick.labelsize": 7,
            "ytick.labelsize": 7,
            "legend.fontsize": 7,
            "axes.linewidth": 0.6,
            "lines.linewidth": 1.1,
            "lines.markersize": 4.2,
            "grid.linewidth": 0.5,
            "savefig.format": "pdf",
            "savefig.dpi": 300,
            "pdf.fonttype": 42,
            "ps.fonttype": 42,
        }
    )


def _root(figure: Any) -> Any:
    """Return the figure that a figure inside it belongs to."""
    while figure.figure is not figure:
        figure = figure.figure
    return figure


def _font_size() -> float:
    """Return the size of a legend's text, in points."""
    import matplotlib
    from matplotlib.font_manager import FontProperties

    return FontProperties(size=matplotlib.rcParams["legend.fontsize"]).get_size_in_points()


def _line_height(size: float) -> float:
    """Return the height in inches of a row of a legend whose text has so many points."""
    return 1.5 * size / 72


def _fitting_columns(labels: list[str], width: float, size: float) -> int:
    """Return how many columns of a legend fit into so many inches, with text of so many points.

    The line before a text and the gaps take about 6 times the size of the text.
    """
    widest = (_LETTER * max(map(len, labels), default=0) + 6) * size / 72
    return max(1, min(len(labels), int(width / widest)))
