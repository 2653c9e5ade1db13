// What a block's slots and seeds have: ranges of leaves at which a match may be, and how many letters of the read are
// equal there.
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
AUTOTUNE_DEVICE Origin origin_of(const Table& table, const typename Policy::offsets& offsets,
                                 const typename Policy::tile_queries& tile_queries, const Range& leaves, unsigned seed,
                                 unsigned seeds, unsigned minimum) {
  const Spacing spacing = spacing_of(table, minimum);
  const unsigned base = seed * spacing.step;
  const bool is_last = (blockIdx.x + 1) * Policy::block_size >= seeds;
  const unsigned first = tile_queries.load(blockIdx.x);
  const unsigned last = is_last ? offsets.extent(0) - 2 : tile_queries.load(blockIdx.x + 1);
  const unsigned query = query_of(offsets, base, first, last);
  return {leaves, query, base, base - offsets.load(query).base, spacing.letters, offsets.load(query + 1).base - base};
}

// What this thread's slot or seed has; no leaves where it is none or has no match.
template <class Policy>
AUTOTUNE_DEVICE Origin own_origin(const typename Policy::nodes& nodes, const typename Policy::tails& tails,
                                  const typename Policy::ranges& ranges, const typename Policy::coarse_table& coarse,
                                  const typename Policy::fine_table& fine,

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
        origin = origin_of<Policy>(table_of<Policy>(coarse, fine), offsets, tile_queries, leaves, own, count, minimum);
    }
  }
  return origin;
}
