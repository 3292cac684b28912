"""Programs at a terminal of 80 columns, and what it shows of them.

Lines are folded there between words, at places that move with a number or the name of a folder: so
texts are compared unfolded.
"""

import fcntl
import os
import pty
import struct
import subprocess
import termios
import threading

from rnncli.talk import terminal

COLUMNS = 80
LONGEST = 600  # seconds for one program, on a busy machine
END = b"\0end of what was written\0"


def shown(command, **given):
    """Run a program at a terminal; return its exit code and the text that the terminal shows.

    The terminal stays open until all is read, and a mark follows what the program wrote: a reader
    that waits for the last writer to close it can be told so with lines still unread, on Linux,
    where the writer writes and closes between two steps of one read.

    Args:
        command: the program and its arguments.
        given: what `subprocess.Popen` is given else; `stdin` is empty and the rest the terminal.

    Raises:
        subprocess.TimeoutExpired: it has not ended after `LONGEST` seconds; it is killed.
    """
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 50, COLUMNS, 0, 0))
    given = {"stdin": subprocess.DEVNULL, "stdout": its, "stderr": its, **given}
    try:
        with subprocess.Popen(command, **given) as process:
            threading.Thread(target=_mark, args=[process, its]).start()
            printed = b""
            while not printed.endswith(END):
                printed += os.read(ours, 1 << 16)
            try:
                code = process.wait(0)
            finally:
                process.kill()
    finally:
        os.close(its)
        os.close(ours)
    return code, printed.removesuffix(END).decode().replace("\r\n", "\n")


def unfolded(text):
    """Return lines whole that a terminal shows folded: the first word of a row had no room."""
    lines = []
    room = COLUMNS  # of the row above
    for row in text.splitlines():
        indent = len(row) - len(row.lstrip())
        word = terminal.glued(row.lstrip()).partition(" ")[0]
        if word and len(word) >= room and indent == 2 + len(lines[-1]) - len(lines[-1].lstrip()):
            lines[-1] += f" {row.lstrip()}"
        else:
            lines.append(row)
        room = COLUMNS - len(row) if row.strip() and row != "..." else COLUMNS
    return "".join(f"{line}\n" for line in lines)


def folded(text):
    """Return lines as a terminal shows them."""
    rows = (row for line in text.splitlines() for row in terminal.folded(line, COLUMNS))
    return "".join(f"{row}\n" for row in rows)


def _mark(process, terminal):
    try:
        process.wait(LONGEST)
    finally:
        os.write(terminal, END)
