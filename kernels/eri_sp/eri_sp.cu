// Two-electron repulsion integrals (ij|kl) over contracted s and p Gaussians: the classes (ss|ss), (sp|ss), (sp|sp),
// (pp|ss), (pp|sp) and (pp|pp), each a kernel of its own.
//
//   (ij|kl) = sum over primitives a, b, c, d of  F_ab F_cd / sqrt(p + q) * sum over Hermite Gaussians h of ab, g of cd
//             E_ab,h E_cd,g (-1)^|g| R_h+g,   R_0 of order n = (-2 pq/(p + q))^n Fn(pq/(p + q) |P - Q|^2)
//
// The bra is the pair of the higher momenta. Which thread has which quartet of shells, or which part of it, is what the
// policies say.
#include "autotune/array.cuh"
#include "boys.cuh"
#include "digest.cuh"
#include "hermite.cuh"
#include "pairs.cuh"
#include "quartet.cuh"
#include "runs.cuh"

// A kernel for each class, or one that finds out the class of each quartet.
enum class Classes { together, apart };

template <class Policy>
struct Work {
  Molecule<Policy> molecule;
  typename Policy::boys_table boys_table;
  Digest<Policy> digest;
  Run run;
  unsigned long long units;
};

// The rows of one order, for shared_table; nothing otherwise.
template <class Policy>
AUTOTUNE_DEVICE void share(const typename Policy::boys_table& table, int order, BoysRow* rows) {
  for (unsigned row = threadIdx.x; row < boys_rows; row += Policy::block_size) rows[row] = table.load(order, row);
  __syncthreads();
}

// ---- one thread, one quartet of shells, or one part of it

template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void thread_owns_quartet(const Work<Policy>& work, const BoysRow* rows, const Pair& bra,
                                         const Pair& ket, unsigned turn) {
  const Vector ab = turned(work.molecule.between(bra), turn), cd = turned(work.molecule.between(ket), turn);
  Quartet<Policy, BRA, KET> quartet{work.molecule, work.boys_table, rows, turn};
#pragma unroll 1
  for (unsigned m = 0; m < bra.count; ++m) quartet.add(work.molecule.load(bra, m), ab, ket, cd);
  work.digest.template take<BRA, KET>(bra, ket, quartet);
}

// ---- one block, one pair as bra: its primitive pairs lie in shared memory, and a thread (or three) has a ket

template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void block_owns_bra(const Work<Policy>& work, const BoysRow* rows, const Chunk& chunk) {
  constexpr unsigned tile_size = 36, parts = parts_of<Policy>(KET), width = Policy::block_size / parts;
  __shared__ PrimitivePair tile[tile_size];
  const unsigned thread = threadIdx.x, turn = thread % parts, position = chunk.ket + thread / parts;
  const bool is_there = thread < width * parts && position < chunk.end;
  const Pair bra = work.molecule.pairs.load(chunk.bra);
  const Pair ket = work.molecule.pairs.load(min(position, chunk.end - 1));
  const Vector ab = turned(work.molecule.between(bra), turn), cd = turned(work.molecule.between(ket), turn);
  Quartet<Policy, BRA, KET> quartet{work.molecule, work.boys_table, rows, turn};
  for (unsigned first = 0; first < bra.count; first += tile_size) {
    const unsigned held = min(tile_size, bra.count - first);
    __syncthreads();
    for (unsigned m = thread; m < held; m += Policy::block_size) tile[m] = work.molecule.load(bra, first + m);
    __syncthreads();
    if (!is_there) continue;
#pragma unroll 1
    for (unsigned m = 0; m < held; ++m) quartet.add(tile[m], ab, ket, cd);
  }
  if (is_there) work.digest.template take<BRA, KET>(bra, ket, quartet);
}

// ---- the quartets of one class, and where the list is not sorted by class those of any

template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void integrate(const Work<Policy>& work) {
  const BoysRow* rows = nullptr;
  if constexpr (Policy::boys == Boys::shared_table) {
    __shared__ BoysRow shared[boys_rows];
    share<Policy>(work.boys_table, BRA + KET, shared);
    rows = shared;
  }
  constexpr unsigned parts = parts_of<Policy>(KET);
  if constexpr (Policy::granularity == Granularity::block) {
    // The last rows are the longest: they go first.
    block_owns_bra<Policy, BRA, KET>(work, rows,
                                     chunk(work.run, gridDim.x - 1 - blockIdx.x, Policy::block_size / parts));
  } else {
    const unsigned long long thread = 1ull * blockIdx.x * Policy::block_size + threadIdx.x, unit = thread / parts;
    if (unit >= work.units) return;
    const Place place = work.run[unit];
    thread_owns_quartet<Policy, BRA, KET>(work, rows, work.molecule.pairs.load(place.bra),
                                          work.molecule.pairs.load(place.ket), static_cast<unsigned>(thread % parts));
  }
}

template <class Policy>
AUTOTUNE_DEVICE void integrate_any_class(const Work<Policy>& work) {
  const unsigned long long unit = 1ull * blockIdx.x * Policy::block_size + threadIdx.x;
  if (unit >= work.units) return;
  const Place place = work.run[unit];
  Pair bra = work.molecule.pairs.load(place.bra), ket = work.molecule.pairs.load(place.ket);
  if (bra.momenta < ket.momenta) {
    const Pair other = bra;
    bra = ket;
    ket = other;
  }
  switch (bra.momenta * 3 + ket.momenta) {
    case 0:
      return thread_owns_quartet<Policy, 0, 0>(work, nullptr, bra, ket, 0);
    case 3:
      return thread_owns_quartet<Policy, 1, 0>(work, nullptr, bra, ket, 0);
    case 4:
      return thread_owns_quartet<Policy, 1, 1>(work, nullptr, bra, ket, 0);
    case 6:
      return thread_owns_quartet<Policy, 2, 0>(work, nullptr, bra, ket, 0);
    case 7:
      return thread_owns_quartet<Policy, 2, 1>(work, nullptr, bra, ket, 0);
    default:
      return thread_owns_quartet<Policy, 2, 2>(work, nullptr, bra, ket, 0);
  }
}

// ---- kernels. A launch has `units` quartets of shells; those of one class are a run of the sorted pairs.

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_ssss(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 0, 0>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_spss(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 1, 0>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_spsp(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 1, 1>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_ppss(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 2, 0>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_ppsp(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 2, 1>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_pppp(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                   typename Policy::table table, typename Policy::boys_table boys_table,
                   typename Policy::density density, typename Policy::integrals integrals,
                   typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                   unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::apart)
    integrate<Policy, 2, 2>({{shells, primitives, pairs, table},
                             boys_table,
                             {shells, density, integrals, coulomb_sum, exchange_sum},
                             {first_bra, first_ket, kets},
                             units});
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size)
    integrate_any(typename Policy::shells shells, typename Policy::primitives primitives, typename Policy::pairs pairs,
                  typename Policy::table table, typename Policy::boys_table boys_table,
                  typename Policy::density density, typename Policy::integrals integrals,
                  typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                  unsigned long long units, unsigned first_bra, unsigned first_ket, unsigned kets) {
  if constexpr (Policy::classes == Classes::together)
    integrate_any_class<Policy>({{shells, primitives, pairs, table},
                                 boys_table,
                                 {shells, density, integrals, coulomb_sum, exchange_sum},
                                 {first_bra, first_ket, kets},
                                 units});
}

// The table of primitive pairs, a warp for each pair of shells; and the output that was not asked for, a single zero.
template <class Policy>
__global__ void tabulate(typename Policy::shells shells, typename Policy::primitives primitives,
                         typename Policy::pairs pairs, typename Policy::table table,
                         typename Policy::integrals integrals, typename Policy::coulomb coulomb,
                         typename Policy::exchange exchange) {
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    if constexpr (Policy::output == Output::integrals) {
      coulomb.store(0, 0, 0);
      exchange.store(0, 0, 0);
    } else {
      integrals.store(0, 0);
    }
  }
  if constexpr (Policy::pair_table == PairTable::device) {
    const unsigned position = blockIdx.x * (Policy::block_size / 32) + threadIdx.x / 32;
    if (position >= pairs.extent(0)) return;
    const Pair pair = pairs.load(position);
    const Shell left = shells.load(pair.i), right = shells.load(pair.j);
    for (unsigned m = threadIdx.x % 32; m < pair.count; m += 32)
      table.store(product(left, primitives.load(left.first + m / right.count), right,
                          primitives.load(right.first + m % right.count)),
                  pair.first + m);
  }
}

template <class Policy>
__global__ void symmetrise(typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                           typename Policy::coulomb coulomb, typename Policy::exchange exchange) {
  const unsigned size = coulomb.extent(0), number = blockIdx.x * Policy::block_size + threadIdx.x;
  if (number >= size * size) return;
  const unsigned i = number / size, j = number % size;
  coulomb.store((coulomb_sum.load(i, j) + coulomb_sum.load(j, i)) / 4, i, j);
  exchange.store((exchange_sum.load(i, j) + exchange_sum.load(j, i)) / 8, i, j);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
