"""analysis.yaml is checked before anything runs, and errors name the line."""

import pytest

from gridless.analysis import TEMPLATE, Analysis, load_analysis
from gridless.errors import InputError


def test_the_example_is_valid_and_has_the_defaults_of_fit(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEMPLATE)
    analysis = load_analysis(path)
    assert analysis.templates == str(tmp_path / "mtop_{mtop}.root:events")
    assert analysis.parameters == {"mtop": (165, 180)}
    assert analysis.fit == Analysis.model_fields["fit"].default


def test_the_defaults_are_those_of_fit():
    import inspect

    import gridless as gl

    defaults = {n: p.default for n, p in inspect.signature(gl.fit).parameters.items()}
    for name, value in Analysis.model_fields["fit"].default.model_dump().items():
        assert value == (list(defaults[name]) if name == "hidden" else defaults[name]), name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parameters:\n  a: [0, one]\n", r"line 4: parameters\.a\.1: .*not 'one'"),
        ("parameters:\n  a: [0, 1]\nfit: {seed: x}\n", r"line 5: fit\.seed: .*not 'x'"),
        ("parameters:\n  a: [0, 1]\nfit:\n  rate: -1\n", r"line 6: fit\.rate: .*greater than 0"),
        ("parameters:\n  a: [0, 1]\nweigth: w\n", "line 5: weigth: there is no such setting"),
        ("parameters: {}\n", "line 3: parameters"),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    path = tmp_path / "a.yaml"
    path.write_text("templates: t_{a}.csv\nobservables: [x]\n" + text)
    with pytest.raises(InputError, match=message):
        load_analysis(path)


def test_nothing_in_it_is_executed(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("templates: !!python/object/apply:os.system ['touch hacked']\n")
    with pytest.raises(InputError, match="line 1"):
        load_analysis(path)
    assert not (tmp_path / "hacked").exists()
