"""The tutorial runs as a notebook from top to bottom."""

from pathlib import Path

import jupytext
import pytest
from nbclient import NotebookClient

TUTORIAL = Path(__file__).parent.parent / "docs" / "tutorial.md"


@pytest.mark.slow
# Jupyter's own libraries, not ours: sockets closed late, and a deprecated path.
@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_tutorial(monkeypatch):
    # The kernel is a process of its own: its threads would fight with the other worker.
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    notebook = jupytext.read(TUTORIAL)
    NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) > 15
    figures = sum("image/png" in out.get("data", {}) for cell in cells for out in cell.outputs)
    assert figures == 5
    assert not any(out.output_type == "error" for cell in cells for out in cell.outputs)
