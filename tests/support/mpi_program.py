"""MPICH from its pip package: the program that starts ranks, and where mpi4py finds the library."""

from importlib import metadata
from importlib.util import find_spec
from pathlib import Path


def _file(name: str) -> Path | None:
    try:
        files = metadata.distribution("mpich").files or []
    except metadata.PackageNotFoundError:
        return None
    return next((Path(str(one.locate())).resolve() for one in files if one.name == name), None)


def launcher() -> tuple[str, str] | None:
    """(mpiexec, the library for MPI4PY_LIBMPI); None where there is none, or no mpi4py."""
    program, library = _file("mpiexec"), _file("libmpi.so.12")
    found = find_spec("mpi4py") and program and library and program.exists()
    return (str(program), str(library)) if found else None
