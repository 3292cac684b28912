"""A program that speaks the harness protocol and misbehaves as the case's id says.

It needs the standard library alone: python -I -S hostile_harness.py [WAY TO START]
"""

import ctypes
import json
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

HOUR = 3600
NUMBERS = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
SHAPE = [2, 3]


def write(line):
    """Write a line, or something else."""
    os.write(1, line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")


def put(run, name="Y.bin", content=None):
    """Write the file of an output."""
    content = struct.pack("<6f", *NUMBERS) if content is None else content
    (Path(run["dir"]) / name).write_bytes(content)


def tensor(file="Y.bin", dtype="float32", shape=SHAPE):
    """The descriptor of an output."""
    return {"file": file, "dtype": dtype, "shape": shape}


def ran(run, **descriptor):
    """Answer with one output."""
    write({"seq": run["seq"], "outputs": {"Y": tensor(**descriptor)}})


def good(run):
    """Answer properly."""
    put(run)
    ran(run)


def says(*lines):
    """Write lines and hang."""

    def does(run):
        for line in lines:
            write(line(run) if callable(line) else line)
        time.sleep(HOUR)

    return does


def answers(**fields):
    """Answer with these fields, and go on."""
    return lambda run: write({"seq": run["seq"], **fields})


def gives(content=None, *, name="Y.bin", **descriptor):
    """Write a file and describe it otherwise."""

    def does(run):
        put(run, name, content)
        ran(run, **descriptor)

    return does


def links(target):
    """Give a link for an output."""

    def does(run):
        (Path(run["dir"]) / "Y.bin").symlink_to(target)
        ran(run)

    return does


def moves_the_folder(run):
    """Put a link in the place of the folder of outputs."""
    folder = Path(run["dir"])
    folder.symlink_to(folder.rename(f"{folder}-elsewhere"))
    good(run)


def spoils(spoil):
    """Do something to the folders of this case and of the next, and refuse."""

    def does(run):
        folder = Path(run["dir"])
        spoil(folder, folder.with_name(f"{run['seq'] + 1}"))
        write({"seq": run["seq"], "skipped": True, "message": "spoilt"})

    return does


def puts_a_file_in_place_of_all(folder, _):
    """Put a file where the temporary folder was."""
    folder.parent.rename(f"{folder.parent}-elsewhere")
    folder.parent.write_text("mine")


def loops(folder):
    """Put a link to itself where a folder was."""
    folder.rename(f"{folder}-elsewhere")
    folder.symlink_to(folder)


def puts_folders_in_place_of_files(folder, _):
    """Put folders where inputs and the model were."""
    for path in [*folder.parent.iterdir(), *folder.iterdir()]:
        if path.is_file():
            path.unlink()
            path.mkdir()


def outside(run):
    """Write beside the folder of outputs."""
    put(run, "../Y.bin")
    ran(run, file="../Y.bin")


def absolute(run):
    """Name the file by its whole path."""
    put(run)
    ran(run, file=f"{run['dir']}/Y.bin")


def pipes(run):
    """Give a pipe without a writer."""
    os.mkfifo(f"{run['dir']}/Y.bin")
    ran(run)


def sparse(run):
    """Give a file whose bytes are on no disk."""
    with Path(run["dir"], "Y.bin").open("wb") as file:
        file.truncate(1 << 31)
    ran(run, shape=[1 << 29])


def endless(run):
    """Never end the line."""
    while True:
        write(b"x" * 65536)


def die(run):
    """Be killed by the system."""
    ctypes.memset(0, 0, 1)


def abort(run):
    """End as C++ does when an exception is not caught."""
    sys.stderr.write("terminate called: \x1b[31mout of luck\n")
    sys.stderr.flush()
    os.abort()


def leave(run):
    """End without a word."""
    os._exit(7)


def finish(run):
    """End as if it were done."""
    os._exit(0)


def truncate(run):
    """End in the middle of the answer."""
    write(json.dumps({"seq": run["seq"], "outputs": {}}).encode()[:12])
    os._exit(0)


def answer_and_die(run):
    """Answer, and be gone when the next question comes."""
    good(run)
    os.abort()


def close(run):
    """Close standard output, and live on."""
    os.close(1)
    time.sleep(HOUR)


def orphan():
    """Leave behind a process that holds every descriptor and has no parent."""
    if not os.fork():
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(HOUR)


def forks(run):
    """Start children that sleep, and answer."""
    subprocess.Popen(["sleep", str(HOUR)], start_new_session=True)
    orphan()
    good(run)


def forks_and_dies(run):
    """Leave children behind, and die."""
    orphan()
    die(run)


def talks(run):
    """Write megabytes to standard error, and answer."""
    for _ in range(100):
        os.write(2, b"la\n" * 20_000)
    good(run)


def eat(run):
    """Take memory until there is none."""
    eaten = []
    while True:
        eaten.append(b"x" * (1 << 22))


def sleep(run):
    """Hang."""
    time.sleep(HOUR)


def stop_itself(run):
    """Stop, deaf to everything but SIGKILL."""
    os.kill(os.getpid(), signal.SIGSTOP)


def half(run):
    """Write half an answer, and never the rest."""
    write(b'{"seq":')
    time.sleep(HOUR)


def twice(run):
    """Have an answer ready for the next question, too."""
    good(run)
    write({"seq": run["seq"] + 1, "skipped": True, "message": "always"})


GARBAGE = "gave garbage: "
ANSWER = f"{GARBAGE}the answer to run"

# The case's id -> what is done, and how the message of the crash begins.
CRASHES = {
    "die": (die, "died of SIGSEGV"),
    "abort": (abort, "died of SIGABRT: terminate called: [31mout of luck"),
    "leave": (leave, "ended with exit code 7"),
    "finish": (finish, "ended with exit code 0"),
    "truncate": (truncate, "ended with exit code 0"),
    "forks_and_dies": (forks_and_dies, "died of SIGSEGV"),
    "text": (says(b"Loading model...\n"), f"{GARBAGE}wrote 'Loading model...', which is not JSON"),
    "noise": (says(b"\xff\x00\n"), f"{GARBAGE}wrote '\\ufffd\\x00', which is not JSON"),
    "list": (says(b"[1]\n"), f"{GARBAGE}wrote '[1]', which is not a JSON object"),
    "blank": (says(b"\n"), f"{GARBAGE}wrote '', which is not JSON"),
    "key_twice": (says(b'{"seq":1,"seq":2}\n'), f"{GARBAGE}wrote "),
    "nan": (says(b'{"seq":NaN}\n'), f"{GARBAGE}wrote "),
    "deep": (says(b"[" * 100_000 + b"\n"), f"{GARBAGE}wrote "),
    "endless": (endless, f"{GARBAGE}wrote a line of more than 1048576 bytes: 'xxx"),
    "no_seq": (says({"outputs": {}}), f"{GARBAGE}the answer to None, not "),
    "other_seq": (says({"seq": 99, "outputs": {}}), f"{GARBAGE}the answer to 99, not "),
    "seq_is_text": (
        says(lambda run: {"seq": str(run["seq"]), "outputs": {}}),
        f"{GARBAGE}the answer to '",
    ),
    "nothing": (answers(), f"{ANSWER} has no 'outputs'"),
    "misspelt": (answers(output={}), f"{ANSWER} has no 'outputs'"),
    "outputs_and_skipped": (
        answers(outputs={}, skipped=True, message="no"),
        f"{ANSWER} has an unknown entry 'outputs'",
    ),
    "skipped_is_false": (answers(skipped=False, message=""), f"{ANSWER}.skipped must be True"),
    "skipped_is_one": (answers(skipped=1, message=""), f"{ANSWER}.skipped must be True"),
    "no_reason": (answers(skipped=True), f"{ANSWER} has no 'message'"),
    "errored": (
        answers(errored=True, context={"message": "no\nreally", "traceback": "f.c:1"}),
        "reported an error: no really",
    ),
    "no_context": (answers(errored=True), f"{ANSWER} has no 'context'"),
    "outputs_is_a_list": (answers(outputs=[]), f"{ANSWER}.outputs must be object"),
    "values_inline": (answers(outputs={"Y": NUMBERS}), f"{ANSWER}.outputs.Y must be object"),
    "no_dtype": (
        answers(outputs={"Y": {"file": "Y.bin", "shape": SHAPE}}),
        f"{ANSWER}.outputs.Y has no 'dtype'",
    ),
    "unknown_dtype": (gives(dtype="float31"), GARBAGE),
    "text_dtype": (gives(dtype="string"), GARBAGE),
    "negative": (gives(shape=[-2, -3]), f"{ANSWER}.outputs.Y.shape[0] must be from 0"),
    "fractional": (gives(shape=[2.0, 3.0]), f"{ANSWER}.outputs.Y.shape[0] must be integer"),
    "huge": (gives(shape=[1 << 32, 1 << 32]), GARBAGE),
    "many_dimensions": (gives(shape=[1] * 99), GARBAGE),
    "empty_and_huge": (gives(b"", shape=[0, *[1 << 32] * 4]), GARBAGE),
    "too_short": (gives(bytes(23)), GARBAGE),
    "too_long": (gives(bytes(25)), GARBAGE),
    "wrong_shape": (gives(shape=[3, 3]), GARBAGE),
    "wrong_dtype": (gives(dtype="float64"), GARBAGE),
    "no_file": (gives(file="Z.bin"), GARBAGE),
    "a_folder": (gives(file="."), GARBAGE),
    "outside": (outside, f"{GARBAGE}'../Y.bin' is not a name of one file or folder"),
    "absolute": (absolute, GARBAGE),
    "link": (links("/etc/passwd"), GARBAGE),
    "link_to_zeros": (links("/dev/zero"), GARBAGE),
    "moved_folder": (moves_the_folder, GARBAGE),
    "pipe": (pipes, GARBAGE),
    "sparse": (sparse, GARBAGE),
}
# What no next case may suffer from.
SPOILS = {
    "next_folder": spoils(lambda _, following: following.mkdir()),
    "next_is_a_link": spoils(lambda _, following: following.symlink_to("/")),
    "next_is_a_file": spoils(lambda _, following: following.write_text("mine")),
    "next_model_is_a_folder": spoils(lambda _, following: Path(f"{following}.onnx").mkdir()),
    "no_folder_but_a_file": spoils(puts_a_file_in_place_of_all),
    "no_files_but_folders": spoils(puts_folders_in_place_of_files),
    "a_loop_of_links": spoils(lambda folder, _: loops(folder.parent)),
    "nobody_may_write": spoils(lambda folder, _: folder.parent.chmod(0o500)),
}
HANGS = {"sleep": sleep, "stop_itself": stop_itself, "half": half}
OTHERS = {
    "answer_and_die": answer_and_die,
    "close": close,
    "eat": eat,
    "forks": forks,
    "talks": talks,
    "twice": twice,
}
# The case's id -> what is done, and the message of the refusal.
REFUSALS = {
    "skipped": (answers(skipped=True, message="no\nreally"), "no really"),
    "with_link": (
        answers(skipped=True, message="no LSTM", issue_url="https://example.org/7"),
        "no LSTM (https://example.org/7)",
    ),
    "silent": (answers(skipped=True, message=""), "no message"),
    "escapes": (answers(skipped=True, message="\x1b[2J\x07red"), "[2J red"),
    "long": (answers(skipped=True, message="x" * 99_999), "x" * 300 + "..."),
}
WAYS = {name: does for name, (does, _) in {**CRASHES, **REFUSALS}.items()}
WAYS |= SPOILS | HANGS | OTHERS

ABOUT = {"name": "hostile", "version": "6.66", "language": "Python", "operators": ["LSTM"]}
# The first argument -> what is done with `start`.
STARTS = {
    **dict.fromkeys(("good", "deaf"), lambda: write({"version": 1, "implementation": ABOUT})),
    "abort": os.abort,
    "leave": lambda: os._exit(7),
    "quiet": lambda: time.sleep(HOUR),
    "text": lambda: write(b"Hello!\n"),
    "nothing": lambda: write({}),
    "version_2": lambda: write({"version": 2, "dialects": []}),
    "version_is_true": lambda: write({"version": True, "implementation": ABOUT}),
    "nameless": lambda: write({"version": 1, "implementation": {"version": "1"}}),
    "about_is_text": lambda: write({"version": 1, "implementation": "mine"}),
}


def main():
    """Answer requests until the end."""
    way = sys.argv[1] if sys.argv[1:] else "good"
    for line in sys.stdin:
        request = json.loads(line)
        if request["cmd"] == "start":
            STARTS[way]()
        if request["cmd"] == "run":
            WAYS.get(request["case"]["id"], good)(request)
        if request["cmd"] == "stop":
            time.sleep(HOUR if way == "deaf" else 0)
            return


if __name__ == "__main__":
    main()
