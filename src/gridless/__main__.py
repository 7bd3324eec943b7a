"""`python -m gridless` is the command line."""

from gridless.cli.main import main

main()
