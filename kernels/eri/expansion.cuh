// From a number to a work-unit (a quartet of shells, as two positions in the list of pairs), and to its components.
#pragma once
#include "autotune/device.cuh"

enum class Expansion { components, work_units, index };
enum class Granularity { thread, warp, component, block, tile };

// A work-unit on a list: positions of its pairs, its shells, where its integral goes, how many components it has.
struct WorkUnit {
  unsigned bra, ket, i, j, k, l, target, components;
};

// A component on a list: its primitives, their shells, where its integral goes.
struct Component {
  unsigned a, b, c, d, i, j, k, l, target;
};

struct Place {
  unsigned bra, ket;
};

// Number n of a triangle, row by row: (0,0) (1,0) (1,1) (2,0) ... The root is exact to a unit, which is put right.
AUTOTUNE_DEVICE Place in_triangle(unsigned long long n) {
  unsigned long long row = static_cast<unsigned long long>((sqrt(8.0 * static_cast<double>(n) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return {static_cast<unsigned>(row), static_cast<unsigned>(n - row * (row + 1) / 2)};
}

// The row alone, of a number below 2^29: in single precision, which is right to a unit there.
AUTOTUNE_DEVICE unsigned row_in_triangle(unsigned n) {
  unsigned row = static_cast<unsigned>((sqrtf(8.0f * static_cast<float>(n) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return row;
}

// A run of work-units: bras from first_bra on, each with `kets` kets from first_ket on; a triangle when kets is 0.
struct Run {
  unsigned first_bra, first_ket, kets;

  AUTOTUNE_DEVICE Place operator[](unsigned long long n) const {
    if (kets) return {first_bra + static_cast<unsigned>(n / kets), first_ket + static_cast<unsigned>(n % kets)};
    const Place place = in_triangle(n);
    return {first_bra + place.bra, first_bra + place.ket};
  }
};

// Block n of a run whose rows of kets are cut into chunks of `width`: its bra, the first ket of its chunk, and the end
// of that bra's kets. In a triangle, rows [g width, (g + 1) width) have g + 1 chunks.
struct Chunk {
  unsigned bra, ket, end;
};

AUTOTUNE_DEVICE Chunk chunk(const Run& run, unsigned n, unsigned width) {
  if (run.kets) {
    const unsigned chunks = (run.kets + width - 1) / width;
    return {run.first_bra + n / chunks, run.first_ket + n % chunks * width, run.first_ket + run.kets};
  }
  const unsigned group = row_in_triangle(n / width), rest = n - width * (group * (group + 1) / 2);
  const unsigned row = group * width + rest / (group + 1);
  return {run.first_bra + row, run.first_bra + rest % (group + 1) * width, run.first_bra + row + 1};
}
