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
AUTOTUNE_DEVICE Place place_of(const typename Policy::offsets& offsets,
                               const typename Policy::tile_queries& tile_queries, unsigned slot) {
  unsigned query = tile_queries.load(slot / Policy::block_size);
  Offset own = offsets.load(query);
  for (Offset next = offsets.load(query + 1); next.slot <= slot; next = offsets.load(query + 1)) {
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
AUTOTUNE_DEVICE Origin origin_of(const typename Policy::nodes& nodes, const typename Policy::tails& tails,
                                 const typename Policy::ranges& ranges, const typename Policy::offsets& offsets,
                                 const typename Policy::tile_queries& tile_queries, const Match& match, unsigned slot,
                                 unsigned minimum) {
  unsigned top = match.node, depth = tails.load(top).depth;
  for (Node node = nodes.load(top); depth - node.edge_length >= minimum; node = nodes.load(top)) {
    depth -= node.edge_length;
    top = node.parent;
  }
  const Place place = place_of<Policy>(offsets, tile_queries, slot);
  // Occurrences that share less than the whole match with the read are found from higher up.
  return {ranges.load(top), place.query, place.base, place.start, top == match.node ? match.length : minimum,
          match.length};
}

// The leaves of a seed's word.
template <class Policy, class Table>
AUTOTUNE_DEVICE Origin origin_of(const Table& table, const typename Policy::queries& queries,
                                 const typename Policy::offsets& offsets,
                                 const typename Policy::tile_queries& tile_queries, const Range& leaves, unsigned seed,
                                 unsigned seeds, unsigned minimum) {
  const Spacing spacing = spacing_of(table, minimum);
  const unsigned base = seed * spacing.step;
  const bool is_last = (blockIdx.x + 1) * Policy::block_size >= seeds;
  const unsigned first = tile_queries.load(blockIdx.x);
  const unsigned last = is_last ? offsets.extent(0) - 2 : tile_queries.load(blockIdx.x + 1);
  const unsigned query = query_of(offsets, base, first, last);
  // What ends within a word follows that word if only T is missing.
  const bool is_sure = letter(queries, base + spacing.letters - 1) != 3;
  return {leaves,
          query,
          base,
          base - offsets.load(query).base,
          is_sure ? spacing.letters : 0,
          offsets.load(query + 1).base - base};
}

// What this thread's slot or seed has; no leaves where it is none or has no match.
template <class Policy>
AUTOTUNE_DEVICE Origin own_origin(const typename Policy::nodes& nodes, const typename Policy::tails& tails,
                                  const typename Policy::ranges& ranges, const typename Policy::coarse_table& coarse,
                                  const typename Policy::fine_table& fine, const typename Policy::queries& queries,
                                  const typename Policy::offsets& offsets, const typename Policy::matches& matches,
                                  const typename Policy::seeds& seeds,
                                  const typename Policy::tile_queries& tile_queries, unsigned count, unsigned minimum) {
  const unsigned own = blockIdx.x * Policy::block_size + threadIdx.x;
  Origin origin = {};
  if (own < count) {
    if constexpr (Policy::search == Search::tree) {
      const Match match = matches.load(own / 4).at(own % 4);
      if (match.node != root)
        origin = origin_of<Policy>(nodes, tails, ranges, offsets, tile_queries, match, own, minimum);
    } else {
      const Range leaves = seeds.load(own);
      if (leaves.count)
        origin = origin_of<Policy>(table_of<Policy>(coarse, fine), queries, offsets, tile_queries, leaves, own, count,
                                   minimum);
    }
  }
  return origin;
}

// The letters that a read has equal to the reference from a base on, of which `known` are known to be and `most` asked
// for; and those before it.
template <class Policy>
AUTOTUNE_DEVICE unsigned equal_from(const typename Policy::reference& reference,
                                    const typename Policy::queries& queries, unsigned position, unsigned base,
                                    unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal = equal_letters(letters(queries, base + known), letters(reference, position + known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

template <class Policy>
AUTOTUNE_DEVICE unsigned equal_before(const typename Policy::reference& reference,
                                      const typename Policy::queries& queries, unsigned position, unsigned base,
                                      unsigned known, unsigned most) {
  while (known < most) {
    const unsigned equal =
        equal_letters_back(letters_before(queries, base - known), letters_before(reference, position - known));
    known += equal;
    if (equal < letters_at_once) break;
  }
  return min(known, most);
}

// A match of a leaf: its letters before the leaf's position, and all of them; none is no match.
struct Extent {
  unsigned left, length;
};

// The matches of a block's leaves.
template <class Policy>
class Leaves {
 public:
  // In shared memory. `groups` is how often the leaves of an origin are gone through.
  struct Origins {
    unsigned long long behind[Policy::block_size];  // leaves up to the origin's last
    Origin origin[Policy::block_size];
    unsigned groups[Policy::block_size];
    unsigned before[Policy::block_size];  // the letter before the base; other: none
  };

  // All threads; `step` bases lie between origins.
  AUTOTUNE_DEVICE Leaves(Origins& origins, const typename Policy::queries& queries, const Origin& own, unsigned groups,
                         unsigned step)
      : origins_(origins), step_(step) {
    const unsigned long long leaves = static_cast<unsigned long long>(own.leaves.count) * groups;
    const unsigned long long before = exclusive_sum<Policy::block_size>(leaves, total_);
    origins.behind[threadIdx.x] = before + leaves;
    origins.origin[threadIdx.x] = own;
    origins.groups[threadIdx.x] = groups;
    origins.before[threadIdx.x] = leaves && own.back ? letter(queries, own.base - 1) : other;
    __syncthreads();
  }

  AUTOTUNE_DEVICE unsigned long long total() const { return total_; }

  // The thread whose origin leaf number `item` of the block is.
  AUTOTUNE_DEVICE unsigned owner(unsigned long long item) const {
    unsigned owner = 0;
    for (unsigned half = Policy::block_size / 2; half; half /= 2)
      if (origins_.behind[owner + half - 1] <= item) owner += half;
    return owner;
  }

  // The leaf's match of at least `minimum` letters. With several groups those of one have as many letters before the
  // base, the most first: in the order of starts in the read.
  AUTOTUNE_DEVICE Extent match(const typename Policy::leaves& leaves, const typename Policy::reference& reference,
                               const typename Policy::queries& queries, unsigned long long item, unsigned owner,
                               unsigned minimum, Leaf& leaf) const {
    const Origin& origin = origins_.origin[owner];
    const unsigned groups = origins_.groups[owner], before = origins_.before[owner];
    unsigned long long number = item - (owner ? origins_.behind[owner - 1] : 0);
    unsigned wanted = step_;  // any
    if (groups > 1) {
      wanted = groups - 1 - static_cast<unsigned>(number / origin.leaves.count);
      number %= origin.leaves.count;
    }
    leaf = leaves.load(origin.leaves.first + static_cast<unsigned>(number));
    unsigned left = 0;
    if (before != other && leaf.preceding == before) {
      if (step_ == 1) return {0, 0};
      left = equal_before<Policy>(reference, queries, leaf.position, origin.base, 1,
                                  min(step_, min(origin.back, leaf.position)));
      if (left == step_) return {0, 0};  // found from the origin before
    }
    if (wanted != step_ && left != wanted) return {0, 0};
    const unsigned length =
        left + equal_from<Policy>(reference, queries, leaf.position, origin.base, origin.known, origin.most);
    return {left, length < minimum ? 0 : length};
  }

 private:
  Origins& origins_;
  unsigned step_;
  unsigned long long total_;
};

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
  __shared__ typename Leaves<Policy>::Origins origins;
  __shared__ unsigned counts[Policy::block_size];
  counts[threadIdx.x] = 0;
  const Leaves<Policy> all(origins, queries, own, 1, step);
  const unsigned lane = threadIdx.x % 32;
  for (unsigned long long first = 0; first < all.total(); first += Policy::block_size) {
    const unsigned long long item = first + threadIdx.x;
    unsigned owner = Policy::block_size;
    bool is_match = false;
    if (item < all.total()) {
      Leaf leaf;
      owner = all.owner(item);
      is_match = all.match(leaves, reference, queries, item, owner, minimum, leaf).length != 0;
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

// Writes the block's MEMs, of which this thread's slot or seed has `count`, from number `number` on: those from
// first_mem on for which there is room.
template <class Policy>
AUTOTUNE_DEVICE void emit_leaves(const typename Policy::leaves& leaves, const typename Policy::reference& reference,
                                 const typename Policy::queries& queries, const typename Policy::mems& mems, Origin own,
                                 unsigned count, unsigned number, unsigned first_mem, unsigned step, unsigned minimum) {
  constexpr unsigned warps = Policy::block_size / 32;
  __shared__ typename Leaves<Policy>::Origins origins;
  __shared__ unsigned sums[2][warps];  // in turn, so that one barrier each is enough
  if (count == 0) own.leaves.count = 0;
  const Leaves<Policy> all(origins, queries, own, count > 1 ? step : 1, step);
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, room = mems.extent(0);
  unsigned turn = 0;
  for (unsigned long long first = 0; first < all.total(); first += Policy::block_size) {
    const unsigned long long item = first + threadIdx.x;
    Leaf leaf = {};
    Extent match = {};
    unsigned owner = 0;
    if (item < all.total()) {
      owner = all.owner(item);
      match = all.match(leaves, reference, queries, item, owner, minimum, leaf);
    }
    const unsigned found = __ballot_sync(0xffffffffu, match.length != 0);
    if (lane == 0) sums[turn][warp] = __popc(found);
    __syncthreads();
    unsigned before = 0, sum = 0;
    for (unsigned w = 0; w < warps; ++w) {
      if (w < warp) before += sums[turn][w];
      sum += sums[turn][w];
    }
    if (match.length) {
      const unsigned mine = number + before + __popc(found & ((1u << lane) - 1));
      const Origin& origin = origins.origin[owner];
      if (mine >= first_mem && mine - first_mem < room)
        mems.store(Mem{origin.query, leaf.position - match.left, origin.back - match.left, match.length},
                   mine - first_mem);
    }
    number += sum;
    turn ^= 1;
  }
}
