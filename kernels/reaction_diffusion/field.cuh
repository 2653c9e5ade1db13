// A concentration field: rows x columns points in one of the scratch arrays, most with a ring of ghost points around
// them. Where its layout keeps a row's points side by side, a Field moves several at once; a PointField moves one at a
// time, in whatever layout.
#pragma once
#include "autotune/element.cuh"

enum class Precision { float32, float64 };

template <Precision PRECISION>
struct RealOf {
  using type = float;
};
template <>
struct RealOf<Precision::float64> {
  using type = double;
};
template <class Policy>
using Real = typename RealOf<Policy::precision>::type;

// COLUMNS neighbouring points of a row: what one access moves (16 bytes at most; more are several).
template <class Number, int COLUMNS>
struct alignas(sizeof(Number) * COLUMNS < 16 ? sizeof(Number) * COLUMNS : 16) Points {
  static constexpr int texel_bytes = sizeof(Number) * COLUMNS < 16 ? sizeof(Number) * COLUMNS : 16;
  Number at[COLUMNS];
};

// Whether the points of a row lie side by side in an array, each a Number.
template <class Accessor, class Number>
constexpr bool has_rows = false;
template <class Number, class Texel, class ExtentsOf, class StridesOf>
constexpr bool
    has_rows<autotune::Array<Number, autotune::Global<Texel>, autotune::Strided<ExtentsOf, StridesOf>>, Number> =
        StridesOf::known(1) == 1;

// A ring has eight columns left and right of a row, so that point 0 begins a sector of memory, and one row above and
// below.
constexpr int rows_of_ring = 1, columns_of_ring = 8;

// Without a ring, point (0, 0) is the scratch array's first, as a texture over it needs.
template <class Number, template <class> class Memory = autotune::Global, bool HAS_RING = true>
struct Field {
  static constexpr int ring_rows = HAS_RING ? rows_of_ring : 0, ring_columns = HAS_RING ? columns_of_ring : 0;
  static constexpr bool clamps = false;  // an index outside is no point of the field

  Number* base;  // of the first point, the ring's where there is one
  unsigned pitch;
  int rows, columns;

  template <class Scratch>
  AUTOTUNE_DEVICE Field(const Scratch& scratch, int rows_, int columns_)
      : base(&autotune::element(scratch, 0u, 0u)),
        pitch(static_cast<unsigned>(scratch.strides()[0])),
        rows(rows_),
        columns(columns_) {}

  // The same points through another kind of memory.
  template <template <class> class Other>
  AUTOTUNE_DEVICE explicit Field(const Field<Number, Other, HAS_RING>& same)
      : base(same.base), pitch(same.pitch), rows(same.rows), columns(same.columns) {}

  // Points (y, x) to (y, x + COLUMNS - 1); x is a multiple of COLUMNS. -1 and rows, columns lie in the ring.
  template <int COLUMNS>
  AUTOTUNE_DEVICE Points<Number, COLUMNS> load(int y, int x) const {
    return points<COLUMNS, Memory>().load(y + ring_rows, (x + ring_columns) / COLUMNS);
  }
  template <int COLUMNS>
  AUTOTUNE_DEVICE void store(const Points<Number, COLUMNS>& value, int y, int x) const {
    points<COLUMNS, autotune::Global>().store(value, y + ring_rows, (x + ring_columns) / COLUMNS);
  }
  // Where point (y, x) is; the next row's is `pitch` further.
  AUTOTUNE_DEVICE Number* place(int y, int x) const {
    return base + static_cast<long long>(y + ring_rows) * pitch + (x + ring_columns);
  }
  AUTOTUNE_DEVICE Number point(int y, int x) const { return load<1>(y, x).at[0]; }
  AUTOTUNE_DEVICE void set_point(Number value, int y, int x) const { store<1>({{value}}, y, x); }

  // As many of the points as lie in the field.
  template <int COLUMNS>
  AUTOTUNE_DEVICE void store_inside(const Points<Number, COLUMNS>& value, int y, int x) const {
    if (x + COLUMNS <= columns) {
      store(value, y, x);
    } else {
#pragma unroll
      for (int j = 0; j < COLUMNS; ++j)
        if (x + j < columns) set_point(value.at[j], y, x + j);
    }
  }

 private:
  template <int COLUMNS, template <class> class Kind>
  AUTOTUNE_DEVICE auto points() const {
    using Value = Points<Number, COLUMNS>;
    using Texel = autotune::Texel<Value::texel_bytes>;
    using Mapping = autotune::Strided<autotune::Extents<0, 0>, autotune::Strides<unsigned long long, 0, 1>>;
    const unsigned groups = pitch / COLUMNS;
    return autotune::Array<Value, Kind<Texel>, Mapping>{
        {reinterpret_cast<Texel*>(base)}, {{{{{0, groups}}}, {{{groups}}}}}, {}};
  }
};

// The even field for 0, the odd one for 1.
template <class Number, bool HAS_RING>
AUTOTUNE_DEVICE Field<Number, autotune::Global, HAS_RING> one_of(Field<Number, autotune::Global, HAS_RING> even,
                                                                 const Field<Number, autotune::Global, HAS_RING>& odd,
                                                                 unsigned which) {
  if (which) even.base = odd.base;
  return even;
}

// The same of points that are moved one at a time, as the array's layout has them.
template <class Accessor>
struct PointField {
  static constexpr bool clamps = false;
  using Number = typename Accessor::value_type;

  Accessor array;
  int rows, columns;

  AUTOTUNE_DEVICE PointField(const Accessor& array_, int rows_, int columns_)
      : array(array_), rows(rows_), columns(columns_) {}

  AUTOTUNE_DEVICE Number point(int y, int x) const { return array.load(y + rows_of_ring, x + columns_of_ring); }
  AUTOTUNE_DEVICE void set_point(Number value, int y, int x) const {
    array.store(value, y + rows_of_ring, x + columns_of_ring);
  }
  template <int COLUMNS>
  AUTOTUNE_DEVICE Points<Number, COLUMNS> load(int y, int x) const {
    static_assert(COLUMNS == 1, "points in this layout are moved one at a time");
    return {{point(y, x)}};
  }
  AUTOTUNE_DEVICE void store(const Points<Number, 1>& value, int y, int x) const { set_point(value.at[0], y, x); }
  AUTOTUNE_DEVICE void store_inside(const Points<Number, 1>& value, int y, int x) const {
    if (x < columns) store(value, y, x);
  }
};
template <class Accessor>
AUTOTUNE_DEVICE PointField<Accessor> one_of(const PointField<Accessor>& even, const PointField<Accessor>& odd,
                                            unsigned which) {
  return which ? odd : even;
}

// A scratch array as the field that its layout makes of it.
template <class Accessor, class Number, template <class> class Memory, bool HAS_RING,
          bool HAS_ROWS = has_rows<Accessor, Number>>
struct FieldOf {
  using type = Field<Number, Memory, HAS_RING>;
};
template <class Accessor, class Number, template <class> class Memory, bool HAS_RING>
struct FieldOf<Accessor, Number, Memory, HAS_RING, false> {
  using type = PointField<Accessor>;
};

// The points of a field without a ring through a view of it: where an index lies outside, the texture takes the edge's.
template <class Number, class View>
struct Viewed {
  static constexpr bool clamps = true;
  const View& view;

  AUTOTUNE_DEVICE Number point(int y, int x) const { return view.load(y, x); }
  template <int COLUMNS>
  AUTOTUNE_DEVICE Points<Number, COLUMNS> load(int y, int x) const {
    Points<Number, COLUMNS> value;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) value.at[j] = point(y, x + j);
    return value;
  }
};

// The index in 0..count-1 whose mirror image `index` is, for walls half a spacing outside: -1 -> 0, count -> count - 1.
AUTOTUNE_DEVICE int folded(int index, int count) {
  while (static_cast<unsigned>(index) >= static_cast<unsigned>(count))  // once, but for fields smaller than a tile
    index = (index < 0 ? 0 : 2 * count) - 1 - index;
  return index;
}

// The same for an index at most `count` behind a wall, by two comparisons.
AUTOTUNE_DEVICE int once_folded(int index, int count) {
  const int above = max(index, -1 - index);
  return min(above, 2 * count - 1 - above);
}

// Where a thread finds its COLUMNS points of a row in a field that is continued over its walls by its mirror image:
// there the no-flux condition holds by itself, and an image takes exactly the values of its point, step by step, as
// sums of two do not care for order.
template <int COLUMNS>
struct Mirrored {
  int at[COLUMNS];
  bool together;  // the points lie side by side

  AUTOTUNE_DEVICE Mirrored(int x, int columns) : together(x >= 0 && x + COLUMNS <= columns) {
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) at[j] = folded(x + j, columns);
  }

  // Those of `row`, which lies in the field.
  template <class Number, template <class> class Memory>
  AUTOTUNE_DEVICE Points<Number, COLUMNS> load(const Field<Number, Memory>& field, int row) const {
    if (together) return field.template load<COLUMNS>(row, at[0]);
    Points<Number, COLUMNS> value;
#pragma unroll
    for (int j = 0; j < COLUMNS; ++j) value.at[j] = field.point(row, at[j]);
    return value;
  }
};
