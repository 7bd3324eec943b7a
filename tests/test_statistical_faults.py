"""The program that makes the table of faults, at tiny size; and the page that has its table."""

import shutil

import numpy as np
from benchmarks import statistical_faults as faults

NOT_REACHED = ("x1 scaled by 1.05",)


def test_the_page_has_the_stored_table(tmp_path):
    page = shutil.copy(faults.PAGE, tmp_path / "faults.md")
    faults.write_page(faults.stored(), page)
    assert page.read_text() == faults.PAGE.read_text()


def test_what_is_over_two_errors_and_can_be_seen_is_told_of():
    rows = [row for row in faults.stored() if not row.hidden]
    for row in rows:
        mean = max((abs(np.mean(pulls)) for pulls in row.pulls.values()), default=np.inf)
        if row.name == "none":
            assert row.warned == 0
        elif mean > 2:
            # The asked nine of ten are not reached for one fault: docs/faults.md says so.
            reached = row.warned >= 0.9 * row.estimates
            assert reached != (row.name in NOT_REACHED), row.name


def test_absurd_events_move_nothing():
    rows = {row.name: row for row in faults.stored() if row.kind == "data"}
    for name in ("1 of 1,000 events at -999", "3 of 5,000 events at 1e39"):
        assert rows[name].warned == rows[name].estimates
        assert abs(np.mean(rows[name].pulls["0.42"])) < 0.7  # as large as without, by chance


def test_a_fault_is_made_estimated_and_counted(monkeypatch):
    monkeypatch.setattr(faults, "PER_TEMPLATE", 500)
    monkeypatch.setattr(faults, "OBSERVED", 500)
    chosen = [fault for fault in faults.DATA if fault.name in ("none", "every event twice")]
    monkeypatch.setattr(faults, "DATA", chosen)
    monkeypatch.setattr(faults, "TEMPLATES", [faults.TEMPLATES[0]])
    monkeypatch.setattr(faults, "TRUTHS", (0.5,))
    none, twice = faults.data_rows(range(1), 1)
    assert twice.names["repeated_events"] == 1
    assert none.names["audit (size)"] == 1
    (row,) = faults.template_rows(range(1))
    assert row.cells()[0] == "none"
    assert row.cells()[3] == "1/1"
