"""Ctrl-C while workers start."""

import os
import signal
import threading
import time

import pytest

from gridless import parallel


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX")
def test_ctrl_c_waits_until_workers_have_started():
    """Workers inherit what is held back, so that they do not answer it with tracebacks. Another
    thread, such as those of torch, takes the signal if it can."""
    waited, done = [], threading.Event()
    other = threading.Thread(target=done.wait)
    other.start()

    def pressed():
        with parallel._interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            waited.append(True)

    # A shell starts what runs in its background with this signal ignored.
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            pressed()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)
        done.set()
        other.join()
    assert waited
