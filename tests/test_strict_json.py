"""JSON that every parser takes, and an error for what is none."""

import json

import numpy as np
import pytest

from gridless import strict_json
from gridless.errors import InputError


def test_what_is_no_number_becomes_null():
    content = {"a": float("nan"), "b": [np.inf, 1.5], "c": np.array([np.nan, 2.0]), "d": (1, None)}
    assert json.loads(strict_json.dumps(content)) == {
        "a": None,
        "b": [None, 1.5],
        "c": [None, 2.0],
        "d": [1, None],
    }


def test_names_that_are_no_text_are_spelt_out():
    assert json.loads(strict_json.dumps({"\udcff": "top_\udcff.root"})) == {
        "\\udcff": "top_\\udcff.root"
    }


@pytest.mark.parametrize("text", ["[" * 10_000, "9" * 5_000, "NaN", "[Infinity]", "{", b"\xff"])
def test_what_is_no_json_is_refused(text):
    with pytest.raises(InputError, match="m: not JSON"):
        strict_json.loads(text, "m")
