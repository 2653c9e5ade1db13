"""The accessors of some layouts as compiled code: the C++ types that the product gives a kernel, and the library's
headers, compiled as for a GPU by clang without optimising."""

import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import ir

from autotune.files import include_dir
from autotune.layout.arrays import SCALAR_TYPES
from autotune.layout.layout import Layout
from autotune.layout.shared_layout import SharedLayout

# What CUDA's compiler knows by itself, as far as the headers use it.
CUDA = """\
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __global__
#define __shared__ static
#define __constant__ static
#define __align__(n) __attribute__((aligned(n)))
#define memcpy __builtin_memcpy
typedef unsigned long long cudaTextureObject_t;
struct __attribute__((aligned(8))) uint2 { unsigned x, y; };
struct __attribute__((aligned(16))) uint4 { unsigned x, y, z, w; };
struct Indices { unsigned x, y, z; };
extern Indices threadIdx, blockIdx;
template <class Texel> Texel tex1Dfetch(cudaTextureObject_t, int);
template <class Texel> Texel tex2D(cudaTextureObject_t, float, float);
template <class Texel> __forceinline__ Texel __ldg(const Texel* place) { return *place; }
__forceinline__ int __popc(unsigned bits) { return __builtin_popcount(bits); }
template <class Value> Value atomicAdd(Value*, Value);
extern "C" { float rintf(float); } float sqrtf(float); double sqrt(double); double fabs(double); void __syncthreads();
"""
_HEADERS = (
    "array",
    "tile",
    "curve",
    "swizzle",
    "shared_array",
    "fields",
    "storage",
    "element",
    "field_access",
    "convert",
)
_SCALE = """\
template <class Value, class Number, class Codec, class Scale, class Codes, class... Indices>
float scale_of(const autotune::Narrow<Value, Number, Codec, Scale, Codes>& array, Indices... at) {
  return Scale::of(array.codes, at...);
}
// Instead of a curve: what it does is another claim.
struct Opaque {
  template <int RANK, class Index>
  AUTOTUNE_DEVICE static Index place(const Index (&cell)[RANK], Index side) {
    if constexpr (RANK == 2) return opaque_place(cell[0], cell[1], side);
    else return opaque_place(cell[0], cell[1], cell[2], side);
  }
};
"""
_PLACES = "".join(
    f"{index} opaque_place({', '.join([index] * count)});\n"
    for index in ("unsigned", "unsigned long long")
    for count in (3, 4)
)


def is_written(layout: Layout) -> bool:
    """Whether its accessor stores."""
    return layout.data.role != "input"


def source(layouts: Sequence[Layout], text: str = "") -> str:
    """C++ text with the functions load<k>, store<k> and, of scaled numbers, scale<k> of layout number k."""
    records = {layout.data.record: layout for layout in layouts if layout.data.record}
    lines = [CUDA, *(f'#include "autotune/{name}.cuh"\n' for name in _HEADERS), _PLACES, _SCALE, text]
    for name, layout in records.items():
        kinds = {"uint8": "unsigned char", "uint16": "unsigned short", "uint32": "unsigned", "float32": "float",
                 "float64": "double"}  # fmt: skip
        lines.append(
            f"struct {name} {{ {' '.join(f'{kinds[f.type]} {f.name};' for f in layout.data.fields)} }};\n"
        )
    for number, layout in enumerate(layouts):
        rank = len(layout.data.shape)
        declared = ", ".join(f"unsigned i{axis}" for axis in range(rank))
        given = ", ".join(f"i{axis}" for axis in range(rank))
        array = "a.codes" if layout.storage else "a"
        accessor = "codes.load" if layout.storage else "load"
        zeros = ", ".join(["0u"] * rank)
        if layout.data.role == "shared":
            element = SCALAR_TYPES[layout.data.fields[0].type]
            lines += [
                f"using S{number} = {SharedLayout(layout).cpp};\n",
                f"static_assert(sizeof(S{number}) == {SharedLayout(layout).nbytes});\n",
                f'extern "C" void load{number}(const S{number}& a, {element}* value, {declared}) {{\n',
                f"  *value = a({given});\n}}\n",
                f'extern "C" void store{number}(S{number}& a, const {element}* value, {declared}) {{\n',
                f"  a({given}) = *value;\n}}\n",
            ]
            continue
        lines += [
            f"using A{number} = {layout.cpp};\n",
            f"using V{number} = decltype(static_cast<A{number}*>(nullptr)->{accessor}({zeros}));\n",
            f'extern "C" void load{number}(const A{number}& a, V{number}* value, {declared}) {{\n',
            f"  *value = {array}.load({given});\n}}\n",
        ]
        if is_written(layout):
            lines.append(
                f'extern "C" void store{number}(const A{number}& a, const V{number}* value, {declared}) '
                f"{{ {array}.store(*value, {given}); }}\n"
            )
        if layout.stored_scales:
            lines.append(
                f'extern "C" void scale{number}(const A{number}& a, float* value, {declared}) '
                f"{{ *value = scale_of(a, {given}); }}\n"
            )
    return "".join(lines)


def compiled(text: str, changed: Mapping[str, tuple[str, str]] = {}, level: str = "-O0") -> ir.Module:
    """The text as clang compiles it. ``changed`` headers have another text in place of one that they have."""
    with tempfile.TemporaryDirectory() as folder:
        for name, (old, new) in changed.items():
            header = (include_dir() / "autotune" / name).read_text()
            assert header.count(old) >= 1, f"{name} has no {old!r} that could be planted wrong"
            path = Path(folder) / "autotune" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(header.replace(old, new))
        if changed:  # a header includes others by the folder it is in
            for header_path in (include_dir() / "autotune").glob("*.cuh"):
                target = Path(folder) / "autotune" / header_path.name
                if not target.exists():
                    target.write_text(header_path.read_text())
        made = Path(folder) / "made.cpp"
        made.write_text(text)
        options = "-std=c++17 -g0 -Wno-everything -fno-vectorize -fno-slp-vectorize -fno-sanitize=all"
        command = [
            sys.executable, "-m", "ziglang", "c++", level, *options.split(), "-fno-stack-protector", "-S",
            "-emit-llvm", "-I", folder,
            "-I", str(include_dir()), str(made), "-o", f"{folder}/made.ll",
        ]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr[:2000])
        return ir.Module((Path(folder) / "made.ll").read_text())
