// SPDX-License-Identifier: Apache-2.0
// The place of an element, for what load, store and add do not say: x[i] += v, ++x[i], atomicMax(&x[i], v), and one
// field of a record. In global memory only, which is where what a kernel writes lies, and never of packed values.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// The element at these indices. Of a record only where all of it lies together, as aos has it.
template <class... Parts, class... Indices>
AUTOTUNE_DEVICE auto& element(const Array<Parts...>& array, Indices... indices) {
  using Accessor = Array<Parts...>;
  using Element = typename Accessor::memory_type::template element<typename Accessor::value_type>;
  return *reinterpret_cast<Element*>(array.address(0, indices...));
}

template <auto FIELD>
struct FieldOf;
template <class Record, class Type, Type Record::* FIELD>
struct FieldOf<FIELD> {
  using type = Type;
};

// The first byte of a field in its record.
template <auto FIELD, class Record>
AUTOTUNE_DEVICE unsigned offset_of() {
  alignas(16) unsigned char room[sizeof(Record)];  // which is not looked at
  const auto* const member = &(reinterpret_cast<const Record*>(room)->*FIELD);
  return static_cast<unsigned>(reinterpret_cast<const unsigned char*>(member) - room);
}

// field<&Particle::x>(particles, i): one field of the record there, whatever the layout; a field is not larger than the
// texel, or its texels lie together.
template <auto FIELD, class... Parts, class... Indices>
AUTOTUNE_DEVICE auto& field(const Array<Parts...>& array, Indices... indices) {
  using Accessor = Array<Parts...>;
  using Memory = typename Accessor::memory_type;
  using Byte = typename Memory::template element<char>;
  constexpr unsigned texel = sizeof(typename Accessor::Texel);
  const unsigned begin = offset_of<FIELD, typename Accessor::value_type>();
  Byte* const address = reinterpret_cast<Byte*>(array.address(static_cast<int>(begin / texel), indices...));
  return *reinterpret_cast<typename Memory::template element<typename FieldOf<FIELD>::type>*>(address + begin % texel);
}

}  // namespace autotune
