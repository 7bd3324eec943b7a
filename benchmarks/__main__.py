"""`make bench`: gridless beside its peers, how its cost grows, and its passes over events against
physical floors.

`python -m benchmarks [peers|growth|passes|floors|startup|known ...] [--full]`; all but floors,
which peers measure too, startup and known, without a name. It takes some minutes and writes
nothing. `--full` takes hours: five trainings of each peer, sbi too, and writes the pages.
"""

import argparse

import torch

from benchmarks import growth, known, passes, startup
from benchmarks.floors import FLOORS, measure_floors
from benchmarks.peers import program
from benchmarks.peers.catalogue import NAMES

PARTS = ("peers", "growth", "passes", "floors", "startup", "known")


def main() -> None:
    """Run the parts that are asked for."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    parser.add_argument("--seeds", type=int, default=5, help="trainings of each peer")
    parser.add_argument("--first", type=int, default=700, help="first seed")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=NAMES,
        default=[],
        metavar="PEER",
        help=f"measure these peers and keep the others' results: {', '.join(NAMES)}",
    )
    parser.add_argument("--keep", action="store_true", help="measure only what is not there yet")
    parser.add_argument(
        "--limit",
        type=float,
        default=900,
        help="CPU seconds of an sbi training on several observables",
    )
    parser.add_argument(
        "--full", action="store_true", help="all seeds and sbi too; writes results and pages"
    )
    arguments = parser.parse_args()
    quick = not arguments.full
    parts = arguments.parts or ["peers", "growth", "passes"]
    for part in parts:
        if part not in PARTS:
            parser.error(f"no part {part!r}; there are {', '.join(PARTS)}")
    torch.set_num_threads(1)
    if "peers" in parts:
        program.run(
            program.Plan(
                seeds=1 if quick else arguments.seeds,
                first=arguments.first,
                only=tuple(arguments.only),
                keep=arguments.keep,
                quick=quick,
                limit=arguments.limit,
            )
        )
    if "growth" in parts:
        growth.run(quick)
    if "passes" in parts:
        passes.run(quick)
    if "startup" in parts:
        startup.run(quick)
    if "known" in parts:
        known.run(quick)
    if "floors" in parts:
        for name, found in measure_floors(quick).items():
            print(f"{FLOORS[name]}: {found['million_cpu']:.3g} CPU s per million events")


if __name__ == "__main__":
    main()
