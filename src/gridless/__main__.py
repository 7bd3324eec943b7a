"""`python -m gridless` is the command line."""

import sys


def run() -> None:
    """The command line; Ctrl-C while it loads ends it as Ctrl-C does later, without a traceback."""
    try:
        from gridless.cli.main import main

        main(prog_name="gridless")
    except KeyboardInterrupt:
        print("Aborted!", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    run()
