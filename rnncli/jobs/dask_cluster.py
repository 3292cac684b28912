"""The Dask executor: an existing cluster, given its scheduler, or local worker processes."""

from __future__ import annotations

import asyncio
import logging
import os
import pickle
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from distributed import Client, LocalCluster, as_completed, get_worker
from distributed.comm import connect
from distributed.scheduler import KilledWorker

from rnncli.errors import InvalidRequest
from rnncli.jobs import tenancy
from rnncli.jobs.interpreter import SAFE_PATH, children_have
from rnncli.jobs.processes import ONE_BLAS_THREAD, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rnncli.jobs.processes import Outcome, Task

SECONDS_TO_CONNECT = 10


def on_cluster(
    function: Callable[[Task], Outcome], tasks: Sequence[Task], *, jobs: int, scheduler: str
) -> Iterator[tuple[int, Outcome]]:
    """Yield (index, outcome) of each task when it is done.

    The function is sent to each worker once, with the arguments that a `partial` fixes. Tasks of a
    lost worker are repeated by others; a task that loses several workers fails.

    Raises:
        InvalidRequest: no scheduler answers at the address, or a task keeps killing its workers.
    """
    with _client(jobs, scheduler) as client:
        # Keys include the position and the run, so that equal tasks, also of concurrent runs, are
        # distinct.
        run = f"rnncli-{uuid4().hex}"
        shared = client.submit(pickle.loads, pickle.dumps(function), key=run)
        futures = {
            client.submit(_work, run, shared, task, key=f"{run}-{k}", retries=0): k
            for k, task in enumerate(tasks)
        }
        try:
            for future in as_completed(list(futures)):
                yield futures.pop(future), future.result()
        except KilledWorker as error:
            raise InvalidRequest(
                f"a task lost several workers, perhaps for lack of memory: {error}"
            ) from error
        finally:
            client.cancel(list(futures))


def _work(run: str, function: Callable[[Task], Outcome], task: Task) -> Outcome:
    """Run a task; a worker forgets the function when the client is closed or killed."""
    worker = get_worker()
    return tenancy.work(run, lambda: run in worker.data, function, task)


@contextmanager
def _client(jobs: int, scheduler: str) -> Iterator[Any]:
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # its log is not for users
    if scheduler:
        with _connected(scheduler) as client:
            yield client
        return
    own = {SAFE_PATH: os.environ.get(SAFE_PATH, "")}  # of the programs that workers start
    with (
        children_have(ONE_BLAS_THREAD),
        TemporaryDirectory(prefix="rnncli-", ignore_cleanup_errors=True) as folder,
    ):
        with uninterrupted():
            cluster = LocalCluster(
                n_workers=jobs,
                threads_per_worker=1,
                processes=True,
                dashboard_address=None,
                silence_logs=logging.CRITICAL,
                local_directory=folder,  # from which workers import
                env=own,
            )
        with cluster, Client(cluster) as client:
            yield client


@contextmanager
def _connected(scheduler: str) -> Iterator[Any]:
    try:
        asyncio.run(asyncio.wait_for(_greeted(scheduler), SECONDS_TO_CONNECT))
        client = Client(scheduler, timeout=SECONDS_TO_CONNECT)
    except Exception as error:  # by protocol, distributed raises this and that
        reason = f"{error}" or f"nothing within {SECONDS_TO_CONNECT} s"
        raise InvalidRequest(
            f"--scheduler {scheduler}: no Dask scheduler answers: {reason}"
        ) from error
    with client:
        yield client


async def _greeted(scheduler: str) -> None:
    """Return once a scheduler says who it is, for which a client waits without end."""
    comm = await connect(scheduler)
    try:
        await comm.write({"op": "identity", "reply": True})
        await comm.read()
    finally:
        comm.abort()
