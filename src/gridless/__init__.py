"""gridless: continuous maximum-likelihood estimates from simulation that exists only on a grid."""

from importlib.metadata import version

from gridless.basis import Basis, ExpPolynomial, Gaussian, Logistic
from gridless.bootstrap import Bootstrap, bootstrap
from gridless.closure import Closure, closure
from gridless.coverage import Coverage, coverage
from gridless.errors import GridlessWarning, InputError
from gridless.estimate import Estimate
from gridless.fitting import fit
from gridless.grid import grid
from gridless.likelihood import Likelihood
from gridless.model import Model
from gridless.objective import Penalty
from gridless.posterior import Posterior
from gridless.reading import Sample, read
from gridless.saving import load
from gridless.streaming import read_likelihood
from gridless.template_files import read_templates
from gridless.templates import Templates

__version__ = version("gridless")

__all__ = [
    "Basis",
    "Bootstrap",
    "Closure",
    "Coverage",
    "Estimate",
    "ExpPolynomial",
    "Gaussian",
    "GridlessWarning",
    "InputError",
    "Likelihood",
    "Logistic",
    "Model",
    "Penalty",
    "Posterior",
    "Sample",
    "Templates",
    "bootstrap",
    "closure",
    "coverage",
    "fit",
    "grid",
    "load",
    "read",
    "read_likelihood",
    "read_templates",
]
