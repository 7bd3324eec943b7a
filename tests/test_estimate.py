"""How an estimate reads."""

from conftest import parabola


def test_prints_value_with_both_errors():
    text = str(parabola(172.4312, 0.3, bounds=(165, 180), events=12345).maximum())
    assert text == "theta = 172.43 +0.30 -0.30  (12,345 events)"


def test_digits_follow_the_error():
    assert "0.5000 +0.0010 -0.0010 " in str(parabola(0.5, 0.001).maximum())


def test_notes_say_what_is_wrong():
    estimate = parabola(1.2, 0.1).maximum()
    assert "at the bound 1" in estimate.notes[0]
    assert "high end of the interval is cut by the bound 1" in estimate.notes[1]
    assert "note: " in str(estimate)
    assert parabola(0.5, 0.1).maximum().notes == ()


def test_notebook_table():
    assert "<table>" in parabola(0.5, 0.1).maximum()._repr_html_()
    assert "cut by the bound" in parabola(0.0, 0.1).maximum()._repr_html_()
