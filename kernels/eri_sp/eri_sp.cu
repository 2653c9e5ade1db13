// Two-electron repulsion integrals (ij|kl) over contracted s and p Gaussians: the classes (ss|ss), (sp|ss), (sp|sp),
// (pp|ss), (pp|sp) and (pp|pp), each a kernel of its own.
//
//   (ij|kl) = sum over primitives a, b, c, d of  F_ab F_cd / sqrt(p + q) * sum over Hermite Gaussians h of ab, g of cd
//             E_ab,h E_cd,g (-1)^|g| R_h+g,   R_0 of order n = (-2 pq/(p + q))^n Fn(pq/(p + q) |P - Q|^2)
//
// The bra is the pair of the higher momenta. Which thread has which quartet of shells, or which part of it, is what the
// policies say.
#include "autotune/array.cuh"
#include "autotune/runs.cuh"
#include "boys.cuh"
#include "digest.cuh"
#include "hermite.cuh"
#include "pairs.cuh"
#include "quartet.cuh"

// A kernel for each class, or one that finds out the class of each quartet.
enum class Classes { together, apart };
enum class Granularity { thread, block };
// Whether quartets are left out that Schwarz's inequality puts below the threshold: in a list their integrals are 0.
enum class Screening { none, schwarz };

// What a launch is given. The rows of its run are kets, the columns bras: neighbours have one ket.
template <class Policy>
struct Work {
  Molecule<Policy> molecule;
  typename Policy::boys_table boys_table;
  Digest<Policy> digest;
  unsigned long long units;
  autotune::Run run;
  double threshold;

  AUTOTUNE_DEVICE explicit Work(const typename Policy::arguments& a)
      : molecule{a.shells, a.primitives, a.pairs, a.table},
        boys_table(a.boys_table),
        digest{a.density, a.integrals, a.coulomb_sum, a.exchange_sum},
        units(a.units),
        run{a.first_row, a.first_column, a.columns},
        threshold(a.threshold) {}

  AUTOTUNE_DEVICE bool leaves_out(const Pair& bra, const Pair& ket) const {
    return Policy::screening == Screening::schwarz && static_cast<double>(bra.bound) * ket.bound < threshold;
  }
};

// ---- one team of threads, one quartet of shells

// Where there is no quartet the team goes along with another's, and gives nothing away.
template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void team_owns_quartet(const Work<Policy>& work, const Pair& bra, const Pair& ket,
                                       const Team<Policy, BRA, KET>& team, bool is_there) {
  const unsigned turn = team.turn();
  const Vector ab = turned(work.molecule.between(bra), turn), cd = turned(work.molecule.between(ket), turn);
  Quartet<Policy, BRA, KET> quartet{work.boys_table, turn};
#pragma unroll 1
  for (unsigned m = team.share(); m < bra.count && is_there; m += team.split)
    quartet.add(work.molecule.load(bra, m), ab, Primitives<Policy>{work.molecule, ket}, ket.count, cd);
  quartet.add_up();
  if (is_there && team.share() == 0) work.digest.template take<BRA, KET>(work.molecule.shells, bra, ket, quartet);
}

// ---- one block, one pair as ket: its primitive pairs lie in shared memory, and a team has a bra

template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void block_owns_ket(const Work<Policy>& work, const autotune::Chunk& chunk) {
  constexpr unsigned tile_size = 36;
  __shared__ PrimitivePair tile[tile_size];
  const Team<Policy, BRA, KET> team;
  const unsigned turn = team.turn(), position = chunk.column + team.number;
  const bool is_of_chunk = team.number < team.of_a_block && position < chunk.end;
  const Pair ket = work.molecule.pairs.load(chunk.row);
  const Pair bra = work.molecule.pairs.load(min(position, chunk.end - 1));
  const bool is_there = is_of_chunk && !work.leaves_out(bra, ket);
  if constexpr (Policy::screening == Screening::schwarz)
    if (!__syncthreads_or(is_there)) return;
  const Vector ab = turned(work.molecule.between(bra), turn), cd = turned(work.molecule.between(ket), turn);
  Quartet<Policy, BRA, KET> quartet{work.boys_table, turn};
  for (unsigned first = 0; first < ket.count; first += tile_size) {
    const unsigned held = min(tile_size, ket.count - first);
    __syncthreads();
    for (unsigned n = threadIdx.x; n < held; n += Policy::block_size) tile[n] = work.molecule.load(ket, first + n);
    __syncthreads();
#pragma unroll 1
    for (unsigned m = team.share(); m < bra.count && is_there; m += team.split)
      quartet.add(work.molecule.load(bra, m), ab, tile, held, cd);
  }
  quartet.add_up();
  if (is_there && team.share() == 0) work.digest.template take<BRA, KET>(work.molecule.shells, bra, ket, quartet);
}

// ---- the quartets of one class, and where the list is not sorted by class those of any

template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void integrate(const Work<Policy>& work) {
  if constexpr (Policy::granularity == Granularity::block) {
    // The last rows are the longest: they go first.
    block_owns_ket<Policy, BRA, KET>(
        work, autotune::chunk(work.run, gridDim.x - 1 - blockIdx.x, Team<Policy, BRA, KET>::of_a_block));
  } else {
    const Team<Policy, BRA, KET> team;
    const unsigned long long unit = 1ull * blockIdx.x * team.of_a_block + team.number;
    const bool is_unit = team.number < team.of_a_block && unit < work.units;
    const autotune::Place place = work.run[is_unit ? unit : 0];
    const Pair bra = work.molecule.pairs.load(place.column), ket = work.molecule.pairs.load(place.row);
    const bool is_there = is_unit && !work.leaves_out(bra, ket);
    if constexpr (Policy::screening == Screening::schwarz)
      if (!__any_sync(0xffffffffu, is_there)) return;
    team_owns_quartet<Policy, BRA, KET>(work, bra, ket, team, is_there);
  }
}

// One thread a quartet, with all of its functions.
template <class Policy, int BRA, int KET>
AUTOTUNE_DEVICE void of_class(const Work<Policy>& work, const Pair& bra, const Pair& ket) {
  team_owns_quartet<Policy, BRA, KET>(work, bra, ket, Team<Policy, BRA, KET>(), true);
}

template <class Policy>
AUTOTUNE_DEVICE void integrate_any_class(const Work<Policy>& work) {
  const unsigned long long unit = 1ull * blockIdx.x * Policy::block_size + threadIdx.x;
  if (unit >= work.units) return;
  const autotune::Place place = work.run[unit];
  Pair bra = work.molecule.pairs.load(place.column), ket = work.molecule.pairs.load(place.row);
  if (work.leaves_out(bra, ket)) return;
  if (bra.momenta < ket.momenta) {
    const Pair other = bra;
    bra = ket;
    ket = other;
  }
  switch (bra.momenta * 3 + ket.momenta) {
    case 0:
      return of_class<Policy, 0, 0>(work, bra, ket);
    case 3:
      return of_class<Policy, 1, 0>(work, bra, ket);
    case 4:
      return of_class<Policy, 1, 1>(work, bra, ket);
    case 6:
      return of_class<Policy, 2, 0>(work, bra, ket);
    case 7:
      return of_class<Policy, 2, 1>(work, bra, ket);
    default:
      return of_class<Policy, 2, 2>(work, bra, ket);
  }
}

// ---- kernels. A launch has `units` quartets of shells; those of one class are a run of the sorted pairs.

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_ssss(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 0, 0>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_spss(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 1, 0>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_spsp(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 1, 1>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_ppss(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 2, 0>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_ppsp(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 2, 1>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_pppp(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::apart) integrate<Policy, 2, 2>(Work<Policy>(a));
}

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate_any(typename Policy::arguments a) {
  if constexpr (Policy::classes == Classes::together) integrate_any_class<Policy>(Work<Policy>(a));
}

// The table of primitive pairs, a warp for each pair of shells; and the output that was not asked for, a single zero.
template <class Policy>
__global__ void tabulate(typename Policy::shells shells, typename Policy::primitives primitives,
                         typename Policy::pairs pairs, typename Policy::table table,
                         typename Policy::integrals integrals, typename Policy::coulomb coulomb,
                         typename Policy::exchange exchange) {
  if (blockIdx.x == 0 && threadIdx.x == 0) clear_other_output<Policy>(integrals, coulomb, exchange);
  if constexpr (Policy::pair_table == PairTable::device) {
    const unsigned position = blockIdx.x * (Policy::block_size / 32) + threadIdx.x / 32;
    if (position >= pairs.extent(0)) return;
    const Pair pair = pairs.load(position);
    const Shell left = shells.load(pair.i), right = shells.load(pair.j);
    for (unsigned m = threadIdx.x % 32; m < pair.count; m += 32)
      table.store(product_of(left, right, primitives, m), pair.first + m);
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
