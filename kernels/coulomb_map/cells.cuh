// Where things lie: cubes of lattice points at every level, and atoms sorted into a grid of their own.
#pragma once
#include "atom.cuh"
#include "autotune/warp.cuh"

// The lattice's points along x, y and z, and the angstrom between them.
struct Points {
  unsigned x, y, z;
  double step;
};

// The ball around a cube of points, and how far from its middle atoms are far.
struct Ball {
  double x, y, z, radius, far, far2;

  AUTOTUNE_DEVICE double square_distance(const Atom& atom) const {
    const double dx = atom.x - x, dy = atom.y - y, dz = atom.z - z;
    return fma(dx, dx, fma(dy, dy, dz * dz));
  }
  // The same for one atom in every kernel: nothing here is left to how a compiler joins products and sums.
  AUTOTUNE_DEVICE bool is_far(const Atom& atom) const { return square_distance(atom) >= far2; }
};

// The cubes of one level: of `edge` points each, level 0 the smallest, the next twice as large.
template <class Policy>
struct Level {
  unsigned edge, x, y, z;

  AUTOTUNE_DEVICE Level(const Points& points, unsigned level)
      : edge(Policy::cell << level),
        x((points.x + edge - 1) / edge),
        y((points.y + edge - 1) / edge),
        z((points.z + edge - 1) / edge) {}
  AUTOTUNE_DEVICE uint3 place(unsigned cell) const { return {cell % x, cell / x % y, cell / x / y}; }
  AUTOTUNE_DEVICE unsigned number(const uint3& place) const { return (place.z * y + place.y) * x + place.x; }
  AUTOTUNE_DEVICE Ball ball(const Points& points, const uint3& place) const {
    const double half = 0.5 * (edge - 1), radius = 0.86602540378443865 * (edge - 1) * points.step * (1 + 1e-12);
    const double far = Policy::separation * radius * 0.1;
    return {(place.x * edge + half) * points.step,
            (place.y * edge + half) * points.step,
            (place.z * edge + half) * points.step,
            radius,
            far,
            far * far};
  }
};

AUTOTUNE_DEVICE uint3 halved(const uint3& place) { return {place.x / 2, place.y / 2, place.z / 2}; }

// Floats as unsigned numbers of the same order; 0 is less than any of them.
AUTOTUNE_DEVICE unsigned ordered(float value) {
  const unsigned bits = __float_as_uint(value);
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}
AUTOTUNE_DEVICE float from_ordered(unsigned key) {
  return __uint_as_float(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

// One axis of the atoms' grid: `side` cells from the lowest atom to the highest.
struct Axis {
  double low, width, inverse;
  int last;

  AUTOTUNE_DEVICE int cell(double at) const {
    return static_cast<int>(min(max((at - low) * inverse, 0.0), static_cast<double>(last)));
  }
  // No atom of the cell is nearer to `at`.
  AUTOTUNE_DEVICE double distance(int cell, double at) const {
    const double begin = low + cell * width, slack = 1e-9 * (fabs(at) + fabs(begin) + width);
    return max(max(begin - at, at - (begin + width)) - slack, 0.0);
  }
};

// The grid, from what lay_grid makes of the box: of x, y and z in turn the lowest, a cell's width, and what that is one
// over, or 0 where all atoms have the same.
struct Grid {
  Axis x, y, z;
  unsigned side;

  AUTOTUNE_DEVICE Grid(const double* grid_axes, unsigned side_)
      : x(axis(grid_axes, side_)), y(axis(grid_axes + 3, side_)), z(axis(grid_axes + 6, side_)), side(side_) {}
  AUTOTUNE_DEVICE unsigned cell(const Atom& atom) const {
    return (z.cell(atom.z) * side + y.cell(atom.y)) * side + x.cell(atom.x);
  }

 private:
  AUTOTUNE_DEVICE static Axis axis(const double* from, unsigned side) {
    return {from[0], from[1], from[2], static_cast<int>(side) - 1};
  }
};

// Rows of the grid that a ball may reach, and of each the run of atoms that it may reach.
struct Rows {
  const Grid& grid;
  double x, y, z, radius;
  int first_y, first_z, count_y, count_z;

  AUTOTUNE_DEVICE Rows(const Grid& grid_, const Ball& around, double radius_)
      : grid(grid_), x(around.x), y(around.y), z(around.z), radius(radius_ * (1 + 1e-9)) {
    first_y = grid.y.cell(y - radius);
    first_z = grid.z.cell(z - radius);
    count_y = grid.y.cell(y + radius) - first_y + 1;
    count_z = grid.z.cell(z + radius) - first_z + 1;
  }
  AUTOTUNE_DEVICE unsigned count() const { return count_y * count_z; }

  struct Run {
    unsigned begin, count;
  };
  AUTOTUNE_DEVICE Run run(const unsigned* starts, unsigned row) const {
    const int j = first_y + row % count_y, k = first_z + row / count_y;
    const double dy = grid.y.distance(j, y), dz = grid.z.distance(k, z), left = radius * radius - dy * dy - dz * dz;
    if (left < 0) return {0, 0};
    const double reach = sqrt(left) * (1 + 1e-9) + 1e-9 * (fabs(x) + grid.x.width);
    const unsigned before = (k * grid.side + j) * grid.side;
    const unsigned begin = starts[before + grid.x.cell(x - reach)];
    return {begin, starts[before + grid.x.cell(x + reach) + 1] - begin};
  }
};
