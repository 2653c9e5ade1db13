// MEMs from ranges of leaves: the threads of a block share all leaves of its slots or seeds. Leaves say what precedes
// them; how long a match is the letters tell.
#pragma once
#include "leaves.cuh"

// How far apart the starts of matches that are found from one leaf may be, and one.
template <class Policy>
AUTOTUNE_DEVICE unsigned step_of(const typename Policy::coarse_table& coarse, const typename Policy::fine_table& fine,
                                 unsigned minimum) {
  if constexpr (Policy::search == Search::tree)
    return 1;
  else
    return spacing_of(table_of<Policy>(coarse, fine), minimum).step;
}

// How many of the block's leaves are matches of this thread's slot or seed.
template <class Policy>
AUTOTUNE_DEVICE unsigned count_leaves(const typename Policy::leaves& leaves,
                                      const typename Policy::reference& reference,
                                      const typename Policy::queries& queries, const Origin& own, unsigned step,
                                      unsigned minimum) {
  using All = Leaves<Policy>;
  __shared__ typename All::Shared shared;
  __shared__ unsigned counts[Policy::block_size];  // by rank
  counts[threadIdx.x] = 0;
  All all(shared, queries, own, step, step != 1);
  const unsigned lane = threadIdx.x % 32;
  for (unsigned long long first = 0; first < all.total(); first += All::window) {
    all.open(first, all.total());
    bool is_match[All::rows];
#pragma unroll
    for (unsigned row = 0; row < All::rows; ++row) {
      is_match[row] = false;
      if (!all.has_row(row)) continue;
      const unsigned rank = all.rank_of(row);
      Leaf leaf;
      if (all.has(row)) {
        if (step == 1)
          all.load(leaves, row, rank, is_match[row]);
        else
          is_match[row] = all.template match<false>(leaves, reference, queries, row, rank, minimum, leaf).length != 0;
      }
    }
#pragma unroll
    for (unsigned row = 0; row < All::rows; ++row) {
      if (!all.has_row(row)) continue;
      // Of neighbours with one origin the first adds for all.
      const unsigned found = __ballot_sync(0xffffffffu, is_match[row]), begins = all.begins_of(row) | 1;
      const unsigned rank = all.rank_of(row), later = begins & (0xfffffffeu << lane);
      const unsigned end = later ? __ffs(static_cast<int>(later)) - 1 : 32;
      const unsigned of_origin = found & (0xffffffffu << lane) & (0xffffffffu >> (32 - end));
      if ((begins >> lane & 1) && of_origin) atomicAdd(&counts[rank], static_cast<unsigned>(__popc(of_origin)));
    }
  }
  __syncthreads();
  return own.leaves.count ? counts[all.rank()] : 0;
}

// Calls visit(index, rank, position) for all matches where origins are at every base, each of which has its known
// letters at all its leaves: what precedes a leaf decides. index counts from 0. All threads.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_leaves(Leaves<Policy>& all, const typename Policy::leaves& leaves, Visit visit) {
  using All = Leaves<Policy>;
  __shared__ unsigned matches[All::words];  // bits
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned index = 0;
  for (unsigned long long first = 0; first < all.total(); first += All::window) {
    all.open(first, all.total());
    unsigned position[All::rows];
#pragma unroll
    for (unsigned row = 0; row < All::rows; ++row) {
      unsigned found = 0;
      if (all.has_row(row)) {
        const unsigned rank = all.rank_of(row);
        bool is_match = false;
        if (all.has(row)) position[row] = all.load(leaves, row, rank, is_match).position;
        found = __ballot_sync(0xffffffffu, is_match);
      }
      if (lane == 0) matches[row * All::warps + warp] = found;
    }
    __syncthreads();
    const unsigned own = lane < All::words ? matches[lane] : 0, count = static_cast<unsigned>(__popc(own));
    const unsigned before = index + sum_before(count);
#pragma unroll
    for (unsigned row = 0; row < All::rows; ++row) {
      if (!all.has_row(row)) continue;
      const int word = static_cast<int>(row * All::warps + warp);
      const unsigned found = __shfl_sync(0xffffffffu, own, word), earlier = __shfl_sync(0xffffffffu, before, word);
      const unsigned rank = all.rank_of(row);
      if (found >> lane & 1) visit(earlier + __popc(found & ((1u << lane) - 1)), rank, position[row]);
    }
    index = __shfl_sync(0xffffffffu, before + count, 31);
  }
}

// Calls visit(index, rank, leaf, match) for the matches of the origins of ranks `from` to `to`, with `wanted` letters
// before the base or, if that is step, any number of them; index counts from 0. All threads; returns how many there
// are.
template <class Policy, class Visit>
AUTOTUNE_DEVICE unsigned for_matches(Leaves<Policy>& all, const typename Policy::leaves& leaves,
                                     const typename Policy::reference& reference,
                                     const typename Policy::queries& queries, unsigned from, unsigned to,
                                     unsigned wanted, unsigned step, unsigned minimum, Visit visit) {
  using All = Leaves<Policy>;
  __shared__ unsigned sums[2][All::warps];  // in turn, so that one barrier each is enough
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const unsigned long long last = all.begin(to);
  unsigned index = 0, turn = 0;
  all.go(from);
  for (unsigned long long first = all.begin(from); first < last; first += All::window) {
    all.open(first, last);
    for (unsigned row = 0; row < All::rows && all.has_row(row); ++row) {
      const unsigned of = all.rank_of(row);
      Leaf leaf = {};
      Extent match = {};
      if (all.has(row)) match = all.template match<true>(leaves, reference, queries, row, of, minimum, leaf);
      const bool is_match = match.length && (wanted == step || match.left == wanted);
      const unsigned found = __ballot_sync(0xffffffffu, is_match);
      if (lane == 0) sums[turn][warp] = __popc(found);
      __syncthreads();
      unsigned before = 0, sum = 0;
      for (unsigned w = 0; w < All::warps; ++w) {
        if (w < warp) before += sums[turn][w];
        sum += sums[turn][w];
      }
      if (is_match) visit(index + before + __popc(found & ((1u << lane) - 1)), of, leaf, match);
      index += sum;
      turn ^= 1;
    }
  }
  __syncthreads();  // before the next call writes sums
  return index;
}

// To put MEMs of one seed in order takes each as many steps as there are; to go through the leaves once more, about
// these.
constexpr unsigned steps_of_a_leaf = 64;

// The first number from `first` on whose bit is set, else COUNT.
template <unsigned COUNT>
AUTOTUNE_DEVICE unsigned next_set(const unsigned (&bits)[COUNT / 32], unsigned first) {
  for (unsigned word = first / 32; word < COUNT / 32; ++word) {
    const unsigned left = bits[word] & (word == first / 32 ? 0xffffffffu << first % 32 : 0xffffffffu);
    if (left) return word * 32 + __ffs(static_cast<int>(left)) - 1;
  }
  return COUNT;
}

// Writes the block's MEMs, `count` of this thread's slot or seed and `before` of those before it, from number `number`
// on: those from first_mem on for which there is room. MEMs of one seed begin at several starts, the first of which
// have the most letters before the word: as many as fit are gathered and written in that order, and a seed that has
// many is gone through for each start.
template <class Policy>
AUTOTUNE_DEVICE void emit_leaves(const typename Policy::leaves& leaves, const typename Policy::reference& reference,
                                 const typename Policy::queries& queries, const typename Policy::mems& mems, Origin own,
                                 unsigned count, unsigned before, unsigned number, unsigned first_mem, unsigned step,
                                 unsigned minimum) {
  using All = Leaves<Policy>;
  __shared__ typename All::Shared shared;
  if (count == 0) own.leaves.count = 0;
  All all(shared, queries, own, step, true);
  const unsigned room = mems.extent(0);
  const auto put = [&](unsigned mine, const Origin& origin, unsigned left, unsigned position, unsigned length) {
    if (mine >= first_mem && mine - first_mem < room)
      mems.store(Mem{origin.query, position - left, origin.back - left, length}, mine - first_mem);
  };
  if (step == 1) {
    for_leaves<Policy>(all, leaves, [&](unsigned index, unsigned rank, unsigned position) {
      put(number + index, all.origin(rank), 0, position, all.length(reference, queries, rank, position));
    });
    return;
  }
  if constexpr (Policy::search != Search::tree) {
    struct Found {
      unsigned rank, left, position, length;
    };
    constexpr unsigned most = 2 * Policy::block_size;
    __shared__ unsigned behind[Policy::block_size];  // MEMs up to the origin's last, by rank
    __shared__ Found gathered[most];
    __shared__ unsigned has_many[Policy::block_size / 32];
    if (threadIdx.x < Policy::block_size / 32) has_many[threadIdx.x] = 0;
    __syncthreads();
    if (count) {
      behind[all.rank()] = before + count;
      if (count > min(most, steps_of_a_leaf * (step - 1))) atomicOr(&has_many[all.rank() / 32], 1u << all.rank() % 32);
    }
    __syncthreads();
    for (unsigned rank = 0; rank < all.ranks();) {
      const unsigned done = rank ? behind[rank - 1] : 0;
      // The last end up to which all fits.
      unsigned end = rank, beyond = min(next_set<Policy::block_size>(has_many, rank), all.ranks()) + 1;
      while (end + 1 < beyond) {
        const unsigned middle = end + (beyond - end) / 2;
        if (behind[middle - 1] - done <= most)
          end = middle;
        else
          beyond = middle;
      }
      if (end == rank) {
        unsigned from = number + done;
        for (unsigned left = step; left-- > 0;)
          from += for_matches<Policy>(all, leaves, reference, queries, rank, rank + 1, left, step, minimum,
                                      [&](unsigned index, unsigned of, const Leaf& leaf, const Extent& match) {
                                        put(from + index, all.origin(of), match.left, leaf.position, match.length);
                                      });
        ++rank;
        continue;
      }
      for_matches<Policy>(all, leaves, reference, queries, rank, end, step, step, minimum,
                          [&](unsigned index, unsigned of, const Leaf& leaf, const Extent& match) {
                            gathered[index] = {of, match.left, leaf.position, match.length};
                          });
      for (unsigned i = threadIdx.x; i < behind[end - 1] - done; i += Policy::block_size) {
        const Found mine = gathered[i];
        const unsigned first = (mine.rank ? behind[mine.rank - 1] : 0) - done, last = behind[mine.rank] - done;
        unsigned place = first;
        for (unsigned j = first; j < last; ++j) {
          const unsigned left = gathered[j].left;
          place += left > mine.left || (left == mine.left && j < i);
        }
        put(number + done + place, all.origin(mine.rank), mine.left, mine.position, mine.length);
      }
      __syncthreads();
      rank = end;
    }
  }
}
