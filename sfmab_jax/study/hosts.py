"""Several processes, on one machine or many: which of them this one is.

SLURM and Open MPI tell each process in its environment. Elsewhere the options do, and process 0
tells the others at ``--coordinator`` what the run is called. Games need no other process, so from
then on each is a JAX program of its own, on its own devices, that lives when another dies; results
meet in a shared folder (`study.processes`).
"""

import hashlib
import os
import secrets
import socket
import time
from typing import NamedTuple

__all__ = ["ALONE", "PATIENCE", "Process", "join"]

PATIENCE = 300.0  # seconds until all processes must have begun
_ANSWER = 10.0  # seconds for a process that has connected to say its number
_TPU_PORT = 8482


class Process(NamedTuple):
    """One of several processes that work on the same thing."""

    number: int  # 0 ... total - 1
    total: int
    run: str  # a word that is the same in all processes of a run, and in no other run


ALONE = Process(0, 1, "")


def join(
    coordinator: str | None = None, num_processes: int | None = None, process_id: int | None = None
) -> Process:
    """Return which process this is; to be called before JAX starts its devices.

    Args:
      coordinator: host and port where process 0 can be reached.
      num_processes, process_id: how many there are, and which this one is. All three or none;
        with none the environment decides. In an indexed Kubernetes job the pod's index is the
        process, if the first two are given.
    """
    if process_id is None and None not in (coordinator, num_processes):
        index = os.environ.get("JOB_COMPLETION_INDEX")
        process_id = None if index is None else int(index)
    options = {
        "--coordinator": coordinator,
        "--num-processes": num_processes,
        "--process-id": process_id,
    }
    missing = [option for option, value in options.items() if value is None]
    if len(missing) == len(options):
        process = _read_environment()
    elif coordinator is None or num_processes is None or process_id is None:
        present = ", ".join(option for option in options if option not in missing)
        raise ValueError(f"{present} without {missing[0]}; give all three, or none")
    else:
        process = _join_at(coordinator, num_processes, process_id)
    if process.total > 1:
        _use_own_device()
    return process


def _join_at(coordinator: str, num_processes: int, process_id: int) -> Process:
    host, _, port = coordinator.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        raise ValueError(f"--coordinator is {coordinator!r}; give host:port, as node1:12345")
    if not 1 <= num_processes <= 2**16:
        raise ValueError(f"--num-processes is {num_processes}; give an integer from 1 to 65536")
    if not 0 <= process_id < num_processes:
        raise ValueError(
            f"--process-id is {process_id}; give an integer from 0 to {num_processes - 1}"
        )
    if num_processes == 1:
        return ALONE
    try:
        if process_id == 0:
            run = _tell_others(int(port), num_processes - 1)
        else:
            run = _ask_first(host.strip("[]"), int(port), process_id)
    except OSError as error:
        raise OSError(f"the processes did not meet at {coordinator}: {error}") from None
    return Process(process_id, num_processes, run)


def _read_environment() -> Process:
    """Return the process that SLURM, Open MPI or a TPU slice says this is; otherwise `ALONE`."""
    env = os.environ
    if "SLURM_STEP_NODELIST" in env:  # started by srun, not only within an allocation
        number, total = env.get("SLURM_PROCID", "0"), env.get("SLURM_NTASKS", "1")
        run = [env.get(f"SLURM_{name}", "") for name in ("JOB_ID", "STEP_ID", "RESTART_COUNT")]
    elif "OMPI_COMM_WORLD_SIZE" in env:
        number, total = env["OMPI_COMM_WORLD_RANK"], env["OMPI_COMM_WORLD_SIZE"]
        run = [env.get(name, "") for name in ("PMIX_NAMESPACE", "OMPI_MCA_orte_hnp_uri")]
    elif "," in (workers := env.get("TPU_WORKER_HOSTNAMES", "")):
        hosts = workers.split(",")
        return _join_at(f"{hosts[0]}:{_TPU_PORT}", len(hosts), int(env["TPU_WORKER_ID"]))
    else:
        return ALONE
    if int(total) == 1:
        return ALONE
    word = hashlib.sha256(" ".join(run).encode()).hexdigest()[:16]
    return Process(int(number), int(total), word)


def _use_own_device() -> None:
    """Take one GPU of those that all processes of a node see, as JAX's own runtime would."""
    import jax

    env = os.environ
    local = env.get("SLURM_LOCALID") if "SLURM_STEP_NODELIST" in env else None
    device = env.get("JAX_LOCAL_DEVICE_IDS") or local or env.get("OMPI_COMM_WORLD_LOCAL_RANK")
    if device is not None:
        jax.config.update("jax_cuda_visible_devices", device)
        jax.config.update("jax_rocm_visible_devices", device)


def _tell_others(port: int, num_others: int) -> str:
    """As process 0, choose the word of the run and tell it to the others."""
    run, end = secrets.token_hex(8), time.monotonic() + PATIENCE
    told: set[int] = set()
    family = socket.AF_INET6 if socket.has_dualstack_ipv6() else socket.AF_INET
    dual = family == socket.AF_INET6
    with socket.create_server(("", port), family=family, dualstack_ipv6=dual) as server:
        while len(told) < num_others:
            server.settimeout(max(0.0, end - time.monotonic()))
            try:
                connection, _ = server.accept()
            except (TimeoutError, BlockingIOError):
                raise OSError(f"{len(told)} of {num_others} others came") from None
            with connection:
                connection.settimeout(_ANSWER)
                try:
                    number = int(connection.recv(16))
                    connection.sendall(run.encode())
                except (OSError, ValueError):  # not one of ours, or gone again
                    continue
                told.add(number)
    return run


def _ask_first(host: str, port: int, number: int) -> str:
    """Ask process 0 for the word of the run, again and again until it is there."""
    end, problem = time.monotonic() + PATIENCE, "no answer"
    while time.monotonic() < end:
        try:
            with socket.create_connection((host, port), timeout=_ANSWER) as connection:
                connection.sendall(str(number).encode())
                if run := connection.makefile().read(16):
                    return run
        except OSError as error:
            problem = str(error)
        time.sleep(0.1)
    raise OSError(problem)
