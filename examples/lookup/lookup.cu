// For every query the value of the first entry whose key is not smaller, `none` where all keys are smaller.
//
// keys, values and children lie in slots. In which slot an entry lies is the layout's business; a walk that follows
// links finds its way in any order, one that computes the next slot is made for the order that family.yaml requires.
#include "autotune/array.cuh"

enum class Walk { bisect, links, nodes };

constexpr unsigned none = 0xFFFFFFFFu;

// Where the search goes on from an entry, among smaller and among larger keys.
struct Children {
  unsigned smaller, larger;
};

// The slot of the lower bound in ascending keys: the plain kernel's loop.
template <class Policy>
AUTOTUNE_DEVICE unsigned bisect(const typename Policy::keys& keys, unsigned entries, unsigned query) {
  unsigned first = 0, length = entries;
  while (length > 0) {
    const unsigned half = length / 2;
    if (keys.load(first + half).word[0] < query) {
      first += half + 1;
      length -= half + 1;
    } else {
      length = half;
    }
  }
  return first < entries ? first : none;
}

// The same by links from entry to entry.
template <class Policy>
AUTOTUNE_DEVICE unsigned follow_links(const typename Policy::keys& keys, const typename Policy::children& children,
                                      unsigned root, unsigned query) {
  unsigned bound = none;
  for (unsigned slot = root; slot != none;) {
    const Children next = children.load(slot);
    if (keys.load(slot).word[0] < query) {
      slot = next.larger;
    } else {
      bound = slot;
      slot = next.smaller;
    }
  }
  return bound;
}

// The same from node to node: node k has the slots from k * width on, its keys ascend, and the child before key i
// (i = width: after the last key) is node k * (width + 1) + i + 1. With a width of 1 this is Eytzinger's order.
template <class Policy>
AUTOTUNE_DEVICE unsigned descend(const typename Policy::keys& keys, unsigned entries, unsigned query) {
  using Words = typename Policy::keys::value_type;
  constexpr unsigned width = Policy::node_width, loads = width / Words::elements;
  const unsigned last = keys.extent(0) - 1;
  unsigned bound = none;
  for (unsigned node = 0; node * width < entries;) {
    unsigned smaller = 0;  // how many keys of the node; all are read, so that no load waits for a comparison
#pragma unroll
    for (unsigned l = 0; l < loads; ++l) {
      const Words words = keys.load(min(node * loads + l, last));
#pragma unroll
      for (unsigned w = 0; w < Words::elements; ++w) {
        const bool exists = node * width + l * Words::elements + w < entries;
        smaller += exists && words.word[w] < query ? 1u : 0u;
      }
    }
    const unsigned slot = node * width + smaller;
    if (smaller < width && slot < entries) bound = slot;
    node = node * (width + 1) + smaller + 1;
  }
  return bound;
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    lookup(typename Policy::keys keys, typename Policy::values values, typename Policy::children children,
           typename Policy::root root, typename Policy::queries queries, typename Policy::found found) {
  const unsigned i = blockIdx.x * Policy::block_size + threadIdx.x;
  if (i >= queries.extent(0)) return;
  const unsigned query = queries.load(i), entries = values.extent(0);
  unsigned slot;
  if constexpr (Policy::walk == Walk::links)
    slot = follow_links<Policy>(keys, children, root.load(0), query);
  else if constexpr (Policy::walk == Walk::nodes)
    slot = descend<Policy>(keys, entries, query);
  else
    slot = bisect<Policy>(keys, entries, query);
  found.store(slot == none ? none : values.load(slot), i);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
