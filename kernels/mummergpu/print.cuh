// From longest matches to MEMs: every leaf below a match is an occurrence; those that the base before does not
// prolong are maximal. One thread a match: counted first, so that each is given its place.
#pragma once
#include "tree.cuh"

// Calls visit(position, length) for the MEMs of at least `minimum` bases that begin where `match` does, in the order
// of the tree: A, C, G, T, end. Depth first with no stack: parents lead back up.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_mems(const typename Policy::nodes& nodes, const typename Policy::children& children,
                              const typename Policy::tails& tails, const typename Policy::queries& queries,
                              const Match& match, unsigned first_base, unsigned minimum, Visit visit) {
  const unsigned before = match.start ? queries.load(first_base - 1) : other;
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
    unsigned letter = 0, child = root;
    for (;;) {
      if (inner) {
        for (; letter < other; ++letter)
          if ((child = below.at(letter)) != root) break;
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
      letter = below.after(node);
      node = parent;
      inner = true;
      if (away) --away;
      if (!away) length = tails.load(node).depth;
    }
    if (away || letter != queries.load(first_base + length)) {
      ++away;
    } else if (child == match.node) {
      away = 1;
      length = match.length;
    }
    node = child;
  }
}

// The sum of `value` over the threads before this one; `total` is that over the block.
template <int BLOCK_SIZE>
AUTOTUNE_DEVICE unsigned exclusive_sum(unsigned value, unsigned& total) {
  constexpr int warps = BLOCK_SIZE / 32;
  __shared__ unsigned sums[warps];
  const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  unsigned sum = value;
  for (unsigned step = 1; step < 32; step *= 2) {
    const unsigned added = __shfl_up_sync(0xffffffffu, sum, step);
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

// counts[slot] MEMs begin where the slot's match does; tile_sums has their sum over each block.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    print_count(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
                typename Policy::queries queries, typename Policy::offsets offsets, typename Policy::matches matches,
                typename Policy::counts counts, typename Policy::tile_sums tile_sums, unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  unsigned count = 0, total;
  if (slot < matches.extent(0)) {
    const Match match = matches.load(slot);
    if (match.node != root)
      for_mems<Policy>(nodes, children, tails, queries, match, offsets.load(match.query).base + match.start,
                       min_match_length, [&](unsigned, unsigned) { ++count; });
    counts.store(count, slot);
  }
  exclusive_sum<Policy::block_size>(count, total);
  if (threadIdx.x == 0) tile_sums.store(total, blockIdx.x);
}

constexpr int scan_block_size = 1024;  // family.yaml: kernels: scan: block

// tile_sums become the sums over the tiles before each. One block; a thread has a run of neighbours.
template <class Policy>
__global__ void __launch_bounds__(scan_block_size)
    scan(typename Policy::matches matches, typename Policy::tile_sums tile_sums, typename Policy::mems mems) {
  const unsigned tiles = (matches.extent(0) + Policy::block_size - 1) / Policy::block_size;
  const unsigned run = (tiles + scan_block_size - 1) / scan_block_size;
  const unsigned first = min(threadIdx.x * run, tiles), last = min(first + run, tiles);
  unsigned sum = 0, total;
  for (unsigned tile = first; tile < last; ++tile) sum += tile_sums.load(tile);
  sum = exclusive_sum<scan_block_size>(sum, total);
  for (unsigned tile = first; tile < last; ++tile) {
    const unsigned count = tile_sums.load(tile);
    tile_sums.store(sum, tile);
    sum += count;
  }
  // An array has at least one element: where there is no MEM, it says so.
  if (total == 0 && threadIdx.x == 0) mems.store(Mem{no_position, no_position, no_position, no_position}, 0);
}

// The MEMs themselves, by read, start in the read, and order of the tree.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    print_emit(typename Policy::nodes nodes, typename Policy::children children, typename Policy::tails tails,
               typename Policy::queries queries, typename Policy::offsets offsets, typename Policy::matches matches,
               typename Policy::counts counts, typename Policy::tile_sums tile_sums, typename Policy::mems mems,
               unsigned min_match_length) {
  const unsigned slot = blockIdx.x * Policy::block_size + threadIdx.x;
  const unsigned count = slot < matches.extent(0) ? counts.load(slot) : 0;
  unsigned total;
  unsigned place = exclusive_sum<Policy::block_size>(count, total);
  if (count == 0) return;
  place += tile_sums.load(blockIdx.x);
  const Match match = matches.load(slot);
  for_mems<Policy>(nodes, children, tails, queries, match, offsets.load(match.query).base + match.start,
                   min_match_length, [&](unsigned position, unsigned length) {
                     // There is room for as many as the host has counted; never write past it.
                     if (place < mems.extent(0)) mems.store(Mem{match.query, position, match.start, length}, place);
                     ++place;
                   });
}
