"""The analysis.yaml that `gridless init` writes: an example, or what is found in your files."""

import json
import math
import re

from gridless.errors import InputError
from gridless.files.read import open_table
from gridless.files.sources import find

TEMPLATE = """\
# What gridless is to fit. `gridless audit analysis.yaml` checks the templates,
# `gridless fit analysis.yaml -o model.safetensors` trains on them.

# The simulated files; the value of the parameter is read from the name. `:events` names the tree
# of a ROOT file or the group of an HDF5 file; Parquet, NPZ and CSV files need none.
templates: mtop_{mtop}.root:events

# Every parameter with the bounds between which it is estimated.
parameters:
  mtop: [165, 180]

# Columns, or expressions of columns under a name of your choice.
observables:
  m_jjb: m_jjb
  m_jj: m_jj
  # ratio: m_jjb / m_jj

# Optional: an expression for the event weight, and which events to use.
# weight: w_gen * w_pileup
# selection: (m_jj > 40) & (m_jj < 140)

# Optional: how figures and tables call parameters and observables. Formulas stand between dollars.
# labels:
#   mtop: $m_t$ [GeV]
#   m_jjb: $m_{jjb}$ [GeV]

# Optional: processes that are in the data beside the simulated one, with their share of all events.
# backgrounds:
#   - {name: wjets, files: wjets.root:events, share: 0.06, error: 0.02}

# Optional: what is uncertain in the simulation, as other files or other weights.
# systematics:
#   - {name: jes, up: "mtop_{mtop}.root:jes_up", down: "mtop_{mtop}.root:jes_down", event: event}
#   - {name: fsr, weight_up: w_gen * w_fsr_up, weight_down: w_gen * w_fsr_down}

# Optional: several channels. What stands above holds in each; each adds its own.
# channels:
#   soft: {selection: pt_lep < 60}
#   hard: {selection: pt_lep >= 60}

# Optional: anything that gridless.fit takes. What is left out, it finds by itself.
fit:
  seed: 0
"""

# Names of columns that can only be the weight of an event.
_WEIGHT = re.compile(r"w|weights?|(event|gen|mc)_?weight", re.IGNORECASE)
# Names of columns that are hardly observables: weights, and numbers of events and runs. What else
# begins with w_, such as w_mass, is that of a W boson.
_NO_OBSERVABLE = re.compile(
    r"w|w_?\d+|wgt\w*|.*weight.*|w_(\w+_)?(up|down)|w_(gen|mc|evt|nominal|pileup|pu|sf|isr|fsr|pdf)"
    r"|(event|evt|run|lumi|entry|index|id)\w*|number|nr|row",
    re.IGNORECASE,
)
LEFT_OUT = "  # left out: a weight or an event number by its name"


def number_columns(source: str) -> list[str]:
    """The columns of a file that have one number per event.

    Examples
    --------
    >>> from pathlib import Path
    >>> _ = Path("a.csv").write_text("x,y\\n1,2\\n")
    >>> number_columns("a.csv")
    ['x', 'y']
    """
    with open_table(source) as table:
        return [name for name in table.columns if not table.fault(name)]


def _columns_of(source: str, pattern: str) -> list[str]:
    """The columns of a file of a pattern, which lacks the name of a tree where the file does."""
    try:
        return number_columns(source)
    except InputError as error:
        cure = f"say which: {source}:", f"say which: {pattern}:"
        raise InputError(str(error).replace(*cure)) from error


def starting_analysis(pattern: str) -> str:
    """An analysis.yaml for files like `mtop_{mtop}.root:events`: parameters and bounds from their
    names, observables from their columns, and the weight where one column can only be that. Bounds
    lie half a gap beyond the outermost values.

    Parameters
    ----------
    pattern : str
        The simulated files, with the parameters in braces.

    Returns
    -------
    str
        The text, with the comments of the example.

    Examples
    --------
    >>> from pathlib import Path
    >>> for mass in (78, 80, 82):
    ...     _ = Path(f"mW_{mass}.csv").write_text("m_T,weight\\n70,1\\n")
    >>> print(starting_analysis("mW_{mW}.csv"))
    # What gridless is to fit. ...
    templates: mW_{mW}.csv
    ...
      mW: [77, 83]
    ...
      m_T: m_T
      # weight: weight  # left out: a weight or an event number by its name
    ...
    weight: weight
    ...
    """
    found = find(pattern)
    bounds = []
    for name in found[0][0]:
        values = sorted({at[name] for at, _ in found})
        first, last = (values[:2], values[-2:]) if len(values) > 1 else ([0.0, 1.0], [0.0, 1.0])
        low = _rounded(values[0], (first[0] - first[1]) / 2)
        high = _rounded(values[-1], (last[1] - last[0]) / 2)
        bounds.append(f"  {name}: [{low:.10g}, {high:.10g}]")
    lines = ["  # All columns of the first file; delete those that are not for the fit."]
    columns = _columns_of(found[0][1], pattern)
    for name in columns:
        line = f"{_quoted(name)}: {_quoted(name)}"
        out = _NO_OBSERVABLE.fullmatch(name)
        lines.append(f"  # {line}{LEFT_OUT}" if out else f"  {line}")
    text = TEMPLATE.replace("mtop_{mtop}.root:events", _quoted(pattern), 1)
    text = text.replace("  mtop: [165, 180]", "\n".join(bounds), 1)
    example = "  m_jjb: m_jjb\n  m_jj: m_jj\n  # ratio: m_jjb / m_jj"
    text = text.replace(example, "\n".join(lines), 1)
    weights = [name for name in columns if _WEIGHT.fullmatch(name)]
    if len(weights) == 1:
        text = text.replace("# weight: w_gen * w_pileup", f"weight: {_quoted(weights[0])}", 1)
    labels = "\n".join(f"#   {name}: ${name}$ [unit]" for name in found[0][0])
    return text.replace("#   mtop: $m_t$ [GeV]\n#   m_jjb: $m_{jjb}$ [GeV]", labels, 1)


def _rounded(value: float, step: float) -> float:
    """value + step to a thousandth of the step: names of files have rounded values, 43.3333."""
    return round(value + step, 3 - math.floor(math.log10(abs(step))))


def _quoted(text: str) -> str:
    """A text as YAML takes it."""
    return text if re.fullmatch(r"\w[\w./{}*?-]*(:[\w/]+)?", text) else json.dumps(text)
