"""`python -m gridless` is the command line."""

import errno
import os
import signal
import sys
from contextlib import suppress
from io import TextIOWrapper
from typing import Any

INTERRUPTED = 130  # exit code of a program that Ctrl-C ended, as shells have it


def run() -> None:
    """The command line. Ctrl-C at any moment, a full disk behind stdout and too little memory end
    it with one line, without a traceback."""
    pressed = False

    def interrupt(*_: Any) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            # A name that the terminal cannot show is spelt out.
            stream.reconfigure(errors="backslashreplace")
    try:
        from gridless.cli.main import main

        main(prog_name="gridless")
    except SystemExit as end:
        code = end.code
    except BaseException as error:
        # Libraries turn a KeyboardInterrupt while they load into errors of their own.
        pressed = pressed or isinstance(error, KeyboardInterrupt)
        if not pressed and not isinstance(error, OSError | MemoryError):
            raise
        code = _explain(error, pressed)
    else:
        code = 0
    with suppress(OSError):
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to interrupt
    sys.exit(_flushed(code))


def _explain(error: BaseException, pressed: bool) -> int:
    """One line about what ended the program, and its exit code."""
    if pressed:
        _say("interrupted")
        return INTERRUPTED
    if isinstance(error, MemoryError):
        _say("too little memory; give fewer events or a smaller model")
    elif getattr(error, "errno", None) != errno.EPIPE:  # whoever read the output has seen enough
        _say(f"{error}; make room, or check the place")
    return 2


def _flushed(code: Any) -> Any:
    """The exit code, once stdout has taken everything: Python would say so with a traceback."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError as error:
        code = code or _explain(error, pressed=False)
        # What is left goes nowhere.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _say(text: str) -> None:
    with suppress(OSError):
        print(f"gridless: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    run()
