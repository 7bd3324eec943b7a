"""`gridless review`: the events and templates that it reads for the review."""

import numpy as np
import pytest
from click.testing import CliRunner

import gridless as gl
from gridless.cli.main import main
from gridless.errors import InputError


@pytest.fixture
def ask(model, tmp_path, monkeypatch):
    """Runs the verb on a model of `x`, without the review itself: what that would be given."""
    model.save(tmp_path / "m.safetensors")
    random = np.random.default_rng(1)
    for theta in (0.2, 0.8):
        np.savez(tmp_path / f"t_{theta}.npz", x=random.normal(theta, 1, 100))
    np.savez(tmp_path / "data.npz", x=random.normal(0.5, 1, 50), run=np.repeat([1, 2], 25))
    monkeypatch.chdir(tmp_path)

    def asked(*arguments):
        given = {}

        def review(model, x, **others):
            given.update(others, x=x)
            raise InputError("enough")

        monkeypatch.setattr(gl, "review", review, raising=False)
        result = CliRunner().invoke(main, ["review", "m.safetensors", *arguments])
        assert result.exit_code == 2
        return given, result.output

    return asked


def test_data_with_their_groups_and_templates_are_read(ask):
    given, _ = ask("data.npz", "--by", "run", "--templates", "t_{theta}.npz", "--where", "x > 0")
    assert len(given["x"].x) == len(given["by"]) < 50
    assert given["x"].observables == ("x",)
    assert set(given["by"]) == {1, 2}
    assert given["templates"].grid.values[:, 0].tolist() == [0.2, 0.8]


def test_several_patterns_of_one_model_are_refused(ask):
    given, text = ask("--templates", "t_{theta}.npz", "--templates", "t_{theta}.npz")
    assert not given
    assert "give one pattern per channel" in text


def test_the_help_says_of_which_models_variants_are_fitted():
    text = " ".join(CliRunner().invoke(main, ["review", "--help"]).output.split())
    assert "fits of variants, of models without systematics and backgrounds;" in text
