// MEMs from ranges of leaves: the threads of a block share all leaves of its slots or seeds, so that a word with many
// occurrences is not one thread's alone. Leaves lie one behind the other, and say what precedes them; how long a match
// is the letters tell.
#pragma once
#include "scan.cuh"

// Where a slot's match begins: the read, the start in it, and that base among all of them.
struct Place {
  unsigned query, start, base;
};

// The reads of a tile are few, and most often the one its first slot is in.
template <class Policy>
AUTOTUNE_DEVICE Place place_of(const typename Policy::arguments& a, unsigned slot) {
  unsigned query = a.tile_queries.load(slot / Policy::block_size);
  Offset own = a.offsets.load(query);
  for (Offset next = a.offsets.load(query + 1); next.slot <= slot; next = a.offsets.load(query + 1)) {
    own = next;
    ++query;
  }
  const unsigned start = slot - own.slot;
  return {query, start, own.base + start};
}

// What a slot or seed has: leaves at which a match may be.
struct Origin {
  Range leaves;
  unsigned query, base, back;  // the base that the leaves stand at, and how many the read has before it
  unsigned known, most;        // a match has at least so many letters from there on, and at most
};

// All leaves that share `minimum` letters with the read.
template <class Policy>
AUTOTUNE_DEVICE Origin origin_of(const typename Policy::arguments& a, const Match& match, unsigned slot) {
  unsigned top = match.node, depth = a.tails.load(top).depth;
  for (Node node = a.nodes.load(top); depth - node.edge_length >= a.min_match_length; node = a.nodes.load(top)) {
    depth -= node.edge_length;
    top = node.parent;
  }
  const Place place = place_of<Policy>(a, slot);
  // Occurrences that share less than the whole match with the read are found from higher up.
  const unsigned known = top == match.node ? match.length : a.min_match_length;
  return {a.ranges.load(top), place.query, place.base, place.start, known, match.length};
}

// The leaves of a seed's word.
template <class Policy>
AUTOTUNE_DEVICE Origin origin_of(const typename Policy::arguments& a, const Range& leaves, unsigned seed,
                                 unsigned seeds) {
  const Spacing spacing = spacing_of<Policy>(a);
  const unsigned base = seed * spacing.step;
  const bool is_last = (blockIdx.x + 1) * Policy::block_size >= seeds;
  const unsigned first = a.tile_queries.load(blockIdx.x);
  const unsigned last = is_last ? a.offsets.extent(0) - 2 : a.tile_queries.load(blockIdx.x + 1);
  const unsigned query = query_of(a.offsets, base, first, last);
  // What ends within a word follows that word if only T is missing.
  const bool is_sure = letter(a.queries, base + spacing.letters - 1) != 3;
  return {leaves,
          query,
          base,
          base - a.offsets.load(query).base,
          is_sure ? spacing.letters : 0,
          a.offsets.load(query + 1).base - base};
}

// What this thread's slot or seed has; no leaves where it is none or has no match.
template <class Policy>
AUTOTUNE_DEVICE Origin own_origin(const typename Policy::arguments& a, unsigned count) {
  const unsigned own = blockIdx.x * Policy::block_size + threadIdx.x;
  Origin origin = {};
  if (own < count) {
    if constexpr (Policy::search == Search::tree) {
      const Match match = a.matches.load(own / 4).at(own % 4);
      if (match.node != root) origin = origin_of<Policy>(a, match, own);
    } else {
      const Range leaves = a.seeds.load(own);
      if (leaves.count) origin = origin_of<Policy>(a, leaves, own, count);
    }
  }
  return origin;
}

// The letters that a read has equal to the reference from a base on, of which `known` are known to be and `most` asked
// for; and those before it.
template <class Policy>
AUTOTUNE_DEVICE unsigned equal_from(const typename Policy::arguments& a, unsigned position, unsigned base,
                                    unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal = equal_letters(letters(a.queries, base + known), letters(a.reference, position + known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

template <class Policy>
AUTOTUNE_DEVICE unsigned equal_before(const typename Policy::arguments& a, unsigned position, unsigned base,
                                      unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal =
        equal_letters_back(letters_before(a.queries, base - known), letters_before(a.reference, position - known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

// A match of a leaf: its letters before the base, and all of them; none is no match.
struct Extent {
  unsigned left, length;
};

// The leaves of a block, numbered from its first slot's or seed's on.
template <class Policy>
class Leaves {
 public:
  // In shared memory.
  struct Origins {
    unsigned long long behind[Policy::block_size];  // leaves up to the origin's last
    Origin origin[Policy::block_size];
    unsigned before[Policy::block_size];  // the letter before the base; other: none
  };

  // All threads; `step` bases lie between origins.
  AUTOTUNE_DEVICE Leaves(Origins& origins, const typename Policy::arguments& a, const Origin& own, unsigned step)
      : origins_(origins), step_(step) {
    const unsigned long long before =
        exclusive_sum<Policy::block_size>(static_cast<unsigned long long>(own.leaves.count), total_);
    origins.behind[threadIdx.x] = before + own.leaves.count;
    origins.origin[threadIdx.x] = own;
    origins.before[threadIdx.x] = own.leaves.count && own.back ? letter(a.queries, own.base - 1) : other;
    __syncthreads();
  }

  AUTOTUNE_DEVICE unsigned long long total() const { return total_; }
  AUTOTUNE_DEVICE unsigned long long begin(unsigned owner) const { return owner ? origins_.behind[owner - 1] : 0; }
  AUTOTUNE_DEVICE const Origin& origin(unsigned owner) const { return origins_.origin[owner]; }

  // The thread whose origin a leaf is, which may be that of another leaf before it.
  AUTOTUNE_DEVICE unsigned owner(unsigned long long number, unsigned earlier) const {
    if (number < origins_.behind[earlier]) return earlier;
    unsigned owner = 0;
    for (unsigned half = Policy::block_size / 2; half; half /= 2)
      if (origins_.behind[owner + half - 1] <= number) owner += half;
    return owner;
  }

  // The match of an owner's leaf if it has min_match_length letters; how long it is if it IS_WANTED.
  template <bool IS_WANTED>
  AUTOTUNE_DEVICE Extent match(const typename Policy::arguments& a, unsigned owner, unsigned long long index,
                               Leaf& leaf) const {
    const Origin& origin = origins_.origin[owner];
    const unsigned before = origins_.before[owner];
    leaf = a.leaves.load(origin.leaves.first + static_cast<unsigned>(index));
    unsigned left = 0;
    if (before != other && leaf.preceding == before) {
      if (step_ == 1) return {0, 0};
      left = equal_before<Policy>(a, leaf.position, origin.base, 1, min(step_, min(origin.back, leaf.position)));
      if (left == step_) return {0, 0};  // found from the origin before
    }
    unsigned length = left + origin.known;
    if (IS_WANTED || length < a.min_match_length)
      length = left + equal_from<Policy>(a, leaf.position, origin.base, origin.known, origin.most);
    return {left, length < a.min_match_length ? 0 : length};
  }

 private:
  Origins& origins_;
  unsigned step_;
  unsigned long long total_;
};

// How far apart the starts of matches that are found from one leaf may be, and one.
template <class Policy>
AUTOTUNE_DEVICE unsigned step_of(const typename Policy::arguments& a) {
  if constexpr (Policy::search == Search::tree)
    return 1;
  else
    return spacing_of<Policy>(a).step;
}

// How many of the block's leaves are matches of this thread's slot or seed.
template <class Policy>
AUTOTUNE_DEVICE unsigned count_leaves(const typename Policy::arguments& a, const Origin& own, unsigned step) {
  __shared__ typename Leaves<Policy>::Origins origins;
  __shared__ unsigned counts[Policy::block_size];
  counts[threadIdx.x] = 0;
  const Leaves<Policy> all(origins, a, own, step);
  const unsigned lane = threadIdx.x % 32;
  unsigned owner = 0;
  for (unsigned long long first = 0; first < all.total(); first += Policy::block_size) {
    const unsigned long long number = first + threadIdx.x;
    bool is_match = false;
    if (number < all.total()) {
      Leaf leaf;
      owner = all.owner(number, owner);
      is_match = all.template match<false>(a, owner, number - all.begin(owner), leaf).length != 0;
    }
    // Of neighbours with one owner the first adds for all.
    const unsigned found = __ballot_sync(0xffffffffu, is_match);
    const unsigned before = __shfl_up_sync(0xffffffffu, owner, 1);
    const bool is_first = lane == 0 || before != owner;
    const unsigned later = __ballot_sync(0xffffffffu, is_first) & (0xfffffffeu << lane);
    const unsigned end = later ? __ffs(static_cast<int>(later)) - 1 : 32;
    const unsigned of_owner = (0xffffffffu << lane) & (0xffffffffu >> (32 - end));
    if (is_first && (found & of_owner)) atomicAdd(&counts[owner], static_cast<unsigned>(__popc(found & of_owner)));
  }
  __syncthreads();
  return counts[threadIdx.x];
}

// Calls visit(index, owner, leaf, match) for the matches of leaves `first` to `last`; index counts from 0. All threads.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_matches(const Leaves<Policy>& all, const typename Policy::arguments& a,
                                 unsigned long long first, unsigned long long last, Visit visit) {
  constexpr unsigned warps = Policy::block_size / 32;
  __shared__ unsigned sums[2][warps];  // in turn, so that one barrier each is enough
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned index = 0, turn = 0, owner = 0;
  for (; first < last; first += Policy::block_size) {
    const unsigned long long number = first + threadIdx.x;
    Leaf leaf = {};
    Extent match = {};
    if (number < last) {
      owner = all.owner(number, owner);
      match = all.template match<true>(a, owner, number - all.begin(owner), leaf);
    }
    const unsigned found = __ballot_sync(0xffffffffu, match.length != 0);
    if (lane == 0) sums[turn][warp] = __popc(found);
    __syncthreads();
    unsigned before = 0, sum = 0;
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) before += sums[turn][w];
      sum += sums[turn][w];
    }
    if (match.length) visit(index + before + __popc(found & ((1u << lane) - 1)), owner, leaf, match);
    index += sum;
    turn ^= 1;
  }
  __syncthreads();  // before the next call writes sums
}

// A match of the leaf at `position`, `left` letters of it before the base.
struct alignas(16) Found {
  unsigned owner, left, position, length;
};

// Calls put(number, found) for the MEMs of a seed that has more than can be gathered; `from` is the first one's number.
// They go by start, those with the most letters before the base first, and then by leaf: the MEMs of each start are
// counted, and then placed, which is two runs through the leaves for every block_size starts.
template <class Policy, class Put>
AUTOTUNE_DEVICE void emit_many(const Leaves<Policy>& all, const typename Policy::arguments& a, unsigned owner,
                               unsigned from, unsigned step, Found* gathered, Put put) {
  constexpr unsigned starts = Policy::block_size;
  __shared__ unsigned next[starts];  // the number of the next MEM of each start
  const unsigned leaves = all.origin(owner).leaves.count;
  for (unsigned passed = 0; passed < step; passed += starts) {
    next[threadIdx.x] = 0;
    __syncthreads();
    Leaf leaf;
    for (unsigned long long index = threadIdx.x; index < leaves; index += starts) {
      const Extent match = all.template match<false>(a, owner, index, leaf);
      const unsigned start = step - 1 - match.left - passed;
      if (match.length && start < starts) atomicAdd(&next[start], 1u);
    }
    __syncthreads();
    unsigned total;
    const unsigned before = exclusive_sum<Policy::block_size>(next[threadIdx.x], total);
    next[threadIdx.x] = from + before;
    from += total;
    for (unsigned long long first = 0; total && first < leaves; first += starts) {
      Extent match = {};
      if (first + threadIdx.x < leaves) match = all.template match<true>(a, owner, first + threadIdx.x, leaf);
      const unsigned start = step - 1 - match.left - passed;
      const bool is_mine = match.length && start < starts;
      gathered[threadIdx.x].left = is_mine ? match.left : step;
      __syncthreads();
      if (is_mine) {
        unsigned number = next[start];
        for (unsigned i = 0; i < threadIdx.x; ++i) number += gathered[i].left == match.left;
        put(number, Found{owner, match.left, leaf.position, match.length});
      }
      __syncthreads();
      if (is_mine) atomicAdd(&next[start], 1u);
    }
    __syncthreads();  // before next is written again
  }
}

// Writes the block's MEMs, `count` of this thread's slot or seed and `before` of those before it, from number `number`
// on: those from first_mem on for which there is room. MEMs of one seed begin at several starts, the first of which
// have the most letters before the word: as many seeds as fit are gathered and written in that order.
template <class Policy>
AUTOTUNE_DEVICE void emit_leaves(const typename Policy::arguments& a, Origin own, unsigned count, unsigned before,
                                 unsigned number, unsigned step) {
  constexpr unsigned most = Policy::search == Search::tree ? 1 : 2 * Policy::block_size;
  __shared__ typename Leaves<Policy>::Origins origins;
  __shared__ unsigned numbers[Policy::block_size + 1];  // of each origin's first MEM, and behind the last
  __shared__ Found gathered[most];
  numbers[threadIdx.x + 1] = number + before + count;
  if (threadIdx.x == 0) numbers[0] = number;
  if (count == 0) own.leaves.count = 0;
  const Leaves<Policy> all(origins, a, own, step);
  const unsigned room = a.mems.extent(0);
  const auto put = [&](unsigned mine, const Found& found) {
    const Origin& origin = all.origin(found.owner);
    if (mine >= a.first_mem && mine - a.first_mem < room)
      a.mems.store(Mem{origin.query, found.position - found.left, origin.back - found.left, found.length},
                   mine - a.first_mem);
  };
  if (step == 1) {
    for_matches<Policy>(all, a, 0, all.total(),
                        [&](unsigned index, unsigned owner, const Leaf& leaf, const Extent& match) {
                          put(number + index, {owner, match.left, leaf.position, match.length});
                        });
    return;
  }
  for (unsigned owner = 0; owner < Policy::block_size;) {
    const unsigned from = numbers[owner];
    unsigned end = owner, beyond = Policy::block_size + 1;  // the last end that fits
    while (end + 1 < beyond) {
      const unsigned middle = end + (beyond - end) / 2;
      if (numbers[middle] - from <= most)
        end = middle;
      else
        beyond = middle;
    }
    if (end == owner) {
      emit_many<Policy>(all, a, owner, from, step, gathered, put);
      ++owner;
      continue;
    }
    for_matches<Policy>(all, a, all.begin(owner), all.begin(end),
                        [&](unsigned index, unsigned of, const Leaf& leaf, const Extent& match) {
                          gathered[index] = {of, match.left, leaf.position, match.length};
                        });
    for (unsigned i = threadIdx.x; i < numbers[end] - from; i += Policy::block_size) {
      const Found mine = gathered[i];
      unsigned place = numbers[mine.owner];
      const unsigned first = place - from, last = numbers[mine.owner + 1] - from;
#pragma unroll 4  // words with one or two matches are many
      for (unsigned j = first; j < i; ++j) place += gathered[j].left >= mine.left;
#pragma unroll 4
      for (unsigned j = i + 1; j < last; ++j) place += gathered[j].left > mine.left;
      put(place, mine);
    }
    __syncthreads();
    owner = end;
  }
}
