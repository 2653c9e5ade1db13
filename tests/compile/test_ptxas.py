"""Reading ptxas -v, in the shapes that nvcc, NVRTC and older assemblers give it."""

import pytest

from autotune.compile.ptxas import check_target, complaints, figures
from autotune.errors import CompilerError

NVCC = """\
ptxas info    : 16 bytes gmem, 544 bytes cmem[3]
ptxas info    : Compiling entry function '_Z3sumI2V2EvPf' for 'sm_75'
ptxas info    : Function properties for _Z3sumI2V2EvPf
    160 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers, 160 bytes cumulative stack size, 512 bytes smem, 372 bytes cmem[0], 8 bytes cmem[2]
ptxas info    : Compile time = 29.862 ms
ptxas info    : Function properties for _Z6calleePfi
    99 bytes stack frame, 99 bytes spill stores, 99 bytes spill loads
ptxas info    : Compiling entry function '_Z3sumI2V1EvPf' for 'sm_75'
ptxas info    : Function properties for _Z3sumI2V1EvPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 10 registers, used 0 barriers, 360 bytes cmem[0]
"""  # noqa: E501

NVRTC = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z1kI2V1EvPf' for 'sm_90'
ptxas info    : Function properties for _Z1kI2V1EvPf
ptxas         .     24 bytes stack frame, 20 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 12 registers, used 0 barriers, 256 bytes smem
ptxas info    : Compile time = 1.798 ms
\0"""


def test_every_field_of_every_kernel():
    assert figures(NVCC) == {
        "_Z3sumI2V2EvPf": {
            "registers": 72,
            "local_bytes": 160,
            "spill_store_bytes": 4,
            "spill_load_bytes": 8,
            "static_shared_bytes": 512,
            "constant_bytes": 380,
        },
        "_Z3sumI2V1EvPf": {
            "registers": 10,
            "local_bytes": 0,
            "spill_store_bytes": 0,
            "spill_load_bytes": 0,
            "static_shared_bytes": 0,
            "constant_bytes": 360,
        },
    }


def test_nvrtc_marks_the_frame_line_and_lists_no_constants():
    found = figures(NVRTC)["_Z1kI2V1EvPf"]
    assert found["registers"] == 12
    assert found["local_bytes"] == 24
    assert found["spill_store_bytes"] == 20
    assert found["spill_load_bytes"] == 12
    assert found["static_shared_bytes"] == 256
    assert found["constant_bytes"] == 0


def test_sums_of_older_assemblers():
    log = (
        "Compiling entry function 'k' for 'sm_70'\nUsed 8 registers, 4096+16 bytes smem, 36+4 bytes cmem[0]\n"
    )
    assert figures(log)["k"]["static_shared_bytes"] == 4112
    assert figures(log)["k"]["constant_bytes"] == 40


def test_a_kernel_without_figures_has_zeros_and_no_kernel_has_none():
    assert set(figures("Compiling entry function 'k' for 'sm_90'\n")["k"].values()) == {0}
    assert figures("") == {}
    assert figures("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\nUsed 3 registers\n") == {}


def test_complaints_are_what_is_left():
    text = (
        NVRTC + "ptxas error   : Entry function 'k' uses too much shared data (0x13880 bytes, 0xc000 max)\n\0"
    )
    assert complaints(text) == text.split("\0")[1].strip()
    assert complaints(NVCC) == ""
    message = 'autotune.cu(1): error: class "V1" has no member "m"\n      float x = V::m;\n'
    assert complaints(message) == message.strip()


def test_targets():
    check_target("sm_90", ["sm_80", "sm_90"], "nvrtc 13.5")
    check_target("sm_90a", ["sm_80", "sm_90"], "nvrtc 13.5")
    with pytest.raises(CompilerError) as error:
        check_target("sm_91", ["sm_80", "sm_90"], "nvrtc 13.5")
    message = "nvrtc 13.5 has no target 'sm_91'; did you mean 'sm_90'? (allowed: sm_80, sm_90)"
    assert str(error.value) == message
