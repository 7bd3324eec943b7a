"""Systematics and backgrounds that cannot be right are refused at once, with a cure."""

import numpy as np
import pandas as pd
import pytest

import gridless as gl
from gridless.systematics.inputs import check_backgrounds, check_systematics
from gridless.systematics.samples import background_samples, signal_samples

RANDOM = np.random.default_rng(1)
THETA = np.repeat([0.25, 0.75], 200)
X = RANDOM.normal(THETA[:, None], 1, (400, 2))
TEMPLATES = gl.Templates(X, THETA, bounds=(0, 1))
BACKGROUND = RANDOM.normal(0, 2, (300, 2))


def jes(**changes):
    given = {"up": (X + 0.1, THETA), "down": (X - 0.1, THETA)} | changes
    return gl.Systematic("jes", **given)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: jes(down=(X + 0.1, THETA)), "up and down are equal"),
        (lambda: jes(up=None), "no up variation"),
        (lambda: jes(constraint=0.0), "a constraint of 0"),
        (lambda: jes(up=(X, THETA[:-1])), "399 values of theta for 400 events"),
        (lambda: jes(up=(np.where(X > 0, np.nan, X), THETA)), "NaN|not a number|finite|nan"),
        (lambda: jes(up=(X, THETA, np.ones(3))), "3 values for 400 events"),
        (lambda: jes(up=(X,)), "1 things"),
        (lambda: jes(same_events=(np.arange(400),)), "1 lists of numbers"),
        (lambda: jes(same_events=(np.ones(400), np.ones(400), np.ones(400))), "no whole numbers"),
        (lambda: gl.Systematic("stat", np.ones(3)), "part of every budget"),
        (lambda: gl.Background("total", BACKGROUND, 0.1, 0.1), "part of every budget"),
        (lambda: gl.Systematic("", np.ones(3)), "give a text"),
        (lambda: gl.Background("w", BACKGROUND, 1.2, 0.1), "a share of 1.2"),
        (lambda: gl.Background("w", BACKGROUND, 0.1, -0.1), "an error of -0.1"),
        (lambda: gl.Background("w", BACKGROUND, 0.1, 0.1, -np.ones(300)), "a total weight of -300"),
    ],
)
def test_bad_input_is_refused(make, text):
    with pytest.raises(gl.InputError, match=text):
        make()


@pytest.mark.parametrize(
    ("systematic", "text"),
    [
        (gl.Systematic("w", np.ones(399)), "399 weights for 400 nominal events"),
        (jes(up=(X[:, :1], THETA)), "1 column"),
        (jes(up=(X, THETA + 1)), "outside the bounds"),
        (jes(up=(X, np.where(THETA < 0.5, 0.3, THETA))), "different values of theta"),
        (jes(up=X[:-1]), "399 events without theta"),
        (jes(up=(X[:100], THETA[:100]), down=(X[:99], THETA[:99]), same_events=True), "said to be"),
        (jes(up=(X + 0.1, THETA, -np.ones(400))), "200 events at one value"),
    ],
)
def test_a_variation_that_does_not_fit_the_templates_is_refused(systematic, text):
    with pytest.raises(gl.InputError, match=text):
        signal_samples(TEMPLATES, (systematic,))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"systematics": [jes(), jes()]}, "two are named 'jes'"),
        ({"systematics": ["jes"]}, "give a list of gl.Systematic"),
        ({"systematics": [jes()], "calibrate": False}, "need the calibration"),
        ({"backgrounds": [gl.Background("jes", BACKGROUND, 0.1, 0.1)], "systematics": [jes()]},
         "a systematic and a background"),
        ({"backgrounds": [gl.Background("theta", BACKGROUND, 0.1, 0.1)]}, "is a parameter and"),
        ({"backgrounds": [gl.Background(n, BACKGROUND, 0.6, 0.1) for n in "ab"]}, "sum to 1.2"),
        ({"backgrounds": [gl.Background("w", BACKGROUND[:, :1], 0.1, 0.1)]}, "1 column"),
        ({"systematics": [jes()], "backgrounds": [gl.Background("w", BACKGROUND, 0.1, 0.1,
          systematics=[gl.Systematic("jes", BACKGROUND + 1, constraint=2.0)])]}, "1.0 and of 2.0"),
    ],
)  # fmt: skip
def test_fit_refuses_before_it_trains(arguments, text):
    with pytest.raises(gl.InputError, match=text):
        gl.fit(TEMPLATES, **arguments)


def test_the_same_events_are_recognised_row_by_row_and_by_number():
    rows = signal_samples(TEMPLATES, (jes(),)).varied[0]
    assert rows.same
    assert (rows.sides[0].key == np.arange(400)).all()
    other = RANDOM.normal(THETA[:, None], 1, (400, 2))
    assert not signal_samples(TEMPLATES, (jes(up=(other, THETA)),)).varied[0].same
    shuffled = RANDOM.permutation(400)[:390]
    numbers = np.arange(1000, 1400)
    by_number = jes(
        up=(X[shuffled] + 0.1, THETA[shuffled]),
        same_events=(numbers, numbers[shuffled], numbers),
    )
    found = signal_samples(TEMPLATES, (by_number,)).varied[0]
    assert found.same
    assert (found.sides[0].key == shuffled).all()


def test_numbers_are_those_of_one_theta_only():
    numbers = np.tile(np.arange(200), 2)
    found = signal_samples(TEMPLATES, (jes(same_events=(numbers, numbers, numbers)),)).varied[0]
    assert (found.sides[0].key == np.arange(400)).all()


def test_a_variation_may_be_off_the_grid_and_a_background_has_no_theta():
    off = gl.Systematic("fsr", (X + 0.1, np.full(400, 0.5)), (X - 0.1, np.full(400, 0.5)))
    found = signal_samples(TEMPLATES, (off,)).varied[0]
    assert found.template.tolist() == [-1]
    assert found.t.tolist() == [[0.5]]
    varied = gl.Systematic("jes", BACKGROUND * 1.1, BACKGROUND * 0.9)
    background = gl.Background("w", BACKGROUND, 0.1, None, systematics=[varied])
    assert background_samples(background, 2).varied[0].same
    assert repr(background) == "Background w: 300 events, share 0.1 free"


def test_columns_of_data_frames_are_found_by_their_names():
    frame = pd.DataFrame({"other": 0.0, "x_2": X[:, 1], "x_1": X[:, 0]})
    (found,) = check_systematics(gl.Systematic("jes", up=(frame + 0.1, THETA)), ("x_1", "x_2"))
    assert found.sides[0].x == pytest.approx(X + 0.1)
    own = gl.Systematic("jes", up=frame + 0.1)
    (background,) = check_backgrounds(
        gl.Background("w", frame, 0.1, 0.1, systematics=[own]), ("x_1", "x_2")
    )
    assert (background.x == X).all()
    assert background.systematics[0].sides[0].x == pytest.approx(X + 0.1)
    with pytest.raises(gl.InputError, match="no column x_2; "):
        check_backgrounds(gl.Background("w", frame[["x_1"]], 0.1, 0.1), ("x_1", "x_2"))


def test_samples_bring_their_weights_and_names():
    table = {"x_2": X[:, 1], "x_1": X[:, 0], "w": np.full(400, 2.0)}
    sample = gl.read(table, ["x_2", "x_1"], "w")
    (found,) = check_backgrounds(gl.Background("w", sample, 0.1, 0.1), ("x_1", "x_2"))
    assert (found.x == X).all()
    assert (found.weights == 2.0).all()
    (jes,) = check_systematics(gl.Systematic("jes", up=(sample, THETA)), ("x_1", "x_2"))
    assert (jes.sides[0].weights == 2.0).all()
