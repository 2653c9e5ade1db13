// Longest matches of every suffix of a read, one thread a read.
#pragma once
#include "tree.cuh"

// Along the tree as far as the read goes, then over the suffix link of the last node that was passed whole: it spells
// the same without the first base, and what was matched below it (`known`) need not be compared again.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    match(typename Policy::nodes nodes, typename Policy::children children, typename Policy::reference reference,
          typename Policy::queries queries, typename Policy::offsets offsets, typename Policy::matches matches,
          unsigned min_match_length) {
  constexpr unsigned unknown = 0xFFFFFFFFu;
  const unsigned query = blockIdx.x * Policy::block_size + threadIdx.x;
  if (query + 1 >= offsets.extent(0)) return;
  const Offset own = offsets.load(query), next = offsets.load(query + 1);
  const unsigned slots = next.slot - own.slot;
  unsigned at = root, link = root, known = 0;
  unsigned reached = own.base;  // the base behind what is spelt by `at`
  for (unsigned start = 0; start < slots; ++start) {
    unsigned below = root, on_edge = 0;
    while (reached < next.base) {
      const unsigned child = children.load(at).at(queries.load(reached));
      if (child == root) break;
      const Node node = nodes.load(child);
      unsigned equal = min(known, node.edge_length);
      known -= equal;
      if (equal == 0) equal = 1;  // by its first letter the child was chosen
      while (equal < node.edge_length && reached + equal < next.base &&
             reference.load(node.edge_start + equal) == queries.load(reached + equal))
        ++equal;
      if (equal < node.edge_length) {
        below = child;
        on_edge = equal;
        break;
      }
      at = child;
      link = node.suffix_link;
      reached += equal;
    }
    const unsigned length = reached + on_edge - (own.base + start);
    const unsigned end = on_edge ? below : at;
    matches.store(Match{length >= min_match_length ? end : root, length, query, start}, own.slot + start);
    known = on_edge;
    if (at == root) {  // nothing to leave out but the base itself
      if (known) --known;
      ++reached;
    } else {
      at = link == unknown ? nodes.load(at).suffix_link : link;
      link = at == root ? root : unknown;
    }
  }
}
