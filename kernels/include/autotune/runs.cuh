// SPDX-License-Identifier: Apache-2.0
// From the number of a thread or a block to two places in a list that is paired with itself, or with another: the
// numbers of a rectangle, or of a triangle without what is above its diagonal, row by row.
#pragma once
#include "autotune/device.cuh"

namespace autotune {

struct Place {
  unsigned row, column;
};

// Number n of a triangle: (0,0) (1,0) (1,1) (2,0) ... The root is exact to a unit, which is put right.
AUTOTUNE_DEVICE Place in_triangle(unsigned long long n) {
  unsigned long long row = static_cast<unsigned long long>((sqrt(8.0 * static_cast<double>(n) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return {static_cast<unsigned>(row), static_cast<unsigned>(n - row * (row + 1) / 2)};
}

// The row alone, of a number below 2^30: in single precision, which is right to a unit there.
AUTOTUNE_DEVICE unsigned row_in_triangle(unsigned n) {
  unsigned row = static_cast<unsigned>((sqrtf(8.0f * static_cast<float>(n) + 1) - 1) / 2);
  while (row * (row + 1) / 2 > n) --row;
  while ((row + 1) * (row + 2) / 2 <= n) ++row;
  return row;
}

// Rows from first_row on, each with `columns` columns from first_column on; a triangle when columns is 0, whose columns
// begin where its rows do. Neighbours are in one row.
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
// that row. In a triangle, rows [g width, (g + 1) width) have g + 1 chunks, and n / width is below 2^30.
struct Chunk {
  unsigned row, column, end;
};

AUTOTUNE_DEVICE Chunk chunk(const Run& run, unsigned n, unsigned width) {
  if (run.columns) {
    const unsigned chunks = (run.columns + width - 1) / width;
    return {run.first_row + n / chunks, run.first_column + n % chunks * width, run.first_column + run.columns};
  }
  const unsigned group = row_in_triangle(n / width), rest = n - width * (group * (group + 1) / 2);
  const unsigned row = group * width + rest / (group + 1);
  return {run.first_row + row, run.first_row + rest % (group + 1) * width, run.first_row + row + 1};
}

}  // namespace autotune
