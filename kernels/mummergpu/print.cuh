// From longest matches to MEMs: every leaf below a match is an occurrence; those that the base before does not
// prolong are maximal. One thread a match: counted first, so that each is given its place.
#pragma once
#include "tree.cuh"

// Calls visit(position, length) for the MEMs of at least `minimum` bases that begin where `match` does, in the order
// of the tree: A, C, G, T, end. Depth first with no stack: parents lead back up.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_mems(const typename Policy::nodes& nodes, const typename Policy::children& children,
                              const typename Policy::tails& tails, const typename Policy::queries& queries,
                              const Match& match, unsigned first_base, bool is_first, unsigned minimum, Visit visit) {
  const unsigned before = is_first ? other : letter(queries, first_base - 1);
  const auto leaf = [&](const Tail& tail, unsigned length) {
    if (before == other || tail.preceding != before) visit(tail.leaf_position, length);
  };
  // Occurrences that share less than the whole match with the read are found from higher up.
  unsigned top = match.node, depth = tails.load(top).depth;
  for (Node node = nodes.load(top); depth - node.edge_length >= minimum; node = nodes.load(top)) {
    depth -= node.edge_length;
    top = node.parent;
  }
  // How many edges this node is away from the path of the read, counted from 1 at the match and below it: there the
  // length stays what it is. On the path, `away` is 0 and `length` the node's depth.
  unsigned node = top, away = top == match.node;
  unsigned length = away ? match.length : depth;
  for (;;) {
    const Tail tail = tails.load(node);
    if (!away) length = tail.depth;
    bool inner = tail.leaf_position == no_position;
    Children below = {};
    if (inner)
      below = children.load(node);
    else
      leaf(tail, length);
    unsigned branch = 0, child = root;
    for (;;) {
      if (inner) {
        for (; branch < other; ++branch)
          if ((child = below.at(branch)) != root) break;
        if (child != root) break;
        for (unsigned end = tails.load(node).end_child; end != root;) {
          const Tail chained = tails.load(end);
          leaf(chained, length);
          end = chained.end_child;
        }
      }
      if (node == top) return;
      const unsigned parent = nodes.load(node).parent;
      below = children.load(parent);
      branch = below.after(node);
      node = parent;
      inner = true;
      if (away) --away;
      if (!away) length = tails.load(node).depth;
    }
    if (away || branch != letter(queries, first_base + length)) {
      ++away;
    } else if (child == match.node) {
      away = 1;
      length = match.length;
    }
    node = child;
  }
}

// The sum of `value` over the threads before this one; `total` is that over the block.
template <int BLOCK_SIZE, class Number>
AUTOTUNE_DEVICE Number exclusive_sum(Number value, Number& total) {
  constexpr int warps = BLOCK_SIZE / 32;
  __shared__ Number sums[warps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Number sum = value;
  for (unsigned step = 1; step < 32; step *= 2) {
    const Number added = __shfl_up_sync(0xffffffffu, sum, step);
    if (lane >= step) sum += added;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  sum -= value;
  total = 0;
  for (unsigned w = 0; w < warps; ++w) {
    if (w < warp) sum += sums[w];
    total += sums[w];
  }
  return sum;
}

// Sums of counts are added up with 64 bits and end at this, which says: this many or more.
constexpr unsigned too_many = 0xFFFFFFFFu;
AUTOTUNE_DEVICE unsigned limited(unsigned long long sum) {
  return sum < too_many ? static_cast<unsigned>(sum) : too_many;
}

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

// counts[slot] MEMs begin where the slot's match does; tile_sums has their sum over each block.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    print_count(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
                typename Policy::queries queries, typename Policy::offsets offsets, typename Policy::matches matches,
                typename Policy::tile_queries tile_queries, typename Policy::counts counts,
                typename Policy::tile_sums tile_sums, unsigned slots, unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  unsigned count = 0;
  if (slot < slots) {
    const Match match = matches.load(slot / 4).at(slot % 4);
    if (match.node != root) {
      const Place place = place_of<Policy>(offsets, tile_queries, slot);
      for_mems<Policy>(nodes, children, tails, queries, match, place.base, place.start == 0, min_match_length,
                       [&](unsigned, unsigned) { ++count; });
    }
    counts.store(count, slot);
  }
  unsigned long long total;
  exclusive_sum<Policy::block_size>(static_cast<unsigned long long>(count), total);
  if (threadIdx.x == 0) tile_sums.store(limited(total), blockIdx.x);
}

constexpr unsigned scan_block_size = 1024;            // family.yaml: kernels: scan_tiles: block
constexpr unsigned group_size = 4 * scan_block_size;  // family.yaml: extents: group

// The sums over groups of tiles; tile_sums become the sums over the tiles before each in its group.
template <class Policy>
__global__ void __launch_bounds__(scan_block_size)
    scan_tiles(typename Policy::tile_sums tile_sums, typename Policy::group_sums group_sums, unsigned slots) {
  const unsigned tiles = (slots + Policy::block_size - 1) / Policy::block_size;
  const unsigned first = blockIdx.x * group_size + threadIdx.x * 4;
  unsigned counts[4];
  unsigned long long sum = 0, total;
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) sum += counts[i] = first + i < tiles ? tile_sums.load(first + i) : 0;
  sum = exclusive_sum<scan_block_size>(sum, total);
#pragma unroll
  for (unsigned i = 0; i < 4; ++i) {
    if (first + i < tiles) tile_sums.store(limited(sum), first + i);
    sum += counts[i];
  }
  if (threadIdx.x == 0) group_sums.store(limited(total), blockIdx.x);
}

// group_sums become the sums over the groups before each; the one behind the last is that of all, and with too_many
// there the others mean nothing. One block; a thread has a run of neighbours.
template <class Policy>
__global__ void __launch_bounds__(scan_block_size)
    scan_groups(typename Policy::group_sums group_sums, typename Policy::mems mems, unsigned slots) {
  const unsigned tiles = (slots + Policy::block_size - 1) / Policy::block_size;
  const unsigned groups = (tiles + group_size - 1) / group_size;
  const unsigned run = (groups + scan_block_size - 1) / scan_block_size;
  const unsigned first = min(threadIdx.x * run, groups), last = min(first + run, groups);
  unsigned long long sum = 0, total;
  for (unsigned group = first; group < last; ++group) sum += group_sums.load(group);
  sum = exclusive_sum<scan_block_size>(sum, total);
  for (unsigned group = first; group < last; ++group) {
    const unsigned count = group_sums.load(group);
    group_sums.store(limited(sum), group);
    sum += count;
  }
  if (threadIdx.x == 0) {
    group_sums.store(limited(total), groups);
    // An array has at least one element: where there is no MEM, it says so.
    if (total == 0) mems.store(Mem{no_position, no_position, no_position, no_position}, 0);
  }
}

// The MEMs themselves, by read, start in the read, and order of the tree: those from number first_mem on for which
// there is room.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    print_emit(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
               typename Policy::queries queries, typename Policy::offsets offsets, typename Policy::matches matches,
               typename Policy::tile_queries tile_queries, typename Policy::counts counts,
               typename Policy::tile_sums tile_sums, typename Policy::group_sums group_sums, typename Policy::mems mems,
               unsigned slots, unsigned first_mem, unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  const unsigned count = slot < slots ? counts.load(slot) : 0;
  unsigned total;
  unsigned number = exclusive_sum<Policy::block_size>(count, total);
  if (count == 0) return;
  number += tile_sums.load(blockIdx.x) + group_sums.load(blockIdx.x / group_size);
  const unsigned room = mems.extent(0);
  if (number + count <= first_mem || (number >= first_mem && number - first_mem >= room)) return;
  const Place place = place_of<Policy>(offsets, tile_queries, slot);
  for_mems<Policy>(nodes, children, tails, queries, matches.load(slot / 4).at(slot % 4), place.base, place.start == 0,
                   min_match_length, [&](unsigned position, unsigned length) {
                     if (number >= first_mem && number - first_mem < room)
                       mems.store(Mem{place.query, position, place.start, length}, number - first_mem);
                     ++number;
                   });
}
