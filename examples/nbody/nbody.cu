// Gravitational acceleration of every body: a_i = sum of m_j r_ij / (r_ij^2 + softening^2)^(3/2), with G = 1.
// (Nyland, Harris, Prins: Fast N-Body Simulation with CUDA, GPU Gems 3, chapter 31.) plain.cu is where it comes from.
#include "autotune/array.cuh"
#include "autotune/warp.cuh"

struct Body {
  float x, y, z, mass;
};

enum class Staging { none, shared };

// Calls visit(body) for every threads_per_body-th body from `lane` on: each thread reads its own, or the block reads a
// tile of all of them together first.
template <class Policy, class Visit>
AUTOTUNE_DEVICE void for_bodies(typename Policy::bodies bodies, unsigned lane, Visit visit) {
  const unsigned count = bodies.extent(0);
  if constexpr (Policy::staging == Staging::shared) {
    __shared__ Body tile[Policy::block_size];
    for (unsigned first = 0; first < count; first += Policy::block_size) {
      __syncthreads();
      if (first + threadIdx.x < count) tile[threadIdx.x] = bodies.load(first + threadIdx.x);
      __syncthreads();
      const unsigned most = min(static_cast<unsigned>(Policy::block_size), count - first);
#pragma unroll Policy::unroll
      for (unsigned j = lane; j < most; j += Policy::threads_per_body) visit(tile[j]);
    }
  } else {
#pragma unroll Policy::unroll
    for (unsigned j = lane; j < count; j += Policy::threads_per_body) visit(bodies.load(j));
  }
}

// How many blocks a multiprocessor has to have room for: 1024 threads, which leaves each 64 registers. By itself the
// compiler saves registers for more threads, and a thread's interactions wait for one another's square roots.
template <class Policy>
constexpr int fewest_blocks = 1024 / Policy::block_size;

template <class Policy>
__global__ void __launch_bounds__(Policy::block_size, fewest_blocks<Policy>)
    nbody(typename Policy::bodies bodies, typename Policy::acceleration acceleration, float softening) {
  constexpr unsigned mine = Policy::bodies_per_thread, teams = Policy::block_size / Policy::threads_per_body;
  const unsigned count = bodies.extent(0), lane = threadIdx.x % Policy::threads_per_body;
  const unsigned first = blockIdx.x * teams * mine + threadIdx.x / Policy::threads_per_body;
  Body own[mine];
  float ax[mine] = {}, ay[mine] = {}, az[mine] = {};
#pragma unroll
  for (unsigned m = 0; m < mine; ++m)  // past the end: the last body again, and nothing is stored
    own[m] = bodies.load(min(first + m * teams, count - 1));
  for_bodies<Policy>(bodies, lane, [&](const Body& other) {
#pragma unroll
    for (unsigned m = 0; m < mine; ++m) {
      const float dx = other.x - own[m].x, dy = other.y - own[m].y, dz = other.z - own[m].z;
      const float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + softening * softening);
      const float pull = other.mass * inverse * inverse * inverse;
      ax[m] += pull * dx;
      ay[m] += pull * dy;
      az[m] += pull * dz;
    }
  });
#pragma unroll
  for (unsigned m = 0; m < mine; ++m) {
    const unsigned i = first + m * teams;
    // The threads of a body are neighbours in a warp.
    const float x = autotune::warp::sum<Policy::threads_per_body>(ax[m]);
    const float y = autotune::warp::sum<Policy::threads_per_body>(ay[m]);
    const float z = autotune::warp::sum<Policy::threads_per_body>(az[m]);
    if (lane > 0 || i >= count) continue;
    acceleration.store(x, i, 0);
    acceleration.store(y, i, 1);
    acceleration.store(z, i, 2);
  }
}

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
