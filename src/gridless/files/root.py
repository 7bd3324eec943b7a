"""ROOT files: trees (TTree, TNtuple) and RNTuples, read by uproot."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from gridless.files.table import (
    ALL,
    Block,
    Rows,
    Table,
    awkward_fault,
    choose_name,
    equal_pieces,
    library,
    unmask,
)

CHECKSUM = 8  # bytes at the end of an envelope of an RNTuple
_TREES = ("ROOT::RNTuple", "TNtuple", "TNtupleD", "TTree")


@contextmanager
def open_root(path: Path, name: str | None) -> Iterator[Table]:
    """The tree or RNTuple of that name, or the only one in the file."""
    uproot = library(path, "uproot", "root")
    with uproot.open({str(path): None}) as file:
        kinds = file.classnames(cycle=False)
        trees = [key for key, kind in kinds.items() if kind in _TREES]
        tree = file[choose_name(path, name, trees, "tree or RNTuple")]
        if not hasattr(tree, "branches"):
            _check_page_lists(tree, library(path, "xxhash", "root").xxh3_64_intdigest)
        yield RootTable(tree, uproot.interpretation.objects.CannotBeAwkward)


def _check_page_lists(ntuple: Any, digest: Callable[[bytes], int]) -> None:
    """Refuse an RNTuple whose lists of pages are damaged. uproot checks header and footer, but
    reads on for minutes where such a list says that it has 10^9 items."""
    # Versions before 5.7 ask for a context.
    context: list[Any] = [{}] * ("context" in signature(ntuple.read_locator).parameters)
    for record in ntuple.footer.cluster_group_records:
        link = record.page_list_link
        chunk, _ = ntuple.read_locator(link.locator, link.env_uncomp_size, *context)
        content = bytes(chunk.raw_data)
        if digest(content[:-CHECKSUM]) != int.from_bytes(content[-CHECKSUM:], "little"):
            raise ValueError("the checksum of a list of pages does not match")


class RootTable(Table):
    """A tree or RNTuple; `object_error` is what uproot raises on a branch of objects."""

    def __init__(self, tree: Any, object_error: type[Exception]) -> None:
        # Branches of a TTree come under their short names, fields of an RNTuple under full ones.
        full = not hasattr(tree, "branches")
        self.columns = tuple(dict.fromkeys(tree.keys(full_paths=full)))
        self._tree = tree
        self._object_error = object_error

    def fault(self, column: str) -> str:
        # Not tree[column].array, which takes the dot in the name of a field for a path.
        try:
            none = self._tree.arrays(filter_name={column}.__contains__, entry_stop=0, library="ak")
        except self._object_error:
            return f"objects ({self._tree[column].typename})"
        self._check_entries(column)
        # What uproot cannot interpret, it leaves out.
        return awkward_fault(_member(none, column)) if none.fields else "objects"

    def _check_entries(self, column: str) -> None:
        """Refuse a tree that has lost events: a tree and its branches each say how many there are,
        and no checksum covers either."""
        if not hasattr(self._tree, "branches"):
            return  # an RNTuple, which has checksums
        entries = self._tree.num_entries
        for branch in self._tree.values(filter_name={column}.__contains__):
            if branch.num_entries != entries:
                raise EOFError(f"{column} has {branch.num_entries:,} entries, its tree {entries:,}")

    def blocks(self, names: Sequence[str], size: int, rows: Rows = ALL) -> Iterator[Block]:
        # By filter, never by expression: uproot would run an expression as Python.
        wanted = set(names)
        for arrays in self._tree.iterate(
            filter_name=wanted.__contains__,
            step_size=size,
            library="np",
            entry_start=rows[0],
            entry_stop=rows[1],
        ):
            yield {name: unmask(np.asanyarray(_member(arrays, name))) for name in names}

    def pieces(self, size: int) -> list[Rows]:
        return equal_pieces(self._tree.num_entries, size)


def _member(arrays: Any, name: str) -> Any:
    """A column by its name, or by its path into records."""
    kind = getattr(arrays, "dtype", None)
    fields = getattr(arrays, "fields", arrays) if kind is None else kind.names
    if name in fields:
        return arrays[name]
    first, _, rest = name.partition(".")
    return _member(arrays[first], rest)
