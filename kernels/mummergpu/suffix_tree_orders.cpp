// Orders of a suffix tree's nodes: order[new] = old, for nodes in all, children of a node as its slots go; and of its
// leaves.
#include "suffix_tree.hpp"

namespace {

constexpr int slots = 5;  // A, C, G, T, what ends here

uint32_t child(const Tree& tree, uint32_t node, int slot) {
  return slot < 4 ? tree.children[node].at[slot] : tree.tails[node].end_child;
}

}  // namespace

EXPORT void suffix_tree_breadth_first(const Tree* tree, uint64_t nodes, int64_t* order) {
  uint64_t tail = 0;
  order[tail++] = root;
  for (uint64_t head = 0; head < nodes; ++head)
    for (int slot = 0; slot < slots; ++slot)
      if (const uint32_t next = child(*tree, static_cast<uint32_t>(order[head]), slot)) order[tail++] = next;
}

// Nodes still to come wait in a stack at the end of order: never more of them than places that are left.
EXPORT void suffix_tree_depth_first(const Tree* tree, uint64_t nodes, int64_t* order) {
  int64_t* top = order + nodes;
  *--top = root;
  for (uint64_t i = 0; i < nodes; ++i) {
    const uint32_t node = static_cast<uint32_t>(*top++);
    order[i] = node;
    for (int slot = slots; slot-- > 0;)
      if (const uint32_t next = child(*tree, node, slot)) *--top = next;
  }
}

// The first node_depth levels breadth first; then, in the same queue's order, blocks: a node and its descendants less
// than block levels below it, depth first, of which those block levels below it enter the queue. queue holds nodes.
EXPORT void suffix_tree_breadth_first_blocks(const Tree* tree, uint64_t nodes, uint32_t node_depth, uint32_t block,
                                             uint32_t* queue, int64_t* order) {
  uint64_t head = 0, tail = 0, count = 0;
  queue[tail++] = root;
  for (uint32_t level = 0; level < node_depth && head < tail; ++level)
    for (const uint64_t end = tail; head < end; ++head) {
      order[count++] = queue[head];
      for (int slot = 0; slot < slots; ++slot)
        if (const uint32_t next = child(*tree, queue[head], slot)) queue[tail++] = next;
    }
  // As in depth_first; a node waits together with its level in the block.
  int64_t* top = order + nodes;
  for (; head < tail; ++head)
    for (*--top = queue[head]; top < order + nodes;) {
      const uint32_t node = static_cast<uint32_t>(*top), level = static_cast<uint32_t>(*top >> 32);
      ++top;
      if (level == block) {
        queue[tail++] = node;
        continue;
      }
      order[count++] = node;
      for (int slot = slots; slot-- > 0;)
        if (const uint32_t next = child(*tree, node, slot)) *--top = static_cast<int64_t>(level + 1) << 32 | next;
    }
}

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
