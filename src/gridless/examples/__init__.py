"""Problems with known densities: the paper's, and a zoo of others to judge a fit by."""

from gridless.examples.decays import Decays
from gridless.examples.example import Example
from gridless.examples.ntuples import (
    Categories,
    MassAndShare,
    MissingJet,
    Overflow,
    RareSignal,
    ThreeSolutions,
)
from gridless.examples.nuisances import Nuisances
from gridless.examples.paper import ManyObservables, OneObservable, TwoObservables, TwoParameters
from gridless.examples.spectra import (
    Counts,
    CutWindow,
    EnergyLoss,
    Interference,
    Lifetime,
    OnlyCorrelation,
    Oscillation,
    Resonance,
    Ring,
)
from gridless.examples.top_mass import TopMass
from gridless.examples.zoo import (
    AngleAndCount,
    BackgroundShare,
    HardToTell,
    HeavyTails,
    OnlyTail,
    OnlyWidth,
    SharpEdges,
    TwoSolutions,
    UselessObservables,
)

__all__ = [
    "AngleAndCount",
    "BackgroundShare",
    "Categories",
    "Counts",
    "CutWindow",
    "Decays",
    "EnergyLoss",
    "Example",
    "HardToTell",
    "HeavyTails",
    "Interference",
    "Lifetime",
    "ManyObservables",
    "MassAndShare",
    "MissingJet",
    "Nuisances",
    "OneObservable",
    "OnlyCorrelation",
    "OnlyTail",
    "OnlyWidth",
    "Oscillation",
    "Overflow",
    "RareSignal",
    "Resonance",
    "Ring",
    "SharpEdges",
    "ThreeSolutions",
    "TopMass",
    "TwoObservables",
    "TwoParameters",
    "TwoSolutions",
    "UselessObservables",
]
