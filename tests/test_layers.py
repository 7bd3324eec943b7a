"""The way of the data: a folder imports only what stands above it."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gridless"
# From the first that is loaded to the last; names on one line stand beside each other.
LAYERS = [
    {"errors"},
    {"registry", "parallel", "distributed", "strict_json", "strict_yaml"},
    {"results", "templates"},
    {"files", "curves"},
    {"likelihood"},
    {"calibration"},
    {"systematics"},
    {"measurement"},
    {"density"},
    {"model"},
    {"training"},
    {"fitting"},
    {"analysis"},
    {"validation"},
    {"report"},
    {"examples", "example_files", "cli", "demo", "paper", "__main__", "__init__"},
]
WITHOUT_TORCH = {
    "errors",
    "registry",
    "strict_json",
    "strict_yaml",
    "results",
    "templates",
    "files",
    "curves",
    "likelihood",
    "calibration",
    "systematics",
    "measurement",
}


def layer(name: str) -> int:
    return next(number for number, names in enumerate(LAYERS) if name in names)


def imported(path: Path) -> set[str]:
    """Full names of what a file imports, at any depth of it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


FILES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_folder_imports_only_what_stands_above_it(path):
    own = path.parts[0].removesuffix(".py")
    for name in imported(SOURCE / path):
        if name.startswith("gridless."):
            other = name.split(".")[1]
            if other.startswith("__"):
                continue
            assert other == own or layer(other) < layer(own) or layer(own) == len(LAYERS) - 1, (
                f"{path} imports {name}, which stands below it"
            )


@pytest.mark.parametrize("path", FILES, ids=str)
def test_what_needs_no_network_does_not_import_torch(path):
    if path.parts[0].removesuffix(".py") in WITHOUT_TORCH:
        assert not any(name.split(".")[0] == "torch" for name in imported(SOURCE / path))


def test_no_public_function_is_named_like_a_module_beside_it():
    import gridless

    modules = {path.stem for path in SOURCE.iterdir()}
    assert not modules & set(gridless.__all__)


@pytest.mark.parametrize("path", FILES, ids=str)
def test_a_module_over_400_lines_wants_to_be_two(path):
    lines = len((SOURCE / path).read_text().splitlines())
    assert lines <= 400


@pytest.mark.parametrize("folder", sorted({path.parent for path in FILES}), ids=str)
def test_a_folder_of_over_14_modules_wants_to_be_two(folder):
    modules = [path for path in (SOURCE / folder).glob("*.py") if path.stem != "__init__"]
    assert len(modules) <= 14


def test_what_contributing_names_is_there():
    text = re.sub(r"\s+", " ", (ROOT / "CONTRIBUTING.md").read_text())
    for name in re.findall(r"`([\w/]+\.py)`", text):
        known = [SOURCE / name, ROOT / name, *([] if "/" in name else SOURCE.rglob(name))]
        assert any(path.exists() for path in known), name
    pairs = re.findall(r"`(\w+)` of `([\w/]+\.py)`", text)
    assert len(pairs) > 20
    for thing, name in pairs:
        made = rf"(?m)^ *(?:def |class ){thing}\b|^{thing}\b"
        assert re.search(made, (SOURCE / name).read_text()), f"{thing} of {name}"
