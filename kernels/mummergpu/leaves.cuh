// The leaves of a block's slots or seeds, laid end to end and shared by its threads, so that a word with many
// occurrences is not one thread's alone. A leaf finds its origin by the bits that are set where one begins.
#pragma once
#include "origins.cuh"

// A match of a leaf: its letters before the base, and all of them; none is no match.
struct Extent {
  unsigned left, length;
};

// Leaves are numbered from the block's first on and taken a window at a time, 32 of a row by a warp. Origins with
// leaves have ranks, in the order of their threads.
template <class Policy>
class Leaves {
 public:
  static constexpr unsigned warps = Policy::block_size / 32;
  static constexpr unsigned rows = warps * 4 <= 32 ? 4 : 32 / warps;  // of a thread in a window
  static constexpr unsigned words = rows * warps;  // of a window; a lane each where they are added up
  static constexpr unsigned window = words * 32;
  static_assert(words <= 32, "a lane for each word");

  // What a leaf needs first: how far its place is from its number, and what makes it no match before its base.
  struct Key {
    unsigned shift, before;
  };

  // In shared memory, by rank.
  struct Shared {
    unsigned long long begin[Policy::block_size];  // the number of the origin's first leaf
    Origin origin[Policy::block_size];
    Key key[Policy::block_size];
    unsigned ahead[Policy::block_size];  // the letters behind those known
    unsigned begins[3][words];           // a bit for each leaf of a window, set where an origin's are the first
  };

  // All threads; `step` bases lie between origins. It is known in advance whether anyone asks how long matches are.
  AUTOTUNE_DEVICE Leaves(Shared& shared, const typename Policy::queries& queries, const Origin& own, unsigned step,
                         bool are_measured)
      : shared_(shared), step_(step) {
    constexpr int of_rank = 48;  // both are added up at once
    constexpr unsigned long long of_leaves = (1ull << of_rank) - 1;
    const unsigned count = own.leaves.count;
    unsigned long long total;
    const unsigned long long before =
        exclusive_sum<Policy::block_size>(count ? (1ull << of_rank) + count : 0ull, total);
    total_ = total & of_leaves;
    ranks_ = static_cast<unsigned>(total >> of_rank);
    rank_ = static_cast<unsigned>(before >> of_rank);
    begin_ = count ? before & of_leaves : ~0ull;
    if (count) {
      shared.begin[rank_] = begin_;
      shared.origin[rank_] = own;
      const unsigned preceding = own.back ? letter(queries, own.base - 1) : other;
      shared.key[rank_] = {own.leaves.first - static_cast<unsigned>(begin_), preceding == other ? nothing : preceding};
      if (are_measured && own.known < own.most) shared.ahead[rank_] = letters(queries, own.base + own.known);
    }
    if (threadIdx.x < words) shared.begins[0][threadIdx.x] = 0;
    __syncthreads();
  }

  AUTOTUNE_DEVICE unsigned long long total() const { return total_; }
  AUTOTUNE_DEVICE unsigned ranks() const { return ranks_; }
  AUTOTUNE_DEVICE unsigned rank() const { return rank_; }  // of this thread's origin, if it has leaves
  AUTOTUNE_DEVICE unsigned long long begin(unsigned rank) const { return rank < ranks_ ? shared_.begin[rank] : total_; }
  AUTOTUNE_DEVICE const Origin& origin(unsigned rank) const { return shared_.origin[rank]; }

  // Goes to the origin of this rank, with whose first leaf the next window begins.
  AUTOTUNE_DEVICE void go(unsigned rank) { rank_next_ = rank; }

  // The window from `first` on, which is the one behind the last, of leaves up to `last`; all threads.
  AUTOTUNE_DEVICE void open(unsigned long long first, unsigned long long last) {
    // Three in turn, so that one barrier is enough: the next is cleared while nobody reads it.
    const unsigned next = turn_ == 2 ? 0 : turn_ + 1, lane = threadIdx.x % 32;
    first_ = static_cast<unsigned>(first);
    size_ = last - first < window ? static_cast<unsigned>(last - first) : window;
    if (begin_ - first < window) {
      const unsigned offset = static_cast<unsigned>(begin_ - first);
      atomicOr(&shared_.begins[turn_][offset / 32], 1u << offset % 32);
    }
    if (threadIdx.x < words) shared_.begins[next][threadIdx.x] = 0;
    __syncthreads();
    bits_ = lane < words ? shared_.begins[turn_][lane] : 0;
    const unsigned count = static_cast<unsigned>(__popc(bits_));
    before_ = rank_next_ + sum_before(count);
    rank_next_ = __shfl_sync(0xffffffffu, before_ + count, 31);
    turn_ = next;
  }

  // Whether the window has a leaf there for this thread, or, without it, for any.
  AUTOTUNE_DEVICE bool has(unsigned row) const { return row * Policy::block_size + threadIdx.x < size_; }
  AUTOTUNE_DEVICE bool has_row(unsigned row) const { return row * Policy::block_size < size_; }

  // The rank of the origin that this thread's leaf of a row has; all threads of a warp.
  AUTOTUNE_DEVICE unsigned rank_of(unsigned row) const {
    const unsigned word = row * warps + threadIdx.x / 32;
    const unsigned before = __shfl_sync(0xffffffffu, before_, static_cast<int>(word));
    return before + static_cast<unsigned>(__popc(begins_of(row) & ((2u << threadIdx.x % 32) - 1))) - 1;
  }

  // Where, of the row's 32 leaves of this warp, an origin's are the first; all threads of a warp.
  AUTOTUNE_DEVICE unsigned begins_of(unsigned row) const {
    return __shfl_sync(0xffffffffu, bits_, static_cast<int>(row * warps + threadIdx.x / 32));
  }

  // The leaf, and whether it can be a match's: where the letter before is equal, another origin may have it.
  AUTOTUNE_DEVICE Leaf load(const typename Policy::leaves& leaves, unsigned row, unsigned rank, bool& is_first) const {
    const Key key = shared_.key[rank];
    const Leaf leaf = leaves.load(first_ + row * Policy::block_size + threadIdx.x + key.shift);
    is_first = leaf.preceding != key.before;
    return leaf;
  }

  // How many letters from the base on are equal.
  AUTOTUNE_DEVICE unsigned length(const typename Policy::reference& reference, const typename Policy::queries& queries,
                                  unsigned rank, unsigned position) const {
    const Origin& origin = shared_.origin[rank];
    unsigned known = origin.known;
    if (known < origin.most) {
      const unsigned equal = equal_letters(shared_.ahead[rank], letters(reference, position + known));
      known = min(known + equal, origin.most);
      if (equal == letters_at_once && known < origin.most)
        known = equal_from<Policy>(reference, queries, position, origin.base, known, origin.most);
    }
    return known;
  }

  // The leaf's match of at least `minimum` letters; how long it is if it IS_WANTED.
  template <bool IS_WANTED>
  AUTOTUNE_DEVICE Extent match(const typename Policy::leaves& leaves, const typename Policy::reference& reference,
                               const typename Policy::queries& queries, unsigned row, unsigned rank, unsigned minimum,
                               Leaf& leaf) const {
    bool is_first;
    leaf = load(leaves, row, rank, is_first);
    const Origin& origin = shared_.origin[rank];
    unsigned left = 0;
    if (!is_first) {
      left = equal_before<Policy>(reference, queries, leaf.position, origin.base, 1,
                                  min(step_, min(origin.back, leaf.position)));
      if (left == step_) return {0, 0};  // found from the origin before
    }
    unsigned length = left + origin.known;
    if (IS_WANTED || length < minimum) length = left + this->length(reference, queries, rank, leaf.position);
    return {left, length < minimum ? 0 : length};
  }

 private:
  static constexpr unsigned nothing = other + 1;  // what no leaf has before it

  Shared& shared_;
  unsigned step_, ranks_, rank_, rank_next_ = 0, turn_ = 0;
  unsigned long long total_, begin_;
  unsigned first_, size_;   // of the window
  unsigned bits_, before_;  // of this lane's word: where origins begin, and how many did before
};
