"""gridless: continuous maximum-likelihood estimates from simulation that exists only on a grid."""

from importlib.metadata import version

from gridless.density.basis import Basis, ExpPolynomial, Gaussian, Logistic
from gridless.errors import GridlessWarning, InputError
from gridless.files.read_events import Sample, read
from gridless.files.template_files import read_templates
from gridless.fitting import fit
from gridless.likelihood.estimate import Estimate
from gridless.likelihood.likelihood import Likelihood
from gridless.model.file import load
from gridless.model.model import Model
from gridless.model.posterior import Posterior
from gridless.model.stream import read_likelihood
from gridless.templates.grid import grid
from gridless.templates.templates import Templates
from gridless.training.objectives import Penalty
from gridless.validation.bootstrap import Bootstrap, bootstrap
from gridless.validation.closure import Closure, closure
from gridless.validation.coverage import Coverage, coverage

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
