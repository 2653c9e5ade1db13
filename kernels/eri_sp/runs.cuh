// From the number of a thread or a block to a quartet of shells, as two positions in the list of pairs.
#pragma once
#include "autotune/device.cuh"

enum class Granularity { thread, block };

struct Place {
  unsigned row, column;
};

// Number n of a triangle, row by row: (0,0) (1,0) (1,1) (2,0) ... The root is exact to a unit, which is put right.
AUTOTUNE_DEVICE Place in_triangle(unsigned long long n) {
  unsigned long long row = static_cast<unsigned long long>((sqrt(8.0 * static_cast<double>(n) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return {static_cast<unsigned>(row), static_cast<unsigned>(n - row * (row + 1) / 2)};
}

// The quartets of one class: rows from first_row on, whose pairs are kets, each with `columns` from first_column on,
// whose pairs are bras; a triangle when columns is 0, where both are of one class. Neighbours are in one row: they have
// one ket.
struct Run {
  unsigned first_row, first_column, columns;

  AUTOTUNE_DEVICE Place operator[](unsigned long long n) const {
    if (columns)
      return {first_row + static_cast<unsigned>(n / columns), first_column + static_cast<unsigned>(n % columns)};
    const Place place = in_triangle(n);
    return {first_row + place.row, first_row + place.column};
  }
};

// Block n of a run whose rows are cut into chunks of `width`: its row, the first column of its chunk, and the end of
// that row. In a triangle, rows [g width, (g + 1) width) have g + 1 chunks.
struct Chunk {
  unsigned row, column, end;
};

AUTOTUNE_DEVICE Chunk chunk(const Run& run, unsigned n, unsigned width) {
  if (run.columns) {
    const unsigned chunks = (run.columns + width - 1) / width;
    return {run.first_row + n / chunks, run.first_column + n % chunks * width, run.first_column + run.columns};
  }
  const unsigned group = in_triangle(n / width).row;
  const unsigned rest = n - width * (group * (group + 1) / 2), row = group * width + rest / (group + 1);
  return {run.first_row + row, run.first_row + rest % (group + 1) * width, run.first_row + row + 1};
}
