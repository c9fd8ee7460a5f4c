"""Several processes, on one machine or many: which of them this one is.

JAX's distributed runtime introduces the processes to each other, by ``--coordinator`` and the like
or by what SLURM, Open MPI, Kubernetes or a TPU slice tell it, and is then left again: it would end
all processes with the first that dies. Games need no other process. From then on each is a program
of its own, on the devices it can see, and results meet in a shared folder (`study.together`).
"""

import os
import secrets
from typing import Any, NamedTuple

__all__ = ["ALONE", "Process", "join"]

_PATIENCE = 300  # seconds until all processes must have begun


class Process(NamedTuple):
    """One of several processes that work on the same thing."""

    number: int  # 0 ... total - 1
    total: int
    run: str  # a word that is the same in all processes of a run, and in no other run


ALONE = Process(0, 1, "")


def join(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> Process:
    """Meets the other processes; to be called before anything else of JAX.

    Args:
      coordinator: host and port where process 0 can be reached.
      num_processes, process_id: how many there are, and which this one is. All three or none;
        with none, several processes are met if the environment tells of them.
    """
    given = {
        "--coordinator": coordinator,
        "--num-processes": num_processes,
        "--process-id": process_id,
    }
    missing = [option for option, value in given.items() if value is None]
    if len(missing) == len(given):
        return _meet() if _several_in_environment() else ALONE
    if coordinator is None or num_processes is None or process_id is None:
        there = ", ".join(option for option in given if option not in missing)
        raise ValueError(f"{there} without {missing[0]}; give all three, or none")
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"--coordinator is {coordinator!r}; give host:port, as node1:12345")
    if not 1 <= num_processes <= 2**16:
        raise ValueError(f"--num-processes is {num_processes}; give an integer from 1 to 65536")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"--process-id is {process_id}; give an integer from 0 to {num_processes - 1}"
        )
    return ALONE if num_processes == 1 else _meet(coordinator, num_processes, process_id)


def _several_in_environment() -> bool:
    """Whether this is one of several tasks that were started together.

    JAX would look for a cluster wherever it runs, and wait for others where there are none.
    """
    tasks = [
        os.environ.get("SLURM_NTASKS") if "SLURM_STEP_NODELIST" in os.environ else None,
        os.environ.get("OMPI_COMM_WORLD_SIZE"),
    ]
    return (
        any(number is not None and number != "1" for number in tasks)
        or "JOB_COMPLETION_INDEX" in os.environ  # Kubernetes, an indexed job
        or "," in os.environ.get("TPU_WORKER_HOSTNAMES", "")
    )


def _meet(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> Process:
    """Through JAX's runtime, with what is known or what it finds out."""
    import jax
    from jax._src import distributed  # before a backend starts, JAX has no other way to ask

    try:
        jax.distributed.initialize(
            coordinator, num_processes, process_id, initialization_timeout=_PATIENCE
        )
        state: Any = distributed.global_state
        number, total = state.process_id, state.num_processes
        if number == 0:
            state.client.key_value_set("sfmab", secrets.token_hex(8))
        run = state.client.blocking_key_value_get("sfmab", 1000 * _PATIENCE)
        jax.distributed.shutdown()
    except RuntimeError as error:
        raise OSError(f"the processes did not meet: {error}") from None
    # Now a program of its own, whose devices are all that there are.
    state.process_id, state.num_processes = 0, 1
    return Process(number, total, run) if total > 1 else ALONE
