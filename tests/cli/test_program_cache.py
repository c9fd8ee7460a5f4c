"""Programs that the command line keeps."""

import os
import subprocess
import sys

import pytest

from sfmab_jax.cli.compilation_cache import cache_folder

SMALL = "losses uniform --arms 3 --rounds 64"


def printed_by_run(folder, cache, **environment):
    """What a command with its programs in ``cache`` prints.

    All programs are kept, however fast they compile, so that nothing depends on the machine.
    """
    told = {k: v for k, v in os.environ.items() if not k.startswith("JAX_")}
    told |= {"XDG_CACHE_HOME": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    told |= environment
    command = [sys.executable, "-c", "from sfmab_jax.cli import main; main()", *SMALL.split()]
    done = subprocess.run(command, cwd=folder, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def files_in(cache):
    """The kept programs, without JAX's notes on when each was last used."""
    return sorted(path for path in cache.rglob("*-cache") if path.is_file())


def test_programs_are_kept_and_used_again(tmp_path):
    cache = tmp_path / "cache"
    first = printed_by_run(tmp_path, cache)
    kept = files_in(cache)
    assert kept
    assert all(path.parent.parent == cache / "sfmab_jax" for path in kept)
    times = [path.stat().st_mtime_ns for path in kept]
    assert printed_by_run(tmp_path, cache) == first
    assert files_in(cache) == kept
    assert [path.stat().st_mtime_ns for path in kept] == times
    # A file cut short is no reason to stop.
    for path in kept:
        path.write_bytes(path.read_bytes()[:100])
    assert printed_by_run(tmp_path, cache) == first


@pytest.mark.full
def test_it_can_be_turned_off_and_needs_no_home(tmp_path):
    cache = tmp_path / "cache"
    first = printed_by_run(tmp_path, cache, JAX_ENABLE_COMPILATION_CACHE="false")
    assert not (cache / "sfmab_jax").exists()
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    assert printed_by_run(tmp_path, blocked) == first


def test_folder_is_named_by_the_processor(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == cache_folder()
    assert cache_folder().parent == tmp_path / "sfmab_jax"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder().parent == tmp_path / ".cache" / "sfmab_jax"
