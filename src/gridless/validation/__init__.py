"""Closure, coverage, checks of templates and result, plan; `review` asks all of it at once."""
