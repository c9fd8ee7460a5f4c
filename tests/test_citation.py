"""CITATION.cff has what version 1.2.0 of the format asks for, and is of this version."""

import datetime
import re
from pathlib import Path

import sfmab_jax as sf

TEXT = (Path(__file__).parents[1] / "CITATION.cff").read_text()
TEXT_OF_CHANGES = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
# https://github.com/citation-file-format: the keys that must be there, and those that may.
REQUIRED = {"cff-version", "message", "title", "authors"}
ALLOWED = REQUIRED | set(
    "type version date-released license keywords preferred-citation abstract doi url "
    "repository-code references identifiers contact commit".split()
)


def top_level() -> dict[str, str]:
    """The keys that are not indented, with what stands beside them; quotes taken off."""
    found = re.findall(r"(?m)^([\w-]+):[ ]*(.*)$", TEXT)
    assert len(found) == len(dict(found)), "a key is there twice"
    return {key: value.strip('"') for key, value in found}


def inside(key: str) -> str:
    """The indented lines below a key."""
    return re.search(rf"(?m)^{key}:\n((?:[ ]+.*\n?)+)", TEXT)[1]


def test_keys_are_those_of_the_format():
    keys = top_level()
    assert REQUIRED <= keys.keys() <= ALLOWED
    assert keys["cff-version"] == "1.2.0"
    assert keys["type"] == "software"
    assert keys["license"] == "Apache-2.0"
    assert "\t" not in TEXT


def test_it_is_of_this_version():
    keys = top_level()
    assert keys["version"] == sf.__version__
    date = datetime.date.fromisoformat(keys["date-released"])
    changes = TEXT_OF_CHANGES.splitlines()
    assert f"## [{sf.__version__}] - {date}" in changes


def test_every_author_has_a_name():
    assert re.fullmatch(r'(  - name: "[^"]+"\n)+', inside("authors"))
    paper = inside("preferred-citation")
    for key in ("type: conference-paper", "title: ", "authors:", "year: 2022"):
        assert key in paper
    families = re.findall(r"- family-names: (\w+)\n +given-names: ([\w ]+)\n", paper)
    assert families == [("Putta", "Sudeep Raja"), ("Agrawal", "Shipra")]


def test_the_paper_names_its_conference():
    """The schema has an entity for it; without one, formatters leave the venue out."""
    assert "collection-title: " in inside("preferred-citation")
