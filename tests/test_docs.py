"""Every example in the README and the docs runs as it stands, in the order of the page, in an empty
folder, and prints what the page shows."""

import io
import os
import re
import shlex
import subprocess
import sys
from contextlib import redirect_stdout
from glob import glob
from pathlib import Path

import pytest
from benchmarks import known
from click.testing import CliRunner

from gridless.analysis.loading import by_channel, load_analysis
from gridless.cli.main import main

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
# UPDATE_DOCS=1 writes what the examples print into the pages; `...` alone still stands for lines
# that are left out.
UPDATE = os.environ.get("UPDATE_DOCS") == "1"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("*/[a-z]*.md"))]
# Shell commands that are not run here: what installs or submits, and `make`, which makes another
# virtual environment first and then runs `gridless demo` (test_demo.py) and these tests.
NOT_RUN = {"make", "pip", "git", "sbatch"}
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
# How far a printed number may be from the one shown. Sums in another order, on another processor,
# move estimates by a small part of their errors. Whole numbers (events, templates) are exact.
LAST_DIGITS = 3  # units of the last digit that is shown, but
SHARE = 0.1  # of the number at most, and one unit in any case
RELATIVE = 1e-4  # of the number, for tables that show more digits than an error has


def blocks(page, *kinds):
    """(kind, text, line) of every fenced block of these kinds."""
    text = page.read_text()
    for found in FENCE.finditer(text):
        if not kinds or found[1] in kinds:
            yield found[1], found[2], text.count("\n", 0, found.start(2))


# Names that a first block made, by its text: several pages begin alike, with the same fit.
BEGINNINGS = {}


def run_python(text, page, line, names):
    """What the code prints."""
    begins = set(names) == {"__name__"}
    if begins and text in BEGINNINGS:
        names |= BEGINNINGS[text]
        return ""
    with redirect_stdout(io.StringIO()) as printed:
        # Empty lines before it, so that an error names the line of the page.
        exec(compile("\n" * line + text, str(page), "exec"), names)
    if begins and not printed.getvalue() and not any(Path.cwd().iterdir()):
        made = {name: value for name, value in names.items() if not name.startswith("__")}
        BEGINNINGS[text] = made
    return printed.getvalue()


def run_commands(text, page):
    """What the commands of a page print, except for those that are not run; goes where they go."""
    lines = re.sub(r"\\\n", "", text).splitlines()
    commands = [line for line in lines if line.split(" ")[0] not in NOT_RUN]
    # The README's commands run as programs. On other pages those of gridless run in this process,
    # which has loaded torch: that takes longer than many of them.
    if page.stem == "README" or any(c.split(" ")[0] not in {"cd", "gridless"} for c in commands):
        return run_shell("\n".join(commands))
    return "".join(run_here(*shlex.split(command, comments=True)) for command in commands)


def run_here(program, *arguments):
    """What one command of gridless prints, or `cd`, in this process."""
    if program == "cd":
        os.chdir(*arguments)
        return ""
    files = [name for word in arguments for name in sorted(glob(word)) or [word]]
    done = CliRunner().invoke(main, files, prog_name="gridless")
    assert done.exit_code == 0, f"{arguments}\n{done.output}"
    return done.stdout


def run_shell(script):
    """What the commands print; goes where they go."""
    where = Path(os.environ.get("TMPDIR", "/tmp")) / f"gridless_docs_{os.getpid()}"
    ended = f"\npwd > {where}"
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script + ended],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, f"{script}\n{done.stdout}{done.stderr}"
    os.chdir(where.read_text().strip())
    where.unlink()
    return done.stdout


EXAMPLES = [p for p in PAGES if any(blocks(p, "python", "sh"))]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:jsonschema.RefResolver is deprecated")  # of pyhf
@pytest.mark.parametrize("page", EXAMPLES, ids=lambda page: page.stem)
def test_examples(page, tmp_path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "Agg")
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    printed = None
    for kind, text, line in blocks(page):
        if kind == "text" and printed is not None:
            found = difference(text, printed)
            if found and UPDATE:
                fresh = shortened(printed, text)
                old, new = f"```text\n{text}```", f"```text\n{fresh}```"
                page.write_text(page.read_text().replace(old, new, 1))
            else:
                assert not found, f"line {line}: {found}"
        printed = None
        if kind == "python":
            printed = run_python(text, page, line, names)
        elif kind == "sh":
            printed = run_commands(text, page)
    assert Path.cwd().is_relative_to(tmp_path)


def shortened(printed, shown):
    """What is printed, with as many lines left out at the same place as in what is shown."""
    ours = [line for line in shown.splitlines() if line.strip()]
    theirs = [line for line in printed.splitlines() if line.strip()]
    if "..." in (line.strip() for line in ours):
        cut = [line.strip() for line in ours].index("...")
        end = len(ours) - cut - 1
        theirs = [*theirs[:cut], "...", *theirs[len(theirs) - end :]]
    return "".join(f"{line}\n" for line in theirs)


def difference(shown, printed):
    """What an output has otherwise than shown, or nothing. `...` stands for the rest of a line or,
    alone, for any lines."""
    ours, theirs = ([s for s in text.splitlines() if s.strip()] for text in (shown, printed))
    if "..." in (s.strip() for s in ours):
        cut = [s.strip() for s in ours].index("...")
        end = len(ours) - cut - 1
        theirs = theirs[:cut] + theirs[len(theirs) - end :]
        del ours[cut]
    wrong = [(a, b) for a, b in zip(ours, theirs, strict=False) if not _same_line(a, b)]
    if len(ours) != len(theirs) or wrong:
        return f"prints\n{printed}instead of\n{shown}" + "".join(f"\n{a}\n{b}" for a, b in wrong)
    return ""


def _same_line(shown, printed):
    start, ellipsis, _ = " ".join(shown.split()).partition("...")
    words, numbers = NUMBER.split(start), NUMBER.findall(start)
    pattern = f"({NUMBER.pattern})".join(re.escape(word) for word in words)
    found = re.fullmatch(pattern + (".*" if ellipsis else ""), " ".join(printed.split()))
    return found is not None and all(map(_close, numbers, found.groups()))


def _close(shown, printed):
    a, b = (float(text.replace(",", "")) for text in (shown, printed))
    if "." not in shown and "e" not in shown:
        return a == b
    digits, _, power = shown.partition("e")
    last = 10.0 ** (int(power or 0) - len(digits.partition(".")[2]))
    digits_off = max(last, min(LAST_DIGITS * last, SHARE * abs(a)))
    return abs(a - b) <= max(digits_off, RELATIVE * abs(a)) * (1 + 1e-9)


def test_a_wrong_example_would_fail():
    assert not difference("mass = 172.48 +0.36\n  ok", "mass = 172.46 +0.35\n\n ok\n")
    assert not difference("p 0.079 ...\n", "p 0.077 and more")
    assert not difference("a\n...\nz 1\n", "a\nb\nc\nz 1\n")
    assert shortened("a\nb\nc\nz 2\n", "a\n...\nz 1\n") == "a\n...\nz 2\n"
    for shown, printed in (
        ("mass = 172.48", "m = 172.48"),
        ("theta = 0.4282 +0.0049", "theta = 0.4257 +0.0050"),
        ("p 0.079", "p 0.074"),
        ("0.001 simulation", "0.003 simulation"),
        ("error 0.19", "error 0.21"),
        ("10,000 events", "10,001 events"),
        ("mass = 1.0", "mass = -1.0"),
        ("mass = 1.0", "mass = 1.0\nwarning"),
        ("mass = 1.0\nwarning", "mass = 1.0"),
        ("a\n...\nz 1", "a\nb\nz 2"),
    ):
        assert difference(shown, printed)
    assert run_commands("make nothing  # not run\necho a \\\n  b\n", ROOT) == "a b\n"
    assert "gridless" in run_commands("gridless --version", ROOT)
    with pytest.raises(AssertionError, match="no such file"):
        run_shell("gridless measure none.safetensors none.csv\necho after")
    with pytest.raises(AssertionError, match="no such file"):
        run_commands("gridless measure none.safetensors none.csv", ROOT)


@pytest.mark.slow
def test_known_numbers_are_of_today():
    first = known.example_table(known.SEEDS[:1]).splitlines()[-1]
    assert not difference(_row_of_seed(known.SEEDS[0]), first)


def _row_of_seed(seed):
    return re.search(rf"^\| {seed} \|.*$", known.PAGE.read_text(), re.MULTILINE)[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_example_escapes(page):
    kinds = {kind for kind, _, _ in blocks(page) if not kind.startswith("{")}
    assert kinds <= {"python", "sh", "text", "yaml"}, "name the block so that it is run"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_analysis_files_are_valid(page, tmp_path):
    for _, text, line in blocks(page, "yaml"):
        path = tmp_path / f"line_{line}.yaml"
        path.write_text(text)
        assert all(one.parameters for one in by_channel(load_analysis(path)).values())


def test_readme_links_exist():
    for target in re.findall(r"\]\((?!https?:)([^)]+)\)", (ROOT / "README.md").read_text()):
        assert (ROOT / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_page_has_marks_of_a_merge(page):
    assert not re.findall(r"^(?:<{7} .*|={7}|>{7} .*)$", page.read_text(), re.MULTILINE)
