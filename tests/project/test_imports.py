"""Imports run one way through the rooms of the package, also inside functions and for types."""

import ast
from pathlib import Path

import pytest

import sfmab_jax

pytestmark = pytest.mark.quick

PACKAGE = Path(sfmab_jax.__file__).parent
# From the ground up; rooms of one floor may use each other as the last line says.
FLOORS = (
    "checks numerics",
    "base",
    "potentials sampling estimation full_information losses delays compose strategies",
    "engine",
    "results",
    "until",
    "simulate",
    "matrix_game step_by_step sweep",
    "theory worst_case",
    "study",
    "cli",
)
FLOOR = {room: number for number, floor in enumerate(FLOORS) for room in floor.split()}
# On one floor: who may use whom.
ALLOWED = {
    ("full_information", "potentials"),
    ("full_information", "sampling"),
    ("full_information", "estimation"),
    ("compose", "sampling"),
    ("strategies", "potentials"),
    ("strategies", "sampling"),
    ("strategies", "estimation"),
    ("strategies", "full_information"),
    ("strategies", "compose"),
    ("worst_case", "theory"),
}
ROOT = {"__init__.py", "py.typed"} | {
    f"{name}.py"
    for name in "base checks compose delays matrix_game simulate step_by_step sweep until".split()
}
MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


NAMES = {name_of(path) for path in MODULES}


def imports_of(path: Path) -> set[str]:
    """The modules of the package that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} has a relative import"
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in inner if name in NAMES} or {node.module}
    return {name for name in found if name.split(".")[0] == "sfmab_jax"}


def room_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_down(path):
    module = name_of(path)
    here = room_of(module)
    if not here:
        return  # the package itself, which shows everything
    for other in imports_of(path):
        there = room_of(other)
        if here == "cli" and not there:
            continue  # commands use the package as users do
        assert there, f"{module} imports the package, which imports it"
        down = FLOOR[there] < FLOOR[here]
        beside = there == here or (FLOOR[there] == FLOOR[here] and (here, there) in ALLOWED)
        assert down or beside, f"{module} imports {other}: {there} is not below {here}"
        private = other.startswith(("sfmab_jax.engine.lanes", "sfmab_jax.engine.pallas"))
        assert not private or here == "engine", f"{other} is private to the engine"


def test_the_root_has_the_rooms_and_nothing_else():
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    folders = {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}
    assert files == ROOT
    assert folders == set(FLOOR) - {Path(name).stem for name in ROOT}


def test_the_walls_would_be_noticed(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text(
        "def f():\n    from sfmab_jax.study import run_study\n    import sfmab_jax.cli\n"
    )
    assert imports_of(file) == {"sfmab_jax.study", "sfmab_jax.cli"}
