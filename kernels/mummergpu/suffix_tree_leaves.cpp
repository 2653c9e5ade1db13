// The leaves of a suffix tree.
#include "suffix_tree.hpp"

namespace {

constexpr int slots = 5;  // A, C, G, T, what ends here

uint32_t child(const Tree& tree, uint32_t node, int slot) {
  return slot < 4 ? tree.children[node].at[slot] : tree.tails[node].end_child;
}

}  // namespace

// The leaves as depth first has them, and which of them are below each node; stack holds nodes.
EXPORT void suffix_tree_leaves(const Tree* tree, uint32_t* stack, Leaf* leaves, Range* ranges) {
  uint32_t place = 0;
  uint64_t height = 0;
  stack[height++] = root;
  while (height) {
    const uint32_t node = stack[height - 1];
    // Met again, when all below it is done.
    if (ranges[node].count) {
      ranges[node].count = place - ranges[node].first;
      --height;
      continue;
    }
    ranges[node] = {place, 1};
    const Tail& tail = tree->tails[node];
    if (tail.leaf_position != no_position) {
      leaves[place++] = {tail.leaf_position, tail.preceding};
      --height;
      // A chain is below its node, not below its first leaf.
      if (tail.end_child) stack[height++] = tail.end_child;
      continue;
    }
    for (int slot = slots; slot-- > 0;)
      if (const uint32_t next = child(*tree, node, slot)) stack[height++] = next;
  }
}
