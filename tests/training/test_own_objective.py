"""An objective from outside trains, is audited, and is found again by its name."""

import pytest
import torch

import gridless as gl
from gridless.examples import OneObservable

ONE = OneObservable()


@gl.register_objective
class Bounded(gl.Objective):
    """-log [(1 - e) p + e]: no event costs more than -log e."""

    name = "bounded_for_a_test"
    needs_flat_grid = True

    def __init__(self, e=0.01):
        self.e = e

    def options(self):
        return {"e": self.e}

    def cost(self, mixture, events):
        p = mixture.log_prob(events.t).exp()
        return -(events.weights * torch.log((1 - self.e) * p + self.e)).sum(-1)


class Squared(gl.Objective):
    """The Brier score over the templates, less that of their shares: a proper score too."""

    name = "squared_for_a_test"
    normalises_over_templates = True

    def cost(self, mixture, events):
        share = mixture.log_share.exp()
        p = torch.softmax(mixture.at_templates() + mixture.log_share, -1)
        own = events.template.expand(len(p), -1).unsqueeze(-1)
        score, flat = (
            (q**2).sum(-1) - 2 * q.gather(-1, own).squeeze(-1) for q in (p, share + 0 * p)
        )
        return (events.weights * (score - flat)).sum(-1)


@pytest.mark.parametrize("objective", ["bounded_for_a_test", Bounded(0.02), Squared()])
def test_it_measures_without_bias(objective):
    model = gl.fit(ONE.templates(3_000, seed=1), objective=objective, hidden=4, seed=1)
    estimate = model.likelihood(ONE.quantiles(0.4, 2_000)).maximum()
    assert estimate.value == pytest.approx(0.4, abs=2 * estimate.simulation + 0.2 * estimate.stat)
    assert model.record.gain > 3


def test_its_name_and_settings_are_kept(templates, tmp_path):
    model = gl.fit(templates, objective={"bounded_for_a_test": {"e": 0.1}}, hidden=2, epochs=1)
    model.save(tmp_path / "m.safetensors")
    assert gl.load(tmp_path / "m.safetensors").options.objective == {
        "bounded_for_a_test": {"e": 0.1}
    }
    model = gl.fit(templates, objective=Bounded(0.2), hidden=2, epochs=1)
    model.save(tmp_path / "m.safetensors")
    assert gl.load(tmp_path / "m.safetensors").options.objective == {
        "bounded_for_a_test": {"e": 0.2}
    }


def test_the_audit_asks_what_it_needs(templates):
    flat, free = (templates.audit(objective=o) for o in (Bounded(), Squared()))
    assert "spacing" in {finding.demand for finding in flat.findings}
    assert "spacing" not in {finding.demand for finding in free.findings}
