"""The query: what is asked of every table of events."""

import pytest

from gridless.errors import InputError
from gridless.templates.query import Query


def test_one_several_or_named_columns():
    assert Query.of("m") == Query({"m": "m"})
    assert Query.of(["m", "a / b"]).names == ("m", "a / b")
    assert Query.of({"r": "a / b"}, "w", "a > 1") == Query({"r": "a / b"}, "w", "a > 1")


@pytest.mark.parametrize(
    ("columns", "message"),
    [([], "columns: none; give at least one"), (["m", "m"], "columns: m, m repeat")],
)
def test_bad_columns(columns, message):
    with pytest.raises(InputError, match=message):
        Query.of(columns)


def test_conditions_add_up():
    query = Query.of("m")
    assert query.where(None) == query
    assert query.where("a > 1").selection == "a > 1"
    assert query.where("a > 1 or b").where("c").selection == "(a > 1 or b) & (c)"


def test_events_of_a_narrower_query_are_within_the_wider():
    query = Query.of("m", selection="a > 1")
    assert query.where("b").within(query)
    assert query.within(query)
    assert query.within(Query.of("m"))
    assert not Query.of("m").within(query)
    assert not Query.of("m", selection="a > 2").within(query)


def test_it_comes_back_from_a_dict():
    query = Query.of({"r": "a / b"}, "w", "a > 1")
    assert Query(**query.to_dict()) == query
