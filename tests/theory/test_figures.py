"""The figures: what they show is what the paper says, and they are labelled and written."""

import jax.numpy as jnp
import mpmath as mp
import numpy as np
import pytest
from matplotlib.path import Path as Polygon

import sfmab_jax as sf
from sfmab_jax.theory import figures

SMALL = {"num_arms": 3, "num_rounds": 64, "num_seeds": 8}


def drawn(name):
    """A figure; the simulated ones with few and short games."""
    make = figures.FIGURES[name]
    return make(**SMALL) if name in ("sparsity", "scale") else make()


@pytest.fixture(scope="module")
def made():
    return {name: drawn(name) for name in figures.FIGURES}


@pytest.mark.parametrize("name", list(figures.FIGURES))
def test_labelled_and_written_as_vectors_and_pixels(name, made, tmp_path):
    figure = made[name]
    for axes in figure.axes:
        assert axes.get_xlabel()
        assert axes.get_title()
    assert figure.axes[0].get_ylabel()
    assert figure.legends or figure.axes[0].get_legend()
    pdf, svg, png = figures.save(figure, tmp_path / name)
    assert pdf.read_bytes().startswith(b"%PDF")
    assert b"<svg" in svg.read_bytes()
    assert png.read_bytes().startswith(b"\x89PNG")


def test_curves_of_the_potentials(made):
    lines = made["potential"].axes[0].get_lines()[:3]
    formulas = (lambda u: -1 / u, np.exp, lambda u: 1 / (4 * u**2))
    for line, formula in zip(lines, formulas):
        u, psi = line.get_data()
        np.testing.assert_allclose(psi, formula(u), rtol=1e-10)
        assert psi[-1] >= 3 * (1 - 1e-9)


def test_triangles_fit_into_the_divergence(made):
    """Their areas, from the drawn polygons, and the divergence from mpmath."""
    x, top = 0.45, 1.0
    for axes, y in zip(made["triangles"].axes, (0.5 * x, 0.5 * (x + top))):
        triangle = axes.patches[0].get_xy()
        area = 0.5 * abs(
            np.sum(triangle[:-1, 0] * triangle[1:, 1] - triangle[1:, 0] * triangle[:-1, 1])
        )
        # The log barrier has m = x.
        np.testing.assert_allclose(area, (x - y) ** 2 / (2 * x), rtol=1e-9)
        divergence = mp.mpf(y) / x - 1 - mp.log(mp.mpf(y) / x)
        assert area < divergence
        shaded = axes.collections[0].get_paths()[0].vertices
        outline = 0.5 * abs(np.sum(shaded[:-1, 0] * shaded[1:, 1] - shaded[1:, 0] * shaded[:-1, 1]))
        np.testing.assert_allclose(outline, float(divergence), rtol=1e-3)
        # Every point of the triangle is in the shaded area, up to the line's width.
        centre = triangle[:-1].mean(axis=0)
        inside = centre + 0.98 * (triangle[:-1] - centre)
        assert Polygon(shaded).contains_points(inside, radius=1e-3).all()


def test_triangles_of_another_potential():
    figure = figures.triangles(sf.potentials.negative_entropy(), x=0.3)
    assert len(figure.axes) == 2


def test_region_is_where_the_inequality_holds(made):
    axes = made["region"].axes[0]
    region = Polygon(axes.patches[0].get_xy())
    x, y = np.meshgrid(np.linspace(0.05, 1.95, 60), np.linspace(0.05, 2.1, 60))
    slack = y / x - 1 - np.log(y / x) - (x - y) ** 2 / (2 * x)
    inside = region.contains_points(np.column_stack([x.ravel(), y.ravel()]))
    clear = np.abs(slack.ravel()) > 1e-3
    np.testing.assert_array_equal(inside[clear], (slack.ravel() > 0)[clear])
    boundary_x, boundary_y = axes.get_lines()[0].get_data()
    np.testing.assert_allclose([boundary_x[-1], boundary_y[-1]], [0, 2], atol=1e-3)


def test_sparsity_draws_regret_below_its_bounds(made):
    axes = made["sparsity"].axes[0]
    lines = {line.get_label(): np.asarray(line.get_ydata()) for line in axes.get_lines()}
    regret = {c.get_label(): np.asarray(c.lines[0].get_ydata()) for c in axes.containers}
    for option in ("adaptive", "decaying"):
        tight, loose = lines[f"{option}: bound, tight"], lines[f"{option}: bound"]
        assert (regret[f"{option}: regret"] <= tight).all()
        assert (tight <= loose).all()
    assert jnp.ndim(regret["adaptive: regret"]) == 1


def test_scale_draws_regret_over_scale(made):
    """For tiny losses both options play uniformly, and their regret is uniform play's."""
    axes = made["scale"].axes[0]
    uniform = axes.get_lines()[-1].get_ydata()[0]
    for container in axes.containers:
        curve = np.asarray(container.lines[0].get_ydata())
        assert len(curve) == 13
        np.testing.assert_allclose(curve[0], uniform, rtol=1e-3)
