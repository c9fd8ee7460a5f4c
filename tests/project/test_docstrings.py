"""The reference: every public name says what it is, and the main ones how they are used."""

import inspect
import re
import subprocess
import sys
import types
from functools import reduce

import jax
import pytest
import typer

import sfmab_jax as sf
from sfmab_jax.cli.main import app
from sfmab_jax.strategies.controls import __all__ as controls

pytestmark = pytest.mark.quick

YEAR = r"\((19|20)\d\d[,)]"
# All functions of `sf` itself, and these of its modules.
MAIN = [name for name in sf.__all__ if isinstance(getattr(sf, name), types.FunctionType)] + (
    "bounds.scale_free strategies.scale_free potentials.potential full_information.ada_ftrl "
    "full_information.ftrl losses.from_function losses.from_array losses.from_recurrence "
    "losses.scaled losses.bernoulli losses.sparse"
).split()


def named(name):
    """`sf.losses.sparse` by the name "losses.sparse"."""
    return reduce(getattr, name.split("."), sf)


def modules():
    """`sfmab_jax` and every module that can be reached through ``__all__``."""
    found, waiting = [], [sf]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.append(module)
            names = (getattr(module, name) for name in module.__all__)
            waiting += [value for value in names if isinstance(value, types.ModuleType)]
    return sorted(found, key=lambda module: module.__name__)


def public(module):
    """Its functions and classes by name."""
    names = {name: getattr(module, name) for name in module.__all__}
    return {name: value for name, value in names.items() if callable(value)}


def own_docstring(value) -> str:
    """Empty where a class has nothing but what NamedTuple or dataclass writes."""
    text = vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
    return "" if text is None or text.startswith(f"{value.__name__}(") else text


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.__name__)
def test_every_public_name_is_explained(module):
    assert module.__doc__
    for name, value in public(module).items():
        text = own_docstring(value)
        assert text.strip(), f"{module.__name__}.{name} has no docstring"
        first = text.strip().splitlines()[0]
        assert len(first) <= 100, f"{module.__name__}.{name} begins with a long line"
        if inspect.isclass(value):
            for member, inside in vars(value).items():
                if isinstance(inside, types.FunctionType | property) and member[0] != "_":
                    assert inside.__doc__, f"{module.__name__}.{name}.{member} has no docstring"


@pytest.mark.parametrize("value", [v for v in public(sf).values() if inspect.isclass(v)])
def test_a_class_explains_its_fields(value):
    """`help` shows docstrings, not the comments beside fields."""
    fields = getattr(value, "_fields", getattr(value, "__dataclass_fields__", ()))
    assert all(re.search(rf"\b{field}\b", value.__doc__) for field in fields)


@pytest.mark.parametrize("name", sf.strategies.STRATEGIES)
def test_a_strategy_names_its_source_and_states_its_rule(name):
    text = inspect.getdoc(sf.strategies.STRATEGIES[name])
    assert re.search(YEAR, text.splitlines()[0]) or name in controls
    assert re.search(YEAR, text), f"{name} names no source"
    if name not in controls:
        assert re.search("regret|bound", text), f"{name} says nothing of its regret"
        assert re.search(r"eta|`\w+`|argmin|p_\{?t|p' =|arm of", text), f"{name} states no rule"


@pytest.mark.parametrize("name", sf.losses.LOSSES)
def test_a_loss_family_is_defined(name):
    text = inspect.getdoc(sf.losses.LOSSES[name])
    defined = "l_t" in text or "mean" in text or re.search(r"`\w+`", text)
    assert defined, f"{name} has no formula, and is not made of another family"


@pytest.mark.parametrize(
    "module",
    [sf.sampling, sf.estimation, sf.full_information, sf.constraints, sf.objectives],
    ids=lambda module: module.__name__,
)
def test_a_part_states_its_equation(module):
    equation = r"p'_t|l~_t|gamma_t|C = |p_t|p_\{t\+1\} =|eta_t =|l_t|>=|R\(l\)"
    for name, make in public(module).items():
        if not inspect.isclass(make):
            assert re.search(equation, make.__doc__), f"{name} has no equation"


PLACES = (
    "normalizer distribution mixability_gap bounds.scale_free strategies.scale_free "
    "sampling.adaptive sampling.decaying estimation.importance_weighted full_information.ftrl "
    "full_information.ada_ftrl potentials.log_barrier Norms Sampling Estimation FullInformation"
).split()


@pytest.mark.parametrize("name", PLACES)
def test_what_is_in_the_paper_says_where(name):
    place = r"Algorithm 1|[Ss]ection \d|Theorem \d|Lemma \d|Definition \d|appendix [A-Z]"
    assert re.search(place, named(name).__doc__), f"{name} names no place in the paper"


@pytest.mark.parametrize("name", MAIN)
def test_main_functions_have_an_example_that_is_run(name):
    """Doctests are run by pytest; here only that there is one."""
    assert ">>>" in named(name).__doc__, f"{name} has no example"


def test_arrays_have_their_shapes():
    """What takes or gives arrays says how they are laid out."""
    for name in MAIN:
        parameters = inspect.signature(named(name)).parameters.values()
        if any(parameter.annotation is jax.Array for parameter in parameters):
            shapes = re.search(r"\[(|[nTKSC](, ?[nTKSC])*)\]", named(name).__doc__)
            assert shapes, f"{name} names no shapes"


def test_help_of_the_package_is_readable():
    """`help(sf)` begins with what it is for and an example, and lists the contents."""
    script = "import sfmab_jax, pydoc; print(pydoc.plain(pydoc.render_doc(sfmab_jax)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert all(re.search(rf"\b{name}\b", sf.__doc__) for name in sf.__all__)
    start = done.stdout[:2500]
    for words in ("scale-free adversarial bandits", "sf.simulate(", "compose", "PACKAGE CONTENTS"):
        assert words in start, words


def test_every_command_and_option_has_help():
    waiting = {"sfmab": typer.main.get_command(app)}
    assert waiting["sfmab"].commands.keys() >= {"run", "study", "verify", "bench", "list", "losses"}
    while waiting:
        name, command = waiting.popitem()
        assert command.help, f"{name} has no help"
        for parameter in command.params:
            assert parameter.help, f"{name}: {parameter.name} has no help"
        inside = getattr(command, "commands", {})
        waiting |= {f"{name} {word}": one for word, one in inside.items()}
