// An accessor that tells when an index is outside of its extent, for the run that proves a rewritten kernel: the
// address may still be right, since a row follows a row, and is not once the rows lie otherwise.
#pragma once
#include "autotune/element.cuh"

extern "C" void autotune_trace_outside(int array, int axis);

namespace autotune {

template <class Accessor, int ARRAY>
struct Checked : Accessor {
  template <class... Indices>
  AUTOTUNE_DEVICE void check(Indices... indices) const {
    const long long index[] = {static_cast<long long>(indices)...};
    for (unsigned axis = 0; axis < sizeof...(Indices); ++axis)
      if (index[axis] < 0 || index[axis] >= this->extent(static_cast<int>(axis))) autotune_trace_outside(ARRAY, axis);
  }
  template <class... Indices>
  AUTOTUNE_DEVICE typename Accessor::value_type load(Indices... indices) const {
    check(indices...);
    return Accessor::load(indices...);
  }
  template <class... Indices>
  AUTOTUNE_DEVICE void store(const typename Accessor::value_type& value, Indices... indices) const {
    check(indices...);
    Accessor::store(value, indices...);
  }
  template <class... Indices>
  AUTOTUNE_DEVICE void add(typename Accessor::value_type value, Indices... indices) const {
    check(indices...);
    Accessor::add(value, indices...);
  }
};

template <class Accessor, int ARRAY, class... Indices>
AUTOTUNE_DEVICE auto& element(const Checked<Accessor, ARRAY>& array, Indices... indices) {
  array.check(indices...);
  return element(static_cast<const Accessor&>(array), indices...);
}

template <auto FIELD, class Accessor, int ARRAY, class... Indices>
AUTOTUNE_DEVICE auto& field(const Checked<Accessor, ARRAY>& array, Indices... indices) {
  array.check(indices...);
  return field<FIELD>(static_cast<const Accessor&>(array), indices...);
}

}  // namespace autotune
