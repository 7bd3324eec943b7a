"""tanh, its values and slopes."""

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gridless.density.activations import tanh


@settings(deadline=None)
@given(st.lists(st.floats(-50, 50), min_size=1))
def test_values_and_slopes_are_those_of_torch(values):
    a, b = (torch.tensor(values, dtype=torch.float64, requires_grad=True) for _ in range(2))
    ours, theirs = tanh(a), torch.tanh(b)
    torch.testing.assert_close(ours, theirs, atol=1e-15, rtol=0)
    ours.sum().backward()
    theirs.sum().backward()
    torch.testing.assert_close(a.grad, b.grad, atol=1e-14, rtol=0)


def test_float32():
    a = torch.linspace(-100, 100, 20_001)
    torch.testing.assert_close(tanh(a), torch.tanh(a), atol=3e-7, rtol=0)
