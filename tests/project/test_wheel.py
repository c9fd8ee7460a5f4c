"""The wheel and the source distribution build offline, complete and without stray files."""

import subprocess
import sys
import tarfile
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

import sfmab_jax as sf

ROOT = Path(__file__).parents[2]
PACKAGE = {
    path.relative_to(ROOT).as_posix()
    for path in (ROOT / "sfmab_jax").rglob("*")
    if path.suffix in (".py", ".toml") or path.name == "py.typed"
}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Build the wheel and the source distribution; return their paths."""
    folder = tmp_path_factory.mktemp("dist")
    for kind in ("wheel", "sdist"):
        command = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, sdist


def test_the_wheel_holds_the_package_and_nothing_else(built):
    with zipfile.ZipFile(built[0]) as file:
        names = set(file.namelist())
        info = f"sfmab_jax-{sf.__version__}.dist-info"
        metadata = Parser().parsestr(file.read(f"{info}/METADATA").decode())
        entry_points = file.read(f"{info}/entry_points.txt").decode()
    # The console script is installed beside the package.
    wanted = PACKAGE - {"sfmab_jax/cli/console.py"} | {"sfmab.py"}
    assert {name for name in names if not name.startswith(info)} == wanted
    assert f"{info}/licenses/LICENSE" in names
    assert metadata["Version"] == sf.__version__
    assert "sfmab = sfmab:main" in entry_points


def test_the_source_distribution_can_be_tested(built):
    with tarfile.open(built[1]) as file:
        names = {name.partition("/")[2] for name in file.getnames()}
    assert names >= PACKAGE
    assert names >= {f"tests/{path.name}" for path in (ROOT / "tests").glob("*.py")}
    assert names >= {f"notebooks/{path.name}" for path in (ROOT / "notebooks").glob("*.ipynb")}
    texts = "README.md LICENSE CHANGELOG.md CITATION.cff CONTRIBUTING.md pyproject.toml"
    assert names >= set(texts.split())
    assert not [name for name in names if "__pycache__" in name or "checkpoints" in name]


def test_the_wheel_works_outside_the_repository(built, tmp_path):
    """The wheel takes precedence over the repository and finds its own files."""
    target = tmp_path / "installed"
    with zipfile.ZipFile(built[0]) as file:
        file.extractall(target)
    script = (
        "import sys; sys.path.insert(0, 'installed')\n"
        "import sfmab_jax\n"
        "assert 'installed' in sfmab_jax.__file__\n"
        "from sfmab_jax.cli.main import app\n"
        "app(['study', 'check', 'paper_claims', '--quick'], standalone_mode=False)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()
    assert b"cells" in done.stdout
