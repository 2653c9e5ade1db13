// The place of an element, for what load, store and add do not say: x[i] += v, ++x[i], atomicMax(&x[i], v), and one
// field of a record. In global memory only, which is where what a kernel writes lies, and never of packed values.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// The element at these indices. Of a record only where all of it lies together, as aos has it.
template <class Value, class Memory, class Mapping, class Dims, class Records, class Grouping, class... Indices>
AUTOTUNE_DEVICE Value& element(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array,
                               Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Offset = typename Accessor::Offset;
  const Offset place = Records::template offset<Accessor::parts>(
      Grouping::element(array.offset(indices...)), static_cast<Offset>(0), static_cast<Offset>(array.part_stride()[0]));
  return *reinterpret_cast<Value*>(array.memory.template address<Dims>(place));
}

template <auto FIELD>
struct FieldOf;
template <class Record, class Type, Type Record::* FIELD>
struct FieldOf<FIELD> {
  using type = Type;
};

// field<&Particle::x>(particles, i): one field of the record there, whatever the layout; a field is not larger than the
// texel, or its texels lie together.
template <auto FIELD, class Value, class Memory, class Mapping, class Dims, class Records, class Grouping,
          class... Indices>
AUTOTUNE_DEVICE auto& field(const Array<Value, Memory, Mapping, Dims, Records, Grouping>& array, Indices... indices) {
  using Accessor = Array<Value, Memory, Mapping, Dims, Records, Grouping>;
  using Offset = typename Accessor::Offset;
  using Type = typename FieldOf<FIELD>::type;
  constexpr unsigned long long texel = sizeof(typename Accessor::Texel);
  // Where the field begins: a record at an address that is aligned for any.
  const unsigned long long begin =
      reinterpret_cast<unsigned long long>(&(reinterpret_cast<Value*>(4096)->*FIELD)) - 4096;
  const Offset place = Records::template offset<Accessor::parts>(Grouping::element(array.offset(indices...)),
                                                                 static_cast<Offset>(begin / texel),
                                                                 static_cast<Offset>(array.part_stride()[0]));
  char* const address = reinterpret_cast<char*>(array.memory.template address<Dims>(place));
  return *reinterpret_cast<Type*>(address + begin % texel);
}

}  // namespace autotune
