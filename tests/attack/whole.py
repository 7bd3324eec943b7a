"""A small measurement with a systematic, a background and two channels, and what uses it."""

import warnings
from typing import Any

import numpy as np

import gridless as gl

OPTIONS = {"hidden": 2, "ensemble": 4, "epochs": 2, "seed": 1}
SOME = 300  # events of a sample: enough for a systematic to be fitted


class Whole:
    """A model with a systematic and a background, and channels of which it is one."""

    def __init__(self) -> None:
        random = np.random.default_rng(5)
        self.theta = np.repeat([0.0, 0.5, 1.0], SOME)
        self.x = random.normal(0, 1, (len(self.theta), 2)) + self.theta[:, None]
        names = {"observables": ["x", "y"], "parameters": ["theta"]}
        self.templates = gl.Templates(self.x, self.theta, (-1, 2), **names)
        self.flat = random.uniform(-2, 3, (SOME, 2))
        self.up, self.down = (1 + s * 0.1 * np.tanh(self.x[:, 0]) for s in (1, -1))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model = self.fit()
            plain = gl.fit(self.templates, **OPTIONS)
        self.channels = gl.Channels({"soft": self.model, "hard": plain})

    def fit(self, **changes: Any) -> gl.Model:
        """The model, with some arguments of the fit changed."""
        given: dict[str, Any] = {
            "systematics": [gl.Systematic("tilt", self.up, self.down)],
            "backgrounds": [gl.Background("flat", self.flat, 0.1, 0.03)],
        }
        return gl.fit(self.templates, **OPTIONS | given | changes)
