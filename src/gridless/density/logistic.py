"""Logistic components truncated to the range."""

from torch import Tensor

from gridless.density.location_scale import LocationScale
from gridless.density.truncated import log_logistic


class Logistic(LocationScale):
    """Logistic density truncated to the range: a Gaussian's shape with exponential tails.

    log B = 2 log sech((t - mean) / 2 width) - log(integral), with width = floor + exp(output).

    Parameters
    ----------
    floor : float
        Least width, in units of the range: it keeps components from collapsing onto templates.

    Examples
    --------
    >>> import gridless as gl
    >>> gl.Logistic(floor=0.05).outputs  # the mean and the log of the width
    2
    """

    name = "logistic"

    def log_prob(self, t: Tensor, z: Tensor) -> Tensor:
        return log_logistic(t, *self.mean_width(z))
