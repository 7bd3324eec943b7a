"""Reports, as text and in a real browser."""

import json
import shutil
import sys
from dataclasses import replace

import pytest

import gridless as gl
from gridless.errors import InputError
from gridless.examples import TwoObservables
from gridless.model.storage.file import current_versions
from gridless.paper.choices import QUICK
from gridless.paper.run import reproduce
from gridless.report.page import Section, Statement, render_report
from gridless.report.typeset import ranges_html


def test_text_is_escaped_and_statements_have_a_verdict():
    section = Section(
        "a < b",
        statements=[Statement("x & y", "z", True), Statement("u", "v", False)],
        table=[["head"], ["<cell>"]],
        text="p > q",
    )
    page = render_report(
        "title", "intro", {"one": section}, theirs="They", notices=["careful", "slowly"]
    )
    for piece in ("a &lt; b", "x &amp; y", "&lt;cell&gt;", "p &gt; q", "careful", "slowly", "They"):
        assert piece in page
    assert page.count("✓ agrees") == page.count("✗ differs") == 1


def test_without_jinja2_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install 'gridless\[report\]'"):
        render_report("title", "intro", {})


def test_the_outermost_templates_are_named_not_the_bounds(model):
    assert "from 0.05 to 0.95" in ranges_html(model.grid)


CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def paper_report(folder):
    """A report of what needs no training."""
    from rich.console import Console

    names = ["fig1", "fig2", "fig3", "table1", "fig4", "fig8"]
    reproduce(folder, QUICK, names, Console(quiet=True))
    return folder / "report.html"


def report_of_a_model(folder):
    """What `gridless report` writes with data and samples, and names that are hard on a page."""
    example = TwoObservables()
    model = gl.fit(example.templates(500, seed=1), hidden=(3,), epochs=2, replicas=4)
    file = gl.FileRecord("far/away/" * 9 + "t.root:events", 5_000, "0f" * 32)
    record = replace(model.record, versions=current_versions() | {"gridless": "0.0.1"})
    model = replace(model, files=(file,), record=record)
    likelihood = model.likelihood(example.sample(0.995, 2_000, seed=2) + 0.3)
    samples = {v: example.sample(v, 500, seed=3) for v in (0.2, 0.5, 0.8)}
    command = "gridless report m.safetensors " + "data.root:events " * 9
    page = gl.write_report(
        *(folder / "model.html", model, likelihood, gl.closure(model, samples)),
        command=command,
        data=[file],
    )
    text = page.read_text()
    assert text.count("5,000 events, SHA-256 0f0f") == 2
    assert "0.0.1 for the model, " in text
    assert "at_bound" in text or "near_bound" in text
    return page


@pytest.fixture(
    scope="module", params=[(paper_report, 5), (report_of_a_model, 9)], ids=["paper", "model"]
)
def page(request, tmp_path_factory):
    """A page, and how many figures it has."""
    write, figures = request.param
    return write(tmp_path_factory.mktemp("report")), figures


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("no chromium and chromedriver here: the report was not opened in a browser")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in [*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


def _requests(browser):
    """Every address that the page asked for."""
    events = (json.loads(entry["message"])["message"] for entry in browser.get_log("performance"))
    return [
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("width", [1280, 400])
def test_the_report_opens(browser, page, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    path, figures = page
    browser.get_log("performance")  # Forgets what was before.
    browser.get(path.as_uri())
    assert browser.get_log("browser") == []
    assert {url for url in _requests(browser) if not url.startswith("data:")} == {path.as_uri()}
    browser.execute_script("document.querySelectorAll('details').forEach(d => d.open = true)")
    drawn = browser.execute_script(
        "return [...document.querySelectorAll('figure')].map(f => f.firstElementChild)"
        ".map(i => [i.tagName, i.getBoundingClientRect().width, "
        "i.alt || i.querySelector('title').textContent])"
    )
    assert len(drawn) == figures
    for kind, shown, told in drawn:
        assert kind in ("svg", "IMG")
        assert shown > 250
        assert told
    doubled = browser.execute_script(
        "const ids = [...document.querySelectorAll('[id]')].map(e => e.id);"
        "return ids.filter((id, i) => ids.indexOf(id) !== i)"
    )
    assert doubled == []
    overflow = browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0
    size = browser.execute_script("return getComputedStyle(document.body).fontSize")
    assert float(size.removesuffix("px")) >= 14
