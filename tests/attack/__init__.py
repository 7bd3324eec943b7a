"""The attack: damaged, odd and hostile inputs, made at random from a seed.

`python -m tests.attack --minutes 30 --seed 0` runs it; `--kill` kills commands at random moments.
"""
