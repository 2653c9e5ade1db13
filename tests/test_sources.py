"""Which C++ files decide a family's binaries."""

from pathlib import Path

from autotune.sources import sources


def _written(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_headers_are_followed_through_the_library_and_no_further(tmp_path: Path) -> None:
    folder = _written(tmp_path / "own", {
        "own.cu": '#include "part.cuh"\n  #  include "lib/a.cuh"\n#include <cub/cub.cuh>\n',
        "part.cuh": "",
        "deep/unused.cuh": '#ifdef NEVER\n#include "lib/c.cuh"\n#endif\n',
        "notes.md": '#include "lib/unreached.cuh"\n',
    })  # fmt: skip
    library = _written(tmp_path / "library", {
        "lib/a.cuh": '#include "lib/b.cuh"\n#include "lib/host.hpp"\n',
        "lib/b.cuh": '#include "lib/a.cuh"\n',
        "lib/c.cuh": "",
        "lib/host.hpp": "",
        "lib/unreached.cuh": "",
    })  # fmt: skip
    found = sources(folder, library)
    assert list(found) == ["deep/unused.cuh", "lib/a.cuh", "lib/b.cuh", "lib/c.cuh", "own.cu", "part.cuh"]
    assert found["lib/b.cuh"] == library / "lib/b.cuh"
    assert found["part.cuh"] == folder / "part.cuh"
