// The first pass over columns without a field to read: a column holds few prefix sums, and a prefix sum x adds to its
// frequency f the root of unity of the field's order to the power x f. So nothing is emptied or marked before.
#pragma once
#include "autocorrelation.cuh"

constexpr unsigned listed_places = 8192;  // of prefix sums that a block holds at a time; transform.py has it, too

// Roots of unity of order 2^span in shared memory: a power is a product of three, one for each digit of the exponent.
template <class Prime>
struct RootDigits {
  unsigned* base;
  unsigned bits;  // of a digit

  AUTOTUNE_DEVICE RootDigits(unsigned* base, unsigned span) : base(base), bits((span + 2) / 3) {}
  AUTOTUNE_DEVICE unsigned words() const { return 3u << bits; }
  AUTOTUNE_DEVICE void fill(unsigned span) const {
    for (unsigned place = threadIdx.x; place < words(); place += blockDim.x) {
      const unsigned exponent = (place & ((1u << bits) - 1)) << (place >> bits) * bits & ((1u << span) - 1);
      base[place] = power<Prime>(Prime::root, exponent << (Prime::order_bits - span));
    }
  }
  // Exponents are modulo 2^span.
  AUTOTUNE_DEVICE unsigned operator()(unsigned exponent) const {
    const unsigned digit = (1u << bits) - 1, low = exponent & digit, middle = exponent >> bits & digit;
    const unsigned upper =
        Prime::product(base[(1u << bits) + middle], base[(2u << bits) + (exponent >> 2 * bits & digit)]);
    return Prime::product(base[low], upper);
  }
};

// The sum of the masses before a warp's share of the residues. All threads of the block call it.
template <class Residues>
AUTOTUNE_DEVICE unsigned sum_before_share(const Residues& residues, unsigned from, unsigned to) {
  unsigned sum = 0, whole;
  for (unsigned i = from + threadIdx.x % 32; i < to; i += 32) sum += residues.load(i);
  const unsigned before = block_sum_before(sum, whole);
  return __shfl_sync(0xffffffffu, before, 0);
}

// Calls take(i, sum before residue i) for the 128 residues from first on, four neighbours a lane; `before` goes on.
template <class Residues, class Take>
AUTOTUNE_DEVICE void each_prefix_sum(const Residues& residues, unsigned first, unsigned& before, const Take& take) {
  constexpr unsigned each = 4, all_lanes = 0xffffffffu;
  const unsigned n = residues.extent(0), lane = threadIdx.x % 32, own = first + each * lane;
  unsigned mass[each], sum = 0;
#pragma unroll
  for (unsigned k = 0; k < each; ++k) sum += mass[k] = own + k < n ? residues.load(own + k) : 0;
  unsigned through = sum;
#pragma unroll
  for (unsigned distance = 1; distance < 32; distance *= 2) {
    const unsigned other = __shfl_up_sync(all_lanes, through, distance);
    if (lane >= distance) through += other;
  }
  unsigned here = before + through - sum;
#pragma unroll
  for (unsigned k = 0; k < each; ++k) {
    if (own + k < n) take(here);
    here += mass[k];
  }
  before += __shfl_sync(all_lanes, through, 31);
}

// Adds to a column in shared memory, of 2^stages frequencies 33 words apart, what the prefix sums in it give; `places`
// are those of all 32 columns. By a warp, whose lanes have every 32nd frequency.
template <class Prime>
AUTOTUNE_DEVICE void add_places(unsigned* column, unsigned index, unsigned rows, const unsigned* places, unsigned found,
                                const RootDigits<Prime>& roots) {
  constexpr unsigned most = 16, all_lanes = 0xffffffffu;
  const unsigned lane = threadIdx.x % 32;
  unsigned sums[most];
#pragma unroll
  for (unsigned k = 0; k < most; ++k)
    if (k * 32 < rows) sums[k] = column[(k * 32 + lane) * 33];
  for (unsigned first = 0; first < found; first += 32) {
    const unsigned place = first + lane < found ? places[first + lane] : 0;
    unsigned here = __ballot_sync(all_lanes, first + lane < found && place % 32 == index);
    for (; here; here &= here - 1) {
      const unsigned x = __shfl_sync(all_lanes, place, __ffs(here) - 1), step = roots(x * 32);
      unsigned root = Prime::product(roots(x * lane), 1);  // itself, no factor
#pragma unroll
      for (unsigned k = 0; k < most; ++k)
        if (k * 32 < rows) {
          sums[k] = Prime::sum(sums[k], root);
          root = Prime::product(root, step);
        }
    }
  }
#pragma unroll
  for (unsigned k = 0; k < most; ++k)
    if (k * 32 < rows) column[(k * 32 + lane) * 33] = sums[k];
}

// What empty_field, mark and the first columns_forward leave in the field: columns of 2^stages elements, at least 6
// stages and at most 9. A block has 32 columns, and finds the prefix sums in them among all. Makes the table of roots.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    sparse_columns(typename Policy::residues residues, typename Policy::field field, typename Policy::roots roots,
                   unsigned total, unsigned span, unsigned stages) {
  if constexpr (Policy::count_by == CountBy::transform && Policy::first_pass == FirstPass::sparse) {
    using Prime = PrimeOf<Policy>;
    constexpr unsigned warps = Policy::block_size / 32, at_once = listed_places / warps, words = 33;
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, apart = span - stages, rows = 1u << stages;
    const unsigned n = residues.extent(0), blocks = 1u << (apart - 5);
    unsigned* const tile = autotune::dynamic_shared<unsigned>();
    const RootDigits<Prime> digits{tile + words * rows, span};
    unsigned* const places = digits.base + digits.words();
    __shared__ unsigned found;
    for (unsigned place = blockIdx.x * Policy::block_size + threadIdx.x; place < table_size;
         place += blocks * Policy::block_size)
      roots.store(table_entry<Prime>(place), place);
    digits.fill(span);
    for (unsigned place = threadIdx.x; place < words * rows; place += Policy::block_size) tile[place] = 0;
    const unsigned share = ((n + warps - 1) / warps + 127) / 128 * 128;
    const unsigned from = min(warp * share, n), to = min(from + share, n);
    unsigned before = sum_before_share(residues, from, to);
    for (unsigned done = 0; done < share; done += at_once) {
      if (threadIdx.x == 0) found = 0;
      __syncthreads();
      for (unsigned first = from + done; first < min(from + done + at_once, to); first += 128)
        each_prefix_sum(residues, first, before, [=](unsigned sum) {
          const unsigned place = sum < total ? sum : 0;
          if ((place >> 5 & (blocks - 1)) == blockIdx.x) places[atomicAdd(&found, 1u)] = place;
        });
      __syncthreads();
      for (unsigned column = warp; column < 32; column += warps)
        add_places(tile + column, column, rows, places, found, digits);
      __syncthreads();
    }
    for (unsigned row = warp; row < rows; row += warps)
      field.store(tile[reversed(row, stages) * words + lane], blockIdx.x * 32 + lane + (row << apart));
  }
}
