"""What the paper leaves unsaid, chosen once, here, and stated in the report as our choice."""

from dataclasses import dataclass

from gridless.examples import TwoObservables


@dataclass(frozen=True)
class Choices:
    """Sizes of everything that is simulated, trained or repeated."""

    name: str
    functional_events: int
    functional_repeats: int
    events: int
    trainings: int
    test_sets: int
    test_values: int = 20
    test_events: int = 10_000
    hidden_1d: tuple[int, ...] = (5,)
    hidden_2d: tuple[int, ...] = (16, 16)
    seed: int = 1

    def described(self) -> list[str]:
        """Our choices in words, for the report."""
        two = TwoObservables()
        return [
            f"functional fit: {self.functional_events:,} events at each of ten values, "
            f"{self.functional_repeats} repetitions",
            f"1-D and 2-D training: {self.events:,} events at each of ten values",
            f"1-D network: one hidden layer of {self.hidden_1d[0]} tanh units, one Gaussian; "
            f"2-D: two layers of {self.hidden_2d[0]}, two Gaussians",
            "lambda: |C| / S at the end of the first stage; theta_j: seven values from 0 to 1",
            f"tests: {self.test_events:,} events at each of {self.test_values} values, the centres "
            f"of equal bins of [0, 1]; {self.test_sets} such sets for each of "
            f"{self.trainings} trainings",
            f"2-D model: fraction {two.fraction:g}; p_a: mean theta and width {two.width:g} in x1, "
            f"mean {two.low_mean:g} and width {two.width_2:g} in x2; p_b: Gamma of shape "
            f"{two.shape:g} and scale {two.scale:g} from {two.shift:g} in x1, mean "
            f"{two.high_mean:g} and width {two.width_2:g} in x2",
            "figure 6: three events picked, from a dozen seeds, to be typical of theta = 0.2",
            f"first seed: {self.seed}",
        ]


FULL = Choices("full", 1_000_000, 20, 100_000, 5, 50)
QUICK = Choices("quick", 200_000, 5, 100_000, 2, 12)
