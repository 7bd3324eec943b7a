"""analysis.yaml is checked before anything runs, and errors name the line."""

from pathlib import Path
from types import NoneType, UnionType
from typing import get_args, get_origin

import pytest
import uproot

from gridless.analysis.analysis import Analysis
from gridless.analysis.loading import load_analysis
from gridless.analysis.starting import TEMPLATE, starting_analysis
from gridless.errors import InputError
from gridless.files.expressions import FUNCTIONS
from gridless.model.record import FitOptions
from gridless.systematics.settings import BackgroundFiles, SystematicFiles, TemplateFile


def test_the_example_is_valid_and_has_the_defaults_of_fit(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text(TEMPLATE)
    analysis = load_analysis(path)
    assert analysis.templates == str(tmp_path / "mtop_{mtop}.root:events")
    assert analysis.parameters == {"mtop": (165, 180)}
    assert analysis.fit == Analysis.model_fields["fit"].default


def test_an_analysis_is_begun_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mass in (78, 80, 83):
        Path(f"{mass} GeV.csv").write_text("m_T,jet.pt,sign,weight,w_up,event\n70,1,x,1,1,7\n")
    Path("a.yaml").write_text(starting_analysis("{m_W} GeV.csv"))
    analysis = load_analysis(Path("a.yaml"))
    assert analysis.templates == "{m_W} GeV.csv"
    assert analysis.parameters == {"m_W": (77, 84.5)}
    assert analysis.observables == {"m_T": "m_T", "jet.pt": "jet.pt", "sign": "sign"}


def test_the_name_of_a_tree_is_asked_for_in_the_pattern(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mass in (78, 80):
        with uproot.recreate(f"m_{mass}.root") as file:
            for name in ("events", "up"):
                file.mktree(name, {"x": "f8"}).extend({"x": [1.0, 2.0]})
    with pytest.raises(
        InputError, match=r"several \(events, up\); say which: m_\{m\}.root:events$"
    ):
        starting_analysis("m_{m}.root")
    with pytest.raises(InputError, match=r"no tree or RNTuple 'tree'; .*: give m_78.root:events$"):
        starting_analysis("m_{m}.root:tree")


def test_numbers_of_events_are_no_observables_and_bounds_are_round(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mass in ("40", "43.3333", "46.6667"):
        Path(f"m_{mass}.csv").write_text("E,number,evtNr,row,number_of_jets\n70,1,1,1,3\n")
    Path("a.yaml").write_text(starting_analysis("m_{m}.csv"))
    analysis = load_analysis(Path("a.yaml"))
    assert analysis.parameters == {"m": (38.333, 48.333)}
    assert list(analysis.observables) == ["E", "number_of_jets"]


def test_observables_of_a_w_boson_are_no_weights(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    weights = "w", "w0", "w_1", "wgt", "wgt_up", "weight_mc", "w_up", "w_isr_up", "w_gen", "Weight"
    observables = "w_mass", "W_mass", "W_pt", "w_boson_eta", "width", "weta"
    for mass in (78, 80, 82):
        Path(f"m_{mass}.csv").write_text(f"{','.join((*weights, *observables))}\n{'1,' * 15}1\n")
    text = starting_analysis("m_{m}.csv")
    Path("a.yaml").write_text(text)
    assert tuple(load_analysis(Path("a.yaml")).observables) == observables
    for name in weights:
        assert f"  # {name}: {name}  # left out: a weight or an event number by its name\n" in text


def test_the_defaults_are_those_of_fit():
    import inspect

    import gridless as gl

    defaults = {n: p.default for n, p in inspect.signature(gl.fit).parameters.items()}
    for name, value in Analysis.model_fields["fit"].default.model_dump().items():
        assert value == defaults[name], name


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("parameters:\n  a: [0, one]\n", r"line 4: parameters\.a\.1: 'one'; give a valid number$"),
        ("parameters:\n  a: [0, 1]\nfit: {seed: x}\n", r"line 5: fit\.seed: 'x'; give a valid int"),
        (
            "parameters:\n  a: [0, 1]\nfit:\n  rate: -1\n",
            r"line 6: fit\.rate: -1; give a number above 0$",
        ),
        ("parameters: {a: 91}\n", r"line 3: parameters: 91 for a; give its bounds, \[low, high\]$"),
        ("parameters: {a: [91]}\n", r"line 3: parameters: \[91\] for a; give its bounds"),
        ("parameters: {a: [1, 2, 3]}\n", r"line 3: parameters: \[1, 2, 3\] for a; give its bounds"),
        ("parameters: [a]\n", r"line 3: parameters: \['a'\]; give each with its bounds"),
        ("parameters: {a: [0, 1]}\nweight: 1\n", 'line 4: weight: 1; give it in quotes, "1"$'),
        ("parameters: {a: [0, 1]}\nlabels: a\n", "line 4: labels: 'a'; give names with a value"),
        ("parameters: {a: [0, 1]}\nsystematics: a\n", "line 4: systematics: 'a'; give a list"),
        ("parameters:\n  a: [0, 1]\nweigth: w\n", "line 5: weigth: there is no such setting"),
        ("parameters: {}\n", "line 3: parameters"),
        (
            "parameters:\n  a: [0, 1]\nfit: {hidden: big}\n",
            r"^\S+: line 5: fit\.hidden: 'big'; give a number of units or a list of them$",
        ),
    ],
)
def test_errors_name_the_line(tmp_path, text, message):
    path = tmp_path / "a.yaml"
    path.write_text("templates: t_{a}.csv\nobservables: [x]\n" + text)
    with pytest.raises(InputError, match=message):
        load_analysis(path)


def test_an_observable_that_is_no_list_is_told_how_to_make_one(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("templates: t_{a}.csv\nparameters: {a: [0, 1]}\nobservables: mll\n")
    with pytest.raises(InputError, match=r"line 3: observables: 'mll'; give a list, \[mll\]$"):
        load_analysis(path)


def test_an_error_inside_a_list_is_told_once(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("parameters: {a: [0, 1]}\nobservables: [x]\ntemplates:\n- sorce: a.csv\n")
    with pytest.raises(InputError) as caught:
        load_analysis(path)
    assert str(caught.value).splitlines() == [
        f"{path}: line 4: templates.0.sorce: there is no such setting; known are source, at",
        f"{path}: line 4: templates.0.source: is missing; `gridless init` writes an example",
        f"{path}: line 4: templates.0.at: is missing; `gridless init` writes an example",
    ]


def test_nothing_in_it_is_executed(tmp_path):
    path = tmp_path / "a.yaml"
    path.write_text("templates: !!python/object/apply:os.system ['touch hacked']\n")
    with pytest.raises(InputError, match="line 1"):
        load_analysis(path)
    assert not (tmp_path / "hacked").exists()


PAGE = Path(__file__).parent.parent / "docs" / "analysis_file.md"
TYPES = {
    "str": "text",
    "bool": "true or false",
    "int": "whole number",
    "float": "number",
    "list": "list",
    "dict": "mapping",
    "tuple": "list",
    "Literal": "text",
    "Any": "text",
    "FitOptions": "mapping",
}


LIMITS = {"ge": "at least", "gt": "above", "lt": "below", "le": "at most"}


def vars_of(rule):
    return [(key, getattr(rule, key)) for key in LIMITS if hasattr(rule, key)]


def words(annotation):
    """A type as the page calls it."""
    if get_origin(annotation) is UnionType:
        return " or ".join(words(t) for t in get_args(annotation) if t is not NoneType)
    return TYPES[getattr(get_origin(annotation) or annotation, "__name__", "")]


def default(field):
    if field.is_required():
        return "required"
    if field.default is None or field.default == FitOptions():
        return ""
    return f"`{field.default}`"


def table(schema):
    """The settings of a schema, as the page tables them."""
    rows = ["| setting | type | default | meaning |", "|---|---|---|---|"]
    for name, field in schema.model_fields.items():
        limits = [
            f"{LIMITS[key]} {value}" for rule in field.metadata for key, value in vars_of(rule)
        ]
        kind = ", ".join([words(field.annotation), *limits])
        rows.append(f"| `{name}` | {kind} | {default(field)} | {field.description} |")
    return "\n".join(rows)


@pytest.mark.parametrize(
    "schema", [Analysis, TemplateFile, BackgroundFiles, SystematicFiles, FitOptions]
)
def test_the_page_has_every_setting(schema):
    expected = table(schema)
    assert expected in PAGE.read_text(), f"docs/analysis_file.md needs\n{expected}"


def test_the_page_has_the_example_and_the_functions():
    text = PAGE.read_text()
    assert f"```yaml\n{TEMPLATE}```\n" in text
    assert ", ".join(f"`{name}`" for name in FUNCTIONS) in " ".join(text.split())


def test_a_column_that_can_only_be_the_weight_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for mass in (78, 80):
        Path(f"w_{mass}.csv").write_text("m_T,event_weight\n70,1\n71,1\n")
        Path(f"two_{mass}.csv").write_text("m_T,w,weight\n70,1,1\n71,1,1\n")
    assert "\nweight: event_weight\n" in starting_analysis("w_{m}.csv")
    assert "\n# weight: w_gen * w_pileup\n" in starting_analysis("two_{m}.csv")
