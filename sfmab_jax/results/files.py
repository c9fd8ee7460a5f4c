"""Files that are written whole or not at all, and checked before they are read."""

import math
import os
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from sfmab_jax.losses.files import read_npy_header

__all__ = ["check_archive", "check_ending", "write_atomically"]


def check_archive(file: IO[bytes]) -> None:
    """Refuse an .npz file whose arrays claim more bytes than it has.

    `np.savez` compresses nothing, so that what it wrote takes no more memory than disk.
    """
    size = file.seek(0, os.SEEK_END)
    with zipfile.ZipFile(file) as archive:
        for member in archive.infolist():
            if member.compress_type != zipfile.ZIP_STORED or member.file_size > size:
                raise ValueError(
                    f"{member.filename} is compressed, to {member.file_size:,} bytes; write it "
                    "with np.savez"
                )
            size -= member.file_size
            with archive.open(member) as stored:
                shape, dtype = read_npy_header(stored)
                needed = math.prod(shape) * dtype.itemsize
                if needed > member.file_size:
                    raise ValueError(
                        f"{member.filename} claims {needed:,} bytes and has {member.file_size:,}"
                    )
    file.seek(0)


def check_ending(path: str | os.PathLike) -> Path:
    """Return the path of a results file; raise ValueError if its name ends in something else."""
    path = Path(path)
    if path.suffix not in (".npz", ""):
        raise ValueError(
            f"path is {path}; give a name that ends in .npz, or write a table by "
            "results.to_pandas().to_csv(path, index=False)"
        )
    return path


def write_atomically(path: Path, write: Callable[[IO[bytes]], Any]) -> None:
    """Call ``write(file)`` on a new file beside ``path``, then rename it to ``path``."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".tmp")
    try:
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp lets only the owner read
        with os.fdopen(handle, "wb") as file:
            write(file)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _umask() -> int:
    """Permissions that new files lack; they can only be read by setting them."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
