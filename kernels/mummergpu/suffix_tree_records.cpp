// The records of a suffix tree, in the order of the text, which is that of their numbers. Each function is given a
// range of positions, from the last to the first; `next` is the number of the first node behind it.
#include "suffix_tree.hpp"

namespace {

// From a position on to the one before it.
struct Backwards {
  const Work& work;
  uint64_t position;
  uint32_t next;  // the number of the first node behind it

  bool is_letter() const { return work.text[position] != separator; }
  bool makes() const { return work.makes[position]; }
  uint32_t leaf() const { return next - 1; }
  uint32_t node() const { return next - 2; }  // where it makes one
  // Of the next position, root for a separator.
  uint32_t next_leaf() const { return work.text[position + 1] == separator ? root : next + work.makes[position + 1]; }
  void step() {
    if (is_letter()) next -= 1 + makes();
    --position;
  }
};

// The node above `head`, a node of the next suffix, that spells `depth` letters: it is always there. From the nodes at
// which suffixes are left, one position after the other, all these ways together are linear: going to the next, what is
// above (in nodes) falls by one at most, and each step up is one that it rose by.
uint32_t above(const Tree& tree, uint32_t head, uint32_t depth) {
  if (!depth) return root;
  for (uint32_t reached = tree.tails[head].depth; reached > depth; head = tree.nodes[head].parent)
    reached -= tree.nodes[head].edge_length;
  return head;
}

}  // namespace

// All but links of internal nodes and chains of leaves. stop is the first separator from end on. Returns how many
// leaves are in chains.
EXPORT uint64_t suffix_tree_collect(const Work* work, uint64_t begin, uint64_t end, uint64_t next, uint64_t stop) {
  const Tree& tree = work->tree;
  const auto put = [&](uint32_t node, const Made& made) {
    const uint32_t length = made.depth - (made.edge_start - made.first);
    tree.nodes[node] = {root, made.edge_start, length, made.parent};
    tree.children[node] = made.children;
    tree.tails[node] = {0, made.depth, no_position, separator};
  };
  uint64_t chained = 0;
  Backwards at{*work, end - 1, static_cast<uint32_t>(next)};
  for (uint64_t left = end - begin; left; --left, at.step()) {
    const uint64_t i = at.position;
    if (left > ahead && work->makes[i - ahead]) __builtin_prefetch(work->made + work->places[i - ahead].head);
    if (!at.is_letter()) {
      stop = i;
      continue;
    }
    const Place& place = work->places[i];
    const auto ends = [&](const Place& other) { return other.leaf_or_start == stop; };
    // A leaf of a chain spells the same as its parent, and only from there a search can go on.
    uint32_t link = at.next_leaf();
    if (link != root && ends(work->places[i + 1])) link = work->places[i + 1].parent;
    const uint32_t leaf = at.leaf(), length = static_cast<uint32_t>(stop) - place.leaf_or_start;
    tree.nodes[leaf] = {link, place.leaf_or_start, length, place.parent};
    tree.children[leaf] = {};
    tree.tails[leaf] = {0, static_cast<uint32_t>(stop - i), static_cast<uint32_t>(i),
                        i ? work->text[i - 1] : separator};
    if (at.makes()) put(at.node(), work->made[place.head]);
    if (ends(place)) work->chained[i] = 1, ++chained;
  }
  if (!begin) {
    put(root, work->made[work->internal - 1]);
    tree.nodes[root] = {root, 0, 0, root};
  }
  return chained;
}

// Links of internal nodes.
EXPORT void suffix_tree_links(const Work* work, uint64_t begin, uint64_t end, uint64_t next) {
  const Tree& tree = work->tree;
  Backwards at{*work, end - 1, static_cast<uint32_t>(next)};
  for (uint64_t left = end - begin; left; --left, at.step()) {
    const uint64_t i = at.position;
    if (left > ahead && work->makes[i - ahead] && !work->makes[i - ahead + 1]) {
      const uint32_t soon = work->places[i - ahead + 1].head;
      __builtin_prefetch(tree.tails + soon);
      __builtin_prefetch(tree.nodes + soon);
    }
    if (!at.makes()) continue;
    const uint32_t head = work->makes[i + 1] ? at.next_leaf() - 1 : work->places[i + 1].head;
    tree.nodes[at.node()].suffix_link = above(tree, head, tree.tails[at.node()].depth - 1);
  }
}

// Each leaf of a chain is put in front of it.
EXPORT void suffix_tree_chain(const Work* work, uint64_t begin, uint64_t end, uint64_t next) {
  const Tree& tree = work->tree;
  Backwards at{*work, end - 1, static_cast<uint32_t>(next)};
  for (uint64_t left = end - begin; left; --left, at.step())
    if (work->chained[at.position]) {
      uint32_t& first = tree.tails[tree.nodes[at.leaf()].parent].end_child;
      tree.tails[at.leaf()].end_child = first;
      first = at.leaf();
    }
}
