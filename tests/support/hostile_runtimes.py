"""Runtimes that misbehave, each in its own way; imported in the process that they take down."""

import ctypes
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

import numpy as np

HOUR = 3600
NUMBERS = np.arange(6, dtype=np.float32).reshape(2, 3)


def line():
    """The descriptor of the line to the judge."""
    return next(n for n in range(3, 99) if _is_socket(n))


def _is_socket(descriptor):
    try:
        return stat.S_ISSOCK(os.fstat(descriptor).st_mode)
    except OSError:
        return False


def write(content):
    """Write bytes to the judge past all that would make a message of them."""
    socket.socket(fileno=os.dup(line())).sendall(content)


def message(header, body=b"", *, promised=None):
    """A frame, as the judge expects it or not quite."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return b"rnn1" + struct.pack("<I", len(text) if promised is None else promised) + text + body


def segfault(vector):
    """Write to address 0."""
    ctypes.memset(0, 0, 1)


def abort(vector):
    """End as C++ does when an exception is not caught."""
    sys.stderr.write("terminate called: \x1b[31mout of luck\n")
    sys.stderr.flush()
    os.abort()


def leave(vector):
    """End without a word."""
    os._exit(7)


def exit_politely(vector):
    """End by an exception that is none of the runtime's."""
    sys.exit("enough")


def sleep(vector):
    """Hang."""
    time.sleep(HOUR)


def stop(vector):
    """Stop itself, deaf to everything but SIGKILL."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.kill(os.getpid(), signal.SIGSTOP)


def eat(vector):
    """Take memory until there is none."""
    eaten = []
    while True:
        eaten.append(np.ones(1 << 20))


def feed_a_child(vector):
    """Let another process take the memory."""
    subprocess.run(
        [sys.executable, "-c", "a = []\nwhile 1: a.append(b'x' * (1 << 24))"], check=True
    )


def noise(vector):
    """Write bytes that are no message."""
    write(b"\xff\x00" * 5000)
    time.sleep(HOUR)


def half(vector):
    """Write half a message, and end."""
    write(message([vector.number, "ran", {}, [["Y", "float32", [2, 3]]]], b"\0" * 11))
    os._exit(0)


def half_and_wait(vector):
    """Write half a message, and never the rest."""
    write(message([vector.number, "ran", {}, [["Y", "float32", [2, 3]]]], b"\0" * 11))
    time.sleep(HOUR)


def promise(vector):
    """Announce a header that is never written."""
    write(message(b"", promised=(1 << 32) - 1))
    time.sleep(HOUR)


def close(vector):
    """Close the line, and go on."""
    os.close(line())
    time.sleep(HOUR)


def answer_another(vector):
    """Answer a question that was not asked."""
    write(message([12345, "ran", {}, []]))
    time.sleep(HOUR)


def answer_twice(vector):
    """Have an answer ready for the next question, too."""
    write(message([vector.number, "ran", {}, []]))
    write(message([vector.number, "ran", {}, []]))


def rejoice(vector):
    """Answer with a word that is none of the judge's."""
    write(message([vector.number, "rejoiced", {}, []]))
    time.sleep(HOUR)


def kill_the_supervisor(vector):
    """End the process that watches this one."""
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(HOUR)


def gives(outputs):
    """Return something that is no outputs."""
    return lambda vector: outputs


# What ends the process, or is no answer: the vector's id -> what is done.
CRASHES = {
    "segfault": segfault,
    "abort": abort,
    "leave": leave,
    "exit_politely": exit_politely,
    "noise": noise,
    "half": half,
    "promise": promise,
    "kill_the_supervisor": kill_the_supervisor,
    "answer_another": answer_another,
    "rejoice": rejoice,
    "returns_none": gives(None),
    "returns_a_list": gives([NUMBERS]),
    "output_is_none": gives({"Y": None}),
    "output_is_text": gives({"Y": "0.5"}),
    "output_is_ragged": gives({"Y": [[1.0], [2.0, 3.0]]}),
    "output_of_records": gives({"Y": np.zeros(2, [("a", "f4")])}),
}
HANGS = {"sleep": sleep, "stop": stop, "half_and_wait": half_and_wait}
HOGS = {"eat": eat, "feed_a_child": feed_a_child}


def raises(error):
    """Raise it."""

    def does(vector):
        raise error

    return does


# the vector's id -> what is done, and what the message must be.
REFUSALS = {
    "value_error": (raises(ValueError("no\nreally")), "ValueError: no"),
    "silent": (raises(ValueError()), "ValueError: "),
    "key_error": (raises(KeyError("Y")), "KeyError: 'Y'"),
    "memory_error": (raises(MemoryError()), "MemoryError: "),
    "escapes": (raises(ValueError("\x1b[2J\x07red")), "ValueError: [2J red"),
    "long": (raises(ValueError("x" * 99_999)), "ValueError: " + "x" * 288 + "..."),
    "lone_surrogate": (raises(ValueError("\ud800!")), "ValueError: !"),
}


def forks(vector):
    """Start children that sleep, one of them in a session of its own, and answer."""
    subprocess.Popen(["sleep", str(HOUR)])
    subprocess.Popen(["sleep", str(HOUR)], start_new_session=True)
    orphan()
    return {"Y": NUMBERS}


def orphan():
    """Leave behind a process that holds the line to the judge and has no parent."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(HOUR)


def forks_and_dies(vector):
    """Leave children behind that hold every descriptor."""
    orphan()
    ctypes.memset(0, 0, 1)


def talks(vector):
    """Write megabytes to everything there is to write to."""
    for descriptor in (1, 2):
        for _ in range(100):
            os.write(descriptor, b"la\n" * 20_000)
    return {"Y": NUMBERS}


OTHERS = {
    "answer_twice": answer_twice,
    "close": close,
    "forks": forks,
    "forks_and_dies": forks_and_dies,
    "talks": talks,
}


class Hostile:
    """Does what the vector's id says, and answers where that is nothing."""

    def __init__(self, settings, threads):
        self.asked = 0

    def describe(self):
        """It has a version like everybody."""
        return {"version": "6.66", "told": os.environ["OMP_NUM_THREADS"]}

    def run(self, vector):
        """Misbehave."""
        self.asked += 1
        does = {**CRASHES, **HANGS, **HOGS, **OTHERS}.get(vector.id)
        does = does or REFUSALS.get(vector.id, (None,))[0]
        return does(_Numbered(vector, self.asked)) if does else {"Y": NUMBERS}


class _Numbered:
    """A vector, and which question of this process it is."""

    def __init__(self, vector, number):
        self.id, self.number = vector.id, number


class Grudge(Hostile):
    """Dies of its second vector, whatever that is."""

    def run(self, vector):
        """Answer once."""
        self.asked += 1
        if self.asked > 1:
            os.abort()
        return {"Y": NUMBERS}


class Idle:
    """Describes itself, and has no way to run."""

    def __init__(self, settings, threads):
        """Take everything."""

    def describe(self):
        """Return nothing."""
        return {}


class Silent(Hostile):
    """Says nothing of itself."""

    def describe(self):
        """Forget to return."""


def needs_what_is_missing(settings, threads):
    """Fail as a package does that is not installed."""
    import no_such_package  # noqa: F401


def dies_at_birth(settings, threads):
    """Take the process down before it can say anything."""
    os.abort()
