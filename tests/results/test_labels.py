"""Labels in HTML, and their parts."""

import pytest

from gridless.results.labels import label_html, symbol_of, unit_of


@pytest.mark.parametrize(
    ("label", "shown"),
    [
        ("mtop", "mtop"),
        ("a < b & c", "a &lt; b &amp; c"),
        ("$m_t$ [GeV]", "<i>m</i><sub><i>t</i></sub> [GeV]"),
        (r"$p_\mathrm{T}^{\ell}$", "<i>p</i><sub>T</sub><sup>\u2113</sup>"),
        (r"$\Delta\phi$", "Δφ"),
        (r"$\bar{t}$", "<i>t</i>̄"),
        (r"$a_", "$a_"),
        (r"$a_$", "<i>a</i>_"),
        (r"${a$", "<i>a</i>"),
        (r"$\mathrm{}<$", "&lt;"),
        (r"$\mathrm$", "mathrm"),
    ],
)
def test_labels(label, shown):
    if "$" in label and label.count("$") % 2:
        shown = label
    assert label_html(label) == shown


def test_units():
    assert unit_of(r"$p_T$ [GeV/$c$]") == "GeV/$c$"
    assert unit_of("mass (GeV)") == "GeV"
    assert unit_of("R_bq") == ""
    assert symbol_of("mass (GeV)") == "mass"
