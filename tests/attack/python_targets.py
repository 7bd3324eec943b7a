"""Targets that only Python has: odd names, and odd arrays as arguments."""

import csv
import io
import json
import re
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from click.testing import CliRunner
from tests.attack import mutations
from tests.attack.ground import Ground
from tests.attack.mutations import Generator, choose

import gridless as gl
from gridless.cli.main import main
from gridless.likelihood.export import scan_csv
from gridless.model.record import FitOptions
from gridless.report.figures import draw_closure
from gridless.templates.query import Query
from gridless.templates.summary import summarise

KINDS = (complex, object, "U8", "datetime64[s]", bool, np.int8, "f2")
SHAPES = ((-1,), (1, -1), (-1, 1), (2, -1), (-1, 2, 1))
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def names(ground: Ground, rng: Generator, folder: Path) -> str:
    """Odd names of observables and a parameter survive a file and do no harm when shown."""
    made = ["".join(str(choose(rng, mutations.ODD_TEXT)) for _ in range(2)) for _ in range(3)]
    (folder / "names.txt").write_text(repr(made))
    parameter, *observables = made
    t = ground.templates
    templates = gl.Templates(t.x, t.theta, (-1, 2), observables=observables, parameters=[parameter])
    model = ground.model
    prior = replace(model.implied_prior, grid=templates.grid)
    query = Query({name: name for name in observables})
    model = replace(model, grid=templates.grid, query=query, implied_prior=prior)
    model = replace(model, summary=summarise(templates))
    path = folder / "named.safetensors"
    model.save(path)
    loaded = gl.load(path)
    if (loaded.grid.parameters, loaded.observables) != ((parameter,), tuple(observables)):
        return "different"
    likelihood = loaded.likelihood(ground.x)
    estimate = likelihood.maximum()
    closure = gl.closure(loaded, templates)
    json.dumps(estimate.to_dict(), allow_nan=False)
    for shown in (repr(loaded), str(estimate), str(closure), str(templates.audit())):
        found = CONTROL.search(shown)
        if found:
            raise RuntimeError(f"{found[0]!r} reaches the terminal")
    for shown in (estimate._repr_html_(), closure._repr_html_(), templates._repr_html_()):
        if "<img" in shown:
            raise RuntimeError("HTML of a name is not escaped")
    rows = list(csv.reader(io.StringIO(scan_csv(likelihood), newline="")))
    if any(len(row) != 3 for row in rows) or rows[1][0] != parameter:
        raise RuntimeError("the scan is not CSV of three columns")
    if rng.random() < 0.02:
        page(path, closure)
    return "same"


def page(path: Path, closure: gl.Closure) -> None:
    """The report of a model, and a figure of a closure."""
    output = path.with_suffix(".html")
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph", UserWarning)
        result = CliRunner().invoke(main, ["report", str(path), "-o", str(output)])
        draw_closure(closure).savefig(path.with_suffix(".png"))
    if result.exception is not None:
        raise result.exception
    if "<img src=x" in output.read_text():
        raise RuntimeError("HTML of a name is not escaped in the report")


def odd_array(good: Any, rng: Generator) -> Any:
    """An array with one fault, or something else instead of it."""
    array = np.array(good, dtype=float)
    value = choose(rng, mutations.ODD_NUMBERS)
    fault = int(rng.integers(16))
    if fault < 4:
        array.reshape(-1)[: int(choose(rng, (1, 3, array.size)))] = float(value)
        return array
    return (
        lambda: array.astype(choose(rng, KINDS)),
        lambda: np.ma.masked_greater(array, 0.5),
        lambda: array[: int(choose(rng, (0, 1, len(array) // 2)))],
        lambda: array.reshape(choose(rng, SHAPES if array.size % 2 == 0 else SHAPES[:3])),
        lambda: array[..., None],
        lambda: array[::-1, :0] if array.ndim > 1 else array[:0],
        lambda: [*array.tolist()[:-1], choose(rng, ([1, 2, 3], "a", None, {}))],
        lambda: choose(rng, (None, "x", 3, {}, [], object(), {"x": [1.0]}, float("nan"), b"x", gl)),
        lambda: array * value,
        lambda: array + value,
        lambda: np.asfortranarray(array),
        lambda: iter(array),
    )[fault - 4]()


def arrays(ground: Ground, rng: Generator, folder: Path) -> str:
    """Odd arguments of Python calls are refused by an InputError, or work."""
    t = ground.templates
    given = {
        "x": t.x, "theta": t.theta, "bounds": (-1, 2), "weights": np.ones(len(t)),
        "observables": ["a", "b"], "parameters": ["theta"],
    }  # fmt: skip
    place = choose(rng, ("x", "theta", "bounds", "weights", "observables", "parameters"))
    verb = choose(rng, ("templates", "likelihood", "posterior", "interval", "options"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gl.GridlessWarning)
        if verb == "templates":
            numeric = place not in ("observables", "parameters")
            odd = odd_array(given[place], rng) if numeric else mutations.odd_value(rng)
            (folder / "arguments.txt").write_text(f"{place} = {odd!r}", errors="backslashreplace")
            gl.Templates(**(given | {place: odd}))
        elif verb == "likelihood":
            x, w = ground.x, np.ones(len(ground.x))
            pair = (odd_array(x, rng), None) if rng.random() < 0.5 else (x, odd_array(w, rng))
            (folder / "arguments.txt").write_text(repr(pair), errors="backslashreplace")
            estimate = ground.model.likelihood(*pair).maximum()
            json.dumps(estimate.to_dict(), allow_nan=False)
            str(estimate)
        elif verb == "posterior":
            ground.model.posterior(odd_array(ground.x, rng))
        elif verb == "interval":
            call(ground, rng, folder)
        else:
            name = choose(rng, tuple(FitOptions.model_fields))
            value = mutations.odd_value(rng)
            (folder / "arguments.txt").write_text(f"{name} = {value!r}", errors="backslashreplace")
            FitOptions.of(**{name: value})
    return "any"


def call(ground: Ground, rng: Generator, folder: Path) -> None:
    """A method of a likelihood with an odd argument."""
    likelihood = ground.model.likelihood(ground.x)
    method, good = choose(
        rng,
        (
            (likelihood.interval, (0.9, "theta")),
            (likelihood.constrain, ("theta", 0.3, 0.1)),
            (likelihood.profile, ("theta", [0.1, 0.2])),
            (likelihood, (0.3,)),
            (gl.grid, ((0, 1), 5)),
            (gl.closure, (ground.model, ground.templates)),
            (gl.read, ({"x": [1.0]}, "x")),
        ),
    )
    arguments = list(good)
    arguments[int(rng.integers(len(good)))] = mutations.odd_value(rng)
    (folder / "arguments.txt").write_text(f"{method} {arguments!r}", errors="backslashreplace")
    found = method(*arguments)
    if hasattr(found, "maximum"):
        json.dumps(found.maximum().to_dict(), allow_nan=False)
