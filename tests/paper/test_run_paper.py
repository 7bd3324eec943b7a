"""`gridless paper` in small, and that it continues where it stopped."""

import json
import os
import re

import pytest
from click.testing import CliRunner

from gridless.cli.main import main
from gridless.paper.choices import Choices
from gridless.paper.items import ITEMS
from gridless.paper.run import choose_items

TINY = Choices("tiny", 20_000, 3, 2_000, 1, 2, test_values=4, test_events=2_000, hidden_1d=(3,))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """All items of the paper, from samples far too small for their verdicts."""
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("gridless.paper.choices.QUICK", TINY)
        result = CliRunner().invoke(
            main, ["paper", "--quick", "-o", str(folder)], catch_exceptions=False
        )
    return folder, result


def test_every_item_is_there(made):
    folder, result = made
    assert result.exit_code in (0, 1)
    results = json.loads((folder / "results.json").read_text())
    assert list(results["items"]) == list(ITEMS)
    assert results["choices"]["events"] == 2000
    figures = {path.name for path in (folder / "figures").iterdir()}
    assert figures == {f"fig{i}.{kind}" for i in range(1, 11) for kind in ("pdf", "png")}
    assert f"of {sum(len(i['statements']) for i in results['items'].values())} st" in result.output


def test_the_page_is_self_contained(made):
    page = (made[0] / "report.html").read_text()
    sources = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert page.count('<svg role="img"') == 10
    assert all(source.startswith(("data:", "#")) for source in sources)
    assert "@import" not in page
    assert page.count('class="agreement') == page.count("The paper</div>") > 0


def test_what_needs_no_training_agrees_even_so(made):
    results = json.loads((made[0] / "results.json").read_text())
    for name in ("fig1", "fig2", "fig3", "fig4", "fig8"):
        assert all(s["agrees"] for s in results["items"][name]["statements"]), name


def test_it_continues_from_what_is_finished(made, monkeypatch):
    folder, _ = made
    before = (folder / "results.json").read_text()
    monkeypatch.setattr("gridless.paper.choices.QUICK", TINY)

    def fail(*_, **__):
        raise AssertionError("trained again")

    monkeypatch.setattr("gridless.paper.workspace.fit", fail)
    # What is drawn is the same again, and drawing takes longest.
    monkeypatch.setattr("gridless.paper.run.save_figure", lambda *_: [])
    monkeypatch.setattr("gridless.paper.run.render_report", lambda *_, **__: "")
    os.unlink(folder / "results.json")
    CliRunner().invoke(main, ["paper", "--quick", "-o", str(folder)], catch_exceptions=False)
    assert (folder / "results.json").read_text() == before


def test_only_some(tmp_path):
    result = CliRunner().invoke(main, ["paper", "--only", "fig8,fig1", "-o", str(tmp_path)])
    assert result.exit_code == 0
    assert list(json.loads((tmp_path / "results.json").read_text())["items"]) == ["fig1", "fig8"]
    assert choose_items(None) == list(ITEMS)


def test_unknown_items(tmp_path):
    result = CliRunner().invoke(main, ["paper", "--only", "fig11", "-o", str(tmp_path)])
    assert result.exit_code == 2
    assert "there is no fig11; give some of fig1, fig2" in result.stderr
    assert not list(tmp_path.iterdir())


def test_interrupted(tmp_path, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setitem(ITEMS, "fig4", interrupt)
    result = CliRunner().invoke(main, ["paper", "--only", "fig1,fig4", "-o", str(tmp_path)])
    assert result.exit_code == 130
    assert "the same command continues" in result.output
