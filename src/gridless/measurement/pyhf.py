"""A binned channel from pyhf as a cost that adds to likelihoods."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gridless.errors import InputError
from gridless.likelihood.minuit import MinuitCost
from gridless.templates.arrays import Array

if TYPE_CHECKING:
    import pyhf

STEP = 1e-4  # of a parameter's range, for slopes


class PyhfCost(MinuitCost):
    """Minus the log likelihood of a pyhf model, a function of its parameters by name."""

    def __init__(self, model: "pyhf.Model", data: Sequence[float], shared: Iterable[str]) -> None:
        self.model = model
        self.data = [float(one) for one in data]
        if len(self.data) == model.config.nmaindata:
            self.data += [float(one) for one in model.config.auxdata]
        expected = model.config.nmaindata + model.config.nauxdata
        if len(self.data) != expected:
            raise InputError(
                f"data: {len(self.data)} numbers for {model.config.nmaindata} bins of the pyhf "
                "model; give one for each bin, with or without the auxiliary data"
            )
        names = list(model.config.par_names)
        self.shared = [names.index(name) for name in _known(shared, names)]
        self.low, self.high = np.array(model.config.suggested_bounds(), float).T
        limits = zip(names, self.low.tolist(), self.high.tolist(), strict=True)
        super().__init__({name: (low, high) for name, low, high in limits})

    def _value(self, args: Sequence[float]) -> float:
        p = np.asarray(args, float)
        value = -float(np.ravel(self.model.logpdf(p.tolist(), self.data))[0])
        # The constraint of a shared parameter is in the other likelihood already.
        return value - 0.5 * float((p[self.shared] ** 2).sum())

    def _grad(self, args: Sequence[float]) -> Array:
        p = np.asarray(args, float)
        found = []
        for axis, step in enumerate(STEP * (self.high - self.low)):
            up, down = p.copy(), p.copy()
            up[axis] = min(p[axis] + step, self.high[axis])
            down[axis] = max(p[axis] - step, self.low[axis])
            width = up[axis] - down[axis]
            found.append((self._value(up.tolist()) - self._value(down.tolist())) / width)
        return np.array(found)


def pyhf_cost(model: Any, data: Sequence[float], shared: Iterable[str] = ()) -> PyhfCost:
    """A binned channel, as a pyhf model with its observed counts, to be added to likelihoods.

    Parameters
    ----------
    model : pyhf.Model
        Its parameters are shared by name: one that is named as a parameter or a nuisance parameter
        of the likelihood is the same.
    data : sequence of float
        Counts of all bins, with or without pyhf's auxiliary data.
    shared : iterable of str
        Nuisance parameters that the likelihood constrains too (normsys, histosys: Gaussians of
        width 1 around 0): their constraint counts once.

    Returns
    -------
    PyhfCost
        A cost of iminuit: `Minuit(likelihood + cost, ...)` finds the joint minimum.

    Examples
    --------
    >>> import gridless as gl, pyhf
    >>> make = pyhf.simplemodels.uncorrelated_background
    >>> cost = gl.pyhf_cost(make([5.0], [50.0], [7.0], validate=False), [55.0])
    >>> cost(1.0, 1.0) < cost(3.0, 1.0)
    True
    """
    if not hasattr(model, "config") or not hasattr(model, "logpdf"):
        raise InputError(
            f"model: {type(model).__name__}; give a pyhf.Model (pip install gridless[pyhf])"
        )
    return PyhfCost(model, data, shared)


def _known(shared: Iterable[str], names: list[str]) -> list[str]:
    found = [shared] if isinstance(shared, str) else list(shared)
    for name in found:
        if name not in names:
            raise InputError(f"shared: pyhf has no parameter {name!r}; there is {', '.join(names)}")
    return found
