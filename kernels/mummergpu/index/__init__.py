"""What the kernels need of a reference, made on the GPU where they run: nothing of it goes through the host."""

from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from autotune.family import DeviceProgram, TunedKernel, WorkloadError

from .builder import DeviceIndex, Progress, Wanted, build
from .steps import KERNELS, KERNELS_OF_WORDS, SIZES, SOURCE

__all__ = [
    "MOST_POSITIONS",
    "DeviceArray",
    "Index",
    "Wanted",
    "build_index",
    "device_bytes",
    "index_program",
    "most_characters",
    "wanted_for",
]

# Of a character of DNA: bytes while suffixes are sorted, where half of them share their first letters with others;
# bytes while nodes are made, beside them; and nodes.
_SORTING = 35.0
_NODES_BESIDE = 30.0
_NODES = 1.7
_NODE, _RANGE, _LEAF, _ENTRY = 48, 8, 8, 4

# Numbers have 32 bits, and one of them stands for none: of positions, of nodes two for each.
MOST_POSITIONS, _MOST_WITH_NODES = 2**32 - 2, 2**31 - 2

_RECORDS = {
    "nodes": ("suffix_link", "edge_start", "edge_length", "parent"),
    "children": ("a", "c", "g", "t"),
    "tails": ("end_child", "depth", "leaf_position", "preceding"),
    "ranges": ("first", "count"),
    "leaves": ("position", "preceding"),
}
_TABLES = ("coarse_table", "fine_table")
_ELEMENTS = {
    **{name: np.dtype([(field, np.uint32) for field in fields]) for name, fields in _RECORDS.items()},
    **{name: np.dtype(np.uint32) for name in _TABLES},
    "reference": np.dtype(np.uint8),
}


class DeviceArray:
    """Memory of an index as an array of one extent, for what knows the CUDA Array Interface. The index keeps it."""

    def __init__(self, address: int, count: int, dtype: np.dtype[Any], stride: int = 0) -> None:
        self.__cuda_array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (count,),
            "strides": (stride,) if stride else None,
            "typestr": dtype.str,
            "descr": dtype.descr,
        }


class Index:
    """``arrays`` are the inputs of family.yaml that are of a reference, by name; what was not wanted is there in the
    shape that the others ask for, with no content. ``close`` frees the others, after whatever uses them."""

    def __init__(self, arrays: Mapping[str, Any], made: DeviceIndex) -> None:
        self.arrays = arrays
        self._made = made

    def close(self) -> None:
        """Free what is on the GPU. Safe to call twice."""
        self._made.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wanted_for(configuration: Mapping[str, Any], tables: Mapping[str, int]) -> Wanted:
    """What a configuration reads; ``tables`` are the letters of each table's words. Tables of equal words go together:
    an index with one serves who reads the other."""
    letters = tables.get(configuration["search"])
    has_tree, has_ranges = configuration["search"] == "tree", configuration["emit"] == "ranges"
    return Wanted(
        tree=has_tree,
        merged=configuration["tree_grouping"] == "merged",
        ranges=has_tree and has_ranges,
        leaves=has_ranges,
        tables={name: of_words for name, of_words in tables.items() if of_words == letters},
    )


def build_index(
    kernel: TunedKernel, codes: NDArray[np.uint8], wanted: Wanted, progress: Progress | None = None
) -> Index:
    """The index of ``codes``, which end with a separator, on the GPU of ``kernel``: what suffix_tree.build, leaf_arrays
    and tables make on the host. ``progress`` is called with what is done next and the share that is done, last with
    "done" and 1.0. Raises WorkloadError for more than ``most_characters``, and where the GPU's memory does not suffice,
    and then nothing is left there; CompilerError, LaunchError."""
    if codes.size > (most := most_characters(wanted)):
        raise WorkloadError(
            f"an index of {codes.size:,} characters{' with a tree' * wanted.tree}: it can have {most:,}; give page=N, "
            "with fewer characters"
        )
    program = index_program(kernel, wanted)
    try:
        made = build(program, codes, wanted, progress or (lambda step, share: None))
    except MemoryError as problem:
        needed = device_bytes(codes.size, wanted)
        raise WorkloadError(
            f"an index of {codes.size:,} characters takes about {needed / codes.size:.0f} bytes for each, "
            f"{needed / 1e9:.1f} GB, and {kernel.device} has {kernel.memory_bytes / 1e9:.1f} GB, of which not so much "
            f"is free ({problem}): give page=N, with fewer characters"
        ) from None
    return Index(_arrays(made, wanted), made)


def index_program(kernel: TunedKernel, wanted: Wanted) -> DeviceProgram:
    """What makes an index, compiled. Raises CompilerError, LaunchError."""
    return kernel.program(SOURCE, KERNELS if wanted.tree else KERNELS_OF_WORDS, SIZES)


def most_characters(wanted: Wanted) -> int:
    """Of one index, the last separator counted."""
    return _MOST_WITH_NODES if wanted.tree else MOST_POSITIONS


def device_bytes(characters: int, wanted: Wanted) -> int:
    """What the GPU has to have room for while the index of so many characters is made: more than what it keeps. For
    DNA; where every letter is the same sorting takes 50 bytes of a character, and there are 2 nodes for each."""
    kept = 1.0 + _LEAF * wanted.leaves
    per_node = _NODE + _RANGE * wanted.ranges
    beside = _NODES_BESIDE + _NODES * per_node if wanted.tree else 0.0
    tables = sum(_ENTRY << 2 * letters for letters in wanted.tables.values())
    return int(characters * max(_SORTING, beside + kept)) + tables


def _arrays(made: DeviceIndex, wanted: Wanted) -> dict[str, Any]:
    counts = {"leaves": made.letters, "reference": made.length}
    arrays: dict[str, Any] = {name: np.zeros(1, dtype) for name, dtype in _ELEMENTS.items()}
    for name, room in made.rooms.items():
        dtype = _ELEMENTS[name]
        count = counts.get(name, room.nbytes // dtype.itemsize if name in _TABLES else made.nodes)
        arrays[name] = DeviceArray(room.address, count, dtype)
    if wanted.tree and not wanted.ranges:
        # As many as there are nodes, which nothing reads: where the tails are, to take no memory.
        arrays["ranges"] = DeviceArray(made.rooms["tails"].address, made.nodes, _ELEMENTS["ranges"])
    if "coarse_table" in made.rooms and "fine_table" not in made.rooms:
        arrays["fine_table"] = arrays["coarse_table"]  # room for seeds is by its words, which are no fewer
    if wanted.tree and wanted.merged:
        node = _ELEMENTS["nodes"]
        for member, name in enumerate(("nodes", "children")):
            address = made.rooms["nodes"].address + member * node.itemsize
            arrays[name] = DeviceArray(address, made.nodes, _ELEMENTS[name], 2 * node.itemsize)
    return arrays
