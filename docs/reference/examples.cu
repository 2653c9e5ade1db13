// SPDX-License-Identifier: Apache-2.0
// One example for each public type of the layout library, shown beside it on the page of the headers with what the
// compiler makes of it. `// == NAMES` begins one: the types that it uses first. Includes and namespace are those here.
#include "autotune/checked.cuh"
#include "autotune/convert.cuh"
#include "autotune/image.cuh"
#include "autotune/layout.cuh"
#include "autotune/mbarrier.cuh"
#include "autotune/runs.cuh"

using namespace autotune;

// == Array Global Texel Strided Extents Strides Dims1D Aos
using Matrix = Array<float, Global<Texel<4>>, Strided<Extents<0, 0>, Strides<unsigned, 0, 1>>, Dims1D, Aos>;

extern "C" __global__ void scale_matrix(Matrix matrix, float by) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < matrix.extent(1)) matrix.store(by * matrix.load(row, column), row, column);
}

// == GlobalArray Soa
struct Particle {
  float x, y, z, mass;
};
using Particles = GlobalArray<Particle, 1, 0, Soa>;

extern "C" __global__ void move_particles(Particles particles, float by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= particles.extent(0)) return;
  Particle particle = particles.load(i);
  particle.x += by;
  particles.store(particle, i);
}

// == Aosoa
extern "C" __global__ void move_in_runs(GlobalArray<Particle, 1, 0, Aosoa<32>> particles, float by) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= particles.extent(0)) return;
  Particle particle = particles.load(i);
  particle.x += by;
  particles.store(particle, i);
}

// == Apart Together
using Groups = GlobalArray<Particle, 1, 0, Apart<Together<0, 1, 2>, Together<3>>>;  // x, y, z; mass

extern "C" __global__ void sum_mass(Groups particles, GlobalArray<float> total) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  const float mass = i < particles.extent(0) ? load_field<&Particle::mass>(particles, i) : 0;
  const float sum = warp::sum(mass);
  if (threadIdx.x % 32 == 0) total.add(sum, 0);
}

// == Merged
using Line = Strided<Extents<0>, Strides<unsigned, 1>>;
using First = Array<float, Global<Texel<4>>, Line, Dims1D, Aos, Merged<2, 0>>;  // two arrays, element by element
using Second = Array<float, Global<Texel<4>>, Line, Dims1D, Aos, Merged<2, 1>>;

extern "C" __global__ void add_merged(First first, Second second) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < first.extent(0)) first.store(first.load(i) + second.load(i), i);
}

// == ReadOnly
extern "C" __global__ void gather(Array<unsigned, ReadOnly<Texel<4>>, Line> index, GlobalArray<float> values,
                                  GlobalArray<float> result) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < result.extent(0)) result.store(values.load(index.load(i)), i);
}

// == Texture1D
extern "C" __global__ void look_up(Array<float, Texture1D<Texel<4>>, Line> table, GlobalArray<unsigned> index,
                                   GlobalArray<float> result) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < result.extent(0)) result.store(table.load(index.load(i)), i);
}

// == Texture2D Dims2D
using Plane = Array<float, Texture2D<Texel<4>>, Line, Dims2D<12, 5>>;  // 4096 texels wide, filled 32 rows at a time

extern "C" __global__ void look_up_in_plane(Plane table, GlobalArray<unsigned> index, GlobalArray<float> result) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < result.extent(0)) result.store(table.load(index.load(i)), i);
}

// == Coordinates DimsRows
using Rows2 = Array<float, Texture2D<Texel<4>>, Coordinates<Extents<0, 0>>, DimsRows>;  // a texture's own rows

extern "C" __global__ void copy_rows(Rows2 rows, GlobalArray<float, 2> result) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < result.extent(1)) result.store(rows.load(row, column), row, column);
}

// == Constant
using Weights = Array<float, Constant<Texel<4>, 0>, Strided<Extents<9>, Strides<unsigned, 1>>>;

extern "C" __global__ void weigh(Weights weights, GlobalArray<float> values) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < 9; ++k) sum += weights.load(k) * values.load(i + k);
  values.store(sum, i);
}

// == Tiled
using OneTile = Strided<Extents<8, 8>, Strides<unsigned, 8, 1>>;
using Tiles = Tiled<OneTile, Strided<Extents<0, 0>, Strides<unsigned, 0, 64>>>;  // tiles by rows

extern "C" __global__ void scale_tiles(Array<float, Global<Texel<4>>, Tiles> matrix, float by) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < matrix.extent(1)) matrix.store(by * matrix.load(row, column), row, column);
}

// == Curved Morton
using Blocks = Strided<Extents<0, 0>, Strides<unsigned, 0, 256>>;  // of 16 x 16, by rows
using OnMorton = Curved<Morton, 16, Extents<1, 1>, Blocks, 0, 1>;

extern "C" __global__ void scale_on_morton(Array<float, Global<Texel<4>>, OnMorton> matrix, float by) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < matrix.extent(1)) matrix.store(by * matrix.load(row, column), row, column);
}

// == Hilbert
using OnHilbert = Curved<Hilbert, 16, Extents<1, 1>, Blocks, 0, 1>;

extern "C" __global__ void scale_on_hilbert(Array<float, Global<Texel<4>>, OnHilbert> matrix, float by) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < matrix.extent(1)) matrix.store(by * matrix.load(row, column), row, column);
}

// == Swizzled
using SwizzledRows = Swizzled<Strided<Extents<0, 0>, Strides<unsigned, 0, 1>>, 0, 1, 8, 1>;  // 8 columns change places

extern "C" __global__ void scale_swizzled(Array<float, Global<Texel<4>>, SwizzledRows> matrix, float by) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < matrix.extent(1)) matrix.store(by * matrix.load(row, column), row, column);
}

// == SharedTile Xor
extern "C" __global__ void transpose(GlobalArray<float, 2> matrix, GlobalArray<float, 2> transposed) {
  __shared__ SharedTile<float, 32, 32, Xor<32>> tile;
  tile(threadIdx.y, threadIdx.x) = matrix.load(blockIdx.y * 32 + threadIdx.y, blockIdx.x * 32 + threadIdx.x);
  __syncthreads();
  transposed.store(tile(threadIdx.x, threadIdx.y), blockIdx.x * 32 + threadIdx.y, blockIdx.y * 32 + threadIdx.x);
}

// == SharedArray
using Padded = Strided<Extents<32, 32>, Strides<unsigned, 33, 1>>;

extern "C" __global__ void transpose_padded(GlobalArray<float, 2> matrix, GlobalArray<float, 2> transposed) {
  __shared__ SharedArray<float, Padded, 32 * 33> tile;
  tile(threadIdx.y, threadIdx.x) = matrix.load(blockIdx.y * 32 + threadIdx.y, blockIdx.x * 32 + threadIdx.x);
  __syncthreads();
  transposed.store(tile(threadIdx.x, threadIdx.y), blockIdx.x * 32 + threadIdx.y, blockIdx.y * 32 + threadIdx.x);
}

// == Packed Bits
using FourBits = Packed<Bits<4>, 1>;  // eight numbers of four bits in a word

extern "C" __global__ void count_equal(GlobalArray<FourBits> words, GlobalArray<unsigned> counts) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= counts.extent(0)) return;
  const unsigned differ = Bits<4>::differ(words.load(i).word[0], words.load(i + 1).word[0]);
  counts.store(Bits<4>::elements - Bits<4>::count(differ), i);
}

// == Planes
using TwoPlanes = Packed<Planes<2>, 1>;  // 32 numbers of two bits, a word for each bit

extern "C" __global__ void count_equal_planes(GlobalArray<TwoPlanes> words, GlobalArray<unsigned> counts) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= counts.extent(0)) return;
  const unsigned differ = Planes<2>::differ(words.load(i).word[0], words.load(i + 1).word[0]);
  counts.store(Planes<2>::elements - Planes<2>::count(differ), i);
}

// == Narrow Float16 NoScale
template <class Codec, class Scale, class Records = Aos>
using Stored = Narrow<float, float, Codec, Scale,
                      Array<CodesOf<typename Codec::Code, 1>, Global<Texel<sizeof(typename Codec::Code)>>,
                            Strided<Extents<0, 0>, Strides<unsigned, 0, 1>>, Dims1D, Records>>;

extern "C" __global__ void scale_float16(Stored<Float16, NoScale> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == BFloat16
extern "C" __global__ void scale_bfloat16(Stored<BFloat16, NoScale> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == Float8E4M3
extern "C" __global__ void scale_float8_e4m3(Stored<Float8E4M3, NoScale> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == Float8E5M2
extern "C" __global__ void scale_float8_e5m2(Stored<Float8E5M2, NoScale> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == Float32
using Doubles = Narrow<double, double, Float32, NoScale, Array<CodesOf<Float32::Code, 1>, Global<Texel<4>>, Line>>;

extern "C" __global__ void scale_doubles(Doubles numbers, double by) {
  numbers.store(by * numbers.load(threadIdx.x), threadIdx.x);
}

// == ScaledInt8 FixedScale
constexpr unsigned one_in_127 = 0x3c010204u;  // the bits of 1 / 127.0f, for numbers of -1 to 1

extern "C" __global__ void scale_int8(Stored<ScaledInt8, FixedScale<one_in_127>> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == ScaledInt16 ArrayScale
extern "C" __global__ void read_int16(Stored<ScaledInt16, ArrayScale, Followed<Aos>> matrix, GlobalArray<float> sums) {
  sums.store(matrix.load(blockIdx.x, threadIdx.x), threadIdx.x);
}

// == RowScale
extern "C" __global__ void read_int8_by_row(Stored<ScaledInt8, RowScale, Followed<Aos>> matrix,
                                            GlobalArray<float> sums) {
  sums.store(matrix.load(blockIdx.x, threadIdx.x), threadIdx.x);
}

// == Image Edge Elements Nearest
using Clamped = Image<GlobalArray<float, 2>, 2, Edge::clamp, Elements, Nearest>;

extern "C" __global__ void blur_row(Clamped image, GlobalArray<float, 2> blurred) {
  const int row = blockIdx.x, column = threadIdx.x;
  if (column >= static_cast<int>(image.extent(1))) return;
  blurred.store((image.load(row, column - 1) + image.load(row, column) + image.load(row, column + 1)) / 3, row, column);
}

// == TextureImage Normalised Linear
using Photo = TextureImage<unsigned char, Extents<0, 0>, Edge::mirror, Normalised, Linear, 0, 1>;

extern "C" __global__ void shrink(Photo photo, GlobalArray<float, 2> small) {
  const unsigned row = blockIdx.x, column = threadIdx.x;
  if (column < small.extent(1)) small.store(photo.sample(2 * row + 0.5f, 2 * column + 0.5f), row, column);
}

// == SurfaceImage
extern "C" __global__ void fill(SurfaceImage<float, Extents<0, 0>, 0, 1> image, float with) {
  if (threadIdx.x < image.extent(1)) image.store(with, blockIdx.x, threadIdx.x);
}

// == Checked
struct Ignored {
  AUTOTUNE_DEVICE static void report(long long, int, unsigned) {}  // or what a debug build says
};

extern "C" __global__ void scale_checked(Checked<GlobalArray<float, 2>, Ignored> matrix, float by) {
  matrix.store(by * matrix.load(blockIdx.x, threadIdx.x), blockIdx.x, threadIdx.x);
}

// == Conversion
using ByRows = GlobalArray<float, 2, 1>;
using ByColumns = GlobalArray<float, 2, 0>;

extern "C" __global__ void copy_by_columns(ByRows from, ByColumns to) {  // in blocks of conversion_threads
  convert<Conversion<2, 1, 0, 32, unsigned>>(from, to);
}

// == Place Run
extern "C" __global__ void list_pairs(GlobalArray<unsigned> rows, GlobalArray<unsigned> columns, Run pairs) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= rows.extent(0)) return;
  const Place place = pairs[i];
  rows.store(place.row, i);
  columns.store(place.column, i);
}

// == Chunk
extern "C" __global__ void sum_chunks(GlobalArray<float, 2> matrix, GlobalArray<float> sums, Run all) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= sums.extent(0)) return;
  const Chunk part = chunk(all, i, 8);
  float sum = 0;
  for (unsigned k = part.column; k < part.column + 8 && k < part.end; ++k) sum += matrix.load(part.row, k);
  sums.store(sum, i);
}

// == MBarrier
extern "C" __global__ void pass_on(GlobalArray<float> values) {
  __shared__ MBarrier barrier;
  __shared__ float passed;
  if (threadIdx.x == 0) barrier.init(1);
  __syncthreads();
  if (threadIdx.x == 0) {
    passed = values.load(0);
    barrier.arrive();
  }
  barrier.wait(0);
  values.store(passed, threadIdx.x);
}
