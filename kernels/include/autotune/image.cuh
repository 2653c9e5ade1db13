// SPDX-License-Identifier: Apache-2.0
// image: an array of two or three extents whose kernel may read beyond its edge, `load(i, j)` with any i and j, and
// between its elements, `sample(y, x)`. The same rule holds in every layout: a texture's hardware applies it where the
// layout is an image there (dims: image), index arithmetic everywhere else. Outputs in a layout of images are surfaces.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// What lies beyond the edge, with a period of one extent (wrap) or two (mirror): an element inside, or zero (border).
enum class Edge { clamp, mirror, wrap, border };

// Where the element at `index` is found, beyond the edge by the rule; of border, only for what lies inside.
template <Edge EDGE>
AUTOTUNE_DEVICE int inside(int index, int extent) {
  if constexpr (EDGE == Edge::border) return index;
  if constexpr (EDGE == Edge::clamp) return index < 0 ? 0 : index < extent ? index : extent - 1;
  if (static_cast<unsigned>(index) < static_cast<unsigned>(extent)) return index;
  const int period = EDGE == Edge::mirror ? 2 * extent : extent, rest = index % period;
  const int place = rest < 0 ? rest + period : rest;
  return place < extent ? place : period - 1 - place;
}

// read: what a load gives of an element.
struct Elements {
  static constexpr bool is_normalised = false;
  template <class Value>
  AUTOTUNE_DEVICE static Value value(Value element) {
    return element;
  }
};

// The range of an integer of 8 or 16 bits as 0 to 1, or -1 to 1 where it has a sign.
struct Normalised {
  static constexpr bool is_normalised = true;
  template <class Integer>
  AUTOTUNE_DEVICE static float value(Integer element) {
    constexpr int most = sizeof(Integer) == 1 ? 255 : 65535;
    constexpr bool is_signed = static_cast<Integer>(-1) < static_cast<Integer>(1);
    const float scaled = static_cast<float>(element) * (1.0f / (is_signed ? most / 2 : most));
    return is_signed && scaled < -1.0f ? -1.0f : scaled;
  }
};

// filter: what lies between elements. `fetch` gives the value at RANK whole numbers.
struct Nearest {
  static constexpr bool is_linear = false;
  template <int RANK, class Fetch>
  AUTOTUNE_DEVICE static auto value(const float (&at)[RANK], Fetch fetch) {
    int index[RANK];
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) index[axis] = static_cast<int>(floorf(at[axis] + 0.5f));
    return fetch(index);
  }
};

// By weights of 8 bits of fraction, as the texture units have them (CUDA C++ Programming Guide, "Linear Filtering").
struct Linear {
  static constexpr bool is_linear = true;
  template <int RANK, class Fetch>
  AUTOTUNE_DEVICE static float value(const float (&at)[RANK], Fetch fetch) {
    int begin[RANK];
    float share[RANK];
#pragma unroll
    for (int axis = 0; axis < RANK; ++axis) {
      const float below = floorf(at[axis]);
      begin[axis] = static_cast<int>(below);
      share[axis] = floorf((at[axis] - below) * 256.0f + 0.5f) * (1.0f / 256.0f);
    }
    float sum = 0.0f;
#pragma unroll
    for (int corner = 0; corner < 1 << RANK; ++corner) {
      int index[RANK];
      float weight = 1.0f;
#pragma unroll
      for (int axis = 0; axis < RANK; ++axis) {
        const int step = corner >> axis & 1;
        index[axis] = begin[axis] + step;
        weight *= step ? share[axis] : 1.0f - share[axis];
      }
      sum += weight * fetch(index);
    }
    return sum;
  }
};

// An array of RANK extents in any layout, read as an image by arithmetic. Base: its accessor without that.
template <class Base, int RANK, Edge EDGE, class Read, class Filter>
struct Image : Base {
  static constexpr int rank = RANK;
  using Element = typename Base::value_type;

  template <class... Indices>
  AUTOTUNE_DEVICE auto load(Indices... indices) const {
    static_assert(sizeof...(Indices) == rank, "one index for each axis");
    const int index[] = {static_cast<int>(indices)...};
    return at(index);
  }

  template <class... Coordinates>
  AUTOTUNE_DEVICE auto sample(Coordinates... coordinates) const {
    static_assert(sizeof...(Coordinates) == rank, "one coordinate for each axis");
    const float place[] = {static_cast<float>(coordinates)...};
    return Filter::value(place, [&](const int (&index)[rank]) { return at(index); });
  }

 private:
  using Base::store;  // not for what is only read
  AUTOTUNE_DEVICE auto at(const int (&index)[rank]) const {
    int place[rank];
    bool is_inside = true;
#pragma unroll
    for (int axis = 0; axis < rank; ++axis) {
      const int extent = static_cast<int>(this->extent(axis));
      place[axis] = inside<EDGE>(index[axis], extent);
      is_inside &= static_cast<unsigned>(place[axis]) < static_cast<unsigned>(extent);
    }
    if constexpr (EDGE == Edge::border)
      return is_inside ? Read::value(element(place)) : decltype(Read::value(Element{})){};
    return Read::value(element(place));
  }
  AUTOTUNE_DEVICE Element element(const int (&place)[rank]) const {
    if constexpr (rank == 2)
      return Base::load(place[0], place[1]);
    else
      return Base::load(place[0], place[1], place[2]);
  }
};

namespace detail {

// The members of an accessor (array.cuh: Array) whose elements lie in rows of their own: what the texels are called in
// storage order is not an offset, but one coordinate for each of AXES, the contiguous one last.
template <class Object>
struct ImageObject {
  Object object;
};
template <class Object, class ExtentsOf>
struct Rows : Handle<ImageObject<Object>>, ExtentsOf {
  AUTOTUNE_EVERYWHERE constexpr ExtentsOf& extents() { return *this; }
  AUTOTUNE_DEVICE constexpr unsigned extent(int axis) const { return (*this)[axis]; }
  template <int AXIS>
  AUTOTUNE_DEVICE constexpr unsigned extent() const {
    return (*this)[AXIS];
  }
};

}  // namespace detail

#ifndef AUTOTUNE_CPU
// A texture with the array's own rows: a CUDA array, or pitched memory. Element: of the array, the type of its numbers
// or a record.
template <class Element, class ExtentsOf, Edge EDGE, class Read, class Filter, int... AXES>
struct TextureImage : detail::Rows<cudaTextureObject_t, ExtentsOf> {
  static constexpr int rank = sizeof...(AXES);
  static constexpr bool is_float = Read::is_normalised || Filter::is_linear;
  static constexpr bool is_periodic = EDGE == Edge::mirror || EDGE == Edge::wrap;
  using value_type = Element;

  template <class... Indices>
  AUTOTUNE_DEVICE auto load(Indices... indices) const {
    static_assert(sizeof...(Indices) == rank, "one index for each axis");
    return sample(static_cast<int>(indices)...);
  }

  // Whole numbers are centres of texels. Hardware knows a period only of coordinates in units of the extents.
  template <class... Coordinates>
  AUTOTUNE_DEVICE auto sample(Coordinates... coordinates) const {
    static_assert(sizeof...(Coordinates) == rank, "one coordinate for each axis");
    const float index[] = {static_cast<float>(coordinates)...};
    constexpr int axes[] = {AXES...};
    float place[rank];
#pragma unroll
    for (int step = 0; step < rank; ++step) {
      place[step] = index[axes[step]] + 0.5f;
      if constexpr (is_periodic) place[step] *= __frcp_rn(static_cast<float>(this->extent(axes[step])));
    }
    if constexpr (is_float)
      return texel<float>(place);
    else
      return autotune::bit_cast<Element>(texel<Texel<sizeof(Element)>>(place));
  }

 private:
  template <class Fetched>
  AUTOTUNE_DEVICE Fetched texel(const float (&place)[rank]) const {
    if constexpr (rank == 2)
      return tex2D<Fetched>(this->memory.object, place[1], place[0]);
    else
      return tex3D<Fetched>(this->memory.object, place[2], place[1], place[0]);
  }
};
#endif

// A surface over a CUDA array: what an output is in a layout of images. Inside only.
template <class Element, class ExtentsOf, int... AXES>
struct SurfaceImage : detail::Rows<cudaSurfaceObject_t, ExtentsOf> {
  static constexpr int rank = sizeof...(AXES);
  using value_type = Element;
  using Unit = Texel<sizeof(Element)>;

  template <class... Indices>
  AUTOTUNE_DEVICE void store(const Element& value, Indices... indices) const {
    const int index[] = {static_cast<int>(indices)...};
    constexpr int axes[] = {AXES...};
    const int x = index[axes[rank - 1]] * static_cast<int>(sizeof(Element)), y = index[axes[rank - 2]];
    if constexpr (rank == 2)
      surf2Dwrite(autotune::bit_cast<Unit>(value), this->memory.object, x, y);
    else
      surf3Dwrite(autotune::bit_cast<Unit>(value), this->memory.object, x, y, index[axes[0]]);
  }

  template <class... Indices>
  AUTOTUNE_DEVICE Element load(Indices... indices) const {
    const int index[] = {static_cast<int>(indices)...};
    constexpr int axes[] = {AXES...};
    const int x = index[axes[rank - 1]] * static_cast<int>(sizeof(Element)), y = index[axes[rank - 2]];
    if constexpr (rank == 2)
      return autotune::bit_cast<Element>(surf2Dread<Unit>(this->memory.object, x, y));
    else
      return autotune::bit_cast<Element>(surf3Dread<Unit>(this->memory.object, x, y, index[axes[0]]));
  }
};

}  // namespace autotune
