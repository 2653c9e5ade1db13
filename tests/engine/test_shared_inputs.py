"""What other processes have of a family and its inputs."""

import os
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path

import numpy as np
import pytest

from autotune.declaration import family as families
from autotune.declaration.workload import load_workload, prepare
from autotune.engine.shared_inputs import SharedArray, SharedInputs, share_array, share_arrays
from autotune.errors import DeviceError, FamilyError, StoreError
from autotune.processes import Child


def test_inputs_are_those_of_the_sender_unless_the_family_was_edited(folder: Path, tmp_path: Path) -> None:
    family = families.load_family(folder)
    inputs = prepare(family, load_workload(family), tmp_path)
    with share_arrays(inputs.arrays) as arrays:
        shared = SharedInputs.make(family, inputs, arrays)
        loaded, found = shared.load("the test")
        assert loaded.space_digest == family.space_digest
        assert found.digest == inputs.digest and found.sizes == inputs.sizes
        assert not found.arrays["x"].flags.writeable
        for edited, said in (("space_digest", r"family\.yaml"), ("host_digest", "the Python of")):
            with pytest.raises(
                FamilyError, match=rf"{said}.* was edited during the test, run the same command"
            ):
                replace(shared, **{edited: "0" * 64}).load("the test")


def test_memory_that_is_gone_is_said() -> None:
    with share_array((4,), np.dtype(np.float32)) as array:
        pass
    with pytest.raises(StoreError, match="no memory for 16 bytes of results: No such file"):
        array.map_memory()


def doubles(pipe: Connection, array: SharedArray, folder: Path) -> None:
    array.map_memory()[...] = 2 * np.load(folder / "input-x.npy")
    pipe.send(None)


@pytest.mark.parametrize("shape", [(3, 5), (0, 5), ()])
def test_arrays_are_shared_both_ways(tmp_path: Path, shape: tuple[int, ...]) -> None:
    given = np.arange(float(np.prod(shape))).reshape(shape)
    with share_arrays({"x": given}) as folder, share_array(shape, given.dtype) as shared:
        mine = shared.map_memory()
        assert mine.ctypes.data % os.sysconf("SC_PAGESIZE") == 0
        one = Child(
            doubles, (shared, folder), folder=str(tmp_path), what="a test's process", error=DeviceError
        )
        one.pipe.recv()
        one.close()
    np.testing.assert_array_equal(mine, 2 * given)  # and stays when the file is closed
    assert not folder.exists() and not Path(shared.path).exists()
