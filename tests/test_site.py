"""The documentation site builds without warnings, its notebooks run, and its links resolve."""

import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import gridless as gl
from gridless.cli.main import VERBS

DOCS = Path(__file__).parent.parent / "docs"
PAGES = [*DOCS.glob("*.md"), *DOCS.glob("howto/*.md"), *DOCS.glob("coming_from/*.md")]
# How many figures the cells of a page draw.
FIGURES = {"tutorial": 5, "gallery": 11}


class _Page(HTMLParser):
    """What a page refers to, and the anchors it has."""

    def __init__(self, path):
        super().__init__()
        self.targets, self.anchors, self.fetched = [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors |= {values[key] for key in ("id", "name") if values.get(key)}
        targets = [values[key] for key in ("href", "src") if values.get(key)]
        self.targets += targets
        self.fetched += targets if tag != "a" else []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, with every page parsed."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    built = subprocess.run(
        [*command, "-d", str(folder / "doctrees"), str(DOCS), str(folder / "html")],
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return {path: _Page(path) for path in sorted((folder / "html").rglob("*.html"))}


@pytest.mark.slow
def test_site(site):
    root = min(site, key=lambda path: len(path.parts)).parent
    names = {path.relative_to(root).as_posix() for path in site}
    assert names >= {p.relative_to(DOCS).with_suffix(".html").as_posix() for p in PAGES}
    missing = {
        name for name in gl.__all__ if f"gridless.{name}" not in site[root / "api.html"].anchors
    }
    assert not missing, "names that docs/api.md leaves out"
    assert not _broken_links(site)
    for name, figures in FIGURES.items():
        page = site[root / f"{name}.html"]
        assert len([t for t in page.fetched if "_images/" in t]) == figures, name
    commands = (root / "commands.html").read_text()
    assert all(f"gridless {verb}" in commands for verb in VERBS)
    outside = [t for page in site.values() for t in page.fetched if t.startswith(("http", "//"))]
    assert not outside, "the site asks for nothing from elsewhere"


def _broken_links(site):
    """Local links to files or anchors that are not there."""
    broken = []
    for path, page in site.items():
        for target in page.targets:
            url = urlsplit(target)
            if url.scheme or url.netloc:
                continue
            file = (path.parent / unquote(url.path)).resolve() if url.path else path
            anchor = unquote(url.fragment)
            if not file.is_file() or (anchor and file in site and anchor not in site[file].anchors):
                broken.append(f"{path.name}: {target}")
    return broken
