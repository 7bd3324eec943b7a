"""Ctrl-C while workers start, and workers of another version."""

import os
import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from gridless import InputError, parallel


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


def test_workers_of_another_version_are_refused(monkeypatch):
    """dask waited for ever for results of classes that this version does not have."""

    class OtherVersion(ThreadPoolExecutor):
        def submit(self, function, *arguments):
            monkeypatch.setattr(parallel, "VERSION", "0.1.0")
            return super().submit(function, *arguments)

    with (
        OtherVersion(1) as executor,
        pytest.raises(InputError, match="workers have gridless"),
    ):
        parallel.run(abs, [(-1,)], executor, "title")
