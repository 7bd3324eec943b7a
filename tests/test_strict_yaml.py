"""YAML without its traps."""

import pytest

from gridless import strict_yaml
from gridless.errors import InputError


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\nseed: 2", "line 2: 'seed' is there twice"),
        ("fit:\n  seed: 1\n  seed: 2", "line 3: 'seed' is there twice"),
        ("a: [{b: 1, b: 1}]", "'b' is there twice"),
        ("a: &a [x]\nb: *a", r"line 2: an alias, \*a; write it out"),
        ("a: " + "[" * 3_000, "nested more than 20 deep"),
        ("a: " + "{a: " * 3_000, "nested more than 20 deep"),
        ("a: 2001-99-99", "not YAML"),
        ("a: " + "9" * 5_000, "not YAML"),
        ("a: 'x", "line 1: not YAML"),
        ('a: 1\nb: {"\\udcff": x}', r"line 2: '\\udcff' is no text; spell it in UTF-8"),
        ("a: {mZ}.csv\nb: 1", "line 1: not YAML: .*; put the pattern in quotes: a text of YA"),
        ("a: {mt}_{mb}.csv", "line 1: not YAML: .*; put the pattern in quotes"),
        ("a: {b: {mt}.csv}", "line 1: not YAML: .*; put the pattern in quotes"),
        ("a: [", "not YAML"),
        ("a: {b: {mt: 1}", "not YAML: .*; `gridless init` shows one"),
        ("#" * 1_100_000, "characters of YAML"),
    ],
)
def test_traps_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        strict_yaml.load(text, "a.yaml")


def test_aliases_of_aliases_take_no_time():
    rows = [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 10)]
    with pytest.raises(InputError, match="an alias"):
        strict_yaml.load("\n".join(["a0: &a0 [x]", *rows, "observables: *a9"]), "a.yaml")
