"""Every public function has a property test; here, that none is forgotten."""

import importlib
import sys
from pathlib import Path

from properties import HELD, property_of, public_functions, public_modules


def test_every_public_function_has_a_property():
    for path in sorted(Path(__file__).parents[1].glob("*/test_properties_*.py")):
        sys.path.append(str(path.parent))
        importlib.import_module(path.stem)
    forgotten = {name for function, name in public_functions().items() if function not in HELD}
    assert not forgotten, f"no property test: {', '.join(sorted(forgotten))}"


def test_only_public_functions_are_claimed():
    """So that a function that is renamed or taken back does not linger in the list."""
    public = public_functions()
    assert all(function in public for function in HELD)


def test_the_list_of_public_functions_is_the_reference():
    """Of the packages that the README names, with functions of each."""
    names = {module.__name__.removeprefix("sfmab_jax.") for module in public_modules()}
    wanted = "estimation full_information losses potentials sampling strategies study theory"
    assert set(wanted.split()) <= names
    assert len(public_functions()) > 150


def test_a_forgotten_function_is_noticed():
    """What the first test relies on."""
    assert property_of not in HELD
    assert all(callable(function) for function in HELD)
