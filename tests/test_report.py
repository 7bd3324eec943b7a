"""Reports, as text and in a real browser."""

import shutil
import sys

import pytest

from gridless.errors import InputError
from gridless.paper.choices import QUICK
from gridless.paper.run import reproduce
from gridless.report import Section, Statement, render_report


def test_text_is_escaped_and_statements_have_a_verdict():
    section = Section(
        "a < b",
        statements=[Statement("x & y", "z", True), Statement("u", "v", False)],
        table=[["head"], ["<cell>"]],
        text="p > q",
    )
    page = render_report("title", "intro", {"one": section}, theirs="They", notice="careful")
    for piece in ("a &lt; b", "x &amp; y", "&lt;cell&gt;", "p &gt; q", "careful", "They"):
        assert piece in page
    assert page.count("✓ agrees") == page.count("✗ differs") == 1


def test_without_jinja2_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(InputError, match=r"pip install 'gridless\[report\]'"):
        render_report("title", "intro", {})


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


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report of what needs no training."""
    from rich.console import Console

    folder = tmp_path_factory.mktemp("report")
    names = ["fig1", "fig2", "fig3", "table1", "fig4", "fig8"]
    reproduce(folder, QUICK, names, Console(quiet=True))
    return folder / "report.html"


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
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.mark.parametrize("width", [1280, 400])
def test_the_report_opens(browser, page, width):
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500},
    )
    browser.get(page.as_uri())
    assert browser.get_log("browser") == []
    images = browser.execute_script(
        "return [...document.images].map(i => [i.complete, i.naturalWidth, i.clientWidth])"
    )
    assert len(images) == 5
    for complete, natural, shown in images:
        assert complete
        assert natural > 300
        assert shown > 300
    overflow = browser.execute_script(
        "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert overflow <= 0
    size = browser.execute_script("return getComputedStyle(document.body).fontSize")
    assert float(size.removesuffix("px")) >= 14
