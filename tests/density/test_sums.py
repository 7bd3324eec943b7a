"""Sums of the logs of mixtures equal those of logs taken one by one."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.density import sums
from gridless.density.basis import ExpPolynomial, Gaussian, Logistic
from gridless.density.network import mixture_log_prob_at
from gridless.density.sums import sum_log_mixture

BASES = [
    Gaussian(0.05),
    ExpPolynomial(3),
    Logistic(0.05),
    Gaussian(0.1, 2),
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
    each = mixture_log_prob_at(basis, log_c, z, t, normalised=False)
    tolerance = {"rtol": 1e-10, "atol": 1e-9 * (1 + each.abs().sum().item())}
    found = sum_log_mixture(basis, log_c, z, t)
    torch.testing.assert_close(found, each.sum(0), **tolerance)
    weighted = sum_log_mixture(basis, log_c, z, t, weights)
    torch.testing.assert_close(weighted, weights @ each, **tolerance)


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("components", [2, 4])
def test_float32_loses_its_own_digits_only(components, spread):
    basis = Gaussian(0.05)
    log_c, z, t, _ = (v.float() for v in draw(basis, components, 5_000, spread, 1))
    exact = sum_log_mixture(basis, log_c.double(), z.double(), t.double())
    found = sum_log_mixture(basis, log_c, z, t)
    assert found.dtype == torch.float64
    sizes = mixture_log_prob_at(basis, log_c, z, t, normalised=False).abs().double().sum(0)
    assert ((found - exact).abs() < 1e-6 * (1 + sizes)).all()


def test_differences_that_overflow():
    # Where the first component is nothing, the others are e^600 times larger.
    basis = Gaussian(0.02)
    z = torch.tensor([[[0.0, -9.0], [1.0, -9.0], [0.5, 3.0]]]).expand(100, -1, -1)
    log_c = torch.log(torch.tensor([0.5, 0.3, 0.2])).expand(100, -1)
    t = torch.linspace(0, 1, 5).unsqueeze(-1)
    for count in (2, 3):
        args = log_c[:, :count], z[:, :count], t
        exact = mixture_log_prob_at(basis, *(v.double() for v in args), normalised=False).sum(0)
        # Exponents of a thousand, rounded to float32, in a hundred equal events.
        found = sum_log_mixture(basis, *args)
        torch.testing.assert_close(found, exact, rtol=1e-6, atol=1e5 * 1e-7)


def test_groups_and_blocks(monkeypatch):
    basis = Gaussian(0.05)
    log_c, z, t, weights = draw(basis, 3, 700, 1.0, 5, groups=(4,))
    each = mixture_log_prob_at(basis, log_c, z, t, normalised=False)
    torch.testing.assert_close(sum_log_mixture(basis, log_c, z, t), each.sum(1))
    monkeypatch.setattr(sums, "_BLOCK", 1)
    torch.testing.assert_close(sum_log_mixture(basis, log_c, z, t), each.sum(1))
    found = sum_log_mixture(basis, log_c, z, t, weights)
    torch.testing.assert_close(found, torch.einsum("n,gnj->gj", weights, each))
