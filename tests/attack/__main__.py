"""`python -m tests.attack`."""

from tests.attack.run import main

if __name__ == "__main__":
    main()
