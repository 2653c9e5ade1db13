// Small kernels for test_cpu_shim.py, each using one thing that CUDA has and a host compiler has not.
#include "autotune/array.cuh"
#include "autotune/shared.cuh"

__constant__ float table[4];

// Counts every visit of every thread: an index left out or run twice shows.
template <class V>
__global__ void coverage(unsigned* visits) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  ++visits[block * (blockDim.x * blockDim.y * blockDim.z) + thread];
}

// The same with barriers, after which each thread must still be itself.
template <class V>
__global__ void coverage_with_barriers(unsigned* visits) {
  __syncthreads();
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  __syncwarp();
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  __syncthreads();
  visits[block * (blockDim.x * blockDim.y * blockDim.z) + thread] += 1 + threadIdx.x;
}

template <class V>
__global__ void block_sum(const int* values, int* sums) {
  __shared__ int partial[1024];
  partial[threadIdx.x] = values[blockIdx.x * blockDim.x + threadIdx.x];
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) partial[threadIdx.x] += partial[threadIdx.x + half];
  }
  if (threadIdx.x == 0) sums[blockIdx.x] = partial[0];
}

// The threads past `stay` return before the barrier, some after it.
template <class V>
__global__ void early_return(int* out, int stay) {
  __shared__ int seen;
  if (threadIdx.x == 0) seen = 0;
  if (static_cast<int>(threadIdx.x) >= stay && threadIdx.x % 2) return;
  __syncthreads();
  atomicAdd(&seen, 1);
  if (static_cast<int>(threadIdx.x) >= stay) return;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = seen;
}

template <class V>
__global__ void predicates(int* out) {
  const int x = static_cast<int>(threadIdx.x);
  int* const mine = out + 3 * x;
  mine[0] = __syncthreads_count(x % 3 == 0);
  mine[1] = __syncthreads_or(x == 70);
  mine[2] = __syncthreads_and(x < 70);
}

template <class V, class T>
AUTOTUNE_DEVICE T warp_total(T value) {
  for (int lanes = 16; lanes > 0; lanes /= 2) value += __shfl_down_sync(~0u, value, lanes);
  return __shfl_sync(~0u, value, 0);
}

template <class V>
__global__ void shuffles(const int* in, double* out) {
  const int lane = threadIdx.x % 32, value = in[threadIdx.x];
  double* const mine = out + 12 * threadIdx.x;
  mine[0] = warp_total<V>(value);
  mine[1] = warp_total<V>(value * 0.5);
  mine[2] = static_cast<double>(warp_total<V>(static_cast<long long>(value) << 32));
  mine[3] = __shfl_up_sync(~0u, value, 1);
  mine[4] = __shfl_xor_sync(~0u, static_cast<float>(value), 5);
  mine[5] = __shfl_down_sync(~0u, value, 3, 8);
  mine[6] = __shfl_sync(~0u, static_cast<unsigned>(value), 9, 8);
  mine[7] = __ballot_sync(~0u, value % 2);
  mine[8] = __any_sync(~0u, value == 77) + 2 * __all_sync(~0u, value >= 0);
  mine[9] = __reduce_add_sync(~0u, value) + __reduce_min_sync(~0u, value) * 1e4;
  // Lanes at different operations at the same time: each half for itself, then all together.
  if (lane < 16)
    mine[10] = __shfl_xor_sync(0x0000ffffu, value, 1);
  else
    mine[10] = __reduce_max_sync(0xffff0000u, value);
  mine[11] = __popc(__activemask());
}

template <class V>
__global__ void atomics(int* i, float* f, double* d, unsigned long long* u) {
  const int thread = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(i, 1);
  atomicMax(i + 1, thread);
  atomicMin(i + 2, -thread);
  atomicOr(i + 3, 1 << thread % 31);
  atomicSub(i + 4, 2);
  for (int seen = i[5]; seen != atomicCAS(i + 5, seen, seen + 1); seen = i[5]) {
  }
  atomicAdd(f, 1.0f);
  atomicAdd(d, 0.25);
  atomicAdd(u, 1ull << 33);
}

// Copies through whatever memory V says.
template <class V>
__global__ void copy(typename V::in in, typename V::out out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < out.extent(0)) out.store(in.load(i), i);
}

template <class V>
__global__ void texels(cudaTextureObject_t line, cudaTextureObject_t plane, float* out) {
  out[0] = tex1Dfetch<float>(line, 2);
  out[1] = tex1Dfetch<float>(line, 1000);
  out[2] = tex2D<float>(plane, 1.5f, 1.5f);
  out[3] = tex2D<float>(plane, -3.0f, 1.9f);
  out[4] = tex2D<float>(plane, 99.0f, 99.0f);
}

template <class V>
__global__ void reversed(int* out) {
  int* const buffer = autotune::dynamic_shared<int>();
  buffer[threadIdx.x] = static_cast<int>(blockIdx.x * 1000 + threadIdx.x);
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}

// Lane 0 waits for its warp, the others wait for the block.
template <class V>
__global__ void diverged(int* out) {
  if (threadIdx.x == 0)
    __syncwarp();
  else
    __syncthreads();
  out[threadIdx.x] = 1;
}

template <class V>
__global__ void trap_in_block(int block) {
  __syncthreads();
  if (static_cast<int>(blockIdx.x) == block && threadIdx.x == 5) __trap();
  __syncthreads();
}

template <class V>
__global__ void arithmetic(int* out) {
  out[0] = __popc(0xf0f0u) + 100 * __clz(1) + 10000 * __ffs(8);
  out[1] = static_cast<int>(__brev(1u) == 0x80000000u && __brev(0x12345678u) == 0x1e6a2c48u);
  out[2] = static_cast<int>(__umulhi(0x80000000u, 6u));
  out[3] = __mul24(-3, 5);
  out[4] = min(-1, 2) + max(3u, 2);
  out[5] = static_cast<int>(rsqrtf(0.25f) + fmaf(2.0f, 3.0f, 4.0f));
  out[6] = static_cast<int>(__funnelshift_l(0x80000000u, 1u, 1));
  out[7] = static_cast<int>(sizeof(float4) + alignof(float4) + alignof(uchar4) + sizeof(double2) + sizeof(int3));
}

// The faults that only another order shows: each gives out[i] == first + i when blocks and threads run in ascending
// order. `first` is another one in each launch, so that what an earlier one left in shared memory is not right.

// No barrier between what a thread writes and what its neighbour reads.
template <class V>
__global__ void no_barrier(int* out, int first) {
  __shared__ int tile[1024];
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tile[threadIdx.x] = first + i;
  out[i] = threadIdx.x == 0 ? first + i : tile[threadIdx.x - 1] + 1;
}

// The same within a warp, where lock step was relied on after a shuffle.
template <class V>
__global__ void no_warp_barrier(int* out, int first) {
  __shared__ int tile[1024];
  const int lane = static_cast<int>(threadIdx.x % 32), i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  tile[threadIdx.x] = first + __shfl_sync(~0u, i, lane);
  out[i] = lane == 0 ? first + i : tile[threadIdx.x - 1] + 1;
}

// A block that goes on from the one before it.
template <class V>
__global__ void chained_blocks(int* out, int first) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) out[i] = blockIdx.x == 0 ? first : out[i - blockDim.x] + static_cast<int>(blockDim.x);
  __syncthreads();
  if (threadIdx.x > 0) out[i] = out[i - threadIdx.x] + static_cast<int>(threadIdx.x);
}

// Shared memory that is read before anything was written to it: all bits of it are the same.
template <class V>
__global__ void unwritten(int* out) {
  __shared__ int never[64];
  out[2 * (blockIdx.x * blockDim.x + threadIdx.x)] = autotune::dynamic_shared<int>()[threadIdx.x];
  out[2 * (blockIdx.x * blockDim.x + threadIdx.x) + 1] = never[threadIdx.x];
}

// An addition that is not atomic, by every thread to the same place.
template <class V>
__global__ void lost_updates(volatile int* out, int times) {
  for (int i = 0; i < times; ++i) out[0] = out[0] + 1;
}

// Who ran when: a ticket for every thread, drawn before and after a barrier.
template <class V>
__global__ void tickets(int* next, int* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  out[2 * i] = atomicAdd(next, 1);
  __syncthreads();
  out[2 * i + 1] = atomicAdd(next, 1);
}
