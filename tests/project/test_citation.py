"""CITATION.cff follows version 1.2.0 of the format and names the current version."""

import datetime
import re
from pathlib import Path

import pytest

import sfmab_jax as sf

pytestmark = pytest.mark.quick

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CITATION.cff").read_text()
CHANGELOG = (ROOT / "CHANGELOG.md").read_text()
# https://github.com/citation-file-format: required and optional keys.
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | set(
    "type version date-released license keywords preferred-citation abstract doi url "
    "repository-code references identifiers contact commit".split()
)


def top_level() -> dict[str, str]:
    """Return the top-level keys with their values, unquoted."""
    found = re.findall(r"(?m)^([\w-]+):[ ]*(.*)$", TEXT)
    assert len(found) == len(dict(found)), "a key occurs twice"
    return {key: value.strip('"') for key, value in found}


def inside(key: str) -> str:
    """Return the indented lines below a key."""
    return re.search(rf"(?m)^{key}:\n((?:[ ]+.*\n?)+)", TEXT)[1]


def test_keys_are_those_of_the_format():
    keys = top_level()
    assert REQUIRED <= keys.keys() <= ALLOWED
    assert keys["cff-version"] == "1.2.0"
    assert keys["type"] == "software"
    assert keys["license"] == "Apache-2.0"
    assert "\t" not in TEXT


def test_it_names_the_current_version():
    keys = top_level()
    assert keys["version"] == sf.__version__
    date = datetime.date.fromisoformat(keys["date-released"])
    assert f"## [{sf.__version__}] - {date}" in CHANGELOG.splitlines()


def test_every_author_has_a_name():
    assert re.fullmatch(r'(  - name: "[^"]+"\n)+', inside("authors"))
    paper = inside("preferred-citation")
    for key in ("type: conference-paper", "title: ", "authors:", "year: 2022"):
        assert key in paper
    families = re.findall(r"- family-names: (\w+)\n +given-names: ([\w ]+)\n", paper)
    assert families == [("Putta", "Sudeep Raja"), ("Agrawal", "Shipra")]


def test_the_paper_names_its_conference():
    """Without a collection title, formatters leave the venue out."""
    assert "collection-title: " in inside("preferred-citation")
