"""Gaps between templates: how much they leave open of the mean of the summary between them.

A smooth curve through the templates' means is not certain between them. Its uncertainty moves an
estimate by the same amount however many events are observed, so that from some number of events on
it is larger than the statistical error. Then a template in between helps, and nothing else does.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from gridless.calibration.calibration import Calibration
from gridless.errors import InputError, check_kind
from gridless.likelihood.warnings import is_wide
from gridless.model.model import Model
from gridless.results.printing import Lines
from gridless.templates.arrays import Array, as_size

PLACES = (0.25, 0.5, 0.75)  # of a gap at which it is looked at; the largest counts
LEAST_INFORMATION = 1e-9  # of a direction, relative to the best known: no error is infinite


@dataclass(frozen=True)
class Gap:
    """What is open between two templates, for one parameter.

    Attributes
    ----------
    parameter : str
        The parameter.
    ends : tuple of str
        The two templates.
    left_open, simulation, stat : float
        Uncertainties of an estimate there: what the templates leave open, that of their
        statistics, and the statistical one of the observed events.

    Examples
    --------
    >>> gap = Gap("mtop", ("170", "175"), left_open=0.3, simulation=0.1, stat=0.2)
    >>> gap.wide, round(gap.ratio, 2)
    (True, 1.5)
    """

    parameter: str
    ends: tuple[str, str]
    left_open: float
    simulation: float
    stat: float

    @property
    def ratio(self) -> float:
        """What is open, in statistical errors."""
        return self.left_open / self.stat

    @property
    def wide(self) -> bool:
        """Whether a template between them would help: it is over half a statistical error, and
        over twice the statistics of the templates."""
        return is_wide(self.left_open, self.stat, self.simulation)


@dataclass(frozen=True)
class Gaps(Lines):
    """All gaps between neighbouring templates, for a number of events; `gl.gaps` makes it.

    Attributes
    ----------
    events : float
        Observed events.
    gaps : tuple of Gap
        One for each pair of neighbours and each parameter.

    Examples
    --------
    >>> Gaps(100, (Gap("theta", ("theta = 0.2", "theta = 0.8"), 0.1, 0.02, 0.05),)).advice
    'simulate a template between theta = 0.2 and theta = 0.8'
    """

    events: float
    gaps: tuple[Gap, ...]

    @property
    def widest(self) -> Gap:
        """The one that leaves most open, in statistical errors."""
        return max(self.gaps, key=lambda gap: (gap.wide, gap.ratio))

    @property
    def wide(self) -> tuple[Gap, ...]:
        """Those in which a template would help, the widest first."""
        return tuple(sorted((g for g in self.gaps if g.wide), key=lambda gap: -gap.ratio))

    @property
    def advice(self) -> str:
        """What to do, in a sentence."""
        pairs = list(dict.fromkeys(gap.ends for gap in self.wide))
        if not pairs:
            return "the templates are close enough"
        places = ", ".join(f"between {a} and {b}" for a, b in pairs[:3])
        return f"simulate a template {places}"

    def to_dict(self) -> dict[str, Any]:
        """The gaps in what JSON can hold."""
        rows = [asdict(gap) | {"ratio": gap.ratio, "wide": gap.wide} for gap in self.gaps]
        return {"events": self.events, "gaps": rows, "advice": self.advice}

    def __str__(self) -> str:
        lines = [
            f"left open between templates, in statistical errors of {self.events:,.0f} events:"
        ]
        for gap in self.gaps:
            mark = "  wide" if gap.wide else ""
            lines.append(f"  {gap.ends[0]} to {gap.ends[1]}: {gap.parameter} {gap.ratio:.2f}{mark}")
        return "\n".join([*lines, self.advice])

    __repr__ = __str__


def gaps(model: Model, events: float = 10_000) -> Gaps:
    """How much the templates leave open between them, at a number of observed events.

    Parameters
    ----------
    model : Model
        A calibrated model.
    events : float
        Observed events.

    Returns
    -------
    Gaps
        One for each pair of neighbours, and whether a template between them would help.

    Examples
    --------
    >>> import gridless as gl
    >>> from gridless.examples import OneObservable
    >>> model = gl.fit(OneObservable().templates(2_000, seed=1), hidden=3, seed=1)
    >>> gl.gaps(model, 1_000).advice
    'the templates are close enough'
    """
    check_kind(model, Model, "model")
    calibration, grid = model.calibration, model.grid
    if calibration is None:
        raise InputError("gaps: the model was fitted with calibrate=False; fit it anew")
    events = as_size(events)
    found = []
    for i, j in grid.neighbours():
        steps = [grid.unit[i] + share * (grid.unit[j] - grid.unit[i]) for share in PLACES]
        errors = np.array([_errors(calibration, t, events) for t in steps])
        worst = np.argmax(errors[:, 0] / errors[:, 2], axis=0)
        for p, name in enumerate(grid.parameters):
            sizes = (errors[worst[p], :, p] * grid.range[p]).tolist()
            found.append(Gap(name, (grid.label(i), grid.label(j)), *sizes))
    return Gaps(events, tuple(found))


def _errors(calibration: Calibration, t: Array, events: float) -> Array:
    """Left open, simulation, statistical: (3, parameters), in units of the range."""
    slope = calibration.score_slopes(t[None])[0] @ calibration.mean.slopes(t[None])[0].T
    values, vectors = np.linalg.eigh(0.5 * (slope + slope.T))  # the information of one event
    values = values.clip(min=LEAST_INFORMATION * max(float(values.max()), LEAST_INFORMATION))
    inverse = (vectors / values) @ vectors.T
    of_templates = calibration.simulation_slopes(t).reshape(-1, len(t))
    moved = [np.sqrt(((s @ inverse) ** 2).sum(axis=0))
             for s in (calibration.model_slopes(t), of_templates)]  # fmt: skip
    return np.array([*moved, np.sqrt(np.diag(inverse) / events)])
