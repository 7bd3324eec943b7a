"""Where a reproduction keeps what it has finished, so that it can be interrupted and continued."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from gridless import __version__, strict_json
from gridless.examples import OneObservable, TwoObservables
from gridless.files.write import write_whole
from gridless.fitting import fit
from gridless.model.model import Model
from gridless.model.storage.file import load
from gridless.paper.choices import Choices
from gridless.templates.templates import Templates


@dataclass(frozen=True)
class Workspace:
    """A folder of results, and the sizes with which they are made."""

    folder: Path
    choices: Choices

    def path(self, kind: str, name: str) -> Path:
        """The file of a finished part; other sizes or another version make other files."""
        made_with = f"{self.choices} {__version__}".encode()
        return (
            self.folder / kind / f"{self.choices.name}-{sha256(made_with).hexdigest()[:8]}-{name}"
        )

    def number(self, name: str, make: Callable[[], Any]) -> Any:
        """What `make` gives (anything JSON can hold), or what it gave before."""
        path = self.path("parts", f"{name}.json")
        if not path.is_file():
            write_whole(path, strict_json.dumps(make()).encode())
        return json.loads(path.read_text())

    def model(self, name: str, make: Callable[[], Model]) -> Model:
        """The model that `make` trains, or that it trained before."""
        path = self.path("models", f"{name}.safetensors")
        if not path.is_file():
            make().save(path)
        model = load(path)
        assert isinstance(model, Model)
        return model

    def templates_1d(self, seed: int) -> Templates:
        """The templates of the one-observable example."""
        return OneObservable().templates(self.choices.events, seed)

    def model_1d(self, objective: str, prior: str, training: int = 0) -> Model:
        """One of the trainings of the one-observable example."""
        seed = self.choices.seed + training
        return self.model(
            f"1d-{objective}-{prior}-{seed}",
            lambda: fit(
                self.templates_1d(seed),
                basis="gaussian",
                hidden=self.choices.hidden_1d,
                objective=objective,
                prior=prior,
                replicas=0,  # the paper's chi2 has the statistical error alone
                calibrate=False,  # the paper takes the likelihood of the network alone
                seed=seed,
            ),
        )

    def model_2d(self, training: int = 0) -> Model:
        """One of the trainings of the two-observable example, with the default settings."""
        seed = self.choices.seed + training
        return self.model(
            f"2d-{seed}",
            lambda: fit(
                TwoObservables().templates(self.choices.events, seed),
                basis="gaussian",
                components=2,
                hidden=self.choices.hidden_2d,
                replicas=0,
                calibrate=False,
                seed=seed,
            ),
        )
