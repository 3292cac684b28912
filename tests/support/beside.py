"""A process beside this one, which stays small, for what forks.

A fork copies the page tables of its parent, and a process that has run thousands of tests is large.
"""

import os
from functools import cache
from multiprocessing import get_context

from support.sampling import ELSEWHERE

SECONDS = [0.0]  # of a processor, in the process and those it has waited for
ELSEWHERE.append(lambda: SECONDS[-1])


def beside(function, *arguments):
    """Call a function of a module in the process beside this one.

    Raises:
        Exception: as the function does; EOFError if it ends the process.
    """
    connection = _connection()
    connection.send((function, arguments))
    try:
        is_returned, found, SECONDS[-1] = connection.recv()
    except EOFError:
        _connection.cache_clear()
        raise
    if is_returned:
        return found
    raise found


@cache
def _connection():
    """Start the process."""
    context = get_context("spawn")
    ours, its = context.Pipe()
    context.Process(target=_serve, args=(its,), daemon=True).start()
    its.close()
    return ours


def _serve(connection):
    """Call what is asked for until the parent has gone."""
    while True:
        try:
            function, arguments = connection.recv()
        except EOFError:
            return
        try:
            answer = True, function(*arguments)
        except Exception as error:  # noqa: BLE001 -- raised where it was asked for
            answer = False, error
        connection.send((*answer, sum(os.times()[:4])))
