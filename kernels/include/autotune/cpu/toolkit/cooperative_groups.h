// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device: groups of threads within a warp, blocks, and the grid of a
// cooperative launch. Clusters and tiles of more than a warp are not there.
#pragma once
#include "../words.hpp"

namespace autotune::cpu {
__device__ void grid_barrier();
}

namespace cooperative_groups {

namespace detail {

__device__ inline unsigned rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
__device__ inline unsigned threads_of_block() { return blockDim.x * blockDim.y * blockDim.z; }
__device__ inline unsigned rank_of_block() { return blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z); }
__device__ inline unsigned long long blocks_of_grid() { return 1ull * gridDim.x * gridDim.y * gridDim.z; }
// The `size` lanes, a power of two, among which the thread is.
__device__ inline unsigned lanes_around(unsigned size) {
  const unsigned lane = rank_in_block() % 32, all = size == 32 ? ~0u : (1u << size) - 1;
  return all << (lane / size * size);
}
__device__ inline unsigned lanes_below() { return (1u << rank_in_block() % 32) - 1; }

}  // namespace detail

// Any group, as functions take it that do not say which. `mask` are lanes of the warp.
class thread_group {
 public:
  __device__ unsigned long long num_threads() const {
    return kind_ == Kind::grid    ? detail::blocks_of_grid() * detail::threads_of_block()
           : kind_ == Kind::block ? detail::threads_of_block()
                                  : static_cast<unsigned long long>(__popc(mask_));
  }
  __device__ unsigned long long size() const { return num_threads(); }
  __device__ unsigned long long thread_rank() const {
    if (kind_ == Kind::lanes) return static_cast<unsigned long long>(__popc(mask_ & detail::lanes_below()));
    const unsigned long long before =
        kind_ == Kind::grid ? 1ull * detail::rank_of_block() * detail::threads_of_block() : 0;
    return before + detail::rank_in_block();
  }
  __device__ void sync() const {
    if (kind_ == Kind::grid) autotune::cpu::grid_barrier();
    if (kind_ == Kind::block) __syncthreads();
    if (kind_ == Kind::lanes) __syncwarp(mask_);
  }
  __device__ bool is_valid() const { return true; }

 protected:
  enum class Kind : unsigned char { lanes, block, grid };
  __device__ thread_group(Kind kind, unsigned mask) : mask_(mask), kind_(kind) {}
  unsigned mask_;
  Kind kind_;
  friend __device__ thread_group tiled_partition(const thread_group& parent, unsigned size);
};

class thread_block : public thread_group {
 public:
  static __device__ unsigned num_threads() { return detail::threads_of_block(); }
  static __device__ unsigned size() { return num_threads(); }
  static __device__ unsigned thread_rank() { return detail::rank_in_block(); }
  static __device__ dim3 group_index() { return blockIdx; }
  static __device__ dim3 thread_index() { return threadIdx; }
  static __device__ dim3 dim_threads() { return blockDim; }
  static __device__ dim3 group_dim() { return blockDim; }
  static __device__ void sync() { __syncthreads(); }

 private:
  __device__ thread_block() : thread_group(Kind::block, 0) {}
  friend __device__ thread_block this_thread_block();
};
__device__ inline thread_block this_thread_block() { return thread_block(); }

class grid_group : public thread_group {
 public:
  static __device__ unsigned long long num_threads() { return detail::blocks_of_grid() * detail::threads_of_block(); }
  static __device__ unsigned long long size() { return num_threads(); }
  static __device__ unsigned long long thread_rank() {
    return 1ull * detail::rank_of_block() * detail::threads_of_block() + detail::rank_in_block();
  }
  static __device__ unsigned long long num_blocks() { return detail::blocks_of_grid(); }
  static __device__ unsigned long long block_rank() { return detail::rank_of_block(); }
  static __device__ dim3 block_index() { return blockIdx; }
  static __device__ dim3 group_dim() { return gridDim; }
  static __device__ dim3 dim_blocks() { return gridDim; }
  static __device__ void sync() { autotune::cpu::grid_barrier(); }

 private:
  __device__ grid_group() : thread_group(Kind::grid, 0) {}
  friend __device__ grid_group this_grid();
};
__device__ inline grid_group this_grid() { return grid_group(); }

namespace detail {

// What groups within a warp have in common: lanes, and their ranks among them.
class LaneGroup : public thread_group {
 public:
  __device__ unsigned num_threads() const { return static_cast<unsigned>(__popc(mask_)); }
  __device__ unsigned size() const { return num_threads(); }
  __device__ unsigned thread_rank() const { return static_cast<unsigned>(__popc(mask_ & lanes_below())); }
  __device__ void sync() const { __syncwarp(mask_); }
  __device__ int any(int predicate) const { return __any_sync(mask_, predicate); }
  __device__ int all(int predicate) const { return __all_sync(mask_, predicate); }
  __device__ unsigned ballot(int predicate) const { return ranks(__ballot_sync(mask_, predicate)); }
  template <class T>
  __device__ unsigned match_any(T value) const {
    return ranks(__match_any_sync(mask_, value));
  }
  template <class T>
  __device__ unsigned match_all(T value, int& all) const {
    return ranks(__match_all_sync(mask_, value, &all));
  }

 protected:
  __device__ explicit LaneGroup(unsigned mask) : thread_group(Kind::lanes, mask) {}
  // A mask of lanes as one of ranks.
  __device__ unsigned ranks(unsigned lanes) const {
    unsigned found = 0, rank = 0;
    for (unsigned left = mask_; left; left &= left - 1, ++rank)
      if (lanes & left & (0u - left)) found |= 1u << rank;
    return found;
  }
  __device__ unsigned lane_of(unsigned rank) const {
    unsigned left = mask_;
    for (; rank > 0; --rank) left &= left - 1;
    return static_cast<unsigned>(__ffs(static_cast<int>(left)) - 1);
  }
};

template <class Parent>
__device__ inline unsigned threads_of_parent() {
  if constexpr (Parent::is_tile)
    return Parent::tile_threads;
  else
    return threads_of_block();
}
struct OfBlock {
  static constexpr bool is_tile = false;
  static constexpr unsigned tile_threads = 0;
};
template <class Parent>
struct ParentOf {
  using type = Parent;
};
template <>
struct ParentOf<void> {
  using type = OfBlock;
};
template <>
struct ParentOf<thread_block> {
  using type = OfBlock;
};

}  // namespace detail

// SIZE threads that follow each other: lanes of one warp.
template <unsigned SIZE, class PARENT = void>
class thread_block_tile : public detail::LaneGroup {
  static_assert(SIZE <= 32, "the cpu device has no tiles of more than 32 threads");
  static_assert(SIZE > 0 && (SIZE & (SIZE - 1)) == 0, "a tile has a power of two threads");
  using Parent = typename detail::ParentOf<PARENT>::type;

 public:
  static constexpr bool is_tile = true;
  static constexpr unsigned tile_threads = SIZE;
  template <class OTHER>
  __device__ thread_block_tile(const thread_block_tile<SIZE, OTHER>& other) : LaneGroup(other.lanes()) {}

  static __device__ constexpr unsigned num_threads() { return SIZE; }
  static __device__ constexpr unsigned size() { return SIZE; }
  static __device__ unsigned thread_rank() { return detail::rank_in_block() % SIZE; }
  static __device__ unsigned meta_group_rank() {
    const unsigned rank = detail::rank_in_block() / SIZE;
    return Parent::is_tile ? rank % (detail::threads_of_parent<Parent>() / SIZE) : rank;
  }
  static __device__ unsigned meta_group_size() { return (detail::threads_of_parent<Parent>() + SIZE - 1) / SIZE; }
  template <class T>
  __device__ T shfl(T value, int rank) const {
    return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_sync(mask_, word, rank, SIZE); });
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_up_sync(mask_, word, delta, SIZE); });
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    return autotune::cpu::lane_value(value, [=](auto word) { return __shfl_down_sync(mask_, word, delta, SIZE); });
  }
  template <class T>
  __device__ T shfl_xor(T value, unsigned bits) const {
    return autotune::cpu::lane_value(
        value, [=](auto word) { return __shfl_xor_sync(mask_, word, static_cast<int>(bits), SIZE); });
  }
  __device__ unsigned lanes() const { return mask_; }

 private:
  __device__ thread_block_tile() : LaneGroup(detail::lanes_around(SIZE)) {}
  template <unsigned N, class P>
  friend __device__ thread_block_tile<N, P> detail_tile();
};
template <unsigned SIZE, class PARENT>
__device__ inline thread_block_tile<SIZE, PARENT> detail_tile() {
  return thread_block_tile<SIZE, PARENT>();
}

template <unsigned SIZE>
__device__ inline thread_block_tile<SIZE, thread_block> tiled_partition(const thread_block&) {
  return detail_tile<SIZE, thread_block>();
}
template <unsigned SIZE, unsigned OUTER, class PARENT>
__device__ inline thread_block_tile<SIZE, thread_block_tile<OUTER, PARENT>> tiled_partition(
    const thread_block_tile<OUTER, PARENT>&) {
  static_assert(SIZE <= OUTER, "a tile is not larger than what it is a part of");
  return detail_tile<SIZE, thread_block_tile<OUTER, PARENT>>();
}
__device__ inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  unsigned mask = 0;
  if (parent.kind_ == thread_group::Kind::block) {
    mask = detail::lanes_around(size);
  } else {
    // `size` lanes of the group that follow each other.
    unsigned left = parent.mask_, before = static_cast<unsigned>(parent.thread_rank()) / size * size;
    for (; before > 0; --before) left &= left - 1;
    for (unsigned n = 0; n < size && left; ++n, left &= left - 1) mask |= left & (0u - left);
  }
  return thread_group(thread_group::Kind::lanes, mask);
}

// Lanes that met somewhere.
class coalesced_group : public detail::LaneGroup {
 public:
  __device__ explicit coalesced_group(unsigned mask) : LaneGroup(mask) {}
  __device__ unsigned meta_group_rank() const { return 0; }
  __device__ unsigned meta_group_size() const { return 1; }
  template <class T>
  __device__ T shfl(T value, unsigned rank) const {
    return from(value, lane_of(rank % num_threads()));
  }
  template <class T>
  __device__ T shfl_up(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return from(value, lane_of(rank < delta ? rank : rank - delta));
  }
  template <class T>
  __device__ T shfl_down(T value, unsigned delta) const {
    const unsigned rank = thread_rank();
    return from(value, lane_of(rank + delta < num_threads() ? rank + delta : rank));
  }

 private:
  template <class T>
  __device__ T from(T value, unsigned lane) const {
    return autotune::cpu::lane_value(value,
                                     [=](auto word) { return __shfl_sync(mask_, word, static_cast<int>(lane), 32); });
  }
};
__device__ inline coalesced_group coalesced_threads() { return coalesced_group(__activemask()); }

template <class Group, class Label>
__device__ inline coalesced_group labeled_partition(const Group& group, Label label) {
  unsigned lanes = 0;
  const unsigned same = group.match_any(label), own = detail::rank_in_block() % 32 - group.thread_rank();
  if constexpr (__is_base_of(coalesced_group, Group)) {
    // Ranks of a group with gaps are no lanes: each says its own.
    for (unsigned rank = 0; rank < group.num_threads(); ++rank) {
      const unsigned lane = group.shfl(detail::rank_in_block() % 32, rank);
      if (same >> rank & 1) lanes |= 1u << lane;
    }
  } else {
    lanes = same << own;
  }
  return coalesced_group(lanes);
}
template <class Group>
__device__ inline coalesced_group binary_partition(const Group& group, bool predicate) {
  return labeled_partition(group, static_cast<int>(predicate));
}

template <class Group>
__device__ inline void sync(const Group& group) {
  group.sync();
}
template <class Group>
__device__ inline void synchronize(const Group& group) {
  group.sync();
}
template <class Group>
__device__ inline auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <class Group>
__device__ inline auto group_size(const Group& group) {
  return group.num_threads();
}
template <class Group, class Function, class... Arguments>
__device__ inline void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) function(arguments...);
}

}  // namespace cooperative_groups
