// Small kernels for test_cpu_headers.py, each of what the toolkit's headers have and the cpu device has of them.
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cub/block/block_adjacent_difference.cuh>
#include <cub/block/block_discontinuity.cuh>
#include <cub/block/block_exchange.cuh>
#include <cub/block/block_load.cuh>
#include <cub/block/block_merge_sort.cuh>
#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/block/block_store.cuh>
#include <cub/warp/warp_reduce.cuh>
#include <cub/warp/warp_scan.cuh>
#include <cuda/functional>
#include <cuda/std/functional>

namespace cg = cooperative_groups;

using Bits = unsigned short;

template <class T>
__device__ Bits bits(T value) {
  Bits word;
  memcpy(&word, &value, 2);
  return word;
}
template <class T>
__device__ T number(Bits word) {
  T value;
  memcpy(&value, &word, 2);
  return value;
}

// Eight results for each of n operands.
template <class T>
__device__ void arithmetic(const Bits* a, const Bits* b, const Bits* c, Bits* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const T x = number<T>(a[i]), y = number<T>(b[i]), z = number<T>(c[i]);
  out[8 * i] = bits(x + y);
  out[8 * i + 1] = bits(__hsub(x, y));
  T product = x;
  product *= y;
  out[8 * i + 2] = bits(product);
  out[8 * i + 3] = bits(x / y);
  out[8 * i + 4] = bits(__hfma(x, y, z));
  out[8 * i + 5] = bits(__hmax(x, y));
  out[8 * i + 6] = bits(__hmin_nan(x, y));
  out[8 * i + 7] = (x < y) + 2 * (x == y) + 4 * (x != y) + 8 * __hgeu(x, y) + 16 * __hisnan(x);
}
extern "C" __global__ void half_arithmetic(const Bits* a, const Bits* b, const Bits* c, Bits* out, int n) {
  arithmetic<__half>(a, b, c, out, n);
}
extern "C" __global__ void bfloat_arithmetic(const Bits* a, const Bits* b, const Bits* c, Bits* out, int n) {
  arithmetic<__nv_bfloat16>(a, b, c, out, n);
}

// From float with each way of rounding, from double, and back.
extern "C" __global__ void half_conversions(const float* x, const double* d, Bits* out, float* back, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half h = __float2half(x[i]);
  out[6 * i] = bits(h);
  out[6 * i + 1] = bits(__float2half_rz(x[i]));
  out[6 * i + 2] = bits(__float2half_rd(x[i]));
  out[6 * i + 3] = bits(__float2half_ru(x[i]));
  out[6 * i + 4] = bits(__double2half(d[i]));
  out[6 * i + 5] = bits(__float2bfloat16(x[i]));
  back[2 * i] = __half2float(h);
  back[2 * i + 1] = __bfloat162float(__float2bfloat16(x[i]));
}
extern "C" __global__ void half_integers(const Bits* a, int* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const __half h = number<__half>(a[i]);
  out[8 * i] = __half2int_rn(h);
  out[8 * i + 1] = __half2int_rz(h);
  out[8 * i + 2] = __half2int_rd(h);
  out[8 * i + 3] = __half2int_ru(h);
  out[8 * i + 4] = static_cast<int>(__half2uint_rz(h));
  out[8 * i + 5] = __half2short_rn(h);
  out[8 * i + 6] = bits(__int2half_rn(__half2int_rn(h)));
  out[8 * i + 7] = bits(hfloor(h)) | bits(hrint(h)) << 16;
}
extern "C" __global__ void long_integers(const long long* a, Bits* out, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  out[2 * i] = bits(__ll2bfloat16_rn(a[i]));
  out[2 * i + 1] = bits(__ll2half_rz(a[i]));
}

// x is the lower half of the word.
extern "C" __global__ void pairs(const unsigned* words, unsigned* out) {
  const __half2* const pair = reinterpret_cast<const __half2*>(words);
  __half2* const to = reinterpret_cast<__half2*>(out);
  const __half2 a = pair[0], b = pair[1];
  to[0] = __hadd2(a, b);
  to[1] = __hfma2(a, b, __float2half2_rn(0.5f));
  to[2] = __lowhigh2highlow(a);
  to[3] = __lows2half2(a, b);
  to[4] = __halves2half2(__high2half(a), __low2half(b));
  to[5] = __floats2half2_rn(__low2float(a), __high2float(b));
  to[6] = a * b - a;
  to[7] = __hmax2(a, b);
  out[8] = __hlt2_mask(a, b);
  out[9] = __hbgt2(b, a);
  to[10] = __half2half2(a.y);
  to[11] = h2exp(make_half2(a.x, a.x));
}

extern "C" __global__ void half_sums(__half* sum, __half2* pair, __nv_bfloat16* sums, float* lanes) {
  atomicAdd(sum + 1, __half(1.0f));
  atomicAdd(pair, __half2(0.5f, 2.0f));
  atomicAdd(sums, __nv_bfloat16(1.0f));
  __half value = __int2half_rn(static_cast<int>(threadIdx.x));
  for (int step = 16; step > 0; step /= 2) value = __hadd(value, __shfl_xor_sync(~0u, value, step));
  lanes[blockIdx.x * blockDim.x + threadIdx.x] = __half2float(value);
}

// float4 as people load it.
extern "C" __global__ void vectors(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (4 * i >= n) return;
  float4 v = reinterpret_cast<const float4*>(in)[i];
  v.x *= 2;
  __stcs(reinterpret_cast<float4*>(out) + i, make_float4(v.w, v.z, v.y, v.x));
}

extern "C" __global__ void groups(const int* in, int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const cg::thread_block_tile<8> tile = cg::tiled_partition<8>(block);
  const auto four = cg::tiled_partition<4>(tile);
  const int rank = static_cast<int>(block.thread_rank()), value = in[rank];
  int* const mine = out + 24 * rank;
  mine[0] = tile.thread_rank() + 100 * tile.meta_group_rank() + 10000 * tile.meta_group_size();
  mine[1] = tile.shfl(value, 3);
  mine[2] = tile.shfl_down(value, 2);
  mine[3] = tile.shfl_up(value, 2);
  mine[4] = tile.shfl_xor(value, 5);
  mine[5] = static_cast<int>(tile.ballot(value % 2));
  mine[6] = tile.any(value == 5) + 2 * tile.all(value >= 0);
  mine[7] = cg::reduce(tile, value, cg::plus<int>());
  mine[8] = cg::reduce(warp, value, cg::greater<int>());
  mine[9] = cg::reduce(four, value, cg::less<int>());
  mine[10] = four.meta_group_rank() + 10 * four.meta_group_size() + 100 * four.size();
  mine[11] = cg::inclusive_scan(tile, value);
  mine[12] = cg::exclusive_scan(tile, value, cg::plus<int>());
  mine[13] = static_cast<int>(tile.match_any(value % 3));
  int same = 0;
  mine[14] = static_cast<int>(four.match_all(value / 1000, same)) + 1000 * same;
  mine[15] = mine[16] = mine[17] = mine[18] = -1;
  if (value % 3 == 0) {
    const cg::coalesced_group some = cg::coalesced_threads();
    mine[15] = static_cast<int>(some.thread_rank() + 100 * some.num_threads());
    mine[16] = some.shfl(value, 1);
    mine[17] = cg::reduce(some, value, cg::plus<int>());
    mine[18] = some.shfl_down(value, 1);
  }
  cg::sync(block);
  const auto part = cg::binary_partition(warp, value % 2);
  mine[19] = cg::reduce(part, value, cg::plus<int>());
  const cg::thread_group any = cg::tiled_partition(block, 16);
  any.sync();
  mine[20] = static_cast<int>(any.thread_rank() + 100 * any.size());
  const double2 both = tile.shfl(make_double2(value, -value), 1);  // more than a word
  mine[21] = static_cast<int>(both.x * 2 + both.y);
  mine[22] = static_cast<int>(block.group_index().x + 10 * block.dim_threads().x + 10000 * block.thread_index().y);
  mine[23] = static_cast<int>(warp.match_any(value % 5));
}

// Each block reads what all others wrote, again and again.
extern "C" __global__ void together(unsigned* marks, unsigned* seen, int rounds) {
  const cg::grid_group grid = cg::this_grid();
  for (int round = 1; round <= rounds; ++round) {
    if (threadIdx.x == 0) marks[blockIdx.x] = static_cast<unsigned>(round) * (blockIdx.x + 1);
    grid.sync();
    unsigned sum = 0;
    for (unsigned other = 0; other < gridDim.x; ++other) sum += marks[other];
    if (threadIdx.x == 0) seen[blockIdx.x] = sum;
    grid.sync();
  }
  if (grid.thread_rank() == grid.size() - 1) seen[gridDim.x] = static_cast<unsigned>(grid.num_blocks());
}

struct Join {
  __device__ int operator()(int a, int b) const { return a * 31 + b; }  // in order only
};
// x -> slope * x + offset; one after the other, they do not commute.
struct Line {
  unsigned slope, offset, padding;
};
struct Compose {
  __device__ Line operator()(const Line& a, const Line& b) const {
    return {a.slope * b.slope, b.slope * a.offset + b.offset, 0};
  }
};

constexpr int threads = 96, items = 3;

extern "C" __global__ void reductions(const int* in, const float* x, int* out, float* sums, int valid) {
  using Warp = cub::WarpReduce<int>;
  using Eight = cub::WarpReduce<int, 8>;
  using Block = cub::BlockReduce<int, threads>;
  using Lines = cub::BlockReduce<Line, threads>;
  using Floats = cub::BlockReduce<float, threads, cub::BLOCK_REDUCE_WARP_REDUCTIONS>;
  using Pairs = cub::BlockReduce<cub::KeyValuePair<int, int>, threads>;
  __shared__ typename Warp::TempStorage warp[threads / 32];
  __shared__ typename Eight::TempStorage eight[threads / 8];
  __shared__ typename Block::TempStorage block;
  __shared__ typename Lines::TempStorage lines;
  __shared__ typename Floats::TempStorage floats;
  __shared__ typename Pairs::TempStorage pairs;
  const int rank = static_cast<int>(threadIdx.x), value = in[rank];
  const int whole = Warp(warp[rank / 32]).Sum(value);
  if (rank % 32 == 0) out[rank / 32] = whole;
  const int part = Eight(eight[rank / 8]).Reduce(value, Join());
  if (rank % 8 == 0) out[10 + rank / 8] = part;
  const int heads = Warp(warp[rank / 32]).HeadSegmentedSum(value, rank % 5 == 0);
  const int tails = Warp(warp[rank / 32]).TailSegmentedSum(value, rank % 5 == 4);
  out[100 + rank] = rank % 5 == 0 || rank % 32 == 0 ? heads : 0;
  out[200 + rank] = rank % 5 == 0 || rank % 32 == 0 ? tails : 0;

  const int sum = Block(block).Sum(value);
  if (rank == 0) out[3] = sum;
  __syncthreads();
  const int some = Block(block).Sum(value, valid);
  if (rank == 0) out[4] = some;
  __syncthreads();
  int mine[2] = {value, rank};
  const int two = Block(block).Sum(mine);
  if (rank == 0) out[5] = two;
  const Line line = Lines(lines).Reduce(Line{static_cast<unsigned>(value), static_cast<unsigned>(rank), 0}, Compose());
  if (rank == 0) {
    out[6] = static_cast<int>(line.slope);
    out[7] = static_cast<int>(line.offset);
  }
  const float total = Floats(floats).Sum(x[rank]);
  if (rank == 0) sums[0] = total;
  using Pair = cub::KeyValuePair<int, int>;
  const Pair most = Pairs(pairs).Reduce(Pair(rank, value % 7), cub::ArgMax());
  if (rank == 0) out[8] = most.key;
}

// What lies before: the sum of all blocks so far.
struct Running {
  int total;
  __device__ int operator()(int aggregate) {
    const int before = total;
    total += aggregate;
    return before;
  }
};

extern "C" __global__ void scans(const int* in, int* out) {
  using Warp = cub::WarpScan<int>;
  using Block = cub::BlockScan<int, threads>;
  using Lines = cub::BlockScan<Line, threads, cub::BLOCK_SCAN_WARP_SCANS>;
  __shared__ typename Warp::TempStorage warp[threads / 32];
  __shared__ typename Block::TempStorage block;
  __shared__ typename Lines::TempStorage lines;
  const int rank = static_cast<int>(threadIdx.x);
  int value = in[rank], result, aggregate;
  Warp(warp[rank / 32]).InclusiveSum(value, result);
  out[rank] = result;
  Warp(warp[rank / 32]).ExclusiveSum(value, result, aggregate);
  out[threads + rank] = result * 2 + aggregate;
  Block(block).ExclusiveSum(value, result, aggregate);
  out[2 * threads + rank] = result * 2 + aggregate;
  __syncthreads();
  Block(block).InclusiveScan(value, result, cuda::maximum<>());
  out[3 * threads + rank] = result;
  __syncthreads();
  int some[items] = {in[rank * items], in[rank * items + 1], in[rank * items + 2]}, sums[items];
  Block(block).ExclusiveSum(some, sums);
  for (int i = 0; i < items; ++i) out[4 * threads + rank * items + i] = sums[i];
  __syncthreads();
  Running running{7};
  Block(block).InclusiveSum(some, sums, running);
  for (int i = 0; i < items; ++i) out[7 * threads + rank * items + i] = sums[i];
  __syncthreads();
  const Line line{static_cast<unsigned>(value), static_cast<unsigned>(rank), 0};
  Line before;
  Lines(lines).ExclusiveScan(line, before, Line{1, 5, 0}, Compose());
  out[10 * threads + rank] = static_cast<int>(before.offset);
}

extern "C" __global__ void arrangements(const int* in, int* out, int valid) {
  using Load = cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_WARP_TRANSPOSE>;
  using Striped = cub::BlockLoad<int, threads, items, cub::BLOCK_LOAD_STRIPED>;
  using Store = cub::BlockStore<int, threads, items, cub::BLOCK_STORE_TRANSPOSE>;
  using Exchange = cub::BlockExchange<int, threads, items>;
  using Sort = cub::BlockRadixSort<int, threads, items, int>;
  using Floats = cub::BlockRadixSort<float, threads, items>;
  using Heads = cub::BlockDiscontinuity<int, threads>;
  using Steps = cub::BlockAdjacentDifference<int, threads>;
  __shared__ union {
    typename Load::TempStorage load;
    typename Striped::TempStorage striped;
    typename Store::TempStorage store;
    typename Exchange::TempStorage exchange;
    typename Sort::TempStorage sort;
    typename Floats::TempStorage floats;
    typename Heads::TempStorage heads;
    typename Steps::TempStorage steps;
  } room;
  const int total = threads * items, rank = static_cast<int>(threadIdx.x);
  int some[items], values[items];
  Load(room.load).Load(in, some, valid, -1);
  __syncthreads();
  Store(room.store).Store(out, some);
  __syncthreads();
  Striped(room.striped).Load(in, some);
  __syncthreads();
  Exchange(room.exchange).StripedToBlocked(some, some);
  __syncthreads();
  Store(room.store).Store(out + total, some, valid);
  __syncthreads();
  Exchange(room.exchange).BlockedToWarpStriped(some, values);
  for (int i = 0; i < items; ++i) out[2 * total + rank * items + i] = values[i];
  __syncthreads();
  for (int i = 0; i < items; ++i) values[i] = rank * items + i;
  Sort(room.sort).SortDescending(some, values, 0, 6);
  for (int i = 0; i < items; ++i) out[3 * total + rank * items + i] = values[i];
  __syncthreads();
  float keys[items];
  for (int i = 0; i < items; ++i) keys[i] = (in[rank * items + i] - 5000) * 0.5f;
  Floats(room.floats).SortBlockedToStriped(keys);
  for (int i = 0; i < items; ++i) out[4 * total + rank + i * threads] = static_cast<int>(keys[i] * 2);
  __syncthreads();
  for (int i = 0; i < items; ++i) some[i] = in[rank * items + i] / 2000;
  Heads(room.heads).FlagHeads(values, some, cuda::std::not_equal_to<>());
  for (int i = 0; i < items; ++i) out[5 * total + rank * items + i] = values[i];
  __syncthreads();
  Steps(room.steps).SubtractLeft(some, values, [](int a, int b) { return a - b; });
  for (int i = 0; i < items; ++i) out[6 * total + rank * items + i] = values[i];
}

extern "C" __global__ void merges(const int* in, int* out, int valid) {
  using Merge = cub::BlockMergeSort<int, 64, items, int>;
  __shared__ typename Merge::TempStorage room;
  const int rank = static_cast<int>(threadIdx.x);
  int keys[items], values[items];
  for (int i = 0; i < items; ++i) keys[i] = in[values[i] = rank * items + i];
  const auto by_rest = [](int a, int b) { return a % 100 < b % 100; };
  Merge(room).Sort(keys, values, by_rest);
  for (int i = 0; i < items; ++i) out[rank * items + i] = values[i];
  __syncthreads();
  for (int i = 0; i < items; ++i) keys[i] = in[rank * items + i];
  Merge(room).Sort(keys, by_rest, valid, 99);
  for (int i = 0; i < items; ++i) out[64 * items + rank * items + i] = keys[i];
}

extern "C" __global__ void conversions(const float* x, const double* d, const long long* l, int* out, float* floats) {
  const int i = static_cast<int>(threadIdx.x);
  out[8 * i] = __float2int_rn(x[i]);
  out[8 * i + 1] = __float2int_rd(x[i]);
  out[8 * i + 2] = static_cast<int>(__float2uint_rz(x[i]));
  out[8 * i + 3] = __double2int_ru(d[i]);
  out[8 * i + 4] = static_cast<int>(__byte_perm(0x03020100u, 0x87868584u, 0x0e71u));
  out[8 * i + 5] = __dp4a(0x01ff0203, 0x04050607, i);
  out[8 * i + 6] = static_cast<int>(__umul64hi(static_cast<unsigned long long>(l[i]), 1ull << 33));
  out[8 * i + 7] = __double2hiint(d[i]) ^ __double2loint(d[i]);
  floats[4 * i] = __double2float_rz(d[i]);
  floats[4 * i + 1] = __double2float_ru(d[i]);
  floats[4 * i + 2] = __ll2float_rd(l[i]);
  floats[4 * i + 3] = __ll2float_rn(l[i]);
}
