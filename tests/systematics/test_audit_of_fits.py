"""What the audit finds of a variation is in the model that was fitted with it."""

import numpy as np

import gridless as gl


def test_an_estimate_tells_what_is_wrong_with_a_variation():
    random = np.random.default_rng(1)
    theta = np.repeat(gl.grid((0, 1), 4), 1_000)
    x = random.normal(theta, 0.5)
    systematics = [
        gl.Systematic("good", up=(x + 0.1, theta), down=(x - 0.1, theta)),
        gl.Systematic("same", up=(x + 0.1, theta), down=(x + 0.07, theta)),
        gl.Systematic("nothing", up=np.ones(len(x)) * 1.0),
    ]
    templates = gl.Templates(x, theta, bounds=(0, 1))
    model = gl.fit(templates, hidden=2, epochs=2, seed=1, systematics=systematics)
    told = [
        w.text for w in model.likelihood(x[theta > 0.8]).maximum().warnings if w.name == "audit"
    ]
    assert any(text.startswith("same: same sign") for text in told)
    assert any(text.startswith("nothing: vanishing") for text in told)
    assert not any(text.startswith("good") for text in told)
    audit = gl.audit_systematics(templates, systematics)
    for finding in audit.findings:
        assert model.summary.audit[finding.demand].met == finding.met
