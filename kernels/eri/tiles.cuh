// From a number to a tile of work-units: some bras, and for each warp of a block as many kets as it has room for
// (tiles.py has the same arithmetic).
#pragma once
#include "autotune/warp.cuh"
#include "expansion.cuh"

// Pairs with equally many primitive pairs (`count`) as bras, with the kets of another such run, or a triangle of their
// own when `kets` is 0; a work-unit has `each` components.
struct PairRun {
  unsigned first_bra, bras, first_ket, kets, count, each;
};

// The bras of a tile (`rows` where none are missing), the first ket of its first warp, and the end of its kets.
struct TilePlace {
  unsigned bra, bras, rows, ket, end, count;
  bool is_triangle;
};

template <class Policy>
struct TileShape {
  static constexpr unsigned warps = Policy::block_size / 32;
  static constexpr unsigned kets = 32 / Policy::split;  // of a warp
  static constexpr unsigned width = warps * kets;       // of a block
  static constexpr unsigned primitive_pairs = 128;      // of the bras, at once
  static constexpr unsigned components = 1296;          // of a ket with all bras, where they are more than one

  // Bras of a tile of a run: a power of two.
  AUTOTUNE_DEVICE static unsigned bras(const PairRun& run) {
    unsigned bras = Policy::bras;
    while (bras > 1 && (bras * run.count > primitive_pairs || bras * run.each > components)) bras /= 2;
    return bras;
  }

  // Tiles of a run. In a triangle, the bras that are within `width` positions have equally many tiles.
  AUTOTUNE_DEVICE static unsigned tiles(const PairRun& run) {
    const unsigned each = bras(run), rows = (run.bras + each - 1) / each;
    if (run.kets) return rows * ((run.kets + width - 1) / width);
    const unsigned together = width / each, groups = rows / together;
    return together * (groups * (groups + 1) / 2) + rows % together * (groups + 1);
  }

  // Tile n of a run.
  AUTOTUNE_DEVICE static TilePlace place(const PairRun& run, unsigned n) {
    const unsigned each = bras(run);
    unsigned row, chunk;
    if (run.kets) {
      const unsigned chunks = (run.kets + width - 1) / width;
      row = n / chunks;
      chunk = n % chunks;
    } else {
      const unsigned together = width / each, group = autotune::row_in_triangle(n / together);
      const unsigned rest = n - together * (group * (group + 1) / 2);
      row = group * together + rest / (group + 1);
      chunk = rest % (group + 1);
    }
    const unsigned held = min(each, run.bras - row * each), bra = run.first_bra + row * each;
    const unsigned end = run.kets ? run.first_ket + run.kets : bra + held;
    return {bra, held, each, run.first_ket + chunk * width, end, run.count, run.kets == 0};
  }
};

// Tile `number` of all runs, in their order: each lane of a warp counts the tiles of one. No bras past the last.
template <class Policy>
AUTOTUNE_DEVICE TilePlace tile_place(const typename Policy::runs& runs, unsigned number) {
  const unsigned lane = threadIdx.x % 32, count = runs.extent(0);
  for (unsigned first = 0; first < count; first += 32) {
    const unsigned tiles = first + lane < count ? TileShape<Policy>::tiles(runs.load(first + lane)) : 0;
    const unsigned end = autotune::warp::inclusive_sum(tiles);
    const unsigned past = __ballot_sync(0xffffffffu, number < end);
    if (past) {
      const int owner = __popc(~past);  // the runs before it have ended
      const unsigned before = __shfl_sync(0xffffffffu, end - tiles, owner);
      return TileShape<Policy>::place(runs.load(first + owner), number - before);
    }
    number -= __shfl_sync(0xffffffffu, end, 31);
  }
  return {};
}
