"""Checkpoints of a search: an .npz file, written whole or not at all, nothing pickled.

It holds every array of the search in order, the scores so far, and ``header``, a JSON text that
says which search it is, so that no other search goes on from it.
"""

import hashlib
import json
import zipfile
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from sfmab_jax.results.files import write_atomically

__all__ = ["describe", "read_checkpoint", "write_checkpoint"]

FORMAT = 1


def describe(*settings: Any) -> str:
    """Digest of all numbers and functions that determine a search."""
    leaves, structure = jax.tree.flatten(settings)
    digest = hashlib.sha256(_names(structure).encode())
    for leaf in leaves:
        digest.update(repr(leaf if isinstance(leaf, str) else np.asarray(leaf).tolist()).encode())
    return digest.hexdigest()


def _names(structure: Any) -> str:
    """Text of the structure without the addresses of functions, which change from run to run."""
    words = [word.split(" at 0x")[0] for word in str(structure).split("<function ")]
    return " ".join(words)


def write_checkpoint(path: Path, identity: str, step: int, carried: Any, history: list) -> None:
    """Write the arrays of ``carried`` (a pytree) and the scores so far, after ``step`` steps."""
    arrays: dict[str, Any] = {
        f"a{k:03d}": np.asarray(leaf) for k, leaf in enumerate(jax.tree.leaves(carried))
    }
    header = json.dumps({"format": FORMAT, "identity": identity, "step": step})
    rows = np.array(history, np.float64)
    write_atomically(
        path, lambda file: np.savez(file, header=np.array(header), history=rows, **arrays)
    )


def read_checkpoint(path: Path, identity: str, like: Any) -> tuple[int, Any, list] | None:
    """Read the step, the arrays (a pytree like ``like``) and the history; None without a file."""
    try:
        with open(path, "rb") as raw, np.load(raw, allow_pickle=False) as file:
            header = json.loads(str(file["header"]))
            leaves, structure = jax.tree.flatten(like)
            arrays = [jnp.asarray(file[f"a{k:03d}"]) for k in range(len(leaves))]
            history = list(file["history"])
    except FileNotFoundError:
        return None
    except (KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"{path} is not the checkpoint of a search ({error}); remove it or name another"
        ) from None
    if header.get("format") != FORMAT or header.get("identity") != identity:
        raise ValueError(
            f"{path} is the checkpoint of another search: strategies, sizes, constraint or "
            "settings differ; remove it or name another"
        )
    return int(header["step"]), jax.tree.unflatten(structure, arrays), history
