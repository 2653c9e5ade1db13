"""Which files decide a family's binaries, and which its host side."""

import sys
from pathlib import Path

import pytest
from fakes import FAMILY, SOURCE, write_family

from autotune.declaration import family as families
from autotune.declaration.source_files import sources
from autotune.errors import FamilyError


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


def test_a_header_counts_whatever_its_ending_and_wherever_it_lies(tmp_path: Path) -> None:
    folder = _written(tmp_path / "own", {
        "own.cu": '#include "a.hpp"\n#include <angle.cuh>\n%:include "inner/b"\n# \\\n include "../common.cuh"\n',
        "a.hpp": '#if NEVER\n#include "c.inc"\n#endif\n',
        "c.inc": "", "angle.cuh": "", "inner/b": '#include "beside.tcc"\n', "inner/beside.tcc": "",
        "unused.hpp": "", "notes.txt": "",
    })  # fmt: skip
    _written(tmp_path, {"common.cuh": '#include "further/d.hh"\n', "further/d.hh": ""})
    found = sources(folder, tmp_path / "library")
    assert set(found) == {
        "../common.cuh", "../further/d.hh", "a.hpp", "angle.cuh", "c.inc", "inner/b", "inner/beside.tcc", "own.cu",
    }  # fmt: skip
    assert found["../common.cuh"] == tmp_path / "common.cuh"


def test_the_editors_header_does_not_count(tmp_path: Path) -> None:
    folder = _written(tmp_path / "own", {
        "own.cu": '#ifndef AUTOTUNE_VARIANTS\n#include "default.cuh"\n#endif\n',
        "default.cuh": '#include "other.hpp"\n', "other.hpp": "",
    })  # fmt: skip
    assert set(sources(folder, tmp_path / "library")) == {"own.cu"}


def test_an_include_that_only_a_preprocessor_can_follow_is_refused(tmp_path: Path) -> None:
    folder = _written(
        tmp_path / "own", {"own.cu": '#define PART "part.cuh"\n#include PART\n', "part.cuh": ""}
    )
    with pytest.raises(FamilyError, match=r"own\.cu has `#include PART`: .*write the file's name"):
        sources(folder, tmp_path / "library")


def _digests(folder: Path) -> tuple[str, str]:
    family = families.load_family(folder)
    return family.source_digest, family.host_digest


def _fresh(folder: Path) -> None:
    """As in another process: what was imported is forgotten."""
    for name in [n for n in sys.modules if n.startswith(("autotune_family_doubler", "shared_by_families"))]:
        del sys.modules[name]


@pytest.fixture
def python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A family whose Python is in several places."""
    folder = write_family(tmp_path / "doubler")
    _written(folder, {
        "family.py": "import json\nimport numpy\nfrom .lib.ref import made\nimport shared_by_families\n"
        "def reference(arrays, options):\n    from . import late\n    return {'y': made(arrays['x'])}\n",
        "lib/__init__.py": "", "lib/ref.py": "from .deep import two\ndef made(x):\n    return two * x\n",
        "lib/deep.py": "two = 2\n", "lib/unused.py": "", "late.py": "", "script.py": "",
        "fast.cpp": '#include "fast.hpp"', "fast.hpp": "",
    })  # fmt: skip
    _written(tmp_path / "elsewhere", {"shared_by_families/__init__.py": "", "shared_by_families/more.py": ""})
    (folder / "lib" / "ref.py").write_text(
        "from .deep import two\nfrom shared_by_families import more\ndef made(x):\n    return two * x\n"
    )
    monkeypatch.syspath_prepend(tmp_path / "elsewhere")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return folder


def test_the_host_side_is_what_family_py_imports_and_has_compiled(python: Path) -> None:
    _fresh(python)
    shared = "../elsewhere/shared_by_families"
    assert set(families.load_family(python).host_code) == {
        f"{shared}/__init__.py", f"{shared}/more.py", "family.py", "lib/__init__.py", "lib/ref.py", "lib/deep.py",
        "late.py", "fast.cpp", "fast.hpp",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("edited", "counts"),
    [("lib/deep.py", True), ("late.py", True), ("../elsewhere/shared_by_families/more.py", True), ("fast.hpp", True),
     ("script.py", False), ("lib/unused.py", False)],
)  # fmt: skip
def test_an_edit_of_the_host_side_is_another_identity(python: Path, edited: str, counts: bool) -> None:
    _fresh(python)
    source, host = _digests(python)
    (python / edited).write_text((python / edited).read_text() + "\n\n")
    _fresh(python)
    assert _digests(python)[0] == source
    assert (_digests(python)[1] != host) == counts


def test_a_family_without_python_has_no_host_side(tmp_path: Path) -> None:
    family = families.load_family(write_family(tmp_path / "doubler", FAMILY, SOURCE))
    assert family.host_code == {}
