"""Every basis is a density on the unit interval whatever the network says."""

from itertools import product

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.curves import chebyshev
from gridless.density.basis import BOX_NODES, Basis, box_quadrature, box_rule, register_basis
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.gaussian import CorrelatedGaussian, Gaussian
from gridless.density.logistic import Logistic
from gridless.density.mixture import Mixture
from gridless.errors import InputError
from gridless.registry import BASES as REGISTERED
from gridless.templates.grid import Grid

BASES = [Gaussian(), Gaussian(0.05), Logistic(), Logistic(0.05), ExpPolynomial(2), ExpPolynomial(5)]
NODES, WEIGHTS = np.polynomial.legendre.leggauss(40)
# Panels that become narrow towards both ends, where components outside the range pile up.
EDGES = np.concatenate([[0], np.geomspace(1e-7, 0.02, 40), np.linspace(0.03, 0.97, 150)])
EDGES = np.concatenate([EDGES, 1 - EDGES[40::-1]])


def integrate(log_density):
    half = np.diff(EDGES) / 2
    t = (EDGES[:-1] + half)[:, None] + half[:, None] * NODES
    density = np.exp(log_density(torch.tensor(t)).numpy())
    return float((half[:, None] * WEIGHTS * density).sum())


@pytest.mark.parametrize("basis", BASES, ids=lambda b: f"{b.name}-{b.options()}")
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_integrates_to_one(basis, data):
    z = [data.draw(st.floats(-30, 30)) for _ in range(basis.outputs)]
    if isinstance(basis, Gaussian | Logistic):
        z[1] = data.draw(st.floats(-4.5, 14))
    outputs = torch.tensor(z, dtype=torch.float64)
    assert integrate(lambda t: basis.log_prob(t, outputs)) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("basis", BASES, ids=lambda b: f"{b.name}-{b.options()}")
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_finite_with_gradient_for_any_output(basis, data):
    numbers = st.floats(-1e4, 1e4, width=32)
    z = torch.tensor([data.draw(numbers) for _ in range(basis.outputs)], requires_grad=True)
    value = basis.log_prob(torch.tensor([0.0, 0.4, 1.0]), z)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert torch.isfinite(value).all()
    assert torch.isfinite(gradient).all()


@settings(max_examples=30, deadline=None)
@given(st.lists(st.floats(-3, 3), min_size=9, max_size=9))
def test_mixture_integrates_to_one(numbers):
    logits = torch.tensor(numbers[:3], dtype=torch.float64)
    z = torch.tensor(numbers[3:], dtype=torch.float64).reshape(3, 2)
    log_c = torch.log_softmax(logits, -1)
    total = integrate(lambda t: Mixture(Gaussian(), log_c, z).log_prob(t.unsqueeze(-1)))
    assert total == pytest.approx(1, abs=1e-6)


def test_exp_polynomial_of_degree_two_is_a_gaussian():
    mean, width = 0.3, 0.25
    # -(t - mean)^2 / 2 width^2 in Legendre polynomials of u = 2t - 1.
    square = np.polynomial.legendre.poly2leg(
        -np.polynomial.polynomial.polypow([0.5 - mean, 0.5], 2) / (2 * width**2)
    )
    basis = ExpPolynomial(2, floor=0.02)
    limits = basis._limits.numpy()
    z = torch.tensor(limits * np.arctanh(square[1:] / limits))
    t = torch.linspace(0, 1, 21, dtype=torch.float64)
    gaussian = torch.tensor([mean, np.log(width)], dtype=torch.float64)
    torch.testing.assert_close(basis.log_prob(t, z), Gaussian().log_prob(t, gaussian))


def test_floor_is_the_least_width():
    _, width = Gaussian(0.05).mean_width(torch.tensor([0.5, -100.0]))
    assert width.item() == pytest.approx(0.05, abs=1e-6)


def test_a_registered_basis_is_known_by_its_name():
    class Unregistered(Gaussian):
        name = "unregistered_for_a_test"

    @register_basis
    class Flat(Basis):
        name = "flat_for_a_test"
        outputs = 1

        def start(self, components):
            return torch.zeros(components, 1)

        def log_prob(self, t, z):
            return torch.zeros_like(t + z[..., 0])

    grid = Grid(np.array([[0.25], [0.75]]), np.array([[0.0, 1.0]]), ("theta",))
    assert REGISTERED.find("flat_for_a_test") is Flat
    assert "unregistered_for_a_test" not in REGISTERED.names
    assert isinstance(Flat.for_templates(grid, 1_000), Flat)


def test_unknown_names_and_bad_options_say_the_cure():
    with pytest.raises(InputError, match=r"known are .*gaussian"):
        REGISTERED.find("gausian")
    with pytest.raises(InputError, match="floor"):
        Gaussian(-1)
    with pytest.raises(InputError, match="degree"):
        ExpPolynomial(0)
    with pytest.raises(InputError, match="floor"):
        ExpPolynomial(2, floor=0.001)


def label(basis):
    return f"{basis.name}-{basis.options()}"


@pytest.mark.parametrize(
    "basis",
    [CorrelatedGaussian(0.1, 2), ExpPolynomial(3, 0.1, 2), ExpPolynomial(2, 0.2, 3)],
    ids=label,
)
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_several_parameters_integrate_to_one_on_the_box(basis, data):
    z = torch.tensor([data.draw(st.floats(-2, 2)) for _ in range(basis.outputs)]).double()
    # Many more points than the basis itself takes.
    points, log_weights = box_quadrature(basis.parameters, {2: 80, 3: 30}[basis.parameters])
    total = torch.exp(basis.log_prob(points, z) + log_weights).sum().item()
    assert total == pytest.approx(1, abs=0.001)
    shape = basis.log_shape(points, z) - basis.log_integral(z)
    torch.testing.assert_close(shape, basis.log_prob(points, z))


@pytest.mark.parametrize("basis", [CorrelatedGaussian(0.1, 2), ExpPolynomial(3, 0.1, 2)], ids=label)
def test_values_at_once_are_values_one_by_one(basis):
    z = torch.randn(5, 2, basis.outputs, generator=torch.Generator().manual_seed(1)).double()
    t = torch.rand(7, 2, generator=torch.Generator().manual_seed(2)).double()
    at_once = basis.log_shape_at(t, z)
    assert at_once.shape == (5, 7, 2)
    for j in range(7):
        torch.testing.assert_close(at_once[:, j], basis.log_shape(t[j], z))


def test_correlated_gaussian_against_scipy():
    from scipy.stats import multivariate_normal

    basis = CorrelatedGaussian(parameters=2)
    z = torch.tensor([0.5, 0.4, np.log(0.08), np.log(0.06), -0.7], dtype=torch.float64)
    # y_1 = d_1 / 0.08, y_2 = (d_2 - 0.7 d_1) / 0.06.
    root = np.array([[1 / 0.08, 0], [-0.7 / 0.06, 1 / 0.06]])
    exact = multivariate_normal([0.5, 0.4], np.linalg.inv(root.T @ root))
    t = np.random.default_rng(1).normal([0.5, 0.4], 0.05, (20, 2))
    ours = basis.log_prob(torch.tensor(t), z).numpy()
    np.testing.assert_allclose(ours, exact.logpdf(t), atol=2e-3)


def test_one_parameter_only():
    plane = Grid(np.array([[0.2, 0.3], [0.8, 0.7]]), np.array([[0.0, 1.0]] * 2), ("a", "b"))
    with pytest.raises(InputError, match="one parameter"):
        Logistic.for_templates(plane, 1_000)
    with pytest.raises(InputError, match="give 2 or 3"):
        CorrelatedGaussian(parameters=4)
    with pytest.raises(InputError, match="give 1, 2 or 3"):
        ExpPolynomial(parameters=4)


def test_a_gaussian_of_several_parameters_correlates_them():
    plane = Grid(np.array([[0.2, 0.3], [0.8, 0.7]]), np.array([[0.0, 1.0]] * 2), ("a", "b"))
    assert isinstance(Gaussian.for_templates(plane, 1_000), CorrelatedGaussian)
    # So do options that version 0.1 saved.
    found = Gaussian.from_options({"floor": 0.1, "parameters": 2})
    assert isinstance(found, CorrelatedGaussian)
    assert found.options() == {"floor": 0.1, "parameters": 2}
    assert type(Gaussian.from_options({"floor": 0.1, "parameters": 1})) is Gaussian


def test_a_name_that_is_taken_is_refused():
    with pytest.raises(InputError, match="'gaussian' is taken"):

        @register_basis
        class Another(Gaussian):
            name = "gaussian"


@pytest.mark.parametrize("basis", [Gaussian(0.05), ExpPolynomial(3), ExpPolynomial(2, 0.1, 2)])
@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_polynomials_are_the_shape(basis, data):
    z = torch.tensor([data.draw(st.floats(-4, 4)) for _ in range(basis.outputs)]).double()
    t = torch.rand(7, basis.parameters, generator=torch.Generator().manual_seed(1)).double()
    found = basis.constant(z) + basis.terms(t) @ basis.coefficients(z)
    expected = basis.log_shape(t[:, 0] if basis.parameters == 1 else t, z)
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-9)
    c = basis.chebyshev(basis.coefficients(z).numpy())
    curve = chebyshev.evaluate(c, t.numpy())
    shift = (found - basis.constant(z)).numpy() - curve
    np.testing.assert_allclose(shift, 0, atol=1e-9 * (1 + np.abs(curve).max()))


@settings(max_examples=200, deadline=None)
@given(
    degree=st.integers(1, 8),
    floor=st.sampled_from([0.05, 0.25]),
    size=st.floats(0.01, 30),
    seed=st.integers(0, 1000),
)
def test_few_nodes_integrate_as_well_as_many(degree, floor, size, seed):
    basis = ExpPolynomial(degree, floor)
    random = torch.Generator().manual_seed(seed)
    z = size * torch.randn(3, 2, degree, generator=random).double()
    points, log_weights = box_quadrature(1, 400)
    for values, bound in ((z, 1e-10), (z.float(), 3e-6)):
        c = basis.coefficients(values).double()
        exact = torch.logsumexp(basis.terms(points) @ c.mT + log_weights.unsqueeze(-1), -2)
        bound *= 1 + float(c.abs().amax((0, 1)).sum())
        found = basis.log_integral(values).double()
        torch.testing.assert_close(found, exact, rtol=0, atol=bound)


def test_smooth_polynomials_need_few_nodes():
    basis = ExpPolynomial(2)
    counts = [
        len(box_rule(basis._powers, np.array([c, c]), torch.float64)[0]) for c in (0.1, 1, 10, 100)
    ]
    assert counts == sorted(counts)
    assert counts[0] == 8
    assert counts[-1] == 96


@pytest.mark.parametrize("size", [0.1, 1.0, 3.0])
@pytest.mark.parametrize("parameters", [2, 3])
def test_integrals_over_several_parameters_are_exact_with_few_nodes(parameters, size):
    basis = ExpPolynomial(2, 0.1, parameters)
    z = size * torch.randn(30, 1, basis.outputs, generator=torch.Generator().manual_seed(1))
    c = basis.coefficients(z.double())
    most = BOX_NODES[parameters]
    nodes, _ = box_rule(basis._powers, c.abs().amax((0, 1)).numpy(), c.dtype)
    if size == 0.1:
        assert len(nodes) < most**parameters
    if len(nodes) < most**parameters:  # with as many as there are at most, nothing is promised
        points, log_weights = box_quadrature(parameters, most + 8)
        exact = torch.logsumexp(basis.terms(points) @ c.mT + log_weights.unsqueeze(-1), -2)
        torch.testing.assert_close(basis.log_integral(z.double()), exact, rtol=0, atol=1e-8)


@pytest.mark.parametrize("parameters", [2, 3])
def test_a_correlated_gaussian_is_a_polynomial_and_integrates(parameters):
    basis = CorrelatedGaussian(0.3, parameters)
    z = torch.randn(20, 1, basis.outputs, generator=torch.Generator().manual_seed(1)).double()
    t = torch.rand(20, 1, parameters, generator=torch.Generator().manual_seed(2)).double()
    shape = basis.constant(z) + (basis.coefficients(z) * basis.terms(t)).sum(-1)
    torch.testing.assert_close(shape, basis.log_shape(t, z))
    points, log_weights = box_quadrature(parameters, 30)
    exact = torch.logsumexp(basis.log_shape(points, z.unsqueeze(-2)) + log_weights, -1)
    torch.testing.assert_close(basis.log_integral(z), exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("degree", [2, 3, 8])
def test_the_sharpest_exponentials_are_integrated(degree):
    """The least floor, and every coefficient at its limit, of either sign."""
    basis = ExpPolynomial(degree, 0.02)
    signs = torch.tensor(list(product([-1.0, 1.0], repeat=degree)), dtype=torch.float64)
    z = 20 * signs * basis._limits
    points, log_weights = box_quadrature(1, 1000)
    at_points = basis.terms(points) @ basis.coefficients(z).T
    exact = torch.logsumexp(at_points + log_weights.unsqueeze(-1), 0)
    torch.testing.assert_close(basis.log_integral(z), exact, rtol=0, atol=1e-8)
