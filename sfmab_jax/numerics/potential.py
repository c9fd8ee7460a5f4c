"""What the solvers need of a potential: the types shared by `numerics` and `potentials`."""

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from sfmab_jax.numerics.double_word import Sum

__all__ = ["Potential", "Power", "Stability"]


class Stability(NamedTuple):
    """Psi_p(y), and where to start the search for the next play."""

    value: Array  # Psi []
    top: Array  # psi^{-1} of the largest entry of the maximiser q []
    centre: Array  # the mean of u = psi^{-1}(q) weighted with psi'(u) []

    def start_at(self, factor: Array) -> Array:
        """Guess psi^{-1}(max p_{t+1}).

        p_{t+1} has the cumulative losses of q, but a learning rate that is ``factor`` times as
        large. So u = psi^{-1}(q) becomes factor * u + d, where d keeps the sum at 1: to first order
        in 1 - factor, d = (1 - factor) * centre.
        """
        return self.centre + factor * (self.top - self.centre)


class Potential(NamedTuple):
    """A potential as a value. Every function but the last three works elementwise.

    The functions are `jax.tree_util.Partial`s, so that a potential is a pytree whose leaves are
    its parameters.
    """

    psi: Callable[[Array], Array]
    inverse: Callable[[Array], Array]  # psi^{-1} = f'
    derivative: Callable[[Array], Array]  # psi'
    primitive: Callable[[Array], Array]  # f
    conjugate: Callable[[Array], Array]  # f*(u) = u psi(u) - f(psi(u))
    divergence: Callable[[Array, Array], Array]  # Breg_f(y || x)
    # (gaps x [n], a guess []) -> psi(nu - x) [n] and nu [] such that it sums to 1
    solve: Callable[[Array, Array], tuple[Array, Array]]
    # (p [n], y [n], what rounding took from y, 0 if not given) -> Psi_p(y) []
    stability: Callable[..., Array]
    # (p [n], arm, y [], what rounding took from y) -> Psi_p for y at that arm and 0 at the others
    stability_on_arm: Callable[..., Stability] | None = None


class Power(NamedTuple):
    """A potential psi(u) = (-u / c)^(-r), as `stability_power` needs it.

    w(p) = 1 / |psi^{-1}(p)| = p^(1/r) / c; the log barrier has r = c = 1 and w = p. Lowering
    psi^{-1}(p) by s gives q = p (1 + z)^(-r), z = w s: an arm falls where z > 0, rises where z < 0.
    """

    w: Callable[[Array], Array]  # p -> w
    inverse_w: Callable[[Array], Sum]  # p -> 1 / w, in two words
    scale: Callable[[Array], Array | float]  # p -> p / w
    # (p, w, j) -> p w^j, and 0 where w has been set to 0
    moment: Callable[[Array, Array, int], Array]
    # (z, 1 + z) -> (q / p, 1 - q / p, 1 / (1 + z))
    q_over_p: Callable[[Array, Array], tuple[Array, Array, Array]]
    # (z, 1 + z) -> (p / q, p / q - 1, d (p / q) / d z = r (1 + z)^(r - 1))
    p_over_q: Callable[[Array, Array], tuple[Array, Array, Array | float]]
    newton_step: Callable[[Array, Array], Array]  # as in `root_finding.newton_root`
    divergence_near: Callable[[Array, Array], Array]  # (p, z) -> Breg_f(p || q), |z| <= RADIUS
    divergence: Callable[[Array, Array, Array], Array]  # (p, z, 1 + z) -> the same for any z
    exponent: Array | float  # r
    coefficient: Array | float  # c
