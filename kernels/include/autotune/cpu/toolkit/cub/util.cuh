// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: what its parts share.
#pragma once
#include "../../rounding.hpp"
#include "../../words.hpp"
#include "../cuda/functional"

struct __half;
struct __nv_bfloat16;

namespace cub {

struct NullType {};

struct Sum {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a + b;
  }
};
struct Difference {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a - b;
  }
};
struct Max {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class T>
  __host__ __device__ bool operator()(const T& a, const T& b) const {
    return a != b;
  }
};

template <class KEY, class VALUE>
struct KeyValuePair {
  using Key = KEY;
  using Value = VALUE;
  KEY key;
  VALUE value;
  KeyValuePair() = default;
  __host__ __device__ KeyValuePair(const KEY& key_, const VALUE& value_) : key(key_), value(value_) {}
  __host__ __device__ bool operator!=(const KeyValuePair& other) const {
    return value != other.value || key != other.key;
  }
};
// Of equal values the one with the lower key.
struct ArgMax {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class T>
  __host__ __device__ T operator()(const T& a, const T& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

// x first.
__device__ inline int thread_in_block() {
  return static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}
__device__ inline int RowMajorTid(int, int, int) { return thread_in_block(); }
__device__ inline unsigned LaneId() { return static_cast<unsigned>(thread_in_block()) % 32; }
__device__ inline unsigned WarpId() { return static_cast<unsigned>(thread_in_block()) / 32; }
__device__ inline void CTA_SYNC() { __syncthreads(); }
__device__ inline void WARP_SYNC(unsigned mask) { __syncwarp(mask); }

// COUNT elements that no constructor touches.
template <class T, int COUNT>
struct alignas(T) Room {
  unsigned char bytes[COUNT * sizeof(T)];
  __device__ T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
};

template <int COUNT, class Operation, class T>
__device__ inline T ThreadReduce(const T (&items)[COUNT], Operation operation) {
  T total = items[0];
  for (int i = 1; i < COUNT; ++i) total = operation(total, items[i]);
  return total;
}

template <class T>
__device__ inline T shuffled_up(T value, unsigned delta, unsigned mask, int width) {
  return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_up_sync(mask, word, delta, width); });
}
template <class T>
__device__ inline T shuffled_down(T value, unsigned delta, unsigned mask, int width) {
  return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_down_sync(mask, word, delta, width); });
}
template <class T>
__device__ inline T shuffled(T value, int lane, unsigned mask, int width) {
  return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_sync(mask, word, lane, width); });
}
template <int LOGICAL_WARP_THREADS, class T>
__device__ inline T ShuffleUp(T value, int delta, int first, unsigned mask) {
  const T other = shuffled_up(value, static_cast<unsigned>(delta), mask, LOGICAL_WARP_THREADS);
  return static_cast<int>(LaneId() % LOGICAL_WARP_THREADS) - delta < first ? value : other;
}
template <int LOGICAL_WARP_THREADS, class T>
__device__ inline T ShuffleDown(T value, int delta, int last, unsigned mask) {
  const T other = shuffled_down(value, static_cast<unsigned>(delta), mask, LOGICAL_WARP_THREADS);
  return static_cast<int>(LaneId() % LOGICAL_WARP_THREADS) + delta > last ? value : other;
}
template <int LOGICAL_WARP_THREADS, class T>
__device__ inline T ShuffleIndex(T value, int lane, unsigned mask) {
  return shuffled(value, lane, mask, LOGICAL_WARP_THREADS);
}

// The `THREADS` lanes, at most 32, that work together with this one, and its place among them.
template <int THREADS>
struct LogicalWarp {
  static_assert(THREADS >= 1 && THREADS <= 32, "a logical warp has 1 to 32 threads");
  static constexpr bool is_whole = (THREADS & (THREADS - 1)) == 0;
  unsigned lane = LaneId() % THREADS, first = LaneId() - lane;
  unsigned mask = (THREADS == 32 ? ~0u : (1u << THREADS % 32) - 1) << first;
  // From a lane of the same logical warp, by its place; of more than there are, from itself.
  template <class T>
  __device__ T from(T value, unsigned place) const {
    const unsigned source = place < THREADS ? first + place : LaneId();
    return shuffled(value, static_cast<int>(source), mask, 32);
  }
};

// Keys as unsigned integers of the same order.
template <class T>
struct Ordered {
  static constexpr bool is_floating = false;
};
template <>
struct Ordered<float> {
  static constexpr bool is_floating = true;
};
template <>
struct Ordered<double> : Ordered<float> {};
template <>
struct Ordered<__half> : Ordered<float> {};
template <>
struct Ordered<__nv_bfloat16> : Ordered<float> {};

template <class T>
__device__ inline unsigned long long ordered_bits(const T& key) {
  constexpr int bits = 8 * static_cast<int>(sizeof(T));
  constexpr unsigned long long top = 1ull << (bits - 1), all = (top - 1) * 2 + 1;
  unsigned long long word = 0;
  __builtin_memcpy(&word, &key, sizeof(T));
  if constexpr (Ordered<T>::is_floating) {
    if (word == top) word = 0;  // -0 is as good as 0
    return word & top ? ~word & all : word | top;
  } else if constexpr (static_cast<T>(-1) < static_cast<T>(0)) {
    return word ^ top;
  } else {
    return word;
  }
}

}  // namespace cub
