"""`python -m gridless` is the command line."""

from gridless.cli import main

main()
