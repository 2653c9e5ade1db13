// reversed: the indices of some axes run backwards.
#pragma once
#include "autotune/swizzle.cuh"

namespace autotune {

// A mapping of which the last index of each of AXES is stored first.
template <class Mapping, int... AXES>
struct Reversed : Mapping {
  using Offset = typename Mapping::Offset;

  template <class... Indices>
  AUTOTUNE_DEVICE Offset offset(Indices... indices) const {
    Offset index[] = {static_cast<Offset>(indices)...};
    ((index[AXES] = this->extents[AXES] - 1 - index[AXES]), ...);
    return at(index, typename CountedTo<sizeof...(Indices)>::type());
  }

 private:
  template <int RANK, int... PLACES>
  AUTOTUNE_DEVICE Offset at(const Offset (&index)[RANK], Numbers<PLACES...>) const {
    return Mapping::offset(index[PLACES]...);
  }
};

}  // namespace autotune
