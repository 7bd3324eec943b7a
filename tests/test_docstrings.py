"""The examples in the docstrings run and print what they say, and every public name has one."""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import gridless as gl

SOURCE = Path(__file__).parents[1] / "src"
MODULES = [
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for path in sorted(SOURCE.rglob("*.py"))
    if ">>> " in path.read_text()
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testmod(import_module(name), optionflags=doctest.ELLIPSIS)
    assert tried
    assert not failed, "see the captured output"


# Public names that need no example.
WITHOUT = {"GridlessWarning", "InputError"}
FUNCTIONS = [name for name in gl.__all__ if inspect.isfunction(getattr(gl, name))]


@pytest.mark.parametrize("name", sorted(set(gl.__all__) - WITHOUT))
def test_a_public_name_has_an_example(name):
    found = doctest.DocTestFinder().find(getattr(gl, name), name)
    assert any(test.examples for test in found), f"gl.{name}: give its docstring an example"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_arguments_and_result_of_a_public_function_are_described(name):
    function = getattr(gl, name)
    text = inspect.getdoc(function)
    heads = [line.split(" : ")[0] for line in text.splitlines() if " : " in line]
    described = {word.strip().lstrip("*") for head in heads for word in head.split(",")}
    missing = set(inspect.signature(function).parameters) - described
    assert not missing, f"gl.{name}: describe {', '.join(missing)} with its type"
    assert "Returns\n-------" in text, f"gl.{name}: say what it returns"
