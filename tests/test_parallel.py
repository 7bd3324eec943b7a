"""Ctrl-C while workers start."""

import os
import signal

import pytest

from gridless import parallel


@pytest.mark.skipif(not hasattr(signal, "pthread_sigmask"), reason="signals of POSIX")
def test_ctrl_c_waits_until_workers_have_started():
    """Workers inherit what is held back, so that they do not answer it with tracebacks."""
    waited = []

    def pressed():
        with parallel._interrupts_held():
            os.kill(os.getpid(), signal.SIGINT)
            waited.append(True)

    with pytest.raises(KeyboardInterrupt):
        pressed()
    assert waited
