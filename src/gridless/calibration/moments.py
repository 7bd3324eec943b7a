"""Means and covariances of the summary of every template."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gridless.errors import InputError
from gridless.templates.arrays import Array

MIN_EIGENVALUE = 1e-5  # of a covariance, relative to its mean over all templates
ROUNDING = 1e-6  # of a summary in float32, relative to its size: a smaller spread counts as 0
MOST_APART = 1e4  # spreads of one event between two templates: a single event then gives theta


@dataclass(frozen=True, eq=False)
class Moments:
    """What the templates say of the summary c(x) of an event.

    Attributes
    ----------
    t : array (templates, parameters)
        Where the templates are, in units of the range.
    mean : array (templates, d)
        The mean of c in each template, over events that the network did not see where samples are
        small.
    covariance : array (templates, d, d)
        The covariance of c of one event.
    mean_covariance : array (templates, d, d)
        The covariance of `mean`: the statistics of the simulation.
    """

    t: Array
    mean: Array
    covariance: Array
    mean_covariance: Array

    @property
    def effective(self) -> Array:
        """The effective number of events of each template."""
        traces = [np.trace(m, axis1=1, axis2=2) for m in (self.covariance, self.mean_covariance)]
        return np.asarray(traces[0] / np.where(traces[1] > 0, traces[1], np.inf))

    @property
    def noise_per_event(self) -> Array:
        """The covariance of the mean times the number of events: that of one event, or more where
        the members of an ensemble disagree."""
        return np.asarray(self.effective[:, None, None] * self.mean_covariance)

    @property
    def share(self) -> Array:
        """The share of each template in the effective events of all."""
        return np.asarray(self.effective / (self.effective.sum() or 1.0))

    @property
    def pooled(self) -> Array:
        """The covariance (d, d) of c of one event, averaged over the templates."""
        return np.tensordot(self.share, self.covariance, 1)

    def of(self, templates: NDArray[np.bool_]) -> "Moments":
        """Those of some of the templates."""
        return Moments(
            self.t[templates],
            self.mean[templates],
            self.covariance[templates],
            self.mean_covariance[templates],
        )

    def whitened(self) -> tuple["Moments", Array, Array]:
        """The moments of y = (c - centre) @ transform, whose covariance is 1 on average over the
        templates; with `centre` (d) and `transform` (d, kept).

        Directions in which c does not vary are left out.
        """
        centre, pooled = self.share @ self.mean, self.pooled
        scale = np.sqrt(np.diag(pooled))
        # A spread as small as rounding counts as 0.
        scale = np.where(scale > ROUNDING * np.abs(self.mean).max(axis=0), scale, 1.0)
        values, vectors = np.linalg.eigh(pooled / np.outer(scale, scale))
        keep = values > MIN_EIGENVALUE
        if not keep.any():
            raise InputError(
                "fit: the network gives the same for all events of a template; give a smaller "
                "ridge, more epochs, or observables that depend on theta and do not hold it"
            )
        transform = (vectors[:, keep] / np.sqrt(values[keep])) / scale[:, None]
        mean = (self.mean - centre) @ transform
        # Where members of an ensemble disagree, their means have more noise than events explain.
        noise = transform.T @ np.tensordot(self.share, self.noise_per_event, 1) @ transform
        apart = np.einsum("ki,ki->k", mean @ np.linalg.inv(np.eye(len(noise)) + noise), mean)
        if apart.max() > MOST_APART**2:
            raise InputError(
                "fit: single events tell their template without doubt, and nothing what is between "
                "templates; leave out observables that hold theta itself, or simulate at closer "
                "values"
            )
        return (
            Moments(
                self.t,
                mean,
                transform.T @ self.covariance @ transform,
                transform.T @ self.mean_covariance @ transform,
            ),
            centre,
            transform,
        )
