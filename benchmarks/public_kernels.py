"""Kernels of public repositories on the cpu device: which run there, and what the others lack.

    python benchmarks/public_kernels.py FOLDER --out benchmarks/results/public-kernels-cpu.csv

FOLDER holds checkouts of the repositories in ``KERNELS``, each under its name: https://github.com/karpathy/llm.c and
https://github.com/zjin-lcf/HeCBench. Each kernel goes through ``autotune adopt`` as its file is, with the options that a
user would have to add: proved means that the kernel as it was and the rewritten one ran on the cpu device on random
inputs and left the same bytes, and wrote at least 90 % of each output. ``--list CSV`` takes other kernels, with the
columns of that table.
"""

import argparse
import csv
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from harness import python_path
from result_files import write_rows

COLUMNS = ("set", "repository", "file", "kernel", "uses", "options")
# `tried` are those that a newcomer tried before the cpu device had half, cooperative groups or CUB, `modern` those
# that use them.
KERNELS = """\
set,repository,file,kernel,uses,options
tried,HeCBench,src/heat2d-cuda/main.cu,dev_lapl_iter,,
tried,HeCBench,src/floydwarshall-cuda/main.cu,floydWarshallPass,,
tried,HeCBench,src/lif-cuda/main.cu,lif,,
tried,HeCBench,src/knn-cuda/main.cu,cuComputeDistanceGlobal,,
tried,HeCBench,src/knn-cuda/main.cu,cuInsertionSort,,
tried,HeCBench,src/bfs-cuda/bfs.cu,Kernel,,
tried,HeCBench,src/minkowski-cuda/main.cu,minkowski,,
tried,HeCBench,src/laplace3d-cuda/main.cu,laplace3d,,
tried,HeCBench,src/rodrigues-cuda/main.cu,rotate,,
tried,HeCBench,src/perlin-cuda/noise.cu,perlin,,
tried,HeCBench,src/particles-cuda/particles.cu,integrateSystemK,,
tried,HeCBench,src/stencil3d-cuda/main.cu,stencil3d,,
tried,HeCBench,src/dct8x8-cuda/kernels.cu,DCT8x8_kernel,,"--grid 'ceil_div(imageW, 32), ceil_div(imageH, 16)' --block '32, 2'"
tried,HeCBench,src/page-rank-cuda/main.cu,map,,
tried,HeCBench,src/black-scholes-cuda/blackScholesAnalyticEngine.cu,getOutValOption,,
tried,HeCBench,src/nms-cuda/main.cu,generate_nms_bitmap,,
tried,llm.c,dev/cuda/softmax_forward.cu,softmax_forward_kernel1,,
tried,llm.c,dev/cuda/softmax_forward.cu,softmax_forward_kernel2,,
tried,llm.c,dev/cuda/adamw.cu,adamw_kernel1,,
tried,llm.c,dev/cuda/crossentropy_forward.cu,crossentropy_forward_kernel1,,
tried,llm.c,dev/cuda/gelu_forward.cu,gelu_forward_kernel1,half,
tried,llm.c,dev/cuda/encoder_forward.cu,encoder_forward_kernel1,half,
tried,llm.c,dev/cuda/layernorm_forward.cu,layernorm_forward_kernel3,groups,
tried,llm.c,dev/cuda/trimat_forward.cu,trimul_global<matmul_tri_naive>,,
tried,llm.c,dev/cuda/layernorm_forward.cu,mean_kernel,,
tried,llm.c,dev/cuda/permute.cu,permute_kernel,,
modern,llm.c,dev/cuda/layernorm_forward.cu,layernorm_forward_kernel4,groups,
modern,llm.c,dev/cuda/layernorm_forward.cu,layernorm_forward_kernel5,groups,
modern,llm.c,dev/cuda/softmax_forward.cu,softmax_forward_online_kernel2,groups,
modern,llm.c,dev/cuda/attention_forward.cu,softmax_forward_kernel5,groups,
modern,llm.c,dev/cuda/attention_backward.cu,softmax_autoregressive_backward_kernel4<256>,groups,"--grid 'T, B * NH' --block 256"
modern,llm.c,dev/cuda/gelu_backward.cu,gelu_backward1,half,
modern,llm.c,dev/cuda/gelu_forward.cu,gelu_forward_kernel2,half,
modern,llm.c,dev/cuda/residual_forward.cu,residual_forward_kernel1,half,
modern,llm.c,dev/cuda/residual_forward.cu,residual_forward_kernel2,half,
modern,llm.c,dev/cuda/fused_residual_forward.cu,fused_residual_forward3,half groups,"--grid 'ceil_div(N, 8)' --block '32, 8'"
modern,llm.c,dev/cuda/fused_residual_forward.cu,layernorm_forward_kernel1,half,
modern,llm.c,dev/cuda/matmul_backward_bias.cu,matmul_backward_bias_kernel2,half groups,
modern,llm.c,dev/cuda/matmul_backward_bias.cu,cast_and_add_kernel,half,
modern,llm.c,dev/cuda/layernorm_backward.cu,layernorm_backward_kernel1,half,
modern,llm.c,dev/cuda/layernorm_backward.cu,"layernorm_backward_kernel2<floatX, floatX, floatX, floatX>",half groups,
modern,llm.c,dev/cuda/global_norm.cu,norm_kernel1<floatX>,half groups,--grid 8 --block 512
modern,llm.c,dev/cuda/classifier_fused.cu,fused_classifier_kernel1,groups,
modern,HeCBench,src/accuracy-cuda/main.cu,accuracy_kernel,cub,
modern,HeCBench,src/adjacent-cuda/main.cu,BlockAdjDiffKernel<128>,cub,--grid 4 --block 128
modern,HeCBench,src/all-pairs-distance-cuda/main.cu,k3,cub,
modern,HeCBench,src/attention-cuda/main.cu,attention_kernel1_blockReduce,cub groups,
modern,HeCBench,src/attention-cuda/main.cu,attention_kernel1_warpReduce,groups,
modern,HeCBench,src/blockScan-cuda/main.cu,"BlockPrefixSumKernel<128, 4, BLOCK_SCAN_RAKING>",cub,--grid 1 --block 128
modern,HeCBench,src/channelSum-cuda/main.cu,"ChannelSumNCHW<float, 16, 16>",cub,"--grid C --block '16, 16'"
modern,HeCBench,src/damage-cuda/main.cu,damage_of_node,cub,
modern,HeCBench,src/dp-cuda/main.cu,dot_product<float>,cub,"--grid 'ceil_div(n, 1024)' --block 1024"
modern,HeCBench,src/dp4a-cuda/main.cu,"dot_product<int, 4>",cub,"--grid 'ceil_div(n, 1024)' --block 1024"
modern,HeCBench,src/f16max-cuda/main.cu,hmax<half>,half,"--grid 'ceil_div(size, 128)' --block 128"
modern,HeCBench,src/f16sp-cuda/main.cu,scalarProductKernel_native_fp32,half cub,
modern,HeCBench,src/gd-cuda/main.cu,compute,cub groups,
modern,HeCBench,src/gelu-cuda/main.cu,gelu_bias_loop_base,half,--grid height --block 64
modern,HeCBench,src/groupnorm-cuda/main.cu,groupnorm_forward_kernel,groups,--grid 'B * n_groups' --block 256
modern,HeCBench,src/layernorm-cuda/main.cu,layernorm_forward_kernel1,groups,
modern,HeCBench,src/logprob-cuda/main.cu,log_probs_kernel,half,
modern,HeCBench,src/matrixT-cuda/main.cu,transposeCoalesced,groups,"--grid 'width // 16, height // 16' --block '16, 16'"
modern,HeCBench,src/moe-align-cuda/main.cu,moe_align_block_size_kernel<int>,cub,--grid 1 --block 1024
modern,HeCBench,src/moe-cuda/main.cu,moeSoftmax,cub,
modern,HeCBench,src/nlll-cuda/main.cu,"nll_loss_forward_reduce2d_kernel<__half, float, int, 256>",half,--grid 1 --block 256
modern,HeCBench,src/relu-cuda/main.cu,ReluGrad_impl1,half,
modern,HeCBench,src/scel-cuda/main.cu,SigmoidCrossEntropyWithLogitsKernel,cub,--grid 8 --block 128
modern,HeCBench,src/softmax-cuda/main.cu,softMax2,groups,
modern,HeCBench,src/softmax-online-cuda/main.cu,softmax_forward_online_kernel,cub groups,"--grid 'ceil_div(N, 4)' --block 128"
modern,HeCBench,src/vadd-cuda/main.cu,base_elementwise_add_kernel,half,
modern,HeCBench,src/graphExecution-cuda/main.cu,reduce,groups,
"""


def tried(folder: Path, row: Mapping[str, str], seconds: float) -> dict[str, object]:
    """What came of a kernel: proved, unproved or refused, with the reason."""
    source = folder / row["repository"] / row["file"]
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as made:
        command = [sys.executable, "-m", "autotune", "adopt", str(source), "--kernel", row["kernel"], "-o",
                   f"{made}/family", "-I", str(source.parent), *shlex.split(row["options"])]  # fmt: skip
        path = {**os.environ, "PYTHONPATH": python_path()}
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=seconds, cwd=made, env=path, check=False
            )
            said = f"{done.stdout}\n{done.stderr}"
        except subprocess.TimeoutExpired:
            said = f"unproved: it took more than {seconds:.0f} s"
    said = re.sub(r"\S*/(?=[\w.-]+\.(?:cu|cuh|h|hpp)\b)", "", said)
    found = re.search(r"^(proved|unproved|error): (.*)", said, re.MULTILINE)
    result, reason = found.groups() if found else ("refused", said.strip().splitlines()[-1:] or [""])
    accesses = re.search(r"(\d+) accesses of memory", said)
    return {
        **{name: row[name] for name in COLUMNS},
        "result": "refused" if result == "error" else result,
        "accesses": accesses[1] if accesses and result == "proved" else "",
        "seconds": f"{time.perf_counter() - begun:.0f}",
        "reason": "" if result == "proved" else str(reason)[:300],
    }


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--list", type=Path, help="a CSV of kernels in place of KERNELS")
    parser.add_argument("--only", default="", help="kernels whose file or name this text is in")
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args(words)
    text = given.list.read_text(encoding="utf-8") if given.list else KERNELS
    rows = [row for row in csv.DictReader(io.StringIO(text)) if given.only in f"{row['file']} {row['kernel']}"]
    found = []
    for row in rows:
        found.append(tried(given.folder, row, given.seconds))
        print(f"{row['repository']} {row['kernel']}: {found[-1]['result']} {found[-1]['reason']}", flush=True)
    write_rows(given.out, found)
    for name in dict.fromkeys(row["set"] for row in rows):
        results = [row["result"] for row in found if row["set"] == name]
        print(f"{name}: {results.count('proved')} of {len(results)} proved")
    return 0


if __name__ == "__main__":
    sys.exit(main())
