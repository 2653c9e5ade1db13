// Atoms that are far from a cube, and not far from the cube that holds it, into the cube's expansion.
#pragma once
#include "autotune/shared.cuh"
#include "gather.cuh"
#include "harmonics.cuh"

// Orders m are shared among order / 2 + 1 warps so that each has as many terms: 1; 2 and the highest; 3 and the one
// below; ...; the middle one and 0. A lane has every 32nd atom of a tile.
template <int order, int tile>
struct Seeds {
  static constexpr unsigned warps = order / 2 + 1, threads = warps * warp_size;

  // Of each atom: z / r^2, 1 / r^2, and q (-(x + iy) / r^2)^m / r.
  double z[tile], square[tile], re[order + 1][tile], im[order + 1][tile];

  AUTOTUNE_DEVICE void clear(unsigned a) {
    z[a] = square[a] = 0;
    for (int m = 0; m <= order; ++m) re[m][a] = im[m][a] = 0;
  }
  AUTOTUNE_DEVICE void set(unsigned a, double dx, double dy, double dz, double r, double q) {
    const double both = r * r, x = -dx * both, y = -dy * both;
    z[a] = dz * both;
    square[a] = both;
    double last_re = q * r, last_im = 0;
    re[0][a] = last_re;
    im[0][a] = 0;
#pragma unroll
    for (int m = 1; m <= order; ++m) {
      const double next = last_re * x - last_im * y;
      last_im = last_re * y + last_im * x;
      last_re = next;
      re[m][a] = last_re;
      im[m][a] = last_im;
    }
  }
};

// What a warp adds up: the terms of its one or two m, one after the other.
template <int order>
struct Share {
  static constexpr int parts = (2 * order + 3 + 7) / 8 * 8;  // of a warp: 2 order or 2 order + 1, and two amounts
  double sum[parts];

  // What degree n has beside the seed, from that of the two degrees below.
  template <int m, int at, int n>
  AUTOTUNE_DEVICE void climb(double z, double square, double last, double before, const Complex& seed) {
    if constexpr (n <= order) {
      constexpr double turned = turn(n, m);
      const double next = n == m + 1 ? z : fma(turned * z, last, n == m + 2 ? -square : -(square * before));
      sum[at] = fma(next, seed.re, sum[at]);
      if constexpr (m > 0) sum[at + 1] = fma(next, seed.im, sum[at + 1]);
      climb<m, at + (m > 0 ? 2 : 1), n + 1>(z, square, next, last, seed);
    }
  }
  template <int m, int at, class Seeds>
  AUTOTUNE_DEVICE void add(const Seeds& seeds, unsigned a) {
    const Complex seed = {seeds.re[m][a], m > 0 ? seeds.im[m][a] : 0};
    sum[at] += seed.re;
    if constexpr (m > 0) sum[at + 1] += seed.im;
    climb<m, at + (m > 0 ? 2 : 1), m + 1>(seeds.z[a], seeds.square[a], 1, 0, seed);
  }
  template <int first, int second, class Seeds>
  AUTOTUNE_DEVICE void add_tile(const Seeds& seeds, unsigned count, unsigned lane) {
#pragma unroll 1
    for (unsigned a = lane; a < count; a += warp_size) {
      add<first, 0>(seeds, a);
      if constexpr (second >= 0) add<second, 2 * (order - first + 1)>(seeds, a);
    }
  }

  template <int m, int at, int n>
  AUTOTUNE_DEVICE void write(Complex* table) const {
    if constexpr (n <= order) {
      constexpr double factor = scale(n, m);
      table[term_of(n, m)] = {factor * sum[at], m > 0 ? factor * sum[m > 0 ? at + 1 : at] : 0};
      write<m, at + (m > 0 ? 2 : 1), n + 1>(table);
    }
  }
  template <int first, int second>
  AUTOTUNE_DEVICE void write_both(Complex* table) const {
    write<first, 0, first>(table);
    if constexpr (second >= 0) write<second, 2 * (order - first + 1), second>(table);
  }

  // Calls visit.template call<first, second>() for the m of a warp.
  template <int warp, class Visit>
  AUTOTUNE_DEVICE static void choose(unsigned mine, Visit& visit) {
    if (mine == warp) {
      visit.template call<warp + 1, warp == 0 ? -1 : warp == order / 2 ? 0 : order + 1 - warp>();
    } else if constexpr (warp < order / 2) {
      choose<warp + 1>(mine, visit);
    }
  }
  template <class Seeds>
  struct Adding {
    Share& share;
    const Seeds& seeds;
    unsigned count, lane;
    template <int first, int second>
    AUTOTUNE_DEVICE void call() {
      share.template add_tile<first, second>(seeds, count, lane);
    }
  };
  struct Writing {
    const Share& share;
    Complex* table;
    template <int first, int second>
    AUTOTUNE_DEVICE void call() {
      share.template write_both<first, second>(table);
    }
  };
};

// What a cube's expansion leaves out at most, and at least what it stands for: sums of |q| / r at any point of the
// cube.
struct Amounts {
  double error, least;
};

// Each of some values summed over a warp's lanes, in all of them, by way of 256 numbers of shared memory that the warp
// has to itself: eight values at a time, four lanes each.
template <int count>
AUTOTUNE_DEVICE void warp_sums(double (&values)[count], double* room, unsigned lane) {
  static_assert(count % 8 == 0, "eight values at a time");
  const unsigned mine = lane / 4, quarter = lane % 4 * 8;
#pragma unroll
  for (int first = 0; first < count; first += 8) {
#pragma unroll
    for (int i = 0; i < 8; ++i) room[i * warp_size + lane] = values[first + i];
    __syncwarp();
    double sum = 0;
#pragma unroll
    for (unsigned i = 0; i < 8; ++i) sum += room[mine * warp_size + quarter + (i + mine) % 8];
    sum += __shfl_xor_sync(0xffffffffu, sum, 1);
    sum += __shfl_xor_sync(0xffffffffu, sum, 2);
    __syncwarp();
    if (quarter == 0) room[mine] = sum;
    __syncwarp();
#pragma unroll
    for (int i = 0; i < 8; ++i) values[first + i] = room[i];
    __syncwarp();
  }
}

template <int exponent>
AUTOTUNE_DEVICE double power(double base) {
  if constexpr (exponent == 1) {
    return base;
  } else {
    const double half = power<exponent / 2>(base);
    return exponent % 2 ? half * half * base : half * half;
  }
}

template <int order>
AUTOTUNE_DEVICE Amounts amounts_of(double q, double inverse, double radius) {
  const double ratio = radius * inverse, size = fabs(q) * inverse;
  const double near = 1 / (1 - static_cast<float>(ratio)) * above * above;  // not below r / (r - radius)
  const double softened = softening * inverse * inverse * near * near;
  return {size * near * (power<order + 1>(ratio) + softened), size / (1 + static_cast<float>(ratio)) * below};
}

// Of a block that expands; the other method never launches it. What is just 48 KiB is refused beside the arrays that
// the kernel has anyway, so it is one number more than seeds take.
template <class Policy>
constexpr unsigned expand_bytes =
    Policy::method == Method::expansions ? sizeof(Seeds<Policy::order, Policy::tile>) + sizeof(Complex) : 0;

template <class Policy>
AUTOTUNE_DEVICE void expand_cube(const typename Policy::expand_arguments& a) {
  constexpr int order = Policy::order, tile = Policy::tile;
  using AllSeeds = Seeds<order, tile>;
  constexpr unsigned threads = AllSeeds::threads;
  __shared__ Gathered<threads, tile> gathered;
  AllSeeds& seeds = *autotune::dynamic_shared<AllSeeds>();
  __shared__ Amounts of_warp[AllSeeds::warps];
  const unsigned thread = threadIdx.x, lane = thread % warp_size, warp = thread / warp_size;
  const unsigned cell = blockIdx.x / a.parts, part = blockIdx.x % a.parts;
  const Points points = {a.nx, a.ny, a.nz, a.spacing};
  const Level<Policy> cubes(points, a.level);
  const uint3 place = cubes.place(cell);
  const Ball ball = cubes.ball(points, place);
  const bool is_top = a.level + 1 == a.levels;
  const Ball outer = Level<Policy>(points, a.level + 1).ball(points, halved(place));
  const Grid grid(a.grid_axes, a.side);
  const Rows rows(grid, outer, is_top ? 1e30 : outer.far);

  Share<order> share = {};
  Amounts mine = {};
  gathered.each(
      a.sorted, (rows.count() + a.parts - 1 - part) / a.parts,
      [&](unsigned i) { return rows.run(a.starts, i * a.parts + part); },
      [&](const Atom& atom) { return ball.is_far(atom) && (is_top || !outer.is_far(atom)); },
      [&](const Atom* atoms, unsigned count) {
        const unsigned whole = (count + warp_size - 1) / warp_size * warp_size;
        for (unsigned i = thread; i < whole; i += threads) {
          if (i < count) {
            const double dx = atoms[i].x - ball.x, dy = atoms[i].y - ball.y, dz = atoms[i].z - ball.z;
            const double inverse = rsqrt(dx * dx + dy * dy + dz * dz);
            seeds.set(i, dx, dy, dz, inverse, atoms[i].q);
            const Amounts its = amounts_of<order>(atoms[i].q, inverse, ball.radius);
            mine.error += its.error;
            mine.least += its.least;
          } else {
            seeds.clear(i);
          }
        }
        __syncthreads();
        typename Share<order>::template Adding<AllSeeds> adding = {share, seeds, whole, lane};
        Share<order>::template choose<0>(warp, adding);
      });

  constexpr int parts_of_warp = Share<order>::parts;
  share.sum[parts_of_warp - 2] = mine.error;
  share.sum[parts_of_warp - 1] = mine.least;
  warp_sums(share.sum, reinterpret_cast<double*>(&seeds) + warp * 8 * warp_size, lane);
  __syncthreads();
  Complex* table = reinterpret_cast<Complex*>(&seeds);
  if (lane == 0) {
    of_warp[warp] = {share.sum[parts_of_warp - 2], share.sum[parts_of_warp - 1]};
    typename Share<order>::Writing writing = {share, table};
    Share<order>::template choose<0>(warp, writing);
  }
  __syncthreads();
  const unsigned number = a.first_cell + cell;
  for (int i = thread; i < 2 * terms_to(order); i += threads) {
    const double value = i % 2 ? table[i / 2].im : table[i / 2].re;
    if (a.parts > 1)
      a.expansions.add(value, number, i);
    else
      a.expansions.store(value, number, i);
  }
  if (thread == 0) {
    Amounts all = {};
    for (unsigned w = 0; w < AllSeeds::warps; ++w) all = {all.error + of_warp[w].error, all.least + of_warp[w].least};
    if (a.parts > 1) {
      a.amounts.add(all.error * above, number, 0);
      a.amounts.add(all.least * below, number, 1);
    } else {
      a.amounts.store(all.error * above, number, 0);
      a.amounts.store(all.least * below, number, 1);
    }
  }
}

template <class Policy>
__global__ void __launch_bounds__((Policy::order / 2 + 1) * 32, Policy::expand_blocks)
    expand(typename Policy::expand_arguments a) {
  if constexpr (Policy::method == Method::expansions) expand_cube<Policy>(a);
}
