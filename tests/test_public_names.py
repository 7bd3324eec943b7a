"""Public names: what they are, where they are listed, and that they load on first use."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import pytest

import gridless as gl

STUB = Path(gl.__file__).with_suffix(".pyi")


def test_every_public_name_can_be_used():
    for name in gl.__all__:
        thing = getattr(gl, name)
        assert inspect.getdoc(thing), f"gl.{name} has no docstring"


def test_tab_completion_shows_the_public_names_and_no_modules():
    gl.fit.__module__  # noqa: B018 (loads most of the package)
    assert dir(gl) == sorted(gl.__all__)
    assert not [name for name in dir(gl) if inspect.ismodule(getattr(gl, name))]


def test_the_stub_re_exports_every_name_under_its_own_name():
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            assert [alias.asname for alias in node.names] == [alias.name for alias in node.names]


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such_thing"):
        gl.no_such_thing  # noqa: B018


def test_importing_gridless_loads_nothing_heavy():
    code = "import sys, gridless; print({'torch', 'numpy', 'pydantic'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
