"""What is kept of the templates for the report."""

import pytest

from gridless.errors import InputError
from gridless.templates.summary import Summary, summarise


def test_it_survives_json(templates):
    import json

    summary = summarise(templates)
    again = Summary.from_dict(json.loads(json.dumps(summary.to_dict())))
    assert str(again.audit) == str(summary.audit)
    assert again.distributions == summary.distributions


def test_shares_of_every_template(templates):
    (one,) = summarise(templates).distributions
    assert len(one.shares) == 10
    # All but the two percent in the tails of all templates together.
    assert sum(map(sum, one.shares)) / 10 == pytest.approx(0.98, abs=0.005)


def test_damaged():
    with pytest.raises(InputError, match="damaged"):
        Summary.from_dict({"audit": {}})
