"""Run independent jobs in threads, and stop them all together."""

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import jax

__all__ = ["num_cores", "run_jobs"]


def num_cores() -> int:
    """Return the number of cores that this process may use, which may be fewer than there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def run_jobs(
    jobs: Iterable[Callable[[threading.Event], Any]],
    devices: tuple[Any, ...],
    draw: Callable[[], None],
) -> list[Any]:
    """Run independent jobs, several at a time on CPU devices; return their results in order.

    One call on a CPU device keeps about one core busy, so threads share the cores among batches. If
    there are several such devices, two threads: while one puts results in order the other plays.
    ``draw`` is called a few times a second from the calling thread. On an interruption or an
    error the jobs under way stop at their next chunk.
    """
    at_a_time = 1
    if devices[0].platform == "cpu":
        at_a_time = num_cores() if len(devices) == 1 else 2
    stop = threading.Event()

    def on_first(job: Callable[[threading.Event], Any]) -> Any:
        # What is not spread over the devices is made on the first of them.
        with jax.default_device(devices[0]):
            return job(stop)

    results: dict[int, Any] = {}
    numbered = enumerate(jobs)
    with ThreadPoolExecutor(at_a_time) as pool:
        waiting: dict[Future, int] = {}
        try:
            while True:
                # More than run at a time, so that no thread waits; not all, which may be many.
                for number, job in islice(numbered, 2 * at_a_time - len(waiting)):
                    waiting[pool.submit(on_first, job)] = number
                if not waiting:
                    break
                done, _ = wait(waiting, timeout=0.2, return_when=FIRST_COMPLETED)
                for future in done:
                    results[waiting.pop(future)] = future.result()
                draw()
        except BaseException:
            stop.set()
            pool.shutdown(cancel_futures=True)
            raise
    return [results[number] for number in range(len(results))]
