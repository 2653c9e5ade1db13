// A suffix tree from a suffix array, in linear time, and orders of its nodes. suffix_tree.py, which calls these in
// their order here, checks the text, allocates all memory and says what each array of the tree holds.
//
// It needs the C library only, like the runtime library of the cpu device. Nodes and positions are uint32_t; what is
// multiplied or counts nodes in an order is wider.
#include <stdint.h>

namespace {

constexpr uint8_t separator = 4;
constexpr int slots = 5;
constexpr uint32_t root = 0;
constexpr uint32_t no_position = 0xFFFFFFFF;
constexpr uint32_t ends_at_node = 0x80000000;
// Most of the time goes into waiting for random accesses: the address wanted this many steps later is known by now.
constexpr uint32_t ahead = 24;

// suffix_tree.py: _Tree.
struct Tree {
  uint32_t length;   // characters of the text; the last is a separator
  uint32_t letters;  // of them not separators: leaves
  const uint8_t* text;
  uint32_t* children;  // zero
  uint32_t* parent;
  uint32_t* suffix_link;
  uint32_t* edge_start;
  uint32_t* edge_length;
  uint32_t* depth;
  uint32_t* leaf_position;
  uint8_t* preceding;

  uint32_t* child(uint32_t node) const { return children + static_cast<uint64_t>(node) * slots; }
};

// What is known of the suffix at a position; side by side, since both are wanted at the same random places.
struct Suffix {
  uint32_t leaf;  // 0 at a separator
  uint32_t end;   // the first separator from here on; ends_at_node is added to it where the leaf's edge is empty
};

// An internal node on the path from the root to the last leaf.
struct Open {
  uint32_t node;
  uint32_t depth;
};

uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

}  // namespace

#define EXPORT extern "C" __attribute__((visibility("default")))

// lcp[rank], for ranks below letters: how many letters this suffix and the one before it in the suffix array share
// before either meets a separator. Kasai's algorithm in the order of the text (Kärkkäinen, Manzini and Puglisi,
// Permuted Longest-Common-Prefix Array, 2009). scratch holds length, stack letters + 1 elements.
// Returns the number of internal nodes without the root.
EXPORT uint32_t suffix_tree_lcp(const Tree* tree, const uint32_t* suffixes, uint32_t* scratch, uint32_t* lcp,
                                uint32_t* stack) {
  const uint8_t* const text = tree->text;
  const uint32_t length = tree->length;
  uint32_t* const before = scratch;    // the position whose suffix comes before this position's
  uint32_t* const permuted = scratch;  // lcp by position, which takes its place
  before[suffixes[0]] = length - 1;    // a separator: shares nothing
  for (uint32_t rank = 1; rank < length; ++rank) before[suffixes[rank]] = suffixes[rank - 1];
  uint32_t shared = 0;
  for (uint32_t i = 0; i < length; ++i) {
    __builtin_prefetch(text + before[least(i + ahead, length - 1)]);
    if (text[i] == separator) {
      shared = 0;
      continue;
    }
    // The text ends with a separator, at which the later of the two stops.
    const uint8_t* const other = text + before[i];
    while (text[i + shared] == other[shared] && text[i + shared] != separator) ++shared;
    permuted[i] = shared;
    if (shared) --shared;
  }
  // An internal node is an interval of ranks with a common lcp: counted when its depth is first met.
  uint32_t count = 0, top = 0;
  stack[0] = 0;
  lcp[0] = 0;
  for (uint32_t rank = 1; rank < tree->letters; ++rank) {
    __builtin_prefetch(permuted + suffixes[least(rank + ahead, length - 1)]);
    const uint32_t value = lcp[rank] = permuted[suffixes[rank]];
    while (stack[top] > value) --top;
    if (stack[top] < value) {
      stack[++top] = value;
      ++count;
    }
  }
  return count;
}

// All but the suffix links and the chains of leaves. at holds length elements, open letters + 1.
EXPORT void suffix_tree_nodes(const Tree* tree, const uint32_t* suffixes, const uint32_t* lcp, Suffix* at, Open* open) {
  const Tree t = *tree;
  for (uint32_t i = t.length, end = 0; i-- > 0;) {
    if (t.text[i] == separator) end = i;
    at[i] = {0, end};
  }
  t.parent[root] = t.suffix_link[root] = t.edge_start[root] = t.edge_length[root] = t.depth[root] = 0;
  t.leaf_position[root] = no_position;
  t.preceding[root] = separator;
  uint32_t made = root, top = 0;
  open[0] = {root, 0};
  for (uint32_t rank = 0; rank < t.letters; ++rank) {
    __builtin_prefetch(t.text + suffixes[least(rank + ahead, t.length - 1)]);
    __builtin_prefetch(at + suffixes[least(rank + ahead, t.length - 1)], 1);
    const uint32_t position = suffixes[rank];
    const uint32_t leaf = ++made;
    uint32_t child = leaf, child_depth = at[position].end - position;
    at[position].leaf = leaf;
    t.leaf_position[leaf] = position;
    t.preceding[leaf] = position ? t.text[position - 1] : separator;
    t.depth[leaf] = child_depth;

    // This leaf and every open node deeper than its fork with the next leaf get their parent. This suffix is below
    // them all, so edges are places in it.
    const auto attach = [&](const Open& to) {
      const uint32_t start = position + to.depth;
      const uint8_t letter = t.text[start];
      t.parent[child] = to.node;
      t.edge_start[child] = start;
      t.edge_length[child] = child_depth - to.depth;
      if (letter != separator)
        t.child(to.node)[letter] = child;
      else
        at[position].end |= ends_at_node;
    };
    const uint32_t fork = rank + 1 < t.letters ? lcp[rank + 1] : 0;
    for (; open[top].depth > fork; --top) {
      attach(open[top]);
      child = open[top].node;
      child_depth = open[top].depth;
    }
    if (open[top].depth < fork) {
      const uint32_t node = ++made;
      t.leaf_position[node] = no_position;
      t.preceding[node] = separator;
      t.depth[node] = fork;
      open[++top] = {node, fork};
    }
    attach(open[top]);
  }
}

// Links of leaves, and the chains of those that end at the same node: from the last position to the first, each
// put in front of its chain.
EXPORT void suffix_tree_leaves(const Tree* tree, const Suffix* at) {
  uint32_t next = root;
  for (uint32_t i = tree->length; i-- > 0;) {
    __builtin_prefetch(tree->suffix_link + at[i > ahead ? i - ahead : 0].leaf, 1);
    const uint32_t leaf = at[i].leaf;
    if (leaf) {
      tree->suffix_link[leaf] = next;
      if (at[i].end & ends_at_node) {
        uint32_t* const first = tree->child(tree->parent[leaf]) + separator;
        tree->child(leaf)[separator] = *first;
        *first = leaf;
      }
    }
    next = leaf;
  }
}

// Links of internal nodes, parents first: from the parent's link down to the depth wanted, looking at the first
// character of each edge only. A node is passed at most once for each letter before it, so the time is linear.
// queue holds as many elements as there are internal nodes.
EXPORT void suffix_tree_links(const Tree* tree, uint32_t* queue) {
  const Tree t = *tree;
  uint32_t tail = 0;
  queue[tail++] = root;
  for (uint32_t head = 0; head < tail; ++head) {
    __builtin_prefetch(t.child(queue[least(head + ahead, tail - 1)]));
    const uint32_t parent = queue[head], above = t.depth[parent];
    for (int letter = 0; letter < separator; ++letter) {
      const uint32_t node = t.child(parent)[letter];
      if (!node || t.leaf_position[node] != no_position) continue;
      queue[tail++] = node;
      const uint32_t depth = t.depth[node] - 1;
      const uint8_t* const spelled = t.text + (t.edge_start[node] - above + 1);
      uint32_t link = t.suffix_link[parent];
      for (uint32_t reached = t.depth[link]; reached < depth; reached = t.depth[link])
        link = t.child(link)[spelled[reached]];
      t.suffix_link[node] = link;
    }
  }
}

// The orders: order[new] = old, for nodes in all, children of a node as its slots go.

EXPORT void suffix_tree_breadth_first(const Tree* tree, uint64_t nodes, int64_t* order) {
  uint64_t tail = 0;
  order[tail++] = root;
  for (uint64_t head = 0; head < nodes; ++head) {
    const uint32_t* const children = tree->child(static_cast<uint32_t>(order[head]));
    for (int slot = 0; slot < slots; ++slot)
      if (children[slot]) order[tail++] = children[slot];
  }
}

// Nodes still to come wait in a stack at the end of order: never more of them than places that are left.
EXPORT void suffix_tree_depth_first(const Tree* tree, uint64_t nodes, int64_t* order) {
  int64_t* top = order + nodes;
  *--top = root;
  for (uint64_t i = 0; i < nodes; ++i) {
    const uint32_t node = static_cast<uint32_t>(*top++);
    order[i] = node;
    for (int slot = slots; slot-- > 0;)
      if (const uint32_t child = tree->child(node)[slot]) *--top = child;
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
      const uint32_t* const children = tree->child(queue[head]);
      for (int slot = 0; slot < slots; ++slot)
        if (children[slot]) queue[tail++] = children[slot];
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
        if (const uint32_t child = tree->child(node)[slot]) *--top = static_cast<int64_t>(level + 1) << 32 | child;
    }
}

// As suffixes are inserted one by one in the order of the text: the node at which a suffix leaves all those before it,
// unless it was there, then its leaf. leaves holds length elements, seen nodes, all zero.
EXPORT void suffix_tree_insertion(const Tree* tree, uint64_t nodes, uint32_t* leaves, uint8_t* seen, int64_t* order) {
  for (uint64_t node = 0; node < nodes; ++node)
    if (tree->leaf_position[node] != no_position) leaves[tree->leaf_position[node]] = static_cast<uint32_t>(node);
  constexpr uint8_t passed = 1, made = 2;
  uint64_t count = 0;
  order[count++] = root;
  seen[root] = made;
  for (uint32_t i = 0; i < tree->length; ++i) {
    if (tree->text[i] == separator) continue;
    // Up to the lowest node that an earlier suffix passed; from there on this suffix adds nothing.
    uint32_t node = tree->parent[leaves[i]];
    for (; !seen[node]; node = tree->parent[node]) seen[node] = passed;
    if (seen[node] == passed) {
      seen[node] = made;
      order[count++] = node;
    }
    order[count++] = leaves[i];
  }
}
