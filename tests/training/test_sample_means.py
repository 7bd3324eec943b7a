"""Means of a measurement: over events that the network has not seen, and read once for weights."""

import numpy as np
import pytest

import gridless as gl
from gridless.model.evaluation import event_features
from gridless.systematics.samples import only_nominal, signal_samples
from gridless.systematics.statistics import FOLDS
from gridless.training import sample_means
from gridless.training.sample_means import Summaries, read_process

RANDOM = np.random.default_rng(3)
THETA = np.repeat(gl.grid((0, 1), 4), 300)
X = RANDOM.normal(size=(len(THETA), 3)) + THETA[:, None] * [1.0, 0.5, 0.0]
TEMPLATES = gl.Templates(X, THETA, bounds=(0, 1))
SHIFT = gl.Systematic("shift", up=(X + 0.1, THETA), down=(X - 0.1, THETA), same_events=True)
WEIGHT = gl.Systematic("weight", up=1 + 0.1 * X[:, 1] ** 2)


@pytest.fixture(scope="module")
def model():
    return gl.fit(TEMPLATES, systematics=[SHIFT, WEIGHT], seed=1, ensemble=4, hidden=4, epochs=2)


@pytest.fixture
def summaries(model):
    measurement = model.measurement
    member = np.arange(len(X)) % model.network.members
    return Summaries(model.network, measurement.features, measurement.projection, member)


def test_an_event_has_the_summary_of_the_member_that_has_not_seen_it(model, summaries):
    read = summaries(X, np.arange(len(X)))
    ((_, c, z),) = event_features(model.network, X)
    member, size = np.arange(len(X)) % 4, c.shape[2]
    assert np.array_equal(read.unseen[:, :size], c[member, np.arange(len(X))])
    assert np.array_equal(read.usual[:, :size], c.mean(0))
    # The coefficient of a systematic is that of features with this c, and the other fold's.
    features, projection = model.measurement.features, model.measurement.projection
    row = 7
    f = features(c[member[row], row][None], z[row : row + 1])
    right = f @ projection[1 - row % FOLDS]
    assert read.unseen[row, size:] == pytest.approx(right[0])


def test_summaries_of_a_mixture_are_read_in_their_own_pieces():
    # Of mixtures fewer events fit into a piece than of single exponentials.
    model = gl.fit(TEMPLATES, systematics=[SHIFT], seed=1, components=2, hidden=2, epochs=1)
    many = np.tile(X, (14, 1))
    parts = [(part, c.shape[1], len(z)) for part, c, z in event_features(model.network, many)]
    assert len(parts) > 1
    assert all(c == z == len(many[part]) for part, c, z in parts)
    assert model.likelihood(many).events == len(many)


def test_events_of_no_nominal_one_have_the_mean_of_all_members(summaries):
    read = summaries(X[:20], np.arange(20) + len(X))
    size = read.usual.shape[1] - summaries.projection.shape[2]
    assert np.array_equal(read.unseen[:, :size], read.usual[:, :size])


def test_the_covariance_of_one_event_is_that_of_observed_events():
    # Weights of pure noise teach both folds different things: their mean, which observed events
    # have, spreads half as much as either.
    noise = gl.Systematic("noise", up=1 + 0.3 * np.random.default_rng(1).normal(size=len(X)))
    model = gl.fit(TEMPLATES, systematics=[noise], seed=1, hidden=3, epochs=2)
    more = np.random.default_rng(6).normal(size=(20_000, 3)) + 0.5 * np.array([1.0, 0.5, 0.0])
    known = model.measurement
    parts = [known.summaries(c.mean(0), z) for _, c, z in event_features(model.network, more)]
    right = np.cov(np.concatenate(parts).T)
    stated = known.event_covariance(np.array([0.5, 0.0]))
    ratios = np.linalg.eigvals(np.linalg.solve(stated, right)).real
    assert ratios.min() > 0.75
    assert ratios.max() < 1.25


def test_other_weights_are_read_with_the_nominal_events(summaries, monkeypatch):
    sample = signal_samples(TEMPLATES, (WEIGHT,))
    calls = []

    def counting(network, x):
        calls.append(len(x))
        return event_features(network, x)

    monkeypatch.setattr(sample_means, "event_features", counting)
    moments, (differences,) = read_process(summaries, sample)
    assert calls == [300] * 4
    # Up less nominal, computed by hand at the first template.
    own = np.arange(300)
    y = summaries(X[own], own).unseen
    means = []
    for w in (WEIGHT.sides[0].weights[own], np.ones(300)):
        each = [
            w[own % FOLDS == k] @ y[own % FOLDS == k] / w[own % FOLDS == k].sum() for k in (0, 1)
        ]
        means.append(np.mean(each, axis=0))
    assert moments.mean[0] == pytest.approx(means[1])
    assert differences.linear[0] == pytest.approx(means[0] - means[1])


def test_variations_lose_the_events_that_the_nominal_sample_loses():
    numbers = np.arange(len(X))
    later = gl.Systematic(
        "later",
        up=(X[100:] + 0.1, THETA[100:]),
        down=(X[:-50] - 0.1, THETA[:-50]),
        same_events=(numbers, numbers[100:], numbers[:-50]),
    )
    sample = signal_samples(TEMPLATES, (later, WEIGHT))
    rows = np.flatnonzero(numbers % 5 == 0)
    some = only_nominal(sample, rows)
    assert np.array_equal(some.nominal.x, X[rows])
    up, down = some.varied[0].sides
    assert np.array_equal(up.x, X[rows[rows >= 100]] + 0.1)
    assert some.nominal.x[down.key] == pytest.approx(down.x + 0.1)
    (weighted,) = some.varied[1].sides
    assert weighted.x is some.nominal.x
    assert np.array_equal(weighted.weights, WEIGHT.sides[0].weights[rows])


def test_a_network_that_learnt_noise_by_heart_is_not_biased_with_a_systematic():
    # Of one member that has seen them, means would differ by far more than they fluctuate.
    random = np.random.default_rng(5)
    theta = np.repeat(gl.grid((0, 1), 6), 250)

    def simulate(values):
        x = random.normal(size=(len(values), 5))
        x[:, 0] += values
        return x

    x = simulate(theta)
    shift = np.array([0, 0, 0, 0, 0.3])
    model = gl.fit(
        gl.Templates(x, theta, bounds=(0, 1)),
        systematics=[gl.Systematic("shift", (x + shift, theta), (x - shift, theta))],
        seed=1, hidden=24, ridge=0.0,
    )  # fmt: skip
    values = np.linspace(0.15, 0.85, 8)
    found = [model.likelihood(simulate(np.full(1_500, v))).maximum() for v in values]
    pulls = [(one.value - v) / one.error for one, v in zip(found, values, strict=True)]
    assert np.sqrt(np.mean(np.square(pulls))) < 1.6
