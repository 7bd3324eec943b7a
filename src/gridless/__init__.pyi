"""The public names and where each lives; loaded on first use."""

from .analysis import Analysis as Analysis
from .analysis import fit_files as fit_files
from .density.basis import Basis as Basis
from .density.basis import ExpPolynomial as ExpPolynomial
from .density.basis import Gaussian as Gaussian
from .density.basis import Logistic as Logistic
from .errors import GridlessWarning as GridlessWarning
from .errors import InputError as InputError
from .files.read import Sample as Sample
from .files.read import read as read
from .files.table import Table as Table
from .files.table import register_format as register_format
from .files.template_files import read_templates as read_templates
from .fitting import fit as fit
from .likelihood.estimate import Estimate as Estimate
from .likelihood.export import write_curve as write_curve
from .likelihood.likelihood import Likelihood as Likelihood
from .likelihood.warnings import EstimateWarning as EstimateWarning
from .model.file import load as load
from .model.model import Model as Model
from .model.onnx import write_onnx as write_onnx
from .model.posterior import Posterior as Posterior
from .model.stream import read_likelihood as read_likelihood
from .model.stream import read_samples as read_samples
from .report.figures import draw_closure as draw_closure
from .report.figures import draw_contours as draw_contours
from .report.figures import draw_likelihood as draw_likelihood
from .report.model_figures import draw_distributions as draw_distributions
from .report.model_figures import draw_history as draw_history
from .report.model_figures import draw_prior as draw_prior
from .report.sections import write_report as write_report
from .report.style import save_figure as save_figure
from .templates.audit import Audit as Audit
from .templates.grid import grid as grid
from .templates.query import FileRecord as FileRecord
from .templates.query import Query as Query
from .templates.templates import Templates as Templates
from .training.objectives import Penalty as Penalty
from .validation.bootstrap import Bootstrap as Bootstrap
from .validation.bootstrap import bootstrap as bootstrap
from .validation.closure import Closure as Closure
from .validation.closure import closure as closure
from .validation.coverage import Coverage as Coverage
from .validation.coverage import coverage as coverage

__version__: str
