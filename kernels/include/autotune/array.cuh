// SPDX-License-Identifier: Apache-2.0
// The accessor a kernel receives for each declared array: load, store and add by logical index, whatever
// the policies chose for memory, dims, axes, records, grouping, packing and padding.
#pragma once
#include "autotune/device.cuh"
#include "autotune/dims.cuh"
#include "autotune/mapping.cuh"
#include "autotune/memory.cuh"
#include "autotune/packing.cuh"
#include "autotune/records.cuh"
#include "autotune/requirements.cuh"

namespace autotune {

namespace detail {

// The first base of an accessor, so that it begins with the handle.
template <class Memory>
struct Handle {
  Memory memory;
};

// Texels of the run of one part, where Records has to know it.
template <class Value, class Memory, class Mapping, class Records>
static constexpr bool has_runs = Records::template has_runs<sizeof(Value) / sizeof(typename Memory::texel_type)>;
template <class Value, class Memory, class Mapping, class Records>
using PartStride =
    PerAxis<struct PartRole, typename Mapping::Stride, has_runs<Value, Memory, Mapping, Records> ? 0 : 1>;

}  // namespace detail

// Value: what the kernel reads (a number, a record struct, a Packed). Memory: one of memory.cuh, which fixes
// the texel. A value is `parts` texels, placed by Records; Grouping places the element among its group.
template <class Value, class Memory, class Mapping, class Dims = Dims1D, class Records = Aos, class Grouping = Split>
struct Array : detail::Handle<Memory>, Mapping, detail::PartStride<Value, Memory, Mapping, Records> {
  using value_type = Value;
  using memory_type = Memory;
  using Texel = typename Memory::texel_type;
  using Offset = typename Mapping::Offset;
  using Runs = detail::PartStride<Value, Memory, Mapping, Records>;
  static constexpr int parts = sizeof(Value) / sizeof(Texel);
  struct Parts {
    Texel texel[parts];
  };
  static_assert(sizeof(Value) % sizeof(Texel) == 0, "a value is a whole number of texels");
  static_assert(detail::is_mapping<Mapping>, "this Mapping lacks what requirements.cuh says of one");
  static_assert(detail::is_dims<Dims>, "these Dims lack what requirements.cuh says of them");
  static_assert(detail::is_memory<Memory, Dims, Offset>, "this Memory lacks what requirements.cuh says of one");
  static_assert(detail::is_records<Records, parts, Offset>, "these Records lack what requirements.cuh says of them");
  static_assert(detail::is_grouping<Grouping, Offset>, "this Grouping lacks what requirements.cuh says of one");

  AUTOTUNE_DEVICE constexpr unsigned extent(int axis) const {
    if constexpr (Mapping::extents_type::given == Mapping::rank)
      return this->Mapping::extents_type::number[axis];
    else
      return this->extents()[axis];
  }
  template <int AXIS>
  AUTOTUNE_DEVICE constexpr unsigned extent() const {
    return this->extents()[AXIS];
  }
  AUTOTUNE_EVERYWHERE constexpr Runs& runs() { return *this; }
  AUTOTUNE_DEVICE Offset part_stride() const {
    if constexpr (Runs::given > 0)
      return static_cast<Offset>(this->Runs::number[0]);
    else
      return 0;
  }

  template <class... Indices>
  AUTOTUNE_DEVICE Value load(Indices... indices) const {
    Parts read;
    const Offset element = element_at(indices...);
    if constexpr (Records::is_grouped) {
      Records::template load<Dims>(this->memory, read.texel, element, part_stride());
    } else {
#pragma unroll
      for (int p = 0; p < parts; ++p) read.texel[p] = this->memory.template load<Dims>(place(element, p));
    }
    return autotune::bit_cast<Value>(read);
  }

  template <class... Indices>
  AUTOTUNE_DEVICE void store(const Value& value, Indices... indices) const {
    static_assert(Memory::is_writable,
                  "this array is only read: declare it with role: output or scratch to store to it");
    const Parts written = autotune::bit_cast<Parts>(value);
    const Offset element = element_at(indices...);
    if constexpr (Memory::is_writable && Records::is_grouped) {
      Records::template store<Dims>(this->memory, written.texel, element, part_stride());
    } else if constexpr (Memory::is_writable) {
#pragma unroll
      for (int p = 0; p < parts; ++p) this->memory.template store<Dims>(place(element, p), written.texel[p]);
    }
  }

  // Atomic; global memory and one-texel values only.
  template <class... Indices>
  AUTOTUNE_DEVICE void add(Value value, Indices... indices) const {
    static_assert(Memory::is_writable, "this array is only read: declare it with role: output or scratch to add to it");
    static_assert(parts == 1, "add needs a value of one texel");
    if constexpr (Memory::is_writable) atomicAdd(reinterpret_cast<Value*>(address(0, indices...)), value);
  }

  // -- for what is built on an accessor (element.cuh, field_access.cuh) --

  template <class... Indices>
  AUTOTUNE_DEVICE Offset element_at(Indices... indices) const {
    return Grouping::element(Mapping::offset(indices...));
  }
  // The texel of a part, counted from the first of the array; its address in memory that has addresses.
  AUTOTUNE_DEVICE Offset place(Offset element, int part) const {
    return Records::template offset<parts>(element, static_cast<Offset>(part), part_stride());
  }
  template <class... Indices>
  AUTOTUNE_DEVICE auto address(int part, Indices... indices) const {
    return this->memory.template address<Dims>(place(element_at(indices...), part));
  }
};

}  // namespace autotune
