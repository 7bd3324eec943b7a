"""Problems that are odd as a whole: refused with a reason, or measured with finite numbers."""

import contextlib
import json
import warnings

import numpy as np
import pytest
from tests.attack.problem_targets import problems

import gridless as gl
from gridless.validation.closure import ParameterClosure

QUICK = {"hidden": 2, "epochs": 2, "ensemble": 4, "seed": 1}
THETA = np.repeat([0.0, 0.5, 1.0], 100)
X = np.random.default_rng(3).normal(THETA)
pytestmark = pytest.mark.filterwarnings("ignore::gridless.GridlessWarning")


def fit(x=X, theta=THETA, weights=None, bounds=(-0.5, 1.5), **options):
    templates = gl.Templates(x, theta, bounds, weights)
    return gl.fit(templates, **QUICK | options)


def tilt(name="tilt", constraint=1.0):
    change = 0.1 * np.tanh(X)
    return gl.Systematic(name, 1 + change, 1 - change, constraint=constraint)


def only(rows):
    """Weights that are 1 for some rows and 0 for the others."""
    return np.isin(np.arange(len(X)), rows).astype(float)


FEW = np.r_[0:3, 100:300]  # three events of the first template


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: fit(X[FEW], THETA[FEW]), "one of the 4 parts of theta = 0 is worth"),
        (lambda: fit(weights=only(FEW)), "one of the 4 parts of theta = 0 is worth"),
        (lambda: fit(weights=only([0, 100, 200]), ensemble=1), "theta = 0.* is worth [01] events"),
        (lambda: fit(X[FEW], THETA[FEW], ensemble=1, systematics=[
            gl.Systematic("a", 1 + 0.1 * X[FEW])]), "the templates: 3 events at one value"),
        (lambda: fit(systematics=[gl.Systematic("a", only(np.r_[0:2, 100:300]))]),
         "systematic 'a', up: 100 events at one value of theta, of which one half is worth 1"),
        (lambda: fit(backgrounds=[gl.Background("b", X[:3], 0.1, 0.1)]), "'b': 3 events"),
        (lambda: fit(bounds=(-1e3, 1e3)), "less than 2% of its bounds -1000 to 1000"),
        (lambda: fit(theta=np.stack([THETA, THETA], axis=1), bounds=[(-1, 2)] * 2),
         "theta_1 and theta_2 change together in all 3 templates"),
        (lambda: fit(theta=np.stack([THETA, 0 * THETA], axis=1), bounds=[(-1, 2)] * 2),
         "the templates have theta_2 = 0 to 0"),
        (lambda: fit(x=THETA + 1e-9 * X), "fit: (single events|.* do not hold it)"),
        (lambda: fit(x=THETA, systematics=[gl.Systematic("a", np.exp(0.1 * X))]), "fit: "),
        (lambda: fit(x=np.ones_like(X), basis="logistic", ensemble=1), "gives the same for all"),
        (lambda: fit(basis={"exp_polynomial": {"order": 3}}), "exp_polynomial does not take"),
    ],
)  # fmt: skip
def test_problems_that_are_refused(make, message):
    with pytest.raises(gl.InputError, match=message):
        make()


def finite(estimate):
    """The estimate's values, which a strict parser takes."""
    content = json.loads(json.dumps(estimate.to_dict(), allow_nan=False))
    assert all(np.isfinite(one["value"]) for one in content["parameters"].values())
    return content


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("bounds", [(-0.5, 1.5), (-9, 11)])
@pytest.mark.parametrize("varied", [False, True])
def test_weights_of_either_sign(seed, bounds, varied):
    """Covariances with negative eigenvalues, and an implied prior below 0, gave NaN."""
    random = np.random.default_rng(seed)
    theta = np.repeat([0.0, 0.5, 1.0], 300)
    x = random.normal(theta)
    signs = random.choice([1.0, 1.0, 1.0, -1.0], len(x))
    options = {"bounds": bounds}
    if varied:
        options["systematics"] = [gl.Systematic("a", signs * (1 + 0.1 * np.tanh(x)))]
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = fit(x, theta, signs, **options)
        finite(model.likelihood(X[100:200]).maximum())


def test_a_free_nuisance_parameter_that_nothing_tells_of():
    """Its value ran away to 1e27, and theta had no error."""
    x = np.tile(X[:100], 3)
    model = fit(x, backgrounds=[gl.Background("same", X[:100], 0.4, None)])
    found = finite(model.likelihood(X[100:200]).maximum())
    assert abs(found["nuisances"]["same"]["value"]) < 1e6


def test_a_basis_by_its_name_with_settings():
    assert fit(basis={"exp_polynomial": {"degree": 3}}).network.basis.degree == 3


def test_a_model_with_systematics_measures_to_the_last_digit_what_its_file_does(tmp_path):
    model = fit(systematics=[tilt()], backgrounds=[gl.Background("b", X[::3], 0.1, 0.03)])
    model.save(tmp_path / "model.safetensors")
    again = gl.load(tmp_path / "model.safetensors")
    for x in (X[100:101], X[100:200]):
        assert again.likelihood(x).maximum().to_dict() == model.likelihood(x).maximum().to_dict()


def test_groups_whose_weights_cancel():
    model = fit(systematics=[tilt()])
    weights = np.where(np.arange(100) < 10, -1.0, 1.0)
    with pytest.raises(gl.InputError, match="sum over the observed events is -10"):
        model.likelihood(X[100:200], weights, by=np.arange(100) < 10).maximum()


def test_binned_check_of_weights_that_cancel():
    weights = np.where(np.arange(100) % 2, -1.0, 1.0)
    with pytest.raises(gl.InputError, match="sum over the observed events is 0"):
        gl.binned_check(fit(), X[100:200], weights)


def test_means_that_are_equal_in_all_templates():
    """Without any change between templates the prior of the curve had no width."""
    x = np.tile(np.round(X[:100]), 3)
    finite(fit(x).likelihood(np.round(X[100:200])).maximum())
    varied = fit(x, ensemble=1, systematics=[gl.Systematic("a", np.tile(1 + 0.1 * X[:100], 3))])
    finite(varied.likelihood(np.round(X[100:200])).maximum())


def test_the_pull_of_a_closure_without_an_error_is_not_a_number():
    ones = np.ones(2)
    found = ParameterClosure(
        "theta", ones, ones, np.ones((2, 2)), ones, np.array([0.0, 0.5]), ones, ones > 0
    )
    np.testing.assert_array_equal(found.pull, [np.nan, 0.0])


@pytest.mark.parametrize("drawn", [(2401, 8083), (2402, 16939), (2601, 11777), (2804, 69374)])
def test_problems_of_the_attack_that_ended_in_a_traceback(drawn, tmp_path):
    """Means far apart with little noise; one event that has all the weight of a virtual template;
    second derivatives that rounding has made asymmetric; a curve that rounding has lost."""
    with contextlib.suppress(gl.InputError):
        assert problems(None, np.random.default_rng(drawn), tmp_path) == "any"
