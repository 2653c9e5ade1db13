// Direct Coulomb summation: V at every point of a lattice, from all atoms.
// (Stone: the VMD case study's four kernels and its C version are policies of the one kernel below;
// `autotune list coulomb --preset study` names them.)
//
// atoms is (atoms), coordinates relative to the lattice's origin; potential is (slices, rows, columns); a point lies at
// (column, row, slice) * spacing. A launch adds `atom_count` atoms to `slices` slices.
#include "atom.cuh"
#include "points.cuh"

// dz2[a] = the squared z distance of every atom from one slice: the study's precalculation.
template <class Policy>
__global__ void __launch_bounds__(256)
    precalculate(typename Policy::atoms atoms, typename Policy::dz2 dz2, float spacing, unsigned first_slice,
                 unsigned first_atom, unsigned atom_count) {
  const unsigned a = blockIdx.x * 256 + threadIdx.x;
  if (a >= atom_count) return;
  const float dz = fmaf(spacing, static_cast<float>(first_slice), -atoms.load(a).z);
  dz2.store(fmaf(dz, dz, softening), first_atom + a);
}

// Calls visit(atom) for every atom, as `prepare` makes it. Staged atoms go through shared memory, a tile of one atom a
// thread at a time.
template <class Policy, class Prepare, class Visit>
AUTOTUNE_DEVICE void for_atoms(unsigned count, Prepare prepare, Visit visit) {
  if constexpr (Policy::staging == Staging::shared) {
    constexpr unsigned threads = Policy::block_x * Policy::block_y;
    __shared__ AtomOf<Policy> tile[threads];
    const unsigned thread = threadIdx.y * Policy::block_x + threadIdx.x;
    for (unsigned first = 0; first < count; first += threads) {
      __syncthreads();
      if (first + thread < count) tile[thread] = prepare(first + thread);
      __syncthreads();
      const unsigned most = min(threads, count - first);
#pragma unroll Policy::unroll
      for (unsigned a = 0; a < most; ++a) visit(tile[a]);
    }
  } else {
#pragma unroll Policy::unroll
    for (unsigned a = 0; a < count; ++a) visit(prepare(a));
  }
}

// How many blocks a multiprocessor has to have room for. 0 leaves the compiler the choice, and it saves registers for
// more threads; where the instructions of one thread keep the units busy, it does better with 1.
template <class Policy>
constexpr int fewest_blocks = block_has_slices<Policy> ? 1 : 0;

template <class Policy>
__global__ void __launch_bounds__(Policy::block_x* Policy::block_y, fewest_blocks<Policy>)
    coulomb(typename Policy::atoms atoms, typename Policy::dz2 dz2, typename Policy::potential potential, float spacing,
            unsigned first_slice, unsigned slices, unsigned first_atom, unsigned atom_count) {
  using Real = RealOf<Policy>;
  const Place<Policy> place(potential, first_slice, first_slice + slices);
  Sums<Policy> sums(potential, place);
  Real column[Policy::points_x], slice[Policy::points_z];
#pragma unroll
  for (int p = 0; p < Policy::points_x; ++p) column[p] = static_cast<Real>(place.column(p));
#pragma unroll
  for (int z = 0; z < Policy::points_z; ++z) slice[z] = static_cast<Real>(place.slice(z));
  const Real row = static_cast<Real>(place.row), step = spacing;

  const auto prepare = [&](unsigned a) {
    const Atom atom = atoms.load(a);
    if constexpr (block_has_slices<Policy>) {
      return SlicedAtom<Policy>(atom, step, slice);
    } else {
      PreparedAtom<Real> prepared = {atom.x, atom.y, atom.z, atom.q};
      if constexpr (Policy::precalculate == Precalculate::slice) prepared.z = dz2.load(first_atom + a);
      if constexpr (Policy::precalculate == Precalculate::block) {
        const Real dz = fma(step, slice[0], -prepared.z);
        prepared.z = fma(dz, dz, static_cast<Real>(softening));
      }
      return prepared;
    }
  };
  for_atoms<Policy>(atom_count, prepare, [&](const AtomOf<Policy>& atom) {
    const Charge<Policy> charge(atom);
    const Real dy = fma(step, row, -atom.y);
    if constexpr (Policy::points_z > 1) {
      // dx2 + dy2 of a point is good for all its slices, dz2 of a slice for all its points.
      const Real dy2 = fma(dy, dy, static_cast<Real>(softening));
      Real dxy2[Policy::points_x];
#pragma unroll
      for (int p = 0; p < Policy::points_x; ++p) {
        const Real dx = fma(step, column[p], -atom.x);
        dxy2[p] = fma(dx, dx, dy2);
      }
#pragma unroll
      for (int z = 0; z < Policy::points_z; ++z) {
        Real dz2_of_slice;
        if constexpr (block_has_slices<Policy>) {
          dz2_of_slice = atom.dz2[z];
        } else {
          const Real dz = fma(step, slice[z], -atom.z);
          dz2_of_slice = dz * dz;
        }
#pragma unroll
        for (int p = 0; p < Policy::points_x; ++p)
          sums.add(z, p, charge, charge.squared(dxy2[p], dz2_of_slice, z * Policy::points_x + p));
      }
    } else {
      Real dz2_of_slice = atom.z;
      if constexpr (Policy::precalculate == Precalculate::none) {
        const Real dz = fma(step, slice[0], -atom.z);
        dz2_of_slice = fma(dz, dz, static_cast<Real>(softening));
      }
      const Real dyz2 = fma(dy, dy, dz2_of_slice);
#pragma unroll
      for (int p = 0; p < Policy::points_x; ++p) {
        const Real dx = fma(step, column[p], -atom.x);
        sums.add(0, p, charge, fma(dx, dx, dyz2));
      }
    }
  });
  sums.store(potential, place);
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
