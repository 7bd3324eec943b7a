"""Targets of whole measurements: systematics, backgrounds, channels, and the verbs of a review."""

import contextlib
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from tests.attack import mutations
from tests.attack.ground import Ground
from tests.attack.mutations import Generator, choose
from tests.attack.python_targets import odd_array

import gridless as gl
from gridless.analysis.loading import load_analysis

YAML = """\
templates: t_{theta}.npz
parameters:
  theta: [-1, 2]
observables:
  x: x
  y: y
labels:
  theta: mass
systematics:
  - name: shift
    up: u_{theta}.npz
    down: u_{theta}.npz
    constraint: 1
  - name: tilt
    weight_up: 1 + 0.1 * tanh(x)
    weight_down: 1 - 0.1 * tanh(x)
backgrounds:
  - name: flat
    files: flat.npz
    share: 0.1
    error: 0.03
channels:
  soft:
    selection: w < 1
  hard:
    selection: w >= 1
    observables:
      x: x
fit:
  hidden: [2]
  epochs: 2
"""
Call = tuple[Callable[..., Any], dict[str, Any]]
QUICK = 20  # pseudo-experiments or points


def analysis(ground: Ground, rng: Generator, folder: Path) -> str:
    """An analysis.yaml of a whole measurement with faults is refused, or is an analysis."""
    text, wrong = mutations.odd_yaml(YAML, rng)
    path = folder / "analysis.yaml"
    path.write_text(text, errors="surrogateescape")
    load_analysis(path)
    return "different" if wrong else "any"


def model_signed(ground: Ground, rng: Generator, folder: Path) -> str:
    """A file of channels that was changed on purpose is loaded and measured."""
    from tests.attack.targets import signed, strict

    path = folder / "m.safetensors"
    path.write_bytes(signed(ground.files["channels"][1], "gridless", rng))
    loaded = gl.load(path)
    if not isinstance(loaded, gl.Channels):
        return "any"
    repr(loaded), str(loaded.warnings)
    x = {
        name: np.repeat(ground.x[:, :1], len(model.observables), axis=1)
        for name, model in loaded.items()
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gl.GridlessWarning)
        estimate = loaded.likelihood(x).maximum()
    strict(json.dumps(estimate.to_dict()))
    str(estimate)
    return "any"


def calls(ground: Ground, rng: Generator, folder: Path) -> str:
    """A call of Python with one odd argument is refused by an InputError, or works."""
    method, good = choose(rng, _calls(ground))
    given, name = dict(good), choose(rng, list(good))
    numeric = isinstance(given[name], np.ndarray) and rng.random() < 0.7
    given[name] = odd_array(given[name], rng) if numeric else mutations.odd_value(rng)
    text = f"{method} {name} = {given[name]!r}"
    (folder / "arguments.txt").write_text(text, errors="backslashreplace")
    with warnings.catch_warnings(), contextlib.chdir(folder):
        warnings.simplefilter("ignore", gl.GridlessWarning)
        found = method(**given)
        for made in (found, found.maximum() if hasattr(found, "maximum") else None):
            str(made)
            if hasattr(made, "to_dict"):
                json.dumps(made.to_dict(), allow_nan=False)
    return "any"


def _calls(ground: Ground) -> list[Call]:
    """Public calls with good arguments."""
    whole, model, x = ground.whole, ground.model, ground.x
    likelihood, joint = model.likelihood(x), whole.model.likelihood(x)
    both = {"soft": x, "hard": x}
    at = model.at(0.4)
    return [
        (gl.Systematic, {"name": "tilt", "up": whole.up, "down": whole.down, "constraint": 1.0,
                         "same_events": None}),
        (gl.Background, {"name": "flat", "x": whole.flat, "share": 0.1, "error": 0.03,
                         "weights": np.ones(len(whole.flat)), "systematics": ()}),
        (_varied(whole), {"up": whole.up, "down": whole.down}),
        (_varied(whole), {"up": whole.x + 0.1, "down": whole.x - 0.1}),
        (_mixed(whole), {"x": whole.flat, "share": 0.1, "error": 0.03}),
        (gl.audit_systematics, {"templates": whole.templates, "systematics": [],
                                "backgrounds": []}),
        (model.expected, {"theta": 0.4, "events": 100.0}),
        (whole.model.expected, {"theta": 0.4, "events": 100.0}),
        (whole.channels.expected, {"theta": 0.4, "events": {"soft": 100.0, "hard": 50.0}}),
        (whole.channels.likelihood, {"x": both, "weights": None}),
        (model.likelihood, {"x": x, "weights": np.ones(len(x)), "by": np.arange(len(x)) % 3.0}),
        (whole.model.likelihood, {"x": x, "weights": np.ones(len(x)), "by": x[:, 0] > 0}),
        (likelihood.belt, {"parameter": "theta", "method": "feldman-cousins", "toys": QUICK,
                           "points": QUICK, "seed": 0, "stat": False}),
        (joint.interval, {"level": 0.9, "parameter": "theta", "stat": False, "method": "wilks"}),
        (joint.profile, {"parameter": "theta", "values": np.linspace(0, 1, 3)}),
        (joint.constrain, {"parameter": "theta", "value": 0.3, "error": 0.1}),
        (joint.fix, {"theta": 0.3, "tilt": 0.0}),
        (joint.contour, {"first": "theta", "second": "tilt", "level": 0.9, "points": QUICK}),
        (joint.scan, {"theta": np.linspace(0, 1, 3)}),
        (joint.to_cabinetry, {"parameter": "theta", "values": np.linspace(0, 1, 3)}),
        (joint.maximum().blinded, {"key": "a"}),
        (joint.named, {"channel": "soft"}),
        (gl.plan, {"model": model, "events": 100.0, "simulated": 1e4, "theta": 0.4,
                   "parameter": "theta"}),
        (gl.gaps, {"model": model, "events": 100.0}),
        (gl.coverage, {"model": model, "samples": ground.templates, "toys": QUICK, "events": 20,
                       "seed": 0, "first": 0}),
        (gl.bootstrap, {"model": model, "x": x, "weights": None, "toys": QUICK, "seed": 0}),
        (gl.binned_check, {"model": model, "x": x, "weights": np.ones(len(x))}),
        (gl.closure, {"model": whole.model, "samples": {0.4: x}, "constrain": {"theta": (0, 1)},
                      "fix": {"tilt": 0}, "level": 0.9, "signal": False}),
        (gl.reliability, {"model": model}),
        (gl.template_agreement, {"model": model}),
        (gl.Channels, {"models": dict(whole.channels)}),
        (gl.compare, {"model": model, "likelihood": likelihood}),
        (gl.write_curve, {"path": "curve.json", "likelihood": joint, "kind": "json", "level": 0.9}),
        (model.histograms, {"theta": 0.4, "nuisances": None}),
        (whole.model.histograms, {"theta": 0.4, "nuisances": {"tilt": 1.0}}),
        (at.sample, {"events": 10, "seed": 0}),
        (at.shares, {"observable": "x", "edges": np.linspace(-2, 3, 5)}),
        (at.p_value, {"observable": "x", "values": x[:, 0], "weights": None}),
        (model.at, {"theta": 0.4}),
        (gl.read_likelihood, {"model": whole.channels, "sources": both, "weight": None,
                              "where": None, "by": None}),
    ]  # fmt: skip


def _varied(whole: Any) -> Callable[..., Any]:
    return lambda up, down: whole.fit(systematics=[gl.Systematic("tilt", up, down)])


def _mixed(whole: Any) -> Callable[..., Any]:
    return lambda x, share, error: whole.fit(backgrounds=[gl.Background("flat", x, share, error)])
