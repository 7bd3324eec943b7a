"""What is released: versions agree, and the wheel installs and works in an empty environment."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Extras for those who work on gridless itself.
FOR_DEVELOPERS = {"docs", "test", "lint"}


def direct(*extras):
    """The direct requirements of the package with some extras."""
    lists = [PROJECT["dependencies"], *(PROJECT["optional-dependencies"][e] for e in extras)]
    found = [Requirement(text) for one in lists for text in one]
    inner = [extra for r in found if r.name == "gridless" for extra in r.extras]
    return [r for r in found if r.name != "gridless"] + (direct(*inner) if inner else [])


def test_the_version_is_the_same_everywhere():
    version = PROJECT["version"]
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version


def test_the_lowest_versions_are_those_of_the_project():
    extras = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    wanted = {f"{r.name}{str(r.specifier).replace('>=', '==')}" for r in direct(*extras)}
    lines = (ROOT / "constraints-lowest.txt").read_text().splitlines()
    assert {line for line in lines if not line.startswith("#")} == wanted


def test_the_page_on_installation_has_every_extra():
    page = (ROOT / "docs" / "installation.md").read_text()
    extras = set(PROJECT["optional-dependencies"]) - FOR_DEVELOPERS
    assert [extra for extra in sorted(extras) if f"| `{extra}` |" not in page] == []


def needed(requirements):
    """The names of installed distributions that these requirements lead to."""
    found, left = set(), list(requirements)
    while left:
        one = left.pop()
        name = re.sub(r"[-_.]+", "-", one.name).lower()
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(one.name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform
        found.add(name)
        for text in distribution.requires or ():
            inner = Requirement(text)
            if inner.marker is None or inner.marker.evaluate({"extra": ""}):
                left.append(inner)
    return found


def link(names, site):
    """Make installed distributions importable in another environment, without a copy."""
    for name in names:
        distribution = importlib.metadata.distribution(name)
        here = Path(str(distribution.locate_file("")))
        parts = {Path(str(file)).parts[0] for file in distribution.files or ()}
        for part in sorted(parts - {"..", "__pycache__"}):
            target = site / part
            if (here / part).exists() and not target.exists():
                target.symlink_to(here / part)


class Place:
    """An environment with the wheel and what some requirements lead to, and nothing else."""

    def __init__(self, folder, wheel, requirements):
        self.folder = folder
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        self.site = folder / "venv" / "lib" / version / "site-packages"
        self.add(requirements)
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "install", "--quiet"]
        self.call(*pip, "--no-deps", "--no-index", "--disable-pip-version-check", str(wheel))

    def add(self, requirements):
        link(needed(requirements), self.site)

    def call(self, *command, code=0):
        """What a command prints, with nothing of the surrounding environment."""
        kept = {key: os.environ[key] for key in ("PATH", "HOME", "TMPDIR") if key in os.environ}
        done = subprocess.run(
            command, capture_output=True, text=True, cwd=self.folder,
            env=kept | {"OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def gridless(self, *arguments, code=0):
        command = str(self.folder / "venv" / "bin" / "gridless")
        return self.call(command, *map(str, arguments), code=code)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """Wheel and sdist, made of a copy of what is tracked."""
    folder = tmp_path_factory.mktemp("build")
    source = folder / "source"
    left_out = shutil.ignore_patterns(".*", "__pycache__", "_build", "demo", "dist", "paper")
    shutil.copytree(ROOT, source, ignore=left_out, symlinks=True)
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder / "dist")]
    done = subprocess.run([*command, str(source)], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist"


@pytest.mark.slow
def test_the_wheel_has_everything_that_is_needed(built):
    (wheel,) = built.glob("*.whl")
    assert PROJECT["version"] in wheel.name
    assert len(list(built.glob("*.tar.gz"))) == 1
    names = zipfile.ZipFile(wheel).namelist()
    for part in ("__init__.pyi", "py.typed", "report/page.html.jinja"):
        assert f"gridless/{part}" in names
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert not any(name.startswith(("tests", "docs")) for name in names)


@pytest.mark.slow
def test_it_works_in_an_empty_environment_and_names_the_extra_that_is_missing(built, tmp_path):
    (wheel,) = built.glob("*.whl")
    place = Place(tmp_path, wheel, direct())
    assert PROJECT["version"] in place.gridless("--version")
    place.gridless("example", "top", "--events", 2_000)
    place.gridless("fit", "top/analysis.yaml", "-o", "top.safetensors", "--epochs", 3)
    assert "mtop = 17" in place.gridless("measure", "top.safetensors", "top/data.csv")
    missing = {
        "report": ("report", "top.safetensors", "top/data.csv"),
        "onnx": ("export", "top.safetensors", "--onnx", "top.onnx"),
        "cluster": ("measure", "top.safetensors", "top/data.csv", "--workers", 2),
        "root": ("measure", "top.safetensors", "data.root"),
        "parquet": ("measure", "top.safetensors", "data.parquet"),
        "hdf5": ("measure", "top.safetensors", "data.h5"),
    }
    for name in ("data.root", "data.parquet", "data.h5"):
        (tmp_path / name).write_bytes(b"something")
    for extra, command in missing.items():
        said = place.gridless(*command, code=2)
        assert "pip install 'gridless[" in said, extra
        assert f"[{extra}]" in said, said
    place.add(direct("report", "onnx"))
    place.gridless("report", "top.safetensors", "top/data.csv", "-o", "r.html")
    assert "Measurement of" in (tmp_path / "r.html").read_text()
    place.gridless("export", "top.safetensors", "--onnx", "top.onnx")
