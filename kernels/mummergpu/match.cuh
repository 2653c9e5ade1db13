// Longest matches of every suffix of a read, one thread a read; or the leaves of its words. A slot is a start in a read
// from which a match could be long enough; a tile is the slots or seeds of one block of the print kernels.
#pragma once
#include "seeds.cuh"

// Along the tree as far as the read goes, then over the suffix link of the last node that was passed whole: it spells
// the same without the first base, and what was matched below it (`known`) need not be compared again. All of it is
// one loop that goes to one node, or along one edge for some letters: threads of a warp that are at different starts of
// their reads go on together, where nested loops would let each wait for the slowest at every start.
template <class Policy>
AUTOTUNE_DEVICE void walk(const typename Policy::arguments& a) {
  const unsigned query = blockIdx.x * Policy::block_size + threadIdx.x;
  if (query + 1 >= a.offsets.extent(0)) return;
  const Offset own = a.offsets.load(query), next = a.offsets.load(query + 1);
  if (own.slot == next.slot) return;
  for (unsigned tile = (own.slot + Policy::block_size - 1) / Policy::block_size; tile * Policy::block_size < next.slot;
       ++tile)
    a.tile_queries.store(query, tile);

  unsigned slot = own.slot, begin = own.base;                            // of this suffix
  unsigned reached = begin;                                              // the base behind what is spelt by `at`
  unsigned ahead = letters(a.queries, reached), held = letters_at_once;  // the codes from `reached` on
  unsigned at = root, link = root, known = 0;
  unsigned to = root, on_edge = 0;  // the node to go to, and how many letters of its edge are matched
  bool is_below = false;            // whether `to` is a child of `at`, or where its link leads
  bool is_loaded = false;
  Node node = {};
  Children below = {};
  __shared__ Match found[4][Policy::block_size];  // at four starts of each read
  // No `continue`: the threads of a warp shall meet again at the end of every branch.
  do {
    if (!is_loaded) {  // one access where nodes and children are merged
      node = a.nodes.load(to);
      below = a.children.load(to);
      if (is_below) {
        on_edge = min(known, node.edge_length);
        known -= on_edge;
        if (on_edge == 0) on_edge = 1;  // by its first letter the child was chosen
      }
      is_loaded = true;
    }
    bool ends = false, goes_on = false;
    if (is_below && on_edge < node.edge_length) {
      const unsigned left = min(node.edge_length - on_edge, next.base - reached - on_edge);
      const bool is_held = on_edge < held;
      const unsigned of_read = is_held ? ahead >> on_edge * 4 : letters(a.queries, reached + on_edge);
      const unsigned compared = min(left, is_held ? held - on_edge : letters_at_once);
      const unsigned equal = min(compared, equal_letters(of_read, letters(a.reference, node.edge_start + on_edge)));
      on_edge += equal;
      goes_on = equal == compared && compared < left;
      ends = !goes_on && on_edge < node.edge_length;
    }
    if (!ends && !goes_on) {  // here is a node that is spelt whole
      if (is_below) {
        reached += on_edge;
        ahead = on_edge < held ? ahead >> on_edge * 4 : 0;
        held = on_edge < held ? held - on_edge : 0;
        on_edge = 0;
      }
      at = to;
      link = node.suffix_link;
      if (held == 0) {
        ahead = letters(a.queries, reached);
        held = letters_at_once;
      }
      to = reached < next.base ? below.at(ahead & 7) : root;
      is_below = true;
      is_loaded = false;
      ends = to == root;
    }
    if (ends) {
      const unsigned length = reached + on_edge - begin;
      found[slot % 4][threadIdx.x] = Match{length < a.min_match_length ? root : on_edge ? to : at, length};
      ++begin;
      if (++slot % 4 == 0)
        a.matches.store(
            MatchQuad{found[0][threadIdx.x], found[1][threadIdx.x], found[2][threadIdx.x], found[3][threadIdx.x]},
            slot / 4 - 1);
      known = on_edge;
      on_edge = 0;
      if (at == root) {  // nothing to leave out but the base itself
        if (known) --known;
        ++reached;
        ahead >>= 4;
        --held;
      }
      to = at == root ? root : link;
      is_below = is_loaded = false;
    }
  } while (slot != next.slot);
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) match(typename Policy::arguments a) {
  if constexpr (Policy::search == Search::tree)
    walk<Policy>(a);
  else
    look_up<Policy>(a);
}
