// What a decision forest gives for every row: base + the sum of the leaves that the row ends in, one in each tree.
// Nodes are stored in one of four forms; storage.py makes their arrays. plain.cu is where it comes from.
#include "autotune/array.cuh"
#include "autotune/shared.cuh"
#include "autotune/warp.cuh"

struct Node {
  float threshold;
  unsigned word, smaller, larger, leaf, visits;
};

struct AlignedNode {
  float threshold;
  unsigned word, smaller, larger, leaf, visits, pad_0, pad_1;
};

struct HotNode {
  float threshold;
  unsigned word, smaller, larger;
};

struct ColdNode {
  unsigned leaf, visits;
};

struct CompactNode {
  unsigned value, word;
};

enum class Form { whole, aligned, split, compact };
enum class Order { depth_first, breadth_first, hot_first, van_emde_boas };
enum class Staging { none, rows, padded, columns };
enum class Sums { shared, registers, one };

// Of a node's word, as in trees.py and storage.py. Only the word of a compact node has a distance.
constexpr unsigned leaf_mark = 1u << 31, nan_smaller = 1u << 30, feature_mask = nan_smaller - 1;
constexpr unsigned larger_follows = 1u << 31, distance_bits = 20, distance_mask = (1u << distance_bits) - 1;
constexpr unsigned most_registers = 16;

// Where a walk is. A leaf's step leads to itself.
struct Visit {
  unsigned slot, value, word, smaller, larger;
};

// The nodes in the form that was chosen.
template <class Policy>
struct Nodes {
  typename Policy::nodes whole;
  typename Policy::aligned_nodes aligned;
  typename Policy::hot_nodes hot;
  typename Policy::cold_nodes cold;
  typename Policy::compact_depth_first depth_first;
  typename Policy::compact_hot_first hot_first;
  typename Policy::compact_breadth_first breadth_first;
  typename Policy::compact_van_emde_boas van_emde_boas;
  static constexpr bool compact = Policy::form == Form::compact;
  static constexpr bool child_follows = Policy::order == Order::depth_first || Policy::order == Order::hot_first;

  AUTOTUNE_DEVICE CompactNode compact_node(unsigned slot) const {
    if constexpr (Policy::order == Order::depth_first)
      return depth_first.load(slot);
    else if constexpr (Policy::order == Order::hot_first)
      return hot_first.load(slot);
    else if constexpr (Policy::order == Order::breadth_first)
      return breadth_first.load(slot);
    else
      return van_emde_boas.load(slot);
  }

  AUTOTUNE_DEVICE Visit visit(unsigned slot) const {
    if constexpr (compact) {
      const CompactNode node = compact_node(slot);
      return {slot, node.value, node.word, 0, 0};
    } else if constexpr (Policy::form == Form::split) {
      const HotNode node = hot.load(slot);
      return {slot, autotune::bit_cast<unsigned>(node.threshold), node.word, node.smaller, node.larger};
    } else if constexpr (Policy::form == Form::aligned) {
      const AlignedNode node = aligned.load(slot);
      return {slot, autotune::bit_cast<unsigned>(node.threshold), node.word, node.smaller, node.larger};
    } else {
      const Node node = whole.load(slot);
      return {slot, autotune::bit_cast<unsigned>(node.threshold), node.word, node.smaller, node.larger};
    }
  }

  AUTOTUNE_DEVICE bool at_leaf(const Visit& at) const {
    return compact ? (at.word & distance_mask) == 0 : (at.word & leaf_mark) != 0;
  }

  AUTOTUNE_DEVICE unsigned feature(const Visit& at) const {  // 0 at a leaf
    return compact ? (at.word & feature_mask) >> distance_bits : at.word & feature_mask;
  }

  // Where a row goes on whose feature is `cell`.
  AUTOTUNE_DEVICE unsigned next(const Visit& at, float cell) const {
    const bool nan = cell != cell && (at.word & nan_smaller) != 0;
    const bool smaller = cell <= autotune::bit_cast<float>(at.value) || nan;
    if constexpr (!compact) return smaller ? at.smaller : at.larger;
    const unsigned distance = at.word & distance_mask;
    unsigned step;
    if constexpr (child_follows)
      step = smaller == ((at.word & larger_follows) == 0) ? 1 : distance;
    else
      step = smaller ? distance : distance + 1;
    return at.slot + (distance == 0 ? 0 : step);
  }

  // A float, or a row of leaf_values where there are several outputs.
  AUTOTUNE_DEVICE unsigned leaf(const Visit& at) const {
    if constexpr (compact)
      return at.value;
    else if constexpr (Policy::form == Form::split)
      return cold.load(at.slot).leaf;
    else if constexpr (Policy::form == Form::aligned)
      return aligned.load(at.slot).leaf;
    else
      return whole.load(at.slot).leaf;
  }
};

// A thread's rows, where they are or in the block's shared memory.
template <class Policy>
struct Rows {
  static constexpr unsigned mine = Policy::rows_per_thread, teams = Policy::block_size / Policy::threads_per_row;
  static constexpr unsigned gap = Policy::staging == Staging::padded ? 1 : 0;
  static constexpr bool by_feature = Policy::staging == Staging::columns;
  typename Policy::rows rows;
  unsigned index[mine];  // past the end: the last row again, and nothing is stored
  const float* staged;
  unsigned begin;  // of the block

  AUTOTUNE_DEVICE unsigned room() const { return teams * mine * (rows.extent(1) + gap); }  // in words

  AUTOTUNE_DEVICE unsigned place(unsigned row, unsigned feature) const {
    return by_feature ? feature * teams * mine + row : row * (rows.extent(1) + gap) + feature;
  }

  AUTOTUNE_DEVICE void stage(float* to) {
    staged = to;
    const unsigned features = rows.extent(1), count = min(teams * mine, rows.extent(0) - begin);
    for (unsigned k = threadIdx.x; k < count * features; k += Policy::block_size) {
      const unsigned row = by_feature ? k % count : k / features, feature = by_feature ? k / count : k % features;
      to[place(row, feature)] = rows.load(begin + row, feature);
    }
    __syncthreads();
  }

  AUTOTUNE_DEVICE float cell(unsigned m, unsigned feature) const {
    if constexpr (Policy::staging == Staging::none)
      return rows.load(index[m], feature);
    else
      return staged[place(index[m] - begin, feature)];
  }
};

// A thread's sums for each of its rows: one, several in registers, or in shared memory, which other threads never read.
template <class Policy>
struct Totals {
  static constexpr unsigned mine = Policy::rows_per_thread;
  static constexpr unsigned own = Policy::sums == Sums::registers ? most_registers : 1;
  unsigned outputs;
  float* shared;
  float sum[mine][own];

  AUTOTUNE_DEVICE bool single() const {
    return Policy::sums == Sums::one || (Policy::sums == Sums::shared && outputs == 1);
  }

  template <class Visitor>
  AUTOTUNE_DEVICE void for_outputs(Visitor visitor) const {
    if constexpr (Policy::sums == Sums::registers) {
#pragma unroll
      for (unsigned k = 0; k < own; ++k)
        if (k < outputs) visitor(k);
    } else {
      for (unsigned k = 0; k < outputs; ++k) visitor(k);
    }
  }

  AUTOTUNE_DEVICE float& at(unsigned m, unsigned k) {
    if constexpr (Policy::sums == Sums::registers) return sum[m][k];
    return single() ? sum[m][0] : shared[(m * outputs + k) * Policy::block_size + threadIdx.x];
  }

  AUTOTUNE_DEVICE void clear() {
#pragma unroll
    for (unsigned m = 0; m < mine; ++m) for_outputs([&](unsigned k) { at(m, k) = 0; });
  }

  AUTOTUNE_DEVICE void add(const typename Policy::leaf_values& leaf_values, unsigned m, unsigned leaf) {
    if (single())
      sum[m][0] += autotune::bit_cast<float>(leaf);
    else
      for_outputs([&](unsigned k) { at(m, k) += leaf_values.load(leaf, k); });
  }
};

// Adds to the totals what the trees from `first` on give, every so-manyth up to `end`. A thread has as many walks under
// way as it has rows, times trees_at_once: their loads are asked for together.
template <class Policy>
AUTOTUNE_DEVICE void walk(const Nodes<Policy>& nodes, const typename Policy::roots& roots, const Rows<Policy>& rows,
                          const typename Policy::leaf_values& leaf_values, Totals<Policy>& totals, unsigned first,
                          unsigned end) {
  constexpr unsigned mine = Policy::rows_per_thread, at_once = Policy::trees_at_once, walks = mine * at_once;
  constexpr unsigned lanes = Policy::threads_per_row;
  for (unsigned tree = first; tree < end; tree += lanes * at_once) {
    Visit at[walks];
#pragma unroll
    for (unsigned t = 0; t < at_once; ++t) {
      const Visit root = nodes.visit(roots.load(min(tree + t * lanes, end - 1)));
#pragma unroll
      for (unsigned m = 0; m < mine; ++m) at[t * mine + m] = root;
    }
    bool walking;
    do {
      float cell[walks];
#pragma unroll
      for (unsigned w = 0; w < walks; ++w) cell[w] = rows.cell(w % mine, nodes.feature(at[w]));
#pragma unroll
      for (unsigned w = 0; w < walks; ++w) at[w] = nodes.visit(nodes.next(at[w], cell[w]));
      walking = false;
#pragma unroll
      for (unsigned w = 0; w < walks; ++w) walking = walking || !nodes.at_leaf(at[w]);
    } while (walking);
#pragma unroll
    for (unsigned w = 0; w < walks; ++w)
      if (tree + w / mine * lanes < end) totals.add(leaf_values, w % mine, nodes.leaf(at[w]));
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    forest(typename Policy::nodes nodes, typename Policy::aligned_nodes aligned_nodes,
           typename Policy::hot_nodes hot_nodes, typename Policy::cold_nodes cold_nodes,
           typename Policy::compact_depth_first compact_depth_first,
           typename Policy::compact_hot_first compact_hot_first,
           typename Policy::compact_breadth_first compact_breadth_first,
           typename Policy::compact_van_emde_boas compact_van_emde_boas, typename Policy::roots roots,
           typename Policy::leaf_values leaf_values, typename Policy::base base, typename Policy::rows rows,
           typename Policy::result result) {
  constexpr unsigned mine = Policy::rows_per_thread, lanes = Policy::threads_per_row, slices = Policy::tree_slices;
  constexpr unsigned teams = Policy::block_size / lanes;
  const unsigned count = rows.extent(0), trees = roots.extent(0), outputs = base.extent(0);
  const unsigned lane = threadIdx.x % lanes, first = blockIdx.x * teams * mine + threadIdx.x / lanes;

  Rows<Policy> own{rows, {}, nullptr, blockIdx.x * teams * mine};
#pragma unroll
  for (unsigned m = 0; m < mine; ++m) own.index[m] = min(first + m * teams, count - 1);
  float* shared = autotune::dynamic_shared<float>();
  if constexpr (Policy::staging != Staging::none) {
    own.stage(shared);
    shared += own.room();
  }

  Totals<Policy> totals{outputs, shared, {}};
  totals.clear();
  const unsigned share = (trees + slices - 1) / slices, begin = blockIdx.y * share;
  walk<Policy>({nodes, aligned_nodes, hot_nodes, cold_nodes, compact_depth_first, compact_hot_first,
                compact_breadth_first, compact_van_emde_boas},
               roots, own, leaf_values, totals, begin + lane, min(begin + share, trees));

#pragma unroll
  for (unsigned m = 0; m < mine; ++m) {
    const unsigned i = first + m * teams;
    totals.for_outputs([&](unsigned k) {
      float sum = autotune::warp::sum<lanes>(totals.at(m, k));
      if (lane > 0 || i >= count) return;
      if (blockIdx.y == 0) sum += base.load(k);
      if constexpr (slices == 1)
        result.store(sum, i, k);
      else
        result.add(sum, i, k);
    });
  }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
