// Microbenchmarks of what a device can do at most: nothing of a family is in here. `Policy` gives `chains`, the
// independent values of a thread, and `unroll`, the operations on each of them in one pass of the inner loop; every
// parameter is 8 bytes. A result is written only where it has a value that it never has, so that nothing is left out.

using Word = unsigned long long;

__device__ inline void add(uint4& sum, const uint4& value) {
  sum.x ^= value.x, sum.y ^= value.y, sum.z ^= value.z, sum.w ^= value.w;
}

__device__ inline void keep(const uint4& sum, uint4* sink) {
  if (sum.x == 0x9e3779b9u && sum.y == 0x7f4a7c15u && sum.z == 0xf39cc060u) *sink = sum;
}

template <class Policy>
__global__ void nothing() {}

// `count` values of 16 bytes, read once and written once.
template <class Policy>
__global__ void copy_memory(const uint4* __restrict__ from, uint4* __restrict__ to, Word count) {
  const Word stride = Word(gridDim.x) * blockDim.x;
#pragma unroll 4
  for (Word i = Word(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) to[i] = from[i];
}

// `count` values of 16 bytes, read once.
template <class Policy>
__global__ void read_memory(const uint4* __restrict__ from, Word count, uint4* sink) {
  const Word stride = Word(gridDim.x) * blockDim.x;
  uint4 sum{};
#pragma unroll 8
  for (Word i = Word(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) add(sum, __ldcs(from + i));
  keep(sum, sink);
}

// Four neighbouring threads read one record of 64 bytes, `steps` times, each time elsewhere among `records` (a power
// of two). The places do not depend on what was read, so many are under way at once.
template <class Policy>
__global__ void fetch_records(const uint4* __restrict__ from, Word records, Word steps, uint4* sink) {
  const Word thread = Word(blockIdx.x) * blockDim.x + threadIdx.x;
  Word place = thread / 4 * 0x9e3779b97f4a7c15ull;
  uint4 sum{};
#pragma unroll 8
  for (Word step = 0; step < steps; ++step) {
    place = place * 6364136223846793005ull + 1442695040888963407ull;  // Knuth's MMIX generator
    add(sum, __ldcg(from + (place >> 32 & (records - 1)) * 4 + thread % 4));
  }
  keep(sum, sink);
}

// `steps` reads of 16 bytes by each thread past L1, warp by warp in a row, among `count` values (a power of two) that
// fit L2.
template <class Policy>
__global__ void read_l2(const uint4* __restrict__ from, Word count, Word steps, uint4* sink) {
  const unsigned mask = unsigned(count) - 1;
  unsigned place = blockIdx.x * blockDim.x + threadIdx.x;
  uint4 sum{};
#pragma unroll 8
  for (Word step = 0; step < steps; ++step) {
    add(sum, __ldcg(from + (place & mask)));
    place += 32 * 1021;
  }
  keep(sum, sink);
}

// `steps` times `unroll` reads of 16 bytes by each thread, without bank conflicts.
template <class Policy>
__global__ void read_shared(Word steps, uint4* sink) {
  constexpr unsigned kSize = 1024;  // 16 KiB
  __shared__ uint4 tile[kSize];
  for (unsigned i = threadIdx.x; i < kSize; i += blockDim.x) tile[i] = uint4{i, i + 1, i + 2, i + 3};
  __syncthreads();
  unsigned place = threadIdx.x;
  uint4 sum{};
  for (Word step = 0; step < steps; ++step) {
#pragma unroll
    for (unsigned k = 0; k < Policy::unroll; ++k) add(sum, tile[(place & (kSize / 2 - 1)) + 32 * k]);
    place += 32;
  }
  keep(sum, sink);
}

// `steps` times `unroll` operations on each of `chains` values; Operation(value) is one operation.
template <class Policy, class Value, class Operation>
__device__ inline Value repeated(Word steps, Value start, Operation operation) {
  Value value[Policy::chains];
#pragma unroll
  for (int i = 0; i < Policy::chains; ++i) value[i] = start + Value(threadIdx.x + i);
  for (Word step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < Policy::unroll; ++k) {
#pragma unroll
      for (int i = 0; i < Policy::chains; ++i) value[i] = operation(value[i]);
    }
  }
  Value sum{};
#pragma unroll
  for (int i = 0; i < Policy::chains; ++i) sum += value[i];
  return sum;
}

template <class Policy>
__global__ void fma_fp32(Word steps, float* sink) {
  const float a = 1.0f / float(blockDim.x + 1), b = float(gridDim.x);
  const float sum = repeated<Policy>(steps, 1.0f, [=](float x) { return fmaf(x, a, b); });
  if (sum == -1.0f) *sink = sum;
}

template <class Policy>
__global__ void fma_fp64(Word steps, double* sink) {
  const double a = 1.0 / double(blockDim.x + 1), b = double(gridDim.x);
  const double sum = repeated<Policy>(steps, 1.0, [=](double x) { return fma(x, a, b); });
  if (sum == -1.0) *sink = sum;
}

// The special function unit, by the reciprocal square root that it computes itself.
template <class Policy>
__global__ void rsqrt_mufu(Word steps, float* sink) {
  const float sum = repeated<Policy>(steps, 2.0f, [](float x) {
    asm volatile("rsqrt.approx.ftz.f32 %0, %0;" : "+f"(x));
    return x;
  });
  if (sum == -1.0f) *sink = sum;
}

template <class Policy>
__global__ void count_bits(Word steps, unsigned* sink) {
  const unsigned sum = repeated<Policy>(steps, 7u, [](unsigned x) {
    asm volatile("popc.b32 %0, %0;" : "+r"(x));
    return x;
  });
  if (sum == 0x9e3779b9u) *sink = sum;
}

// 32-bit adds, each to another value that the next one changes, so that no two become one add of three.
template <class Policy>
__global__ void add_integers(Word steps, unsigned* sink) {
  unsigned value[Policy::chains];
#pragma unroll
  for (int i = 0; i < Policy::chains; ++i) value[i] = threadIdx.x + i;
  for (Word step = 0; step < steps; ++step) {
#pragma unroll
    for (int k = 0; k < Policy::unroll; ++k) {
#pragma unroll
      for (int i = 0; i < Policy::chains; ++i) value[i] += value[(i + 1) % Policy::chains];
    }
  }
  unsigned sum = 0;
#pragma unroll
  for (int i = 0; i < Policy::chains; ++i) sum ^= value[i];
  if (sum == 0x9e3779b9u) *sink = sum;
}
