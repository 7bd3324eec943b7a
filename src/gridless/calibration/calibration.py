"""A likelihood whose score has mean 0 and the right variance in the simulation itself.

The network turns an event into a short summary c(x), the coefficients of log p(theta | x) in theta.
Let mu(theta) be its mean and Sigma(theta) its covariance at theta, both measured on the templates.
Of all scores that are linear in c and have mean 0 at every theta,

    u(x, theta) = (d mu / d theta)' Sigma^-1 (c(x) - mu(theta))

is the one with the most information, and its variance equals its mean slope, so that Wilks' theorem
holds: it is the quasi-score of Wedderburn and Godambe. If the network has learnt the density, u is
the score of that density. If it has not, u is still unbiased: a poor network costs precision only.

The likelihood is the integral of u, linear in c and so a sum over events:

    log L = sum_i [a(theta) . c(x_i) - b(theta)],   da = Sigma^-1 dmu,   db = da . mu.

With several parameters da and db need not be gradients of anything. a and b are the nearest that
are, with db = da . mu held to rounding; the variance of the score then differs from its slope, and
intervals use both.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from gridless.calibration.mean_curve import MeanCurve, fit_mean_curve
from gridless.calibration.moments import Moments
from gridless.curves import chebyshev
from gridless.curves.polynomials import Powers, as_tensor, powers_up_to, slopes, terms
from gridless.templates.arrays import Array, positive

A_DEGREE = {1: 12, 2: 6, 3: 4}  # of the polynomials a, by the number of parameters
SPREAD_SIZE = {1: 33, 2: 17, 3: 9}  # Chebyshev points per parameter of the score's variance
HELD = 1e3  # how much more db = da . mu counts than da = Sigma^-1 dmu
# Effective events that a covariance between templates is averaged over. The weights a need a steady
# one, since noise in its inverse costs precision; the variance of the score the right one, which
# changes from template to template, and which 500 events know to 6 percent.
STEADY_EVENTS = 2000
LOCAL_EVENTS = 500
POOR_FIT = 0.01  # p-value below which a curve does not describe the means of the templates
MAX_POWER = 64  # of a polynomial: more than any calibration has
LARGEST = 1e50  # of a number in a file: products of several are finite
OUTSIDE = 1e-6  # of the range: how far rounding may put a template beyond a bound
MIN_INFORMATION = 1e-3  # of a score, relative to its largest: less does not gain weight in the fit


@dataclass(frozen=True, eq=False)
class Calibration:
    """The likelihood as a function of summed summaries, with its uncertainties.

    Attributes
    ----------
    t : array (templates, parameters)
        Where the templates are, in units of the range.
    centre, transform : array (d,), array (d, kept)
        y = (c - centre) @ transform is the whitened summary.
    back : array (kept, d)
        centre + y @ back is the mean of c for a known y: c itself where nothing was left out.
    a_powers, a : array (terms, parameters), array (terms, kept)
        The polynomials a(t).
    b_powers, b : array (terms, parameters), array (terms,)
        The polynomial b(t).
    mean : MeanCurve
        mu(t) of the whitened summary.
    noise : array (terms, kept, templates, kept)
        What independent unit fluctuations of the templates change in the coefficients of mu.
    spread : array (parameters, parameters, ...)
        The covariance of the score of one event, as Chebyshev coefficients.
    """

    t: Array
    centre: Array
    transform: Array
    back: Array
    a_powers: Powers
    a: Array
    b_powers: Powers
    b: Array
    mean: MeanCurve
    noise: Array
    spread: Array

    @property
    def parameters(self) -> int:
        """The number of parameters."""
        return int(self.t.shape[1])

    def whitened(self, c: Array) -> Array:
        """y of events' summaries c (events, d)."""
        return np.asarray((c - self.centre) @ self.transform)

    def curve_matrix(self) -> Array:
        """Chebyshev coefficients (kept, ...) of each of the polynomials a."""
        return np.moveaxis(as_tensor(self.a, self.a_powers), -1, 0)

    @property
    def offset(self) -> Array:
        """Chebyshev coefficients of b, which every event subtracts."""
        return as_tensor(self.b, self.b_powers)

    def total(self, y: Array, weight: float) -> Array:
        """Minus the log likelihood of events with the sum y (kept,) of whitened summaries and the
        sum `weight` of weights, as Chebyshev coefficients."""
        return chebyshev.add(-np.tensordot(y, self.curve_matrix(), 1), weight * self.offset)

    def score_slopes(self, t: Array) -> Array:
        """d a / dt at points t: (points, parameters, kept)."""
        return np.asarray(slopes(t, self.a_powers) @ self.a)

    def observed_spread(self, products: Array, sums: Array, squares: float) -> Array:
        """sum_i w_i^2 u_i u_i^T as Chebyshev coefficients (parameters, parameters, ...).

        Parameters
        ----------
        products, sums, squares : array (kept, kept), array (kept,), float
            Sums over events of w^2 y y^T, w^2 y and w^2.
        """
        sizes = (SPREAD_SIZE[self.parameters],) * self.parameters
        t = chebyshev.box_points(sizes)
        mu, da = self.mean(t), self.score_slopes(t)
        crossed = np.einsum("i,nj->nij", sums, mu)
        second = products - crossed - np.swapaxes(crossed, 1, 2)
        second = second + squares * np.einsum("ni,nj->nij", mu, mu)
        return _spread_tensor(np.einsum("npi,nij,nqj->npq", da, second, da), sizes)

    def spread_at(self, t: Array) -> Array:
        """The variance of the score of one event at values t (points,) of the only parameter."""
        return np.asarray(chebyshev.evaluate(self.spread[0, 0], t[:, None]))

    def mean_changes(self, t: Array) -> Array:
        """Independent changes of mu by one standard deviation, at points t (points, parameters):
        first from the statistics of the templates, then from the interpolation between them.
        (points, kept, changes)"""
        rows, size = terms(t, self.mean.powers), self.transform.shape[1]
        parts = [np.tensordot(rows, change, 1) for change in (self.noise, self.mean.open)]
        return np.concatenate([part.reshape(len(t), size, -1) for part in parts], axis=-1)

    def mean_covariance(self, t: Array) -> Array:
        """The covariance of mu at points t (points, parameters): (points, kept, kept)."""
        changes = self.mean_changes(t)
        return np.asarray(changes @ np.swapaxes(changes, 1, 2))

    def model_slopes(self, t: Array) -> Array:
        """Changes of the mean score at one point by one standard deviation of the interpolation
        between the templates: (changes, parameters)."""
        moved = np.tensordot(terms(t[None], self.mean.powers)[0], self.mean.open, 1)
        return np.asarray(moved.T @ self.score_slopes(t[None])[0].T)

    def simulation_slopes(self, t: Array) -> Array:
        """Changes of the mean score at one point by one standard deviation of the statistics of
        each template: (templates, kept, parameters)."""
        point = t[None]
        da = self.score_slopes(point)[0]
        moved = np.tensordot(terms(point, self.mean.powers)[0], self.noise, 1)
        return np.asarray(np.einsum("pi,ikj->kjp", da, moved))

    def template_means(self) -> tuple[Array, Array]:
        """The mean of the whitened summary in each template (templates, kept), and the covariance
        of each mean (templates, kept, kept): what the curve was fitted to."""
        mean = self.mean
        count, size = mean.residual.shape
        # noise = response @ root of the covariance of each template's mean, times a known scale.
        covariance = np.empty((count, size, size))
        for k in range(count):
            response = mean.response[:, :, k].reshape(-1, size)
            noise = self.noise[:, :, k].reshape(-1, size)
            root = np.linalg.lstsq(response, noise, rcond=None)[0]
            covariance[k] = root @ root.T / noise_scale(mean)
        return np.asarray(mean(self.t) + mean.residual), covariance

    def check(self, templates: int, parameters: int) -> None:
        """Refuse, with a ValueError, arrays that do not fit each other or the grid."""
        size, kept = self.transform.shape
        mean, spread = self.mean, SPREAD_SIZE[parameters]
        shapes = {
            "t": (self.t, (templates, parameters)),
            "centre": (self.centre, (size,)),
            "a_powers": (self.a_powers, (len(self.a), parameters)),
            "a": (self.a, (len(self.a), kept)),
            "b_powers": (self.b_powers, (len(self.b), parameters)),
            "b": (self.b, (len(self.b),)),
            "mean_powers": (mean.powers, (len(mean.coefficients), parameters)),
            "mean": (mean.coefficients, (len(mean.coefficients), kept)),
            "response": (mean.response, (len(mean.coefficients), kept, templates, kept)),
            "noise": (self.noise, mean.response.shape),
            "open": (mean.open, (len(mean.coefficients), kept, len(mean.coefficients) * kept)),
            "residual": (mean.residual, (templates, kept)),
            "residual_covariance": (mean.residual_covariance, (templates, kept, kept)),
            "spread": (self.spread, (parameters, parameters, *[spread] * parameters)),
            "back": (self.back, (kept, size)),
        }
        for name, (array, shape) in shapes.items():
            if array.shape != shape:
                raise ValueError(f"calibration.{name} is {array.shape} and not {shape}")
            if np.abs(array).max(initial=0) > LARGEST:
                raise ValueError(f"calibration.{name} has a number over {LARGEST:g}")
        if self.t.min() < -OUTSIDE or self.t.max() > 1 + OUTSIDE:
            raise ValueError("calibration.t has templates outside of the bounds")
        for powers in (self.a_powers, self.b_powers, mean.powers):
            if powers.min() < 0 or powers.max() > MAX_POWER:
                raise ValueError(f"a power of the calibration is not 0 to {MAX_POWER}")

    def arrays(self) -> dict[str, Any]:
        """Everything as arrays and numbers, by name: what a file holds."""
        mean = self.mean
        return {
            "t": self.t, "centre": self.centre, "transform": self.transform, "back": self.back,
            "a_powers": self.a_powers, "a": self.a, "b_powers": self.b_powers, "b": self.b,
            "noise": self.noise, "spread": self.spread,
            "mean_powers": mean.powers, "mean": mean.coefficients, "response": mean.response,
            "open": mean.open,
            "residual": mean.residual, "residual_covariance": mean.residual_covariance,
            "numbers": np.array([mean.chi2, mean.dof, mean.information]),
        }  # fmt: skip


def from_arrays(arrays: dict[str, Array]) -> Calibration:
    """The calibration that `arrays()` gave."""
    chi2, dof, information = arrays["numbers"].tolist()
    mean = MeanCurve(
        arrays["mean_powers"].astype(np.int64), arrays["mean"], arrays["response"], arrays["open"],
        arrays["residual"], arrays["residual_covariance"], chi2, dof, information,
    )  # fmt: skip
    return Calibration(
        arrays["t"], arrays["centre"], arrays["transform"], arrays["back"],
        arrays["a_powers"].astype(np.int64), arrays["a"], arrays["b_powers"].astype(np.int64),
        arrays["b"], mean, arrays["noise"], arrays["spread"],
    )  # fmt: skip


def calibrate(moments: Moments) -> Calibration:
    """The likelihood that the moments of the templates' summaries make valid.

    Parameters
    ----------
    moments : Moments
        Those of c(x).

    Returns
    -------
    Calibration
    """
    white, centre, transform = moments.whitened()
    mean = fit_mean_curve(white)
    parameters = white.t.shape[1]
    # Of an ensemble, the covariance of the means over unseen events is used: it is larger where the
    # members disagree.
    steady = _Smoothed(white, white.noise_per_event, STEADY_EVENTS)
    local = _Smoothed(white, white.covariance, LOCAL_EVENTS)
    a_powers, a, b_powers, b = _potentials(mean, steady, local, parameters)
    roots = np.linalg.cholesky(white.mean_covariance * noise_scale(mean))
    noise = np.einsum("mikj,kjl->mikl", mean.response, roots)
    sizes = (SPREAD_SIZE[parameters],) * parameters
    t = chebyshev.box_points(sizes)
    da = slopes(t, a_powers) @ a
    spread = _spread_tensor(np.einsum("npi,nij,nqj->npq", da, local(t), da), sizes)
    # The covariance of y and c; that of y is 1.
    back = transform.T @ moments.pooled
    made = Calibration(
        white.t, centre, transform, back, a_powers, a, b_powers, b, mean, noise, spread
    )
    # As from a file: the order of numbers in memory decides the last digits of products.
    return from_arrays({name: np.ascontiguousarray(v) for name, v in made.arrays().items()})


def noise_scale(mean: MeanCurve) -> float:
    """The factor on the noise of the means: chi2 / dof where the curve describes them poorly."""
    return mean.chi2 / mean.dof if mean.p_value < POOR_FIT else 1.0


def _spread_tensor(values: Array, sizes: tuple[int, ...]) -> Array:
    """Chebyshev coefficients (p, p, ...) of matrices (points, p, p) at the points of a box."""
    count = values.shape[1]
    rows = np.moveaxis(values, 0, -1).reshape(count * count, *sizes)
    return np.array([chebyshev.coefficients(row) for row in rows]).reshape(count, count, *sizes)


class _Smoothed:
    """Sigma(theta): the templates' covariances averaged with a Gaussian kernel, so that it is a
    covariance everywhere, over at least so many events."""

    def __init__(self, moments: Moments, covariance: Array, least_events: int) -> None:
        self.t, self.size = moments.t, moments.effective.clip(min=1.0)
        self.covariance = positive(covariance)
        distance = np.linalg.norm(self.t[:, None] - self.t, axis=-1)
        np.fill_diagonal(distance, np.inf)
        self.width = 0.5 * float(np.median(distance.min(axis=1)))
        while self.width < 1 and self._events(self.t).min() < least_events:
            self.width *= 1.4

    def __call__(self, t: Array) -> Array:
        kernel = self._kernel(t)
        kernel = kernel / kernel.sum(axis=1, keepdims=True)
        return np.asarray(np.tensordot(kernel, self.covariance, 1))

    def _kernel(self, t: Array) -> Array:
        squared = ((t[:, None] - self.t) ** 2).sum(-1) / (2 * self.width**2)
        # Relative to the nearest template, so that wide gaps do not make zeros of all.
        return np.asarray(self.size * np.exp(squared.min(axis=1, keepdims=True) - squared))

    def _events(self, t: Array) -> Array:
        return np.asarray(self._kernel(t).sum(axis=1))


def _potentials(
    mean: MeanCurve, covariance: _Smoothed, of_events: _Smoothed, parameters: int
) -> tuple[Powers, Array, Powers, Array]:
    """a and b by least squares at Chebyshev points: da = M Sigma^-1 dmu, and db = da . mu held.

    With H = dmu' Sigma^-1 dmu and J the variance of the score Sigma^-1 dmu, M = H J^-1 makes the
    variance of the score equal to its slope. It is 1 where Sigma is the covariance of events, and
    not where the noise of an ensemble's means counts instead.
    """
    degree = A_DEGREE[parameters]
    mean_degree = int(mean.powers.sum(axis=1).max())
    a_powers = powers_up_to(degree, parameters)[1:]
    b_powers = powers_up_to(degree + mean_degree, parameters)[1:]
    nodes = 2 * (degree + mean_degree) + 1 if parameters == 1 else degree + mean_degree + 3
    t = chebyshev.box_points((nodes,) * parameters)
    sigma, mu, dmu = covariance(t), mean(t), mean.slopes(t)
    wanted = np.linalg.solve(sigma[:, None], dmu[..., None])[..., 0]
    slope = np.einsum("npi,nqi->npq", wanted, dmu)
    variance = np.einsum("npi,nij,nqj->npq", wanted, of_events(t), wanted)
    wanted = slope @ np.linalg.pinv(variance, hermitian=True) @ wanted
    information = np.einsum("npi,npi->n", wanted, dmu)
    information = information.clip(min=MIN_INFORMATION * information.max())
    # Without this, means that are all equal would give 0 / 0.
    scale = 1 / np.sqrt(np.where(information > 0, information, 1.0))
    roots = np.linalg.cholesky(sigma)  # rows are weighted so that squares are in units of Sigma
    da, db = slopes(t, a_powers), slopes(t, b_powers)
    size = mu.shape[1]
    # Unknowns: a (terms, size), then b (terms).
    root_rows = np.einsum("n,nij,npa->npjai", scale, roots, da).reshape(-1, len(a_powers) * size)
    root_rows = np.hstack([root_rows, np.zeros((len(root_rows), len(b_powers)))])
    root_right = np.einsum("n,nij,npi->npj", scale, roots, wanted).ravel()
    held = HELD * scale
    held_rows = np.hstack(
        [
            -np.einsum("n,npa,ni->npai", held, da, mu).reshape(-1, len(a_powers) * size),
            np.einsum("n,npb->npb", held, db).reshape(-1, len(b_powers)),
        ]
    )
    rows = np.vstack([root_rows, held_rows])
    right = np.concatenate([root_right, np.zeros(len(held_rows))])
    found = np.linalg.lstsq(rows, right, rcond=1e-13)[0]
    a = found[: len(a_powers) * size].reshape(len(a_powers), size)
    return a_powers, a, b_powers, found[len(a_powers) * size :]
