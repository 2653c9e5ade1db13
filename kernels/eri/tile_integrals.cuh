// A block has a tile of work-units. A warp keeps the integrals of its kets with all bras in shared memory and adds up J
// and K from there, so that what goes to a matrix by an atomic addition is a sum: over the tile's kets of a bra, over
// its bras of a ket, over all bras and kets with the same two shells.
#pragma once
#include "autotune/warp.cuh"
#include "digest.cuh"
#include "pairs.cuh"
#include "screening.cuh"
#include "tiles.cuh"

// In shared memory, where three loads of 16 bytes take one.
struct alignas(16) BraPair : PrimitivePair {};

// What a warp has in shared memory: the integrals of every bra of the tile with its kets, and what it adds up of them.
template <class Policy>
struct WarpTile {
  static constexpr unsigned kets = TileShape<Policy>::kets;

  double values[Policy::bras][kets + 1];  // one more, so that bras lie in different banks
  double density[kets];                   // D_kl
  double sums[2][kets];                   // of kets in the order of k, and of l
  unsigned shells[2][kets];               // k in its order, and l
};

// A lane's ket among the kets of the warp in the order of k (or of l): where it is, and, when the lane-th in that order
// is the first with its shell, how many have that shell (else 0).
struct Rank {
  unsigned place, shell, many;

  AUTOTUNE_DEVICE static Rank of(unsigned shell, unsigned* shells, unsigned kets, unsigned lane, unsigned column,
                                 bool is_first) {
    if (is_first) shells[column] = shell;
    __syncwarp();
    unsigned place = 0;
    for (unsigned other = 0; other < kets; ++other)
      place += shells[other] < shell || (shells[other] == shell && other < column);
    __syncwarp();
    if (is_first) shells[place] = shell;
    __syncwarp();
    const unsigned own = shells[min(lane, kets - 1)];
    unsigned many = 0;
    if (lane < kets && (lane == 0 || shells[lane - 1] != own))
      for (many = 1; lane + many < kets && shells[lane + many] == own;) ++many;
    return {place, own, many};
  }
};

// The bras of a tile in the order of i, and of j.
template <class Policy>
struct BraOrder {
  unsigned char by_i[Policy::bras], by_j[Policy::bras];

  AUTOTUNE_DEVICE void place(const Pair* bras, unsigned many, unsigned bra) {
    unsigned before_i = 0, before_j = 0;
    for (unsigned other = 0; other < many; ++other) {
      before_i += bras[other].i < bras[bra].i || (bras[other].i == bras[bra].i && other < bra);
      before_j += bras[other].j < bras[bra].j || (bras[other].j == bras[bra].j && other < bra);
    }
    by_i[before_i] = static_cast<unsigned char>(bra);
    by_j[before_j] = static_cast<unsigned char>(bra);
  }
};

// A lane's part in a tile: one ket (`column` of its warp), which `split` lanes have together.
template <class Policy>
struct TileOfUnits {
  using Shape = TileShape<Policy>;
  static constexpr unsigned kets = Shape::kets, split = Policy::split;

  const Molecule<Policy>& molecule;
  const Digest<Policy>& digest;
  const TilePlace place;
  const double threshold;
  const Pair* bras;
  const BraPair* primitive_pairs;
  WarpTile<Policy>& warp;
  const Pair ket;
  const unsigned position;  // the ket's
  const unsigned lane, column, part;

  // Whether the bra has this lane's ket.
  AUTOTUNE_DEVICE bool has(unsigned bra) const {
    return position < place.end && (!place.is_triangle || position <= place.bra + bra);
  }

  // The bras that some lane's ket is computed with, a bit each.
  AUTOTUNE_DEVICE unsigned wanted() const {
    unsigned bits = 0;
    for (unsigned bra = 0; bra < place.bras; ++bra) {
      const bool is_wanted =
          has(bra) && (Policy::screening == Screening::none || bras[bra].bound * ket.bound >= threshold);
      bits |= (__any_sync(0xffffffffu, is_wanted) ? 1u : 0u) << bra;
    }
    return bits;
  }

  // The `each` primitive pairs of a bra with one of the ket.
  template <class Real>
  AUTOTUNE_DEVICE double with_bra(const BraPair* bra, unsigned each, const PrimitivePair& right) const {
    Real inner = 0;
#pragma unroll Policy::unroll
    for (unsigned m = part; m < each; m += split) {
      const BraPair left = bra[m];
      inner += molecule.template component<Real>(left, right);
    }
    return inner * right.factor;
  }

  AUTOTUNE_DEVICE void compute(unsigned bits, unsigned each) const {
    for (unsigned n = 0; n < ket.count; ++n) {
      const PrimitivePair right = molecule.load(ket, n);
      for (unsigned bra = 0; bra < place.bras; ++bra) {
        if (!(bits >> bra & 1)) continue;
        double value;
        if (is_single<Policy>(bras[bra].bound * ket.bound))
          value = with_bra<float>(primitive_pairs + bra * each, each, right);
        else
          value = with_bra<double>(primitive_pairs + bra * each, each, right);
        value = autotune::warp::sum<split>(value);
        if (part == 0) warp.values[bra][column] += value;
      }
    }
  }

  AUTOTUNE_DEVICE void store() const {
    for (unsigned bra = part; bra < place.bras; bra += split)
      if (has(bra)) digest.whole(bras[bra], ket, warp.values[bra][column]);
  }

  // J and K. An integral is for up to eight, and is 0 where it is another tile's.
  AUTOTUNE_DEVICE void digest_all(unsigned bits, const BraOrder<Policy>& order) const {
    const Rank by_k = Rank::of(ket.i, warp.shells[0], kets, lane, column, part == 0);
    const Rank by_l = Rank::of(ket.j, warp.shells[1], kets, lane, column, part == 0);
    if (part == 0) warp.density[column] = digest.density.load(ket.i, ket.j);
    add_to_ket();
    __syncwarp();
    add_to_bras();
    add_rows<true>(bits, order.by_i, by_k, by_l);
    add_rows<false>(bits, order.by_j, by_k, by_l);
  }

  AUTOTUNE_DEVICE void add_to_ket() const {
    double sum = 0;
    for (unsigned bra = part; bra < place.bras; bra += split) {
      const double value = has(bra) ? Digest<Policy>::times(bras[bra], ket) * warp.values[bra][column] : 0;
      warp.values[bra][column] = value;
      sum = fma(value, digest.density.load(bras[bra].i, bras[bra].j), sum);
    }
    sum = autotune::warp::sum<split>(sum);
    if (part == 0) digest.coulomb_sum.add(sum, ket.i, ket.j);
  }

  // Lanes that are `place.rows` apart have a bra together.
  AUTOTUNE_DEVICE void add_to_bras() const {
    const unsigned bra = lane % place.rows, each = (kets * place.rows + 31) / 32;
    const unsigned first = min(kets, lane / place.rows * each), end = min(kets, first + each);
    double sum = 0;
    if (bra < place.bras)
      for (unsigned t = first; t < end; ++t) sum = fma(warp.values[bra][t], warp.density[t], sum);
    for (unsigned lanes = 16; lanes >= place.rows; lanes /= 2)
      sum += __shfl_xor_sync(0xffffffffu, sum, static_cast<int>(lanes));
    if (lane < place.bras) digest.coulomb_sum.add(sum, bras[lane].i, bras[lane].j);
  }

  // For each shell that bras have as i (or as j), and that follow each other in `order`: its row of K.
  template <bool OF_I>
  AUTOTUNE_DEVICE void add_rows(unsigned bits, const unsigned char* order, const Rank& by_k, const Rank& by_l) const {
    double with_k = 0, with_l = 0;
    bool is_any = false;
    for (unsigned n = 0; n < place.bras; ++n) {
      const unsigned bra = order[n], i = bras[bra].i, j = bras[bra].j, row = OF_I ? i : j, other = OF_I ? j : i;
      is_any |= bits >> bra & 1;
      if (n % split == part) {
        const double value = warp.values[bra][column];
        with_k = fma(value, digest.density.load(other, ket.j), with_k);
        with_l = fma(value, digest.density.load(other, ket.i), with_l);
      }
      if (n + 1 < place.bras) {
        const Pair& next = bras[order[n + 1]];
        if ((OF_I ? next.i : next.j) == row) continue;
      }
      if (is_any) add_row(row, with_k, with_l, by_k, by_l);
      with_k = with_l = 0;
      is_any = false;
    }
  }

  // What all kets have for one row of K: those with the same shell are added up first.
  AUTOTUNE_DEVICE void add_row(unsigned row, double with_k, double with_l, const Rank& by_k, const Rank& by_l) const {
    for (int lanes = split / 2; lanes > 0; lanes /= 2) {
      with_k += __shfl_xor_sync(0xffffffffu, with_k, lanes);
      with_l += __shfl_xor_sync(0xffffffffu, with_l, lanes);
    }
    if (part == 0) {
      warp.sums[0][by_k.place] = with_k;
      warp.sums[1][by_l.place] = with_l;
    }
    __syncwarp();
    add_shell(row, warp.sums[0], by_k);
    add_shell(row, warp.sums[1], by_l);
    __syncwarp();
  }

  AUTOTUNE_DEVICE void add_shell(unsigned row, const double* sums, const Rank& rank) const {
    if (rank.many == 0) return;
    double sum = sums[lane];
    for (unsigned n = 1; n < rank.many; ++n) sum += sums[lane + n];
    digest.exchange_sum.add(sum, row, rank.shell);
  }
};

// ---- one block, one tile: what the block's warps have in common is its bras and their primitive pairs

template <class Policy>
AUTOTUNE_DEVICE void block_owns_tile(const Molecule<Policy>& molecule, const Digest<Policy>& digest,
                                     const typename Policy::runs& runs, unsigned number, double threshold) {
  using Shape = TileShape<Policy>;
  constexpr unsigned most = Shape::primitive_pairs;
  __shared__ Pair bras[Policy::bras];
  __shared__ BraOrder<Policy> order;
  __shared__ BraPair primitive_pairs[most];
  __shared__ WarpTile<Policy> tiles[Shape::warps];
  const TilePlace place = tile_place<Policy>(runs, number);
  if (place.bras == 0) return;
  const unsigned thread = threadIdx.x, lane = thread % 32, column = lane / Policy::split, part = lane % Policy::split;
  const unsigned position = place.ket + thread / Policy::split;
  const Pair ket = molecule.pairs.load(min(position, place.end - 1));
  WarpTile<Policy>& warp = tiles[thread / 32];
  if (thread < place.bras) bras[thread] = molecule.pairs.load(place.bra + thread);
  __syncthreads();
  const TileOfUnits<Policy> tile{molecule, digest, place,    threshold, bras,   primitive_pairs,
                                 warp,     ket,    position, lane,      column, part};
  if (part == 0)
    for (unsigned bra = 0; bra < place.bras; ++bra) warp.values[bra][column] = 0;
  const unsigned bits = tile.wanted();
  if constexpr (Policy::screening == Screening::schwarz && Policy::output == Output::coulomb_exchange)
    if (!__syncthreads_or(bits != 0)) return;
  for (unsigned first = 0; first < place.count; first += most) {  // one round, but for more than `most` in one bra
    const unsigned each = min(most, place.count - first);
    if (first > 0) __syncthreads();
    if (thread < place.bras) order.place(bras, place.bras, thread);  // the same in every round
#pragma unroll 1
    for (unsigned m = thread; m < place.bras * each; m += Policy::block_size)
      primitive_pairs[m] = {molecule.load(bras[m / each], first + m % each)};
    __syncthreads();
    tile.compute(bits, each);
  }
  __syncwarp();
  if constexpr (Policy::output == Output::integrals) {
    tile.store();
  } else if (bits) {
    tile.digest_all(bits, order);
  }
}
