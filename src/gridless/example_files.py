"""Files to try gridless on: a top-quark mass from three observables, as `gridless example` writes.

The events are drawn from formulas, in a second; they only look like top quarks.
"""

from collections.abc import Callable
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np

from gridless.errors import InputError
from gridless.files.write import check_writable, write_whole
from gridless.templates.arrays import Array
from gridless.templates.grid import grid

BOUNDS = (165.0, 180.0)  # GeV
TEMPLATES = 10
TEST_MASSES = (167.0, 170.0, 173.0, 176.0)  # GeV, between the templates
DATA_MASS = 172.6  # GeV, what the measurement should find
DATA_EVENTS = 5_000
TEST_EVENTS = 5_000  # at each test mass
W_MASS = 80.4  # GeV
RIGHT_PAIRING = 0.55  # share of events whose jets were paired rightly
LEAST_EVENTS = 100  # per template
VARIED_MASSES = (168.75, 173.25, 177.75)  # GeV, of templates that exist with other jets too
# Masses go with these powers of the energies of all jets, and of b jets. That of lepton and jet
# goes with the root of the jet's energy.
ALL_JETS = {"m_jjb": 1.0, "m_jj": 1.0, "m_lb": 0.5}
B_JETS = {"m_jjb": 0.5, "m_lb": 0.5}
JES = 0.01  # relative uncertainty of the energy scale of all jets
BJES = 0.008  # of b jets in addition
JER = 0.1  # relative uncertainty of the resolution
FSR = 0.1  # how much of the events another shower moves from high to low masses
OBSERVED_JES = 0.5  # of that uncertainty: how far the jets of the second data are off
WJETS_SHARE = 0.06  # of the events of the second data

Columns = dict[str, Array]


class Kind(NamedTuple):
    """A format of the files: its ending, what stands behind the name of a file, and what writes
    columns."""

    suffix: str
    tree: str
    write: Callable[[Path, Columns], None]


def top_events(mass: float, events: int, seed: int) -> Columns:
    """Events of a top quark of this mass.

    `m_jjb` is the mass of three jets, `m_jj` that of the two which should come from a W boson, and
    `m_lb` that of lepton and b jet, which ends at sqrt(m_t^2 - m_W^2). Nearly half of the events
    have wrong pairs of jets. `weight` scatters by a tenth, as weights of a simulation do.
    `pt_lep` is the transverse momentum of the lepton. `w_fsr_up` and `w_fsr_down` are weights for
    more and less radiation from the final state.

    Parameters
    ----------
    mass : float
        In GeV.
    events : int
        How many.
    seed : int
        Fixes everything random.

    Returns
    -------
    dict of str to array (events,)

    Examples
    --------
    >>> sorted(top_events(172.5, 3, seed=1))
    ['m_jj', 'm_jjb', 'm_lb', 'pt_lep', 'w_fsr_down', 'w_fsr_up', 'weight']
    """
    random = np.random.default_rng(seed)
    right = random.random(events) < RIGHT_PAIRING
    smear = random.normal(0, 0.09, events)  # of the jets of the W boson
    m_jj = np.where(right, W_MASS * (1 + smear), 30 + random.gamma(3, 28, events))
    peak = mass * (1 + 0.6 * smear + random.normal(0, 0.05, events))
    broad = 90 + random.gamma(3.5, 38, events) * mass / 172.5
    m_jjb = np.where(right, peak, np.maximum(broad, m_jj + 10))
    end = np.sqrt(mass**2 - W_MASS**2)
    shape = np.sqrt(random.beta(2.2, 1.6, events))
    m_lb = np.where(random.random(events) < 0.75, end * shape, 35 + random.gamma(3, 32, events))
    m_lb = m_lb * random.normal(1, 0.08, events)
    masses = {"m_jjb": m_jjb, "m_jj": m_jj, "m_lb": m_lb, "weight": random.normal(1, 0.1, events)}
    lower = FSR * np.tanh((W_MASS - m_jj) / 30)  # more radiation outside of the jets
    shower = {"w_fsr_up": 1 + lower, "w_fsr_down": 1 - lower}
    return masses | {"pt_lep": 25 + random.gamma(2, 20, events)} | shower


def scaled_jets(events: Columns, change: float, powers: dict[str, float] = ALL_JETS) -> Columns:
    """The same events with the energies of jets changed by a relative amount.

    Examples
    --------
    >>> events = {"m_jjb": np.array([170.0]), "m_jj": np.array([80.0]), "m_lb": np.array([100.0])}
    >>> {name: round(float(m[0]), 1) for name, m in scaled_jets(events, 0.01).items()}
    {'m_jjb': 171.7, 'm_jj': 80.8, 'm_lb': 100.5}
    """
    factors = {name: 1 + change * powers.get(name, 0.0) for name in events}
    return {name: column * factors[name] for name, column in events.items()}


def smeared_jets(events: Columns, mass: float, change: float) -> Columns:
    """The same events with a resolution that is worse by a relative amount: masses near their peaks
    go away from them.

    Examples
    --------
    >>> events = {"m_jjb": np.array([182.5]), "m_jj": np.array([80.4])}
    >>> {name: round(float(m[0]), 1) for name, m in smeared_jets(events, 172.5, 0.1).items()}
    {'m_jjb': 183.4, 'm_jj': 80.4}
    """
    moved = dict(events)
    for name, peak in (("m_jjb", mass), ("m_jj", W_MASS)):
        off = events[name] - peak
        moved[name] = events[name] + change * off * np.exp(-0.5 * (off / (0.15 * peak)) ** 2)
    return moved


def wjets_events(events: int, seed: int) -> Columns:
    """Events of a W boson with jets: no top quark, and so no peak.

    Examples
    --------
    >>> sorted(wjets_events(3, seed=1))
    ['m_jj', 'm_jjb', 'm_lb', 'pt_lep', 'weight']
    """
    random = np.random.default_rng(seed)
    m_jj = 25 + random.gamma(2.5, 30, events)
    return {
        "m_jjb": m_jj + 20 + random.gamma(2.5, 35, events),
        "m_jj": m_jj,
        "m_lb": 30 + random.gamma(2.5, 35, events),
        "weight": random.normal(1, 0.1, events),
        "pt_lep": 25 + random.gamma(2, 12, events),
    }


def write_example(folder: Path, events: int = 6_000, seed: int = 1, *, force: bool = False) -> Path:
    """Write templates, test samples, data, an analysis.yaml and a README of five commands; and
    for measurement.yaml variations, a background and data that have both.

    Parameters
    ----------
    folder : Path
        Where to; made if it is not there.
    events : int
        Simulated events at each of ten masses.
    seed : int
        Fixes everything random.
    force : bool
        Replace files that are there.

    Returns
    -------
    Path
        The README.

    Examples
    --------
    >>> write_example(Path("top"), events=100).name
    'README.md'
    """
    if events < LEAST_EVENTS:
        raise InputError(f"events: {events}; give at least {LEAST_EVENTS} per template")
    if folder.exists() and not folder.is_dir():
        raise InputError(f"{folder}: is a file; give the name of a folder")
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"{folder}: already exists; give another name, or --force")
    check_writable(folder / "README.md")
    kind = _kind()
    samples = {f"mtop_{mass:g}": (mass, events) for mass in grid(BOUNDS, TEMPLATES)}
    samples |= {f"test_{mass:g}": (mass, TEST_EVENTS) for mass in TEST_MASSES}
    for number, (name, (mass, count)) in enumerate(samples.items()):
        kind.write(folder / f"{name}{kind.suffix}", top_events(mass, count, seed * 1_000 + number))
    data = top_events(DATA_MASS, DATA_EVENTS, seed * 1_000 + len(samples))
    kind.write(folder / f"data{kind.suffix}", _without_weights(data))
    _write_measurement(folder, kind, samples, seed)
    source = f"{kind.suffix}{kind.tree}"
    texts = {"analysis.yaml": ANALYSIS, "measurement.yaml": MEASUREMENT, "README.md": README}
    for name, text in texts.items():
        text = text.replace("SOURCE", source).replace("SUFFIX", kind.suffix)
        write_whole(folder / name, text)
    return folder / "README.md"


def _write_measurement(
    folder: Path, kind: Kind, samples: dict[str, tuple[float, int]], seed: int
) -> None:
    """Variations of some templates, made of their own events, a background, and data with both."""
    for number, (mass, count) in enumerate(samples.values()):
        if mass not in VARIED_MASSES:
            continue
        events = top_events(mass, count, seed * 1_000 + number)
        for side, sign in (("up", 1), ("down", -1)):
            varied = {
                "jes": scaled_jets(events, sign * JES),
                "bjes": scaled_jets(events, sign * BJES, B_JETS),
                "jer": smeared_jets(events, mass, sign * JER),
            }
            for name, columns in varied.items():
                kind.write(folder / f"{name}_{side}_{mass:g}{kind.suffix}", columns)
    first = seed * 1_000 + 500  # of the seeds that no template has
    largest = max(count for _, count in samples.values())
    kind.write(folder / f"wjets{kind.suffix}", wjets_events(largest, first))
    count = round(WJETS_SHARE * DATA_EVENTS)
    signal = top_events(DATA_MASS, DATA_EVENTS - count, first + 1)
    other = wjets_events(count, first + 2)
    names = _without_weights(signal)
    both = {name: np.append(signal[name], other[name]) for name in names}
    kind.write(folder / f"observed{kind.suffix}", scaled_jets(both, OBSERVED_JES * JES))


def _without_weights(events: Columns) -> Columns:
    """Events as nature has them."""
    return {name: column for name, column in events.items() if not name.startswith("w")}


def _kind() -> Kind:
    """ROOT where uproot is installed, else Parquet where pyarrow is, else CSV."""
    if find_spec("uproot") is not None and find_spec("awkward") is not None:
        return Kind(".root", ":events", _write_root)
    if find_spec("pyarrow") is not None:
        return Kind(".parquet", "", _write_parquet)
    return Kind(".csv", "", _write_csv)


def _write_root(path: Path, columns: Columns) -> None:
    import uproot

    with TemporaryDirectory() as folder:
        part = Path(folder) / path.name
        with uproot.recreate(part) as file:
            # A tree by name: uproot 5.7 makes an RNTuple of `file["events"] = columns`.
            types = {name: column.dtype for name, column in columns.items()}
            file.mktree("events", types).extend(columns)
        write_whole(path, part.read_bytes())


def _write_parquet(path: Path, columns: Columns) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = BytesIO()
    pq.write_table(pa.table(columns), buffer)
    write_whole(path, buffer.getvalue())


def _write_csv(path: Path, columns: Columns) -> None:
    rows = np.column_stack(list(columns.values()))
    lines = [",".join(columns), *(",".join(f"{v:.5g}" for v in row) for row in rows)]
    write_whole(path, "\n".join([*lines, ""]))


ANALYSIS = """\
# A top-quark mass from three observables. Simulation exists at ten masses; the value of each
# is read from the name of its file.
templates: mtop_{mtop}SOURCE

# Every parameter with the bounds between which it is estimated.
parameters:
  mtop: [165, 180]

# Columns, or expressions of columns under a name of your choice.
observables:
  m_jjb: m_jjb      # mass of three jets
  m_jj: m_jj        # mass of two of them, of a W boson if they were paired rightly
  m_lb: m_lb        # mass of lepton and b jet

weight: weight                        # of simulated events
selection: (m_jj < 160) & (m_jjb < 400)  # of simulated and observed events

# How figures and tables call them.
labels:
  mtop: $m_t$ [GeV]
  m_jjb: $m_{jjb}$ [GeV]
  m_jj: $m_{jj}$ [GeV]
  m_lb: $m_{\\\\ell b}$ [GeV]

fit:
  seed: 1
""".replace("\\\\", "\\")

MEASUREMENT = (
    ANALYSIS.replace("# A top-quark mass from three observables.", "# The same with uncertainties.")
    + """
# What is uncertain in the simulation, in all channels: the energies of jets and of b jets and their
# resolution, up and down at three of the masses, and the shower, by weights. `event` numbers the
# events: those of the variations are those of the templates.
systematics:
  - {name: jes, up: "jes_up_{mtop}SOURCE", down: "jes_down_{mtop}SOURCE", event: entry}
  - {name: bjes, up: "bjes_up_{mtop}SOURCE", down: "bjes_down_{mtop}SOURCE", event: entry}
  - {name: jer, up: "jer_up_{mtop}SOURCE", down: "jer_down_{mtop}SOURCE", event: entry}
  - {name: fsr, weight_up: weight * w_fsr_up, weight_down: weight * w_fsr_down}

# Two channels, with more and with less W + jets among the observed events. Each adds its selection
# to the one above. The background has one name, so that its shares move together.
channels:
  soft:
    selection: pt_lep < 60
    backgrounds: [{name: wjets, files: wjetsSOURCE, share: 0.09, error: 0.03}]
  hard:
    selection: pt_lep >= 60
    backgrounds: [{name: wjets, files: wjetsSOURCE, share: 0.027, error: 0.009}]
"""
)

README = """\
# A top-quark mass in five commands

`mtop_165.75SUFFIX` to `mtop_179.25SUFFIX` hold simulated events at ten masses, `dataSUFFIX`
observed ones, and `test_167SUFFIX` to `test_176SUFFIX` simulated ones at masses in between, to
test with. (All are drawn from formulas.) `analysis.yaml` says what to measure, and from what; the
other files are for `measurement.yaml`, below. In this folder:

    gridless audit analysis.yaml
    gridless fit analysis.yaml -o top.safetensors
    gridless closure top.safetensors 'test_{mtop}SOURCE'
    gridless measure top.safetensors dataSOURCE
    gridless report top.safetensors dataSOURCE --closure 'test_{mtop}SOURCE' -o report.html

1. `audit` checks whether the simulation is fit for the purpose.
2. `fit` trains on it, in some seconds, and writes the model to one file.
3. `closure` estimates samples whose mass is known: pulls scatter about 0 with width 1.
4. `measure` gives the mass of the observed events. They were made at 172.6 GeV.
5. `report` puts all of it on one page. Open `report.html` in a browser. (It needs
   `pip install 'gridless[report]'`.)

The same in Python:

    import gridless as gl

    model = gl.fit_files("analysis.yaml")
    likelihood = gl.read_likelihood(model, "dataSOURCE")
    print(likelihood.maximum())
    gl.save_figure(gl.draw_data(model, likelihood, experiment="Private work"), "data")

`measurement.yaml` is a whole measurement, with four systematic uncertainties, a background and two
channels; use it as analysis.yaml, and measure `observedSOURCE` with it.

Then try files of your own: `gridless init --templates 'mtop_{mtop}SOURCE'`, with the names of your
files, writes an analysis file with comments.
"""
