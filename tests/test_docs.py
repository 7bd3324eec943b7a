"""Every example in the README and the docs runs as it stands: Python and shell, in the order of
the page, in an empty folder."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from gridless.analysis import load_analysis

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
FILES = DOCS / "files.md"
# The tutorial is a notebook and runs as one, in test_tutorial.py.
TUTORIAL = DOCS / "tutorial.md"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("howto/*.md"))]
# Shell commands that are not run here: what installs or submits, and `make`, which makes another
# virtual environment first and then runs `gridless demo` (test_demo.py) and these tests.
NOT_RUN = {"make", "pip", "git", "sbatch"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"[-+]?\d[\d,]*(\.\d+)?(e[-+]?\d+)?|\s+")


def blocks(page, *kinds):
    """(kind, text, line) of every fenced block of these kinds."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        if not kinds or found[1] in kinds:
            yield found[1], found[2], text.count("\n", 0, found.start(2))


def run_python(text, page, line, names):
    # Empty lines before it, so that an error names the line of the page.
    exec(compile("\n" * line + text, str(page), "exec"), names)


def run_shell(text):
    """What the commands print, except for those that are not run."""
    commands = re.sub(r"\\\n", "", text).splitlines()
    script = "\n".join(c for c in commands if c.split(" ")[0] not in NOT_RUN)
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    return done.stdout


EXAMPLES = [p for p in PAGES if p != TUTORIAL and any(blocks(p, "python", "sh"))]


@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    if page.name == "README.md":
        # Its shell example has the files that the page on files writes first.
        _, text, line = next(blocks(FILES, "python"))
        run_python(text, FILES, line, {})
    printed = None
    for kind, text, line in blocks(page):
        if kind == "text" and printed is not None:
            assert same(text, printed), f"line {line}: prints\n{printed}"
        printed = None
        if kind == "python":
            run_python(text, page, line, names)
        elif kind == "sh":
            printed = run_shell(text)
    assert os.getcwd() == str(tmp_path)


def same(shown, printed):
    """Whether an output is as shown: numbers may differ from machine to machine."""
    return NUMBER.sub(" # ", shown).split() == NUMBER.sub(" # ", printed).split()


def test_a_wrong_example_would_fail():
    assert same("mass = 172.48 +0.36\n  ok", "mass = 9 -1.5e-05\n\n ok")
    assert not same("mass = 172.48", "m = 172.48")
    assert run_shell("make nothing  # not run\necho a \\\n  b\n") == "a b\n"
    with pytest.raises(AssertionError, match="no such file"):
        run_shell("gridless measure none.safetensors none.csv\necho after")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_example_escapes(page):
    kinds = {kind for kind, _, _ in blocks(page) if not kind.startswith("{")}
    assert kinds <= {"python", "sh", "text", "yaml"}, "name the block so that it is run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_analysis_files_are_valid(page, tmp_path):
    for _, text, line in blocks(page, "yaml"):
        path = tmp_path / f"line_{line}.yaml"
        path.write_text(text)
        assert load_analysis(path).parameters


def test_readme_links_exist():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target
