// y = A x for a sparse A in one of three formats; formats.py makes their arrays. plain.cu is where it comes from.
// (CSR with one or more threads a row, and ELL: Bell, Garland 2009. Sliced ELL: Monakov, Lokhmotov, Avetisyan 2010.)
#include "autotune/array.cuh"
#include "autotune/warp.cuh"

struct Entry {
  unsigned column;
  float value;
};

enum class Format { csr, ell, sell };

constexpr unsigned slice_rows = 32;  // as in formats.py: a slice of sliced ELL is a warp's rows

// Calls visit(entry) for every threads_per_row-th entry of `row`, from `lane` on. All the formats differ in is which
// entries those are; what pads a row has the value 0.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_entries(typename Policy::csr_offsets csr_offsets, typename Policy::csr_entries csr_entries,
                                 typename Policy::ell_entries ell_entries, typename Policy::sell_offsets sell_offsets,
                                 typename Policy::sell_entries sell_entries, unsigned row, unsigned lane, Visit visit) {
  constexpr unsigned lanes = Policy::threads_per_row;
  if constexpr (Policy::format == Format::csr) {
    const unsigned end = csr_offsets.load(row + 1);
    for (unsigned k = csr_offsets.load(row) + lane; k < end; k += lanes) visit(csr_entries.load(k));
  } else if constexpr (Policy::format == Format::ell) {
    for (unsigned k = lane; k < ell_entries.extent(1); k += lanes) visit(ell_entries.load(row, k));
  } else {
    static_assert(lanes == 1, "family.yaml: a slice is a warp's rows, one a thread");
    const unsigned slice = row / slice_rows, end = sell_offsets.load(slice + 1);
    for (unsigned k = sell_offsets.load(slice) + row % slice_rows; k < end; k += slice_rows)
      visit(sell_entries.load(k));
  }
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    spmv(typename Policy::csr_offsets csr_offsets, typename Policy::csr_entries csr_entries,
         typename Policy::ell_entries ell_entries, typename Policy::sell_offsets sell_offsets,
         typename Policy::sell_entries sell_entries, typename Policy::x x, typename Policy::y y) {
  constexpr unsigned lanes = Policy::threads_per_row;
  const unsigned thread = blockIdx.x * Policy::block_size + threadIdx.x, row = thread / lanes, lane = thread % lanes;
  float sum = 0;
  if (row < y.extent(0))  // no return: every lane of a warp takes part in the sum below
    for_entries<Policy>(csr_offsets, csr_entries, ell_entries, sell_offsets, sell_entries, row, lane,
                        [&](const Entry& entry) { sum += entry.value * x.load(entry.column); });
  sum = autotune::warp::sum<lanes>(sum);
  if (row < y.extent(0) && lane == 0) y.store(sum, row);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
