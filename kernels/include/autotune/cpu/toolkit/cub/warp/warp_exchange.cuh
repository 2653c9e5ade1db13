// SPDX-License-Identifier: Apache-2.0
// Of the cpu device's own CUB: items of the lanes of a logical warp in another arrangement. In a blocked one a thread
// has items that follow each other, in a striped one every so many.
#pragma once
#include "../util.cuh"

namespace cub {

enum WarpExchangeAlgorithm { WARP_EXCHANGE_SMEM, WARP_EXCHANGE_SHUFFLE };

template <class InputT, int ITEMS_PER_THREAD, int LOGICAL_WARP_THREADS = 32,
          WarpExchangeAlgorithm ALGORITHM = WARP_EXCHANGE_SMEM>
class WarpExchange {
  LogicalWarp<LOGICAL_WARP_THREADS> warp_;
  static constexpr int items = ITEMS_PER_THREAD, threads = LOGICAL_WARP_THREADS;

 public:
  struct TempStorage {
    Room<InputT, ITEMS_PER_THREAD * LOGICAL_WARP_THREADS> room;
  };
  __device__ explicit WarpExchange(TempStorage& storage) : room_(storage.room) {}

  template <class OutputT>
  __device__ void BlockedToStriped(const InputT (&in)[ITEMS_PER_THREAD], OutputT (&out)[ITEMS_PER_THREAD]) {
    exchange(in, out, [&](int i) { return lane() * items + i; }, [&](int i) { return i * threads + lane(); });
  }
  template <class OutputT>
  __device__ void StripedToBlocked(const InputT (&in)[ITEMS_PER_THREAD], OutputT (&out)[ITEMS_PER_THREAD]) {
    exchange(in, out, [&](int i) { return i * threads + lane(); }, [&](int i) { return lane() * items + i; });
  }
  template <class OutputT, class OffsetT>
  __device__ void ScatterToStriped(const InputT (&in)[ITEMS_PER_THREAD], OutputT (&out)[ITEMS_PER_THREAD],
                                   OffsetT (&ranks)[ITEMS_PER_THREAD]) {
    exchange(in, out, [&](int i) { return static_cast<int>(ranks[i]); }, [&](int i) { return i * threads + lane(); });
  }
  template <class OffsetT>
  __device__ void ScatterToStriped(InputT (&in)[ITEMS_PER_THREAD], OffsetT (&ranks)[ITEMS_PER_THREAD]) {
    ScatterToStriped(in, in, ranks);
  }

 private:
  __device__ int lane() const { return static_cast<int>(warp_.lane); }
  template <class OutputT, class From, class To>
  __device__ void exchange(const InputT (&in)[ITEMS_PER_THREAD], OutputT (&out)[ITEMS_PER_THREAD], From from, To to) {
    for (int i = 0; i < items; ++i) room_[from(i)] = in[i];
    __syncwarp(warp_.mask);
    for (int i = 0; i < items; ++i) out[i] = room_[to(i)];
  }
  Room<InputT, ITEMS_PER_THREAD * LOGICAL_WARP_THREADS>& room_;
};

}  // namespace cub
