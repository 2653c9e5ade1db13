// The place of an element, for what load, store and add do not say: x[i] += v, ++x[i], atomicMax(&x[i], v), and one
// field of a record. In global memory only, which is where what a kernel writes lies, and never of packed values.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// The element at these indices. Of a record only where all of it lies together, as aos has it.
template <class Value, class Memory, class Mapping, class Dims, class Records, class Grouping, class... Indices>
AUTOTUNE_DEVICE auto& element(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array, Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Offset = typename Accessor::Offset;
  const Offset place = Records::template offset<Accessor::parts>(Grouping::element(array.offset(indices...)),
                                                                 static_cast<Offset>(0), array.part_stride());
  return *reinterpret_cast<typename Memory::template element<Value>*>(array.memory.template address<Dims>(place));
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
template <auto FIELD, class Value, class Memory, class Mapping, class Dims, class Records, class Grouping,
          class... Indices>
AUTOTUNE_DEVICE auto& field(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array, Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Offset = typename Accessor::Offset;
  using Type = typename Memory::template element<typename FieldOf<FIELD>::type>;
  using Byte = typename Memory::template element<char>;
  constexpr unsigned texel = sizeof(typename Accessor::Texel);
  const unsigned begin = offset_of<FIELD, Value>();
  const Offset place = Records::template offset<Accessor::parts>(
      Grouping::element(array.offset(indices...)), static_cast<Offset>(begin / texel), array.part_stride());
  Byte* const address = reinterpret_cast<Byte*>(array.memory.template address<Dims>(place));
  return *reinterpret_cast<Type*>(address + begin % texel);
}

}  // namespace autotune
