"""References in 60 to 110 digit arithmetic, written from the paper alone.

Nothing here uses the package. Everything is evaluated from its definition, with so many digits
that cancellation does not matter; floats are taken at their exact binary value.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mpmath import mp, mpf

DIGITS = 60
# Mixability gaps go down to 1e-45 and are differences of numbers of order 1 to 1e12.
GAP_DIGITS = 110


class LogBarrier:
    """psi(u) = -1/u, f(x) = -log x."""

    def psi(self, u):
        return -1 / u

    def slope(self, u, x=None):
        """psi'(u); x is psi(u), if it is known."""
        return 1 / u**2

    def inverse(self, x):
        return -1 / x

    def f(self, x):
        return -mp.log(x)


class Entropy:
    """psi(u) = exp(u), f(x) = x log x - x."""

    def psi(self, u):
        return mp.exp(u)

    def slope(self, u, x=None):
        return mp.exp(u) if x is None else x

    def inverse(self, x):
        return mp.log(x)

    def f(self, x):
        return x * mp.log(x) - x


@dataclass(frozen=True)
class EntropyWithBarrier:
    """psi(u) = theta / W(theta exp(1 - u)), f(x) = x log x - theta log x."""

    weight: float

    def psi(self, u):
        theta = mpf(self.weight)
        return theta / mp.lambertw(theta * mp.exp(1 - u)).real

    def slope(self, u, x=None):
        x = self.psi(u) if x is None else x
        return x * x / (x + mpf(self.weight))

    def inverse(self, x):
        return 1 + mp.log(x) - mpf(self.weight) / x

    def f(self, x):
        return (x - mpf(self.weight)) * mp.log(x)


@dataclass(frozen=True)
class Tsallis:
    """psi(u) = (-u/c)^(-1/(1-c)), f(x) = -x^c. The power is taken at its float value."""

    power: float

    def psi(self, u):
        c = mpf(self.power)
        return (-u / c) ** (-1 / (1 - c))

    def slope(self, u, x=None):
        c = mpf(self.power)
        return (self.psi(u) if x is None else x) / (-u * (1 - c))

    def inverse(self, x):
        c = mpf(self.power)
        return -c * x ** (c - 1)

    def f(self, x):
        return -(x ** mpf(self.power))


def exact(values: Iterable) -> list[mpf]:
    """Floats of either precision at their exact value."""
    return [mpf(float(value)) for value in values]


def relative_error(got, wanted: mpf) -> float:
    """|got - wanted| / |wanted|, and 0 where both are 0."""
    with mp.workdps(DIGITS):
        difference = abs(mpf(float(got)) - wanted)
        return float(difference / abs(wanted)) if difference else 0.0


def divergence(potential, y, x) -> mpf:
    """Breg_f(y || x) = f(y) - f(x) - f'(x)(y - x), with f' the inverse of psi."""
    with mp.workdps(GAP_DIGITS):
        y, x = exact((y, x))
        return potential.f(y) - potential.f(x) - potential.inverse(x) * (y - x)


def conjugate(potential, u) -> mpf:
    """f*(u) = u psi(u) - f(psi(u))."""
    with mp.workdps(DIGITS):
        u = mpf(float(u))
        x = potential.psi(u)
        return u * x - potential.f(x)


def normalizer(potential, theta) -> mpf:
    """lambda with sum psi(theta + lambda) = 1."""
    with mp.workdps(DIGITS):
        theta = exact(theta)
        top = max(theta)
        return _leader(potential, Counter(top - t for t in theta)) - top


def distribution(potential, theta) -> list[mpf]:
    """psi(theta + lambda(theta))."""
    with mp.workdps(DIGITS):
        theta = exact(theta)
        top = max(theta)
        nu = _leader(potential, Counter(top - t for t in theta))
        return [potential.psi(nu - (top - t)) for t in theta]


def _leader(potential, gaps: Mapping[mpf, int], total: mpf | int = 1) -> mpf:
    """nu with sum of psi(nu - gap) = total; the smallest gap is 0, and equal gaps are counted.

    The sum is convex and increasing in nu, and at least that where psi(nu) is. So Newton's method
    from there moves down towards the root and never past it. Most steps need few digits, and the
    last ones double them: once a step is below half the digits, the next is below all of them.
    """
    with mp.workdps(25):
        nu = _newton(potential, gaps, potential.inverse(mpf(total)), total)
    return _newton(potential, gaps, nu, total)


def _newton(potential, gaps: Mapping[mpf, int], nu: mpf, total: mpf | int) -> mpf:
    tolerance = mpf(10) ** (-mp.dps // 2 - 3)
    for _ in range(1000):
        u = [nu - gap for gap in gaps]
        x = [potential.psi(v) for v in u]
        excess = mp.fsum(count * y for count, y in zip(gaps.values(), x)) - total
        slopes = (count * potential.slope(v, y) for count, v, y in zip(gaps.values(), u, x))
        step = excess / mp.fsum(slopes)
        nu -= step
        if abs(step) <= tolerance * (1 + abs(nu)):
            return nu
    raise ArithmeticError("Newton's method did not converge")


def normalised(play) -> list[mpf]:
    """A float distribution divided by its own sum."""
    play = exact(play)
    total = mp.fsum(play)
    return [p / total for p in play]


def _arms(play, loss, as_given: bool) -> tuple[list, dict, mpf]:
    """The arms as pairs of floats, for each different pair its exact p and l, and the sum of p.

    p is divided by its sum unless it is to be taken as given.
    """
    arms = list(zip(map(float, play), map(float, loss)))
    total = mp.fsum(count * mpf(p) for (p, _), count in Counter(arms).items())
    unit = mpf(1) if as_given else total
    return arms, {(p, y): (mpf(p) / unit, mpf(y)) for p, y in set(arms)}, total / unit


def maximiser(potential, play, loss, learning_rate, as_given: bool = False) -> list[mpf]:
    """The q of M(eta): psi^{-1}(q) = psi^{-1}(p) - eta l - shift, with sum(q) = sum(p)."""
    with mp.workdps(GAP_DIGITS):
        rate = mpf(float(learning_rate))
        arms, values, total = _arms(play, loss, as_given)
        moved = {arm: potential.inverse(p) - rate * y for arm, (p, y) in values.items()}
        top = max(moved.values())
        gaps: Counter = Counter()
        for arm, count in Counter(arms).items():
            gaps[top - moved[arm]] += count
        nu = _leader(potential, gaps, total)
        q = {arm: potential.psi(nu - (top - u)) for arm, u in moved.items()}
        return [q[arm] for arm in arms]


def gap_at(potential, play, loss, learning_rate, q, as_given: bool = False) -> mpf:
    """l.(p - q) - Breg_F(q || p) / eta: what the mixability gap is the supremum of."""
    with mp.workdps(GAP_DIGITS):
        rate = mpf(float(learning_rate))
        arms, values, _ = _arms(play, loss, as_given)
        # Equal arms may still have different q.
        terms = Counter(zip(arms, (id(x) for x in q)))
        points = {id(x): x for x in q}
        parts = []
        for (arm, key), count in terms.items():
            (p, y), x = values[arm], points[key]
            parts.append(count * (y * (p - x) - _breg(potential, x, p) / rate))
        return mp.fsum(parts)


def mixability_gap(potential, play, loss, learning_rate, as_given: bool = False) -> mpf:
    """M(eta) = sup_q l.(p - q) - Breg_F(q || p) / eta, by its definition.

    p is divided by its sum, or ``as_given``; then q has the same sum.
    """
    q = maximiser(potential, play, loss, learning_rate, as_given)
    return gap_at(potential, play, loss, learning_rate, q, as_given)


def condition(potential, play, loss, learning_rate) -> float:
    """How many times M feels a relative error of its arguments: sum |x dM/dx| / M.

    dM/dl = p - q, dM/dp = l + f''(p) (q - p) / eta less its mean, as p is normalised, and
    dM/deta = Breg_F(q || p) / eta^2.
    """
    q = maximiser(potential, play, loss, learning_rate)
    with mp.workdps(GAP_DIGITS):
        rate = mpf(float(learning_rate))
        p, y = normalised(play), exact(loss)
        slopes = [
            l_i + (q_i - p_i) / (rate * potential.slope(potential.inverse(p_i)))
            for p_i, l_i, q_i in zip(p, y, q)
        ]
        mean = mp.fsum(p_i * slope for p_i, slope in zip(p, slopes))
        feels = [abs(p_i * (slope - mean)) for p_i, slope in zip(p, slopes)]
        feels += [abs(l_i * (p_i - q_i)) for p_i, l_i, q_i in zip(p, y, q)]
        feels.append(regularizer_divergence(potential, q, p) / rate)
        return float(mp.fsum(feels) / gap_at(potential, play, loss, learning_rate, q))


def regularizer_divergence(potential, y, x) -> mpf:
    """Breg_F(y || x), for points given to all digits."""
    with mp.workdps(GAP_DIGITS):
        return mp.fsum(_breg(potential, b, a) for b, a in zip(y, x))


def _breg(potential, y: mpf, x: mpf) -> mpf:
    return potential.f(y) - potential.f(x) - potential.inverse(x) * (y - x)
