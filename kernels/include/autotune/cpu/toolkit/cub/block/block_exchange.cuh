// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: items of a block's threads in another arrangement. In a blocked one a thread has items
// that follow each other, in a striped one every so many; a warp-striped one is striped within each warp's items.
#pragma once
#include "../util.cuh"

namespace cub {

template <class InputT, int BLOCK_DIM_X, int ITEMS_PER_THREAD, bool WARP_TIME_SLICING = false, int BLOCK_DIM_Y = 1,
          int BLOCK_DIM_Z = 1, int LEGACY_PTX_ARCH = 0>
class BlockExchange {
  static constexpr int threads = BLOCK_DIM_X * BLOCK_DIM_Y * BLOCK_DIM_Z, items = ITEMS_PER_THREAD;
  using Items = InputT[ITEMS_PER_THREAD];

 public:
  struct TempStorage {
    Room<InputT, threads * ITEMS_PER_THREAD> room;
  };
  __device__ BlockExchange() : storage_(own()) {}
  __device__ explicit BlockExchange(TempStorage& storage) : storage_(storage) {}

#define AUTOTUNE_EXCHANGE(NAME, FROM, TO)                       \
  template <class OutputT>                                      \
  __device__ void NAME(const Items& in, OutputT(&out)[items]) { \
    exchange(in, out, FROM, TO);                                \
  }                                                             \
  __device__ void NAME(Items& both) { exchange(both, both, FROM, TO); }
  AUTOTUNE_EXCHANGE(StripedToBlocked, &striped, &blocked)
  AUTOTUNE_EXCHANGE(BlockedToStriped, &blocked, &striped)
  AUTOTUNE_EXCHANGE(WarpStripedToBlocked, &warp_striped, &blocked)
  AUTOTUNE_EXCHANGE(BlockedToWarpStriped, &blocked, &warp_striped)
#undef AUTOTUNE_EXCHANGE
  template <class OutputT, class OffsetT>
  __device__ void ScatterToBlocked(const Items& in, OutputT (&out)[items], OffsetT (&ranks)[items]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, &blocked);
  }
  template <class OffsetT>
  __device__ void ScatterToBlocked(Items& both, OffsetT (&ranks)[items]) {
    ScatterToBlocked(both, both, ranks);
  }
  template <class OutputT, class OffsetT>
  __device__ void ScatterToStriped(const Items& in, OutputT (&out)[items], OffsetT (&ranks)[items]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, &striped);
  }
  template <class OffsetT>
  __device__ void ScatterToStriped(Items& both, OffsetT (&ranks)[items]) {
    ScatterToStriped(both, both, ranks);
  }
  // An item with a negative rank goes nowhere.
  template <class OutputT, class OffsetT>
  __device__ void ScatterToStripedGuarded(const Items& in, OutputT (&out)[items], OffsetT (&ranks)[items]) {
    scatter(in, out, ranks, [&](int i) { return ranks[i] >= 0; });
  }
  template <class OffsetT>
  __device__ void ScatterToStripedGuarded(Items& both, OffsetT (&ranks)[items]) {
    ScatterToStripedGuarded(both, both, ranks);
  }
  template <class OutputT, class OffsetT, class ValidFlag>
  __device__ void ScatterToStripedFlagged(const Items& in, OutputT (&out)[items], OffsetT (&ranks)[items],
                                          ValidFlag (&valid)[items]) {
    scatter(in, out, ranks, [&](int i) { return valid[i]; });
  }

 private:
  static __device__ int striped(int i) { return thread_in_block() + i * threads; }
  static __device__ int blocked(int i) { return thread_in_block() * items + i; }
  static __device__ int warp_striped(int i) {
    const int first = static_cast<int>(WarpId()) * 32, lanes = threads - first < 32 ? threads - first : 32;
    return first * items + static_cast<int>(LaneId()) + i * lanes;
  }
  template <class OutputT, class From, class To>
  __device__ void exchange(const Items& in, OutputT (&out)[items], From from, To to) {
    for (int i = 0; i < items; ++i) storage_.room[from(i)] = in[i];
    __syncthreads();
    for (int i = 0; i < items; ++i) out[i] = storage_.room[to(i)];
  }
  template <class OutputT, class OffsetT, class Valid>
  __device__ void scatter(const Items& in, OutputT (&out)[items], OffsetT (&ranks)[items], Valid valid) {
    for (int i = 0; i < items; ++i)
      if (valid(i)) storage_.room[static_cast<int>(ranks[i])] = in[i];
    __syncthreads();
    for (int i = 0; i < items; ++i) out[i] = storage_.room[striped(i)];
  }
  static __device__ TempStorage& own() {
    __shared__ TempStorage storage;
    return storage;
  }
  TempStorage& storage_;
};

}  // namespace cub
