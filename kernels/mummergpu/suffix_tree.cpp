// The nodes of a suffix tree from a suffix array, in linear time. suffix_tree.py, which calls these in their order
// here, checks the text, allocates all memory and gives each function a range of ranks or positions; ranges may run at
// the same time. What is made here by rank suffix_tree_records.cpp then takes in the order of the text.
//
// The number of a node follows from positions alone: a suffix leaves those before it in the text at the lowest node
// above its leaf that has an earlier suffix too, and it makes that node if it is the second there, that is if of the
// least positions below each child its own is the second least.
#include "suffix_tree.hpp"

namespace {

// A position and, once there are numbers, its leaf.
struct Numbered {
  uint32_t position, number;
};

// suffix_tree.py: _SUBTREE. A leaf, or a node with all below it.
struct Subtree {
  uint32_t fork;   // how many letters it shares with what is before it
  Numbered first;  // of the least position
  uint32_t node;
  uint32_t made;  // the node's index; no_position: a leaf
};

template <bool is_numbered>
struct Suffixes {
  const Work& work;
  uint32_t fork(uint64_t rank) const { return work.forks[rank]; }
  Subtree at(uint64_t rank) const {
    const uint32_t position = work.suffixes[rank];
    const uint32_t leaf = is_numbered ? work.places[position].leaf_or_start : 0;
    return {0, {position, leaf}, leaf, no_position};
  }
  // Always inline: g++ leaves out calls of a function that does nothing but prefetch.
  __attribute__((always_inline)) void prefetch(uint64_t rank, uint64_t end) const {
    if (!is_numbered) return;
    const uint64_t soon = least(rank + ahead, end - 1);
    const uint32_t position = work.suffixes[soon];
    __builtin_prefetch(work.places + position, 1);
    __builtin_prefetch(work.text + position + work.forks[soon]);
  }
};

struct Subtrees {
  const Subtree* all;
  uint32_t fork(uint64_t item) const { return all[item].fork; }
  Subtree at(uint64_t item) const { return all[item]; }
  void prefetch(uint64_t, uint64_t) const {}
};

// Nodes are met twice: first to see which positions make them, then with their numbers. An Open is a node below which
// more may follow; `first` and `second` are of the least positions below each child the two least.
struct Making {
  struct Open {
    uint32_t depth;
    Numbered first, second;
  };
  static constexpr bool is_numbered = false;
  const Work& work;
  uint64_t closed = 0;

  void attach(const Subtree&, uint32_t, Open&) const {}
  template <class Items>
  Subtree close(const Open& open, const Items&, uint64_t) {
    work.makes[open.second.position] = 1;
    ++closed;
    return {0, open.first, 0, 0};
  }
};

struct Writing {
  struct Child {
    uint32_t first, made;
  };
  struct Open {
    uint32_t depth;
    Numbered first, second;
    uint32_t ended;  // leaves that end here
    Children children;
    Child child[4];
  };
  static constexpr bool is_numbered = true;
  const Work& work;
  uint32_t next;  // index in `made`

  // recent: a position below the child that is in the cache.
  void attach(const Subtree& subtree, uint32_t recent, Open& to) const {
    const uint8_t letter = work.text[recent + to.depth];
    if (letter == separator) {
      ++to.ended;
    } else {
      to.children.at[letter] = subtree.node;
      to.child[letter] = {subtree.first.position, subtree.made};
    }
  }

  template <class Items>
  Subtree close(const Open& open, const Items& items, uint64_t item) {
    const uint32_t node = open.depth ? open.second.number - 1 : root, index = next++;
    work.made[index] = {open.first.position, open.depth, 0, root, open.children};
    if (node != root) work.places[open.second.position].head = index;
    for (int letter = 0; letter < 4; ++letter)
      if (open.children.at[letter]) adopt(open, node, open.child[letter]);
    // What ends here comes last.
    for (uint32_t i = 0; i < open.ended; ++i) adopt(open, node, {items.at(item - i).first.position, no_position});
    return {0, open.first, node, index};
  }

  void adopt(const Open& open, uint32_t node, const Child& child) const {
    Place& first = work.places[child.first];
    const uint32_t start = child.first + open.depth;
    if (child.made == no_position) {
      first.leaf_or_start = start;
      first.parent = node;
    } else {
      work.made[child.made].edge_start = start;
      work.made[child.made].parent = node;
    }
    if (node == root || (child.first != open.first.position && child.first != open.second.position)) first.head = node;
  }
};

// The nodes between items next to each other that share at least `floor` letters; `bottom` gets what is then on its
// own.
template <class Items, class Action, class Bottom>
void join(const Items& items, uint64_t begin, uint64_t end, uint64_t floor, typename Action::Open* open, Action& action,
          const Bottom& bottom) {
  const auto opened = [](uint32_t depth) {
    typename Action::Open node = {};
    node.depth = depth;
    node.first.position = node.second.position = no_position;
    return node;
  };
  uint32_t top = 0;
  open[0] = opened(0);
  uint32_t before = begin < end ? items.fork(begin) : 0;
  for (uint64_t item = begin; item < end; ++item) {
    items.prefetch(item, end);
    Subtree subtree = items.at(item);
    const uint32_t recent = subtree.first.position;
    const auto attach = [&](typename Action::Open& to) {
      if (subtree.first.position < to.first.position) {
        to.second = to.first;
        to.first = subtree.first;
      } else if (subtree.first.position < to.second.position) {
        to.second = subtree.first;
      }
      action.attach(subtree, recent, to);
    };
    const uint32_t next = item + 1 < end ? items.fork(item + 1) : 0, fork = next < floor ? 0 : next;
    for (; open[top].depth > fork; --top) {
      attach(open[top]);
      subtree = action.close(open[top], items, item);
    }
    if (open[top].depth < fork) open[++top] = opened(fork);
    if (top) {
      attach(open[top]);
    } else {
      subtree.fork = before;
      bottom(subtree, attach);
      before = next;
    }
  }
}

// [begin, end) moved on to where subtrees of `floor` letters begin: ranges next to each other stay so.
void move(const Work& work, uint64_t& begin, uint64_t& end) {
  for (; begin < work.letters && work.forks[begin] >= work.floor;) ++begin;
  for (; end < work.letters && work.forks[end] >= work.floor;) ++end;
}

template <class Action>
void subtrees(Action& action, uint64_t begin, uint64_t end, typename Action::Open* open, Subtree* found) {
  move(action.work, begin, end);
  join(Suffixes<Action::is_numbered>{action.work}, begin, end, action.work.floor, open, action,
       [&](const Subtree& subtree, auto&) { *found++ = subtree; });
}

template <class Action>
void top(Action& action, const Subtree* all, uint64_t count, typename Action::Open* open) {
  join(Subtrees{all}, 0, count, 1, open, action, [&](const Subtree&, auto& attach) { attach(open[0]); });
}

// How many letters are equal before either suffix meets a separator, of which at least so many are.
uint32_t shared_from(const Work& work, uint64_t one, uint64_t other, uint32_t shared) {
  const uint8_t *const a = work.text + one, *const b = work.text + other;
  const uint64_t later = one > other ? one : other;
  uint64_t unequal = 0;
  for (; later + shared + sizeof unequal <= work.length; shared += sizeof unequal) {
    uint64_t letters, others;
    __builtin_memcpy(&letters, a + shared, sizeof letters);
    __builtin_memcpy(&others, b + shared, sizeof others);
    unequal = (letters ^ others) | (letters & 0x0404040404040404);
    if (unequal) break;
  }
  // The text ends with a separator, at which the later of the two stops.
  while (a[shared] == b[shared] && a[shared] != separator) ++shared;
  return shared;
}

}  // namespace

// ---- common prefixes: the permuted array (Kärkkäinen, Manzini and Puglisi, 2009), for which a range of positions
// starts anew and is linear after its first

EXPORT void suffix_tree_before(const Work* work, uint64_t begin, uint64_t end) {
  for (uint64_t rank = begin; rank < end; ++rank)
    work->shared[work->suffixes[rank]] = rank ? work->suffixes[rank - 1] : static_cast<uint32_t>(work->length - 1);
}

EXPORT void suffix_tree_shared(const Work* work, uint64_t begin, uint64_t end) {
  uint32_t shared = 0;
  for (uint64_t i = begin; i < end; ++i) {
    __builtin_prefetch(work->text + work->shared[least(i + ahead, end - 1)]);
    shared = work->text[i] == separator ? 0 : shared_from(*work, i, work->shared[i], shared);
    work->shared[i] = shared;
    if (shared) --shared;
  }
}

// Returns how many are below the floor, each the start of a subtree.
EXPORT uint64_t suffix_tree_forks(const Work* work, uint64_t begin, uint64_t end) {
  uint64_t starts = 0;
  for (uint64_t rank = begin; rank < end; ++rank) {
    __builtin_prefetch(work->shared + work->suffixes[least(rank + ahead, end - 1)]);
    work->forks[rank] = work->shared[work->suffixes[rank]];
    starts += work->forks[rank] < work->floor;
  }
  return starts;
}

// ---- nodes; open holds 2 elements more than the largest fork, found as many as subtrees start in the range

// Returns how many nodes there are.
EXPORT uint64_t suffix_tree_make(const Work* work, Making::Open* open, uint64_t begin, uint64_t end, Subtree* found) {
  Making making{*work};
  subtrees(making, begin, end, open, found);
  return making.closed;
}

// Returns how many there are above `all`, without the root.
EXPORT uint64_t suffix_tree_make_top(const Work* work, Making::Open* open, const Subtree* all, uint64_t count) {
  Making making{*work};
  top(making, all, count, open);
  return making.closed;
}

// Numbers from `next` on.
EXPORT void suffix_tree_number(const Work* work, uint64_t begin, uint64_t end, uint64_t next) {
  for (uint64_t i = begin; i < end; ++i)
    if (work->text[i] != separator) {
      next += work->makes[i];
      work->places[i].leaf_or_start = static_cast<uint32_t>(next++);
    }
}

// Indices in `made` from `next` on.
EXPORT void suffix_tree_write(const Work* work, Writing::Open* open, uint64_t begin, uint64_t end, Subtree* found,
                              uint64_t next) {
  Writing writing{*work, static_cast<uint32_t>(next)};
  subtrees(writing, begin, end, open, found);
}

EXPORT void suffix_tree_write_top(const Work* work, Writing::Open* open, const Subtree* all, uint64_t count,
                                  uint64_t next) {
  Writing writing{*work, static_cast<uint32_t>(next)};
  top(writing, all, count, open);
  writing.close(open[0], Subtrees{all}, count);
}
