// Atoms into a grid of `side` cells along each axis, x the fastest, so that the cells of a row are one run of atoms.
#pragma once
#include "cells.cuh"

template <class Policy>
__global__ void __launch_bounds__(256) find_box(typename Policy::atoms atoms, unsigned* box) {
  unsigned high[6] = {};
  for (unsigned a = blockIdx.x * 256 + threadIdx.x; a < atoms.extent(0); a += gridDim.x * 256) {
    const Atom atom = atoms.load(a);
    const float values[6] = {atom.x, atom.y, atom.z, -atom.x, -atom.y, -atom.z};
#pragma unroll
    for (int i = 0; i < 6; ++i) high[i] = max(high[i], ordered(values[i]));
  }
#pragma unroll
  for (int i = 0; i < 6; ++i) {
    high[i] = autotune::warp::max(high[i]);
    if (threadIdx.x % warp_size == 0) atomicMax(box + i, high[i]);
  }
}

// `box` has the highest x, y and z, and the highest -x, -y and -z, as ordered() makes them.
template <class Policy>
__global__ void __launch_bounds__(32) lay_grid(unsigned* box, double* grid_axes, unsigned side) {
  if (threadIdx.x >= 3) return;
  const double high = from_ordered(box[threadIdx.x]), low = -from_ordered(box[threadIdx.x + 3]), room = high - low;
  double* axis = grid_axes + 3 * threadIdx.x;
  axis[0] = low;
  axis[1] = room / side;
  axis[2] = room > 0 ? side / room : 0;
}

// How many atoms each cell has, and which of them each is.
template <class Policy>
__global__ void __launch_bounds__(256)
    count_atoms(typename Policy::atoms atoms, double* grid_axes, unsigned* starts, unsigned* ranks, unsigned side) {
  const unsigned a = blockIdx.x * 256 + threadIdx.x;
  if (a < atoms.extent(0)) ranks[a] = atomicAdd(starts + Grid(grid_axes, side).cell(atoms.load(a)), 1u);
}

// From the cells' counts to where each begins, by one block; behind the last cell all atoms.
template <class Policy>
__global__ void __launch_bounds__(1024) begin_cells(unsigned* starts, unsigned side) {
  __shared__ unsigned of_warp[warp_size];
  const unsigned thread = threadIdx.x, lane = thread % warp_size, cells = side * side * side;
  unsigned before = 0;
  for (unsigned first = 0; first < cells; first += 4096) {
    unsigned own[4], sum = 0;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned cell = first + 4 * thread + i;
      own[i] = cell < cells ? starts[cell] : 0;
      sum += own[i];
    }
    unsigned to = autotune::warp::inclusive_sum(sum);
    if (lane == warp_size - 1) of_warp[thread / warp_size] = to;
    __syncthreads();
    unsigned total = 0;
    for (unsigned w = 0; w < warp_size; ++w) {
      if (w < thread / warp_size) to += of_warp[w];
      total += of_warp[w];
    }
    unsigned at = before + to - sum;
#pragma unroll
    for (unsigned i = 0; i < 4; ++i) {
      if (first + 4 * thread + i < cells) starts[first + 4 * thread + i] = at;
      at += own[i];
    }
    before += total;
    __syncthreads();
  }
  if (thread == 0) starts[cells] = before;
}

template <class Policy>
__global__ void __launch_bounds__(256) sort_atoms(typename Policy::atoms atoms, double* grid_axes, unsigned* starts,
                                                  unsigned* ranks, typename Policy::sorted sorted, unsigned side) {
  const unsigned a = blockIdx.x * 256 + threadIdx.x;
  if (a >= atoms.extent(0)) return;
  const Atom atom = atoms.load(a);
  sorted.store(atom, starts[Grid(grid_axes, side).cell(atom)] + ranks[a]);
}
