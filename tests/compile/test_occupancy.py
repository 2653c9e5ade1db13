"""Occupancy against hand-computed cases, and against NVIDIA's own calculator where a toolkit is installed."""

import itertools
import subprocess

import pytest

from autotune.compile.nvcc import find_nvcc
from autotune.compile.occupancy_model import LIMITS, Occupancy, next_step, occupancy
from autotune.errors import DeviceError

# arch, block size, registers, shared bytes -> blocks, warps, occupancy, limit
CASES = [
    # 40 registers are 1280 a warp: 12 warps in each of 4 partitions, 48 in all.
    ("sm_90", 128, 40, 0, (12, 48, 0.75, "registers")),
    # 48 warps hold 16 blocks of 3 warps.
    ("sm_90", 96, 40, 0, (16, 48, 0.75, "registers")),
    # 97 threads are 4 warps.
    ("sm_90", 97, 40, 0, (12, 48, 0.75, "registers")),
    # 32 registers are 1024 a warp: 64 warps, the hardware's number.
    ("sm_90", 256, 32, 0, (8, 64, 1.0, "warps")),
    # 33 registers are 1056, rounded up to 1280.
    ("sm_90", 256, 33, 0, (6, 48, 0.75, "registers")),
    # One warp a block: 32 blocks are the limit, half the warps.
    ("sm_90", 32, 16, 0, (32, 32, 0.5, "blocks")),
    # 64 threads: 32 blocks are all 64 warps; of two limits warps is named.
    ("sm_90", 64, 16, 0, (32, 64, 1.0, "warps")),
    # 48 KiB and the reserved 1 KiB: 4 fit in 228 KiB.
    ("sm_90", 128, 32, 49152, (4, 16, 0.25, "shared")),
    # 227 KiB is the most that one block may use, one byte more is too many.
    ("sm_90", 128, 32, 232448, (1, 4, 0.0625, "shared")),
    ("sm_90", 128, 32, 232449, (0, 0, 0.0, "launch")),
    # 1024 threads at 64 registers take the whole file; at 65 they are 72, and no block fits.
    ("sm_90", 1024, 64, 0, (1, 32, 0.5, "registers")),
    ("sm_90", 1024, 65, 0, (0, 0, 0.0, "launch")),
    ("sm_90", 1025, 16, 0, (0, 0, 0.0, "launch")),
    ("sm_90", 0, 16, 0, (0, 0, 0.0, "launch")),
    ("sm_90", 32, 256, 0, (0, 0, 0.0, "launch")),
    # 5 warps at 168 registers: 5376 a warp, 3 in each partition, 12 in all, 2 blocks.
    ("sm_90", 160, 168, 0, (2, 10, 0.15625, "registers")),
    # 48 warps are all that 8.6 holds; its 16 blocks bind before them at 2 warps a block.
    ("sm_86", 256, 32, 0, (6, 48, 1.0, "warps")),
    ("sm_86", 64, 32, 0, (16, 32, 32 / 48, "blocks")),
    # 20 KiB and 1 KiB: 4 in 100 KiB.
    ("sm_86", 128, 32, 20480, (4, 16, 16 / 48, "shared")),
    # 7.x reserves nothing and allocates in 256 bytes: 16 KiB and a byte are 16640, 3 in 64 KiB.
    ("sm_75", 128, 32, 16384, (4, 16, 0.5, "shared")),
    ("sm_75", 128, 32, 16385, (3, 12, 0.375, "shared")),
    ("sm_75", 256, 64, 0, (4, 32, 1.0, "warps")),
    ("sm_70", 512, 48, 0, (2, 32, 0.5, "registers")),
    ("sm_89", 64, 16, 0, (24, 48, 1.0, "warps")),
    ("sm_120", 32, 16, 0, (24, 24, 0.5, "blocks")),
    # A kernel without registers is bound by something else.
    ("sm_80", 1024, 0, 0, (2, 64, 1.0, "warps")),
]


@pytest.mark.parametrize(("arch", "block_size", "registers", "shared_bytes", "expected"), CASES)
def test_hand_computed_cases(arch, block_size, registers, shared_bytes, expected):
    assert occupancy(arch, block_size, registers, shared_bytes) == Occupancy(*expected)


def test_an_architecture_has_three_spellings():
    expected = occupancy("sm_90", 128, 40, 0)
    assert occupancy("sm_90a", 128, 40, 0) == expected
    assert occupancy("9.0", 128, 40, 0) == expected
    assert occupancy("12.1", 128, 40, 0) == occupancy("sm_121", 128, 40, 0)


@pytest.mark.parametrize("arch", ["sm_35", "3.5", "x86_64", "", "sm_9"])
def test_an_unknown_architecture_is_named_with_the_known_ones(arch):
    with pytest.raises(DeviceError, match=r"7\.0, 7\.2, .* 12\.1\)") as error:
        occupancy(arch, 128, 40, 0)
    assert repr(arch) in str(error.value)


@pytest.mark.parametrize(
    ("arch", "block_size", "registers", "shared_bytes", "expected"),
    [
        # 13 blocks of 4 warps need 13 warps a partition, 1260 registers each, so 1024: 32 a thread. 8 fewer.
        ("sm_90", 128, 40, 0, 8),
        ("sm_90", 256, 33, 0, 1),
        # 2 blocks of 5 warps become 3 with 4 warps a partition: 4096 a warp, 128 a thread.
        ("sm_90", 160, 168, 0, 40),
        # Not enough registers for one block: 64 is the most.
        ("sm_90", 1024, 80, 0, 16),
        ("sm_90", 128, 32, 49152, None),
        ("sm_90", 128, 32, 232449, None),
        ("sm_90", 256, 40, 0, 8),  # 6 blocks; with 32 registers 8
        ("sm_90", 256, 33, 0, 1),
        ("sm_90", 256, 32, 0, None),  # the warps bind
        ("sm_90", 256, 0, 0, None),
        # 4 blocks by shared memory, 4 by registers (128 a thread): fewer registers alone do not help.
        ("sm_90", 128, 128, 49152, None),
    ],
)
def test_next_step(arch, block_size, registers, shared_bytes, expected):
    assert next_step(arch, block_size, registers, shared_bytes) == expected


def test_next_step_keeps_its_promise():
    for block_size, registers in itertools.product((32, 96, 128, 224, 256, 512, 1024), range(1, 256)):
        fewer = next_step("sm_90", block_size, registers, 0)
        if fewer is not None:
            now = occupancy("sm_90", block_size, registers, 0).blocks_per_sm
            assert occupancy("sm_90", block_size, registers - fewer, 0).blocks_per_sm > now
            assert occupancy("sm_90", block_size, registers - fewer + 1, 0).blocks_per_sm == now


NVIDIA = r"""
#include <cstdio>
#include <cuda_occupancy.h>
int main() {
  int major, minor, threads, shared_per_sm, optin, reserved, block, registers, shared;
  while (scanf("%d.%d %d %d %d %d %d %d %d", &major, &minor, &threads, &shared_per_sm, &optin, &reserved,
               &block, &registers, &shared) == 9) {
    cudaOccDeviceProp device;
    device.computeMajor = major;
    device.computeMinor = minor;
    device.maxThreadsPerBlock = 1024;
    device.maxThreadsPerMultiprocessor = threads;
    device.regsPerBlock = device.regsPerMultiprocessor = 65536;
    device.warpSize = 32;
    device.sharedMemPerBlock = 49152;
    device.sharedMemPerMultiprocessor = shared_per_sm;
    device.sharedMemPerBlockOptin = optin;
    device.reservedSharedMemPerBlock = reserved;
    device.numSms = 1;
    cudaOccFuncAttributes kernel;
    kernel.maxThreadsPerBlock = 1024;
    kernel.numRegs = registers;
    kernel.sharedSizeBytes = 0;
    kernel.partitionedGCConfig = PARTITIONED_GC_OFF;
    kernel.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
    kernel.maxDynamicSharedSizeBytes = optin;
    kernel.numBlockBarriers = 1;
    cudaOccDeviceState state;
    cudaOccResult result;
    int error = cudaOccMaxActiveBlocksPerMultiprocessor(&result, &device, &kernel, &state, block, shared);
    printf("%d\n", error ? -error : result.activeBlocksPerMultiprocessor);
  }
}
"""


@pytest.mark.nvcc
def test_equals_nvidias_calculator(tmp_path):
    source, program = tmp_path / "calculator.cpp", tmp_path / "calculator"
    source.write_text(NVIDIA)
    subprocess.run([find_nvcc(), "--cudart", "none", "-o", str(program), str(source)], check=True)
    blocks = (1, 32, 33, 64, 96, 128, 160, 192, 256, 384, 512, 640, 768, 1000, 1024)
    registers = (1, 16, 24, 25, 32, 33, 40, 48, 56, 64, 65, 72, 80, 96, 97, 128, 129, 168, 200, 255)
    shared = (0, 1, 1024, 5000, 16384, 33000, 49152, 65536, 101376, 166912, 232448)
    cases = list(itertools.product(LIMITS, blocks, registers, shared))
    lines = []
    for capability, block_size, count, shared_bytes in cases:
        of = LIMITS[capability]
        per_block = of.shared_bytes_per_block
        device = f"{capability} {of.warps * 32} {of.shared_bytes} {per_block} {of.shared_reserved}"
        lines.append(f"{device} {block_size} {count} {shared_bytes}\n")
    run = subprocess.run([str(program)], input="".join(lines), capture_output=True, text=True, check=True)
    expected = [int(line) for line in run.stdout.split()]
    assert [occupancy(*case).blocks_per_sm for case in cases] == expected
