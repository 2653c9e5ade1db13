// Two-electron repulsion integrals (ij|kl) over contracted s Gaussians, the class (ss|ss):
//
//   (ij|kl) = sum over primitives a, b, c, d of  F_ab F_cd / sqrt(p + q) * F0(pq/(p + q) |P - Q|^2)
//
// A work-unit is a unique quartet of shells, a component one quartet of their primitives. Which thread has what of
// which work-unit, and where the list of them comes from, is what the policies say. The records are in pairs.cuh and
// expansion.cuh.
#include "autotune/array.cuh"
#include "autotune/warp.cuh"
#include "boys.cuh"
#include "digest.cuh"
#include "expansion.cuh"
#include "pairs.cuh"
#include "screening.cuh"
#include "tile_integrals.cuh"

constexpr unsigned nothing = 0xffffffffu;  // no work-unit

// ---- one thread, one work-unit

template <class Policy>
AUTOTUNE_DEVICE void thread_owns_unit(const Molecule<Policy>& molecule, const Digest<Policy>& digest, const Pair& bra,
                                      const Pair& ket, double threshold) {
  double value = 0;
  if (!is_negligible<Policy>(bra, ket, threshold)) {
    if (is_single<Policy>(bra.bound * ket.bound))
      value = molecule.template integral<float>(bra, ket);
    else
      value = molecule.template integral<double>(bra, ket);
  }
  digest.whole(bra, ket, value);
}

// ---- one thread, one component: the lanes of a work-unit are added up, and the first of them gives the sum away

template <class Policy>
AUTOTUNE_DEVICE void add_up(const Digest<Policy>& digest, const Pair& bra, const Pair& ket, unsigned unit,
                            double value) {
  const int lane = threadIdx.x % 32;
  for (int step = 1; step < 32; step *= 2) {
    const double other = __shfl_down_sync(0xffffffffu, value, step);
    const unsigned owner = __shfl_down_sync(0xffffffffu, unit, step);
    if (lane + step < 32 && owner == unit) value += other;
  }
  const unsigned before = __shfl_up_sync(0xffffffffu, unit, 1);
  if (unit != nothing && (lane == 0 || before != unit)) digest.part(bra, ket, value);
}

// Component m of a work-unit.
template <class Policy>
AUTOTUNE_DEVICE double component_of(const Molecule<Policy>& molecule, const Pair& bra, const Pair& ket, unsigned m,
                                    double threshold) {
  if (is_negligible<Policy>(bra, ket, threshold)) return 0;
  const PrimitivePair left = molecule.load(bra, m / ket.count), right = molecule.load(ket, m % ket.count);
  if (is_single<Policy>(bra.bound * ket.bound)) return molecule.template component<float>(left, right) * right.factor;
  return molecule.template component<double>(left, right) * right.factor;
}

// A component on a list; the list has no bounds, so mixed is double here.
template <class Policy>
AUTOTUNE_DEVICE double component_on_list(const Molecule<Policy>& molecule, const Component& listed) {
  const PrimitivePair bra = product(molecule.shells.load(listed.i), molecule.primitives.load(listed.a),
                                    molecule.shells.load(listed.j), molecule.primitives.load(listed.b));
  const PrimitivePair ket = product(molecule.shells.load(listed.k), molecule.primitives.load(listed.c),
                                    molecule.shells.load(listed.l), molecule.primitives.load(listed.d));
  if (is_single<Policy>(1)) return molecule.template component<float>(bra, ket) * ket.factor;
  return molecule.template component<double>(bra, ket) * ket.factor;
}

// ---- one block, one pair as bra: its primitive pairs lie in shared memory, and `split` threads have one ket

// A ket with every split-th of the `held` primitive pairs of the bra that are in `tile`, from `lane` on.
template <class Policy, class Real>
AUTOTUNE_DEVICE double with_tile(const Molecule<Policy>& molecule, const PrimitivePair* tile, unsigned lane,
                                 unsigned held, const Pair& ket) {
  double value = 0;
  for (unsigned n = 0; n < ket.count; ++n) {
    const PrimitivePair right = molecule.load(ket, n);
    Real inner = 0;
#pragma unroll Policy::unroll
    for (unsigned m = lane; m < held; m += Policy::split) inner += molecule.template component<Real>(tile[m], right);
    value += inner * right.factor;
  }
  return value;
}

template <class Policy>
AUTOTUNE_DEVICE void block_owns_bra(const Molecule<Policy>& molecule, const Digest<Policy>& digest,
                                    const autotune::Chunk& chunk, double threshold) {
  constexpr unsigned tile_size = 64;
  __shared__ PrimitivePair tile[tile_size];
  const unsigned thread = threadIdx.x, lane = thread % Policy::split, position = chunk.column + thread / Policy::split;
  const bool is_there = position < chunk.end;
  const Pair bra = molecule.pairs.load(chunk.row), ket = molecule.pairs.load(min(position, chunk.end - 1));
  const bool is_wanted = is_there && !is_negligible<Policy>(bra, ket, threshold);
  double value = 0;
  for (unsigned first = 0; first < bra.count; first += tile_size) {
    const unsigned held = min(tile_size, bra.count - first);
    __syncthreads();
#pragma unroll 1  // it is one round, or two
    for (unsigned m = thread; m < held; m += Policy::block_size) tile[m] = molecule.load(bra, first + m);
    __syncthreads();
    if (!is_wanted) continue;
    if (is_single<Policy>(bra.bound * ket.bound))
      value += with_tile<Policy, float>(molecule, tile, lane, held, ket);
    else
      value += with_tile<Policy, double>(molecule, tile, lane, held, ket);
  }
  value = autotune::warp::sum<Policy::split>(value);
  digest.of_block(bra, ket, value, is_there && lane == 0);
}

// ---- kernels

// `units` work-units (of a list of components: components) of one launch; each has `each` components, where a thread
// has one. They are those from number first_unit on, of the list that was sent or of a run; where a block has a bra,
// first_unit is the number of the first block.
template <class Policy>
__global__ void __launch_bounds__(Policy::block_size) integrate(typename Policy::arguments a) {
  const Molecule<Policy> molecule{a.shells, a.primitives, a.pairs, a.host_table, a.device_table, a.quotient};
  const Digest<Policy> digest{a.density, a.integrals, a.coulomb_sum, a.exchange_sum};
  const autotune::Run run{a.first_bra, a.first_ket, a.kets};
  const unsigned long long thread = 1ull * blockIdx.x * Policy::block_size + threadIdx.x;
  if (thread == 0) clear_other_output<Policy>(a.integrals, a.coulomb, a.exchange);
  if constexpr (Policy::granularity == Granularity::tile) {
    const unsigned number = a.first_unit + blockIdx.x / a.share * a.parts + blockIdx.x % a.share;
    block_owns_tile<Policy>(molecule, digest, a.runs, number, a.threshold);
  } else if constexpr (Policy::granularity == Granularity::block) {
    // The last rows are the longest, and where pairs are sorted the heaviest: they go first.
    const unsigned number = a.first_unit + gridDim.x - 1 - blockIdx.x;
    block_owns_bra<Policy>(molecule, digest, autotune::chunk(run, number, Policy::block_size / Policy::split),
                           a.threshold);
  } else if constexpr (Policy::expansion == Expansion::components) {
    const bool is_there = thread < a.units;
    const Component listed = a.component_list.load(is_there ? static_cast<unsigned>(thread) : 0);
    const double value = is_there ? component_on_list<Policy>(molecule, listed) : 0;
    const Pair bra{listed.i, listed.j, 0, 0, 0}, ket{listed.k, listed.l, 0, 0, 0};
    add_up<Policy>(digest, bra, ket, is_there ? listed.target : nothing, value);
  } else {
    constexpr bool by_component = Policy::granularity == Granularity::component;
    const unsigned long long number = by_component ? thread / a.each : thread;
    const bool is_there = number < a.units;
    if (!by_component && !is_there) return;
    const unsigned long long unit = is_there ? number : 0;
    autotune::Place place;
    if constexpr (Policy::expansion == Expansion::work_units) {
      const WorkUnit listed = a.unit_list.load(a.first_unit + static_cast<unsigned>(unit));
      place = {listed.bra, listed.ket};
    } else {
      place = run[a.first_unit + unit];
    }
    const Pair bra = a.pairs.load(place.row), ket = a.pairs.load(place.column);
    if constexpr (by_component) {
      const unsigned m = static_cast<unsigned>(thread % a.each);
      const double value = is_there ? component_of<Policy>(molecule, bra, ket, m, a.threshold) : 0;
      add_up<Policy>(digest, bra, ket, is_there ? static_cast<unsigned>(unit) : nothing, value);
    } else {
      thread_owns_unit<Policy>(molecule, digest, bra, ket, a.threshold);
    }
  }
}

// The table of primitive pairs, a warp for each pair of shells.
template <class Policy>
__global__ void tabulate_pairs(typename Policy::shells shells, typename Policy::primitives primitives,
                               typename Policy::pairs pairs, typename Policy::device_table device_table) {
  const unsigned position = blockIdx.x * (Policy::block_size / 32) + threadIdx.x / 32;
  if (position >= pairs.extent(0)) return;
  const Pair pair = pairs.load(position);
  const Shell left = shells.load(pair.i), right = shells.load(pair.j);
  for (unsigned m = threadIdx.x % 32; m < pair.count; m += 32) {
    const PrimitivePair made = product_of(left, right, primitives, m);
    device_table.store(Policy::roots == Roots::inverse ? inverted(made) : made, pair.first + m);
  }
}

// Adds to the matrices, so that work may come in pieces.
template <class Policy>
__global__ void symmetrise(typename Policy::coulomb_sum coulomb_sum, typename Policy::exchange_sum exchange_sum,
                           typename Policy::coulomb coulomb, typename Policy::exchange exchange) {
  const unsigned size = coulomb.extent(0), number = blockIdx.x * Policy::block_size + threadIdx.x;
  if (number >= size * size) return;
  const unsigned i = number / size, j = number % size;
  coulomb.store(coulomb.load(i, j) + (coulomb_sum.load(i, j) + coulomb_sum.load(j, i)) / 4, i, j);
  exchange.store(exchange.load(i, j) + (exchange_sum.load(i, j) + exchange_sum.load(j, i)) / 8, i, j);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
