// A cube of points, and bounds on its potential from sums over the ions that are not in its points.
#pragma once
#include "lattice.cuh"

// From a tile's middle to a point, in angstrom.
struct Offset {
  float x, y, z;
  AUTOTUNE_DEVICE float square() const { return x * x + y * y + z * z; }
};

// What far ions do around a tile's middle, as Taylor's polynomial of 1 / r to third order, in float32. It is harmonic,
// so that the coefficients of z^2, x z^2, y z^2 and z^3 follow from the others.
struct Polynomial {
  float x, y, z;
  float xx, yy, xy, xz, yz;
  float xxx, xyy, yyy, xxy, xxz, yyz, xyz;

  // Adds charge / r but for its value in the middle, of an ion from which the middle is (dx, dy, dz) away; `inverse`
  // is the distance's.
  AUTOTUNE_DEVICE void add(float charge, float dx, float dy, float dz, float inverse) {
    const float inverse2 = inverse * inverse, first = charge * inverse * inverse2, second = 1.5f * first * inverse2;
    const float third = -5 * second * inverse2;  // three times that of a cube
    x -= first * dx;
    y -= first * dy;
    z -= first * dz;
    xx += second * dx * dx - first / 2;
    yy += second * dy * dy - first / 2;
    xy += 2 * second * dx * dy;
    xz += 2 * second * dx * dz;
    yz += 2 * second * dy * dz;
    xxx += (third / 3 * dx * dx + second) * dx;
    xyy += (third * dy * dy + second) * dx;
    yyy += (third / 3 * dy * dy + second) * dy;
    xxy += (third * dx * dx + second) * dy;
    xxz += (third * dx * dx + second) * dz;
    yyz += (third * dy * dy + second) * dz;
    xyz += 2 * third * dx * dy * dz;
  }

  AUTOTUNE_DEVICE float at(const Offset& offset) const {
    const float i = offset.x, j = offset.y, k = offset.z;
    const float second = i * (xx * i + xy * j + xz * k) + j * (yy * j + yz * k) - (xx + yy) * k * k;
    const float cubes = i * (xxx * i * i - (3 * xxx + xyy) * k * k) + j * (yyy * j * j - (3 * yyy + xxy) * k * k);
    const float third =
        cubes + i * j * (xyy * j + xxy * i + xyz * k) + k * (xxz * i * i + yyz * j * j) - (xxz + yyz) / 3 * k * k * k;
    return x * i + y * j + z * k + (second + third);
  }

  // Not below the sum of all terms' sizes, no coordinate being larger than `half`.
  AUTOTUNE_DEVICE float size(float half) const {
    const float second = 2 * (fabsf(xx) + fabsf(yy)) + fabsf(xy) + fabsf(xz) + fabsf(yz);
    const float third = 4 * (fabsf(xxx) + fabsf(yyy)) + 2 * (fabsf(xyy) + fabsf(xxy) + fabsf(xxz) + fabsf(yyz));
    return half * (fabsf(x) + fabsf(y) + fabsf(z) + half * (second + half * (third + fabsf(xyz))));
  }
};

// What the ions since a tile was looked at did to it but for the value in its middle, to first order; `rest` bounds
// what is missing.
struct Slope {
  float x, y, z, rest;
  AUTOTUNE_DEVICE float size(float half) const { return half * (fabsf(x) + fabsf(y) + fabsf(z)); }
};

// The map has the tile's near ions in its points. `value` and `polynomial` are what all others do; in the tile's
// corners `rest` bounds what they miss, anywhere `rounding` what float32 does. When the tile was looked at, its
// potential was within low .. high but for `value`, at the points low_point and high_point within `width` of these;
// nowhere when all of its points are excluded.
struct Tile {
  double value, low, high;
  unsigned low_point, high_point;
  float width, rest, rounding;
  Polynomial polynomial;
  Slope since;
  unsigned unused_a, unused_b;  // to whole 16 bytes

  // Not above the tile's best score for an ion of `charge`. `half` is half the tile's edge in angstrom.
  AUTOTUNE_DEVICE double bound(double charge, float half) const {
    return score_of(charge > 0 ? low + value : high + value, charge) - (since.size(half) + since.rest);
  }
  AUTOTUNE_DEVICE unsigned best_point(double charge) const { return charge > 0 ? low_point : high_point; }
  // Not below the score of best_point, which is `offset` from the middle.
  AUTOTUNE_DEVICE double best_score(double charge, const Offset& offset) const {
    const float slope = since.x * offset.x + since.y * offset.y + since.z * offset.z;
    const double potential = (charge > 0 ? low : high) + value + slope;
    return score_of(potential, charge) + (width + since.rest);
  }
};

// The lowest potential and the highest, each with the first point that has it.
struct Range {
  Best low, high;  // of the negative potential
};

template <class Policy>
struct Tiling {
  static constexpr unsigned edge = Policy::tile, points = edge * edge * edge;
  static constexpr float half_edge = (edge - 1) / 2.0f;  // between points
  unsigned columns, rows, slices;
  float spacing, half, radius, near;  // in angstrom

  // A tile is near to an ion when it may have a point that the ion excludes, or when the polynomial would be poor.
  template <class Map>
  AUTOTUNE_DEVICE Tiling(const Map& map, double spacing2, double exclusion2)
      : columns((map.extent(2) + edge - 1) / edge),
        rows((map.extent(1) + edge - 1) / edge),
        slices((map.extent(0) + edge - 1) / edge),
        spacing(sqrtf(static_cast<float>(spacing2))),
        half(half_edge * spacing),
        radius(1.7320509f * half),
        near(max(Policy::near * radius, radius + spacing * sqrtf(static_cast<float>(exclusion2))) * 1.0001f) {}
  AUTOTUNE_DEVICE unsigned count() const { return columns * rows * slices; }
  AUTOTUNE_DEVICE unsigned first_column(unsigned tile) const { return tile % columns * edge; }
  AUTOTUNE_DEVICE unsigned first_row(unsigned tile) const { return tile / columns % rows * edge; }
  AUTOTUNE_DEVICE unsigned first_slice(unsigned tile) const { return tile / columns / rows * edge; }
  AUTOTUNE_DEVICE Offset offset(unsigned tile, const Point& point) const {
    return {along(first_column(tile), point.column), along(first_row(tile), point.row),
            along(first_slice(tile), point.slice)};
  }

  // Adds an ion to the sums of a tile, or says that it is near. Of the series of 1 / r around the middle the term of
  // order n is at most (radius / distance)^n / distance, the rest from order n on at most (radius / distance)^n /
  // (distance - radius). In float32: each rest grows by more than rounding takes, there and in the float64 sums of
  // eager updates.
  AUTOTUNE_DEVICE bool add(Tile& tile, unsigned number, const Ion& ion) const {
    const Offset to = offset(number, ion.point);
    const float x = -to.x, y = -to.y, z = -to.z, distance2 = to.square();
    if (distance2 <= near * near) {
      if (tile.rounding > 0) tile.rounding += 1e-15f * largest(tile);  // the map's sums have another order
      return false;
    }
    const float charge = static_cast<float>(ion.charge), inverse = rsqrtf(distance2);
    const float ratio2 = radius * radius * inverse * inverse;
    const float second = fabsf(charge) * ratio2 / (distance2 * inverse - radius);
    const float rounding = 2e-6f * fabsf(charge) * inverse + 1e-15f * largest(tile);
    tile.value += charge * inverse;
    tile.polynomial.add(charge, x, y, z, inverse);
    tile.rest += second * ratio2 * 1.00001f;
    tile.rounding += rounding + 2e-7f * (tile.polynomial.size(half) + tile.rest + tile.rounding);
    tile.since.x -= charge * inverse * inverse * inverse * x;
    tile.since.y -= charge * inverse * inverse * inverse * y;
    tile.since.z -= charge * inverse * inverse * inverse * z;
    tile.since.rest += second * 1.00001f + rounding;
    tile.since.rest += 2e-7f * (tile.since.size(half) + tile.since.rest);
    return true;
  }
  // What bounds the error at a point: terms of fourth order and more, and rounding, there and in the polynomial's
  // value.
  AUTOTUNE_DEVICE float rest(const Tile& tile, const Offset& offset) const {
    const float part = offset.square() / (radius * radius);
    return tile.rounding == 0 ? 0 : tile.rest * part * part + tile.rounding + 1e-6f * tile.polynomial.size(half);
  }
  // Keeps the range that was found when all of a tile's points were gone over.
  template <class Map>
  AUTOTUNE_DEVICE void looked_at(Tile& tile, const Range& range, unsigned number, const Map& map) const {
    tile.low = range.low.score;
    tile.high = -range.high.score;
    tile.low_point = range.low.index;
    tile.high_point = range.high.index;
    tile.since = {};
    tile.width = 0;
    if (tile.low_point == nowhere) return;
    const float low = rest(tile, offset(number, Point::at(map, tile.low_point)));
    tile.width = 2 * max(low, rest(tile, offset(number, Point::at(map, tile.high_point))));
  }

 private:
  AUTOTUNE_DEVICE float along(unsigned first, double point) const {
    return (static_cast<float>(point) - static_cast<float>(first) - half_edge) * spacing;
  }
  AUTOTUNE_DEVICE static float largest(const Tile& tile) {
    return static_cast<float>(max(fabs(tile.low + tile.value), fabs(tile.high + tile.value)));
  }
};
