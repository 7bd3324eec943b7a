"""Every Python example in the README and the docs runs as it stands."""

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
# The tutorial is a notebook and runs as one, in test_tutorial.py.
PAGES = [
    ROOT / "README.md",
    *(ROOT / "docs" / f"{name}.md" for name in ("basis", "method", "warnings")),
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples(page, tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    monkeypatch.chdir(tmp_path)
    exec(compile("\n".join(blocks), str(page), "exec"), {"__name__": page.stem})
    assert os.getcwd() == str(tmp_path)


def test_readme_links_exist():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
