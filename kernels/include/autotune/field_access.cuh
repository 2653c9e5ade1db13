// SPDX-License-Identifier: Apache-2.0
// One field of a record alone, in any layout and any memory: load_field<&Particle::mass>(particles, i) moves that
// field's bytes and no others, but for a texture, which is read by whole texels.
#pragma once
#include "autotune/element.cuh"

namespace autotune {

namespace detail {

// How a field is moved: pieces of one size, each of them within a texel.
template <class Type, class Texel>
struct Pieces {
  static constexpr int bytes = alignof(Type) < sizeof(Texel) ? alignof(Type) : sizeof(Texel);
  static constexpr int count = sizeof(Type) / bytes, in_texel = sizeof(Texel) / bytes;
  using Piece = autotune::Texel<bytes>;
  Piece piece[count];
};

}  // namespace detail

template <auto FIELD, class Value, class Memory, class Mapping, class Dims, class Records, class Grouping,
          class... Indices>
AUTOTUNE_DEVICE auto load_field(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array,
                                Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Texel = typename Accessor::Texel;
  using Type = typename FieldOf<FIELD>::type;
  using Read = detail::Pieces<Type, Texel>;
  const auto element = array.element_at(indices...);
  const unsigned begin = offset_of<FIELD, Value>();
  Read read;
#pragma unroll
  for (int p = 0; p < Read::count; ++p) {
    const unsigned byte = begin + p * Read::bytes, inside = byte % sizeof(Texel) / Read::bytes;
    const auto place = array.place(element, static_cast<int>(byte / sizeof(Texel)));
    if constexpr (Memory::is_addressed) {
      const auto memory = autotune::bit_cast<typename Memory::template rebind<typename Read::Piece>>(array.memory);
      read.piece[p] = memory.template load<Dims1D>(Dims::linear(place) * Read::in_texel + inside);
    } else {
      struct Whole {
        typename Read::Piece piece[Read::in_texel];
      };
      const Whole whole = autotune::bit_cast<Whole>(array.memory.template load<Dims>(place));
#pragma unroll
      for (int k = 0; k < Read::in_texel; ++k)
        if (k == static_cast<int>(inside)) read.piece[p] = whole.piece[k];
    }
  }
  return autotune::bit_cast<Type>(read);
}

// Numbers that are stored otherwise (storage.cuh): what else is read of the element is dropped.
template <class Value, class Number, class Codec, class Scale, class Codes>
struct Narrow;

template <auto FIELD, class Value, class Number, class Codec, class Scale, class Codes, class... Indices>
AUTOTUNE_DEVICE auto load_field(const Narrow<Value, Number, Codec, Scale, Codes>& array, Indices... indices) {
  return array.load(indices...).*FIELD;
}

// In global memory only, as every store.
template <auto FIELD, class Value, class Memory, class Mapping, class Dims, class Records, class Grouping,
          class... Indices>
AUTOTUNE_DEVICE void store_field(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array,
                                 const typename FieldOf<FIELD>::type& value, Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Texel = typename Accessor::Texel;
  using Written = detail::Pieces<typename FieldOf<FIELD>::type, Texel>;
  const auto element = array.element_at(indices...);
  const unsigned begin = offset_of<FIELD, Value>();
  const auto memory = autotune::bit_cast<typename Memory::template rebind<typename Written::Piece>>(array.memory);
  const Written written = autotune::bit_cast<Written>(value);
#pragma unroll
  for (int p = 0; p < Written::count; ++p) {
    const unsigned byte = begin + p * Written::bytes;
    const auto place = array.place(element, static_cast<int>(byte / sizeof(Texel)));
    memory.template store<Dims1D>(Dims::linear(place) * Written::in_texel + byte % sizeof(Texel) / Written::bytes,
                                  written.piece[p]);
  }
}

}  // namespace autotune
