"""What holds for every test."""

from __future__ import annotations

import signal

# A shell without job control starts what runs in the background with Ctrl-C ignored, and so would
# be the processes that tests interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
