"""Mixtures: sums of their logs equal logs taken one by one; members on one axis; normalisation."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.density import mixture as module
from gridless.density.exp_polynomial import ExpPolynomial
from gridless.density.gaussian import CorrelatedGaussian, Gaussian
from gridless.density.logistic import Logistic
from gridless.density.mixture import Mixture

BASES = [
    Gaussian(0.05),
    ExpPolynomial(3),
    Logistic(0.05),
    CorrelatedGaussian(0.1, 2),
    ExpPolynomial(2, 0.1, 2),
]


def label(basis):
    return f"{basis.name}-{basis.parameters}"


def draw(basis, components, events, spread, seed, groups=()):
    random = torch.Generator().manual_seed(seed)
    z = spread * torch.randn(*groups, events, components, basis.outputs, generator=random).double()
    log_c = torch.log_softmax(
        spread * torch.randn(*groups, events, components, generator=random).double(), -1
    )
    t = torch.rand(7, basis.parameters, generator=random).double()
    return log_c, z, t, torch.randn(events, generator=random).double()


@pytest.mark.parametrize("basis", BASES, ids=label)
@settings(max_examples=30, deadline=None)
@given(
    components=st.integers(1, 5),
    events=st.integers(1, 300),
    spread=st.sampled_from([0.1, 1.0, 3.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_it_is_the_sum_of_logs(basis, components, events, spread, seed):
    log_c, z, t, weights = draw(basis, components, events, spread, seed)
    mixture = Mixture(basis, log_c, z, integrated=False)
    each = mixture.log_prob_at(t)
    tolerance = {"rtol": 1e-10, "atol": 1e-9 * (1 + each.abs().sum().item())}
    found = mixture.sum_log_prob(t)
    torch.testing.assert_close(found, each.sum(0), **tolerance)
    weighted = mixture.sum_log_prob(t, weights)
    torch.testing.assert_close(weighted, weights @ each, **tolerance)


@pytest.mark.parametrize("components", [1, 2, 4])
@pytest.mark.parametrize("basis", BASES, ids=label)
def test_a_projection_is_that_of_the_logs(basis, components):
    log_c, z, t, _ = draw(basis, components, 50, 3.0, 1, groups=(2,))
    matrix = torch.randn(7, 3, generator=torch.Generator().manual_seed(2)).double()
    mixture = Mixture(basis, log_c, z)
    found = mixture.projected(t, matrix)
    torch.testing.assert_close(found, mixture.log_prob_at(t) @ matrix, rtol=1e-9, atol=1e-7)


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("components", [2, 4])
def test_float32_loses_its_own_digits_only(components, spread):
    basis = Gaussian(0.05)
    log_c, z, t, _ = (v.float() for v in draw(basis, components, 5_000, spread, 1))
    exact = Mixture(basis, log_c.double(), z.double(), False).sum_log_prob(t.double())
    mixture = Mixture(basis, log_c, z, integrated=False)
    found = mixture.sum_log_prob(t)
    assert found.dtype == torch.float64
    sizes = mixture.log_prob_at(t).abs().double().sum(0)
    assert ((found - exact).abs() < 1e-6 * (1 + sizes)).all()


def test_differences_that_overflow():
    # Where the first component is nothing, the others are e^600 times larger.
    basis = Gaussian(0.02)
    z = torch.tensor([[[0.0, -9.0], [1.0, -9.0], [0.5, 3.0]]]).expand(100, -1, -1)
    log_c = torch.log(torch.tensor([0.5, 0.3, 0.2])).expand(100, -1)
    t = torch.linspace(0, 1, 5).unsqueeze(-1)
    for count in (2, 3):
        parts = log_c[:, :count], z[:, :count]
        exact = Mixture(basis, *(v.double() for v in parts), False).log_prob_at(t.double()).sum(0)
        # Exponents of a thousand, rounded to float32, in a hundred equal events.
        found = Mixture(basis, *parts, integrated=False).sum_log_prob(t)
        torch.testing.assert_close(found, exact, rtol=1e-6, atol=1e5 * 1e-7)


def test_groups_and_blocks(monkeypatch):
    basis = Gaussian(0.05)
    log_c, z, t, weights = draw(basis, 3, 700, 1.0, 5, groups=(4,))
    mixture = Mixture(basis, log_c, z, integrated=False)
    each = mixture.log_prob_at(t)
    torch.testing.assert_close(mixture.sum_log_prob(t), each.sum(1))
    monkeypatch.setattr(module, "BLOCK_NUMBERS", 1)
    torch.testing.assert_close(mixture.sum_log_prob(t), each.sum(1))
    found = mixture.sum_log_prob(t, weights)
    torch.testing.assert_close(found, torch.einsum("n,gnj->gj", weights, each))


def test_merged_groups_hold_their_own_members():
    log_c, z, _, _ = draw(Gaussian(), 3, 11, 1.0, 1, groups=(6,))
    merged = Mixture(Gaussian(), log_c, z).merged(2)
    assert merged.log_c.shape == (2, 11, 9)
    assert merged.z.shape == (2, 11, 9, 2)
    for member in range(6):
        group, first = divmod(member, 3)
        own = slice(3 * first, 3 * first + 3)
        assert torch.equal(merged.log_c[group, :, own], log_c[member])
        assert torch.equal(merged.z[group, :, own], z[member])


@pytest.mark.parametrize("basis", BASES, ids=label)
def test_one_value_per_event_is_one_of_all_values(basis):
    log_c, z, t, _ = draw(basis, 2, 7, 1.0, 3)
    mixture = Mixture(basis, log_c, z)
    torch.testing.assert_close(mixture.log_prob(t), mixture.log_prob_at(t).diagonal())


@pytest.mark.parametrize("integrated", [True, False])
@pytest.mark.parametrize("basis", BASES, ids=label)
def test_over_templates_the_mean_density_is_one(basis, integrated):
    log_c, z, t, _ = draw(basis, 2, 7, 1.0, 4)
    log_share = torch.log_softmax(torch.arange(7.0), -1).double()
    mixture = Mixture(basis, log_c, z, integrated, t, log_share).over_templates()
    total = torch.logsumexp(mixture.log_prob_at(t) + log_share, -1)
    torch.testing.assert_close(total, torch.zeros_like(total))


def test_averaged_members_have_the_mean_density():
    log_c, z, t, _ = draw(Gaussian(), 2, 5, 1.0, 6, groups=(3,))
    mixture = Mixture(Gaussian(), log_c, z)
    mean = mixture.log_prob_at(t).exp().mean(0)
    torch.testing.assert_close(mixture.averaged().log_prob_at(t).exp(), mean)


@pytest.mark.parametrize("basis", BASES, ids=label)
def test_a_linear_integral_changes_neither_values_nor_gradients(basis):
    log_c, z, t, _ = draw(basis, 2, 20, 1.0, 1)
    found = []
    for change in (lambda one: one, Mixture.with_linear_integral):
        of = z.clone().requires_grad_()
        at = change(Mixture(basis, log_c, of)).log_prob_at(t)
        found.append((at.detach(), torch.autograd.grad(at.exp().sum(), of)[0]))
    torch.testing.assert_close(found[0], found[1])
