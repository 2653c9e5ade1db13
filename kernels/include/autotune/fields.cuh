// records: groups of fields, each of which lies together and apart from the others: what a loop reads, and what it
// seldom does.
#pragma once
#include "autotune/array.cuh"

namespace autotune {

// Parts of a record that lie side by side in this order, by their numbers in the record.
template <int... PARTS>
struct Together {
  static constexpr int count = sizeof...(PARTS);

  AUTOTUNE_DEVICE static constexpr int part(int place) {
    const int parts[] = {PARTS...};
    return parts[place];
  }
};

// Each group has its own run, as a record that holds no more has it in aos. The runs lie one behind the other, those of
// every part `part_stride` texels long, which is a multiple of 16 bytes.
template <class... GROUPS>
struct Apart {
  template <int>
  static constexpr bool has_runs = true;

  template <int PARTS, class Index>
  AUTOTUNE_DEVICE static Index offset(Index element, Index part, Index part_stride) {
    Index found = 0, before = 0;
    ((found += within<GROUPS>(element, part, before), before += GROUPS::count * part_stride), ...);
    return found;
  }

 private:
  // Where `part` lies; 0 where the group does not have it.
  template <class Group, class Index>
  AUTOTUNE_DEVICE static Index within(Index element, Index part, Index before) {
    Index found = 0;
#pragma unroll
    for (int place = 0; place < Group::count; ++place)
      if (static_cast<int>(part) == Group::part(place)) found = before + element * Group::count + place;
    return found;
  }
};

// The same memory in other units, where it is found by addresses: a texture has the one that it was made with.
template <class Memory, class Unit>
struct Rebound {
  static constexpr bool is_possible = false;
};
template <class Texel, class Unit>
struct Rebound<Global<Texel>, Unit> {
  static constexpr bool is_possible = true;
  using type = Global<Unit>;
};
template <class Texel, class Unit>
struct Rebound<ReadOnly<Texel>, Unit> {
  static constexpr bool is_possible = true;
  using type = ReadOnly<Unit>;
};
template <class Texel, int OFFSET, class Unit>
struct Rebound<Constant<Texel, OFFSET>, Unit> {
  static constexpr bool is_possible = true;
  using type = Constant<Unit, OFFSET>;
};

template <class Dims>
struct IsLine {
  static constexpr bool value = false;
};
template <>
struct IsLine<Dims1D> {
  static constexpr bool value = true;
};

AUTOTUNE_DEVICE constexpr int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }

// array.cuh: Array. A group is moved by the widest access that divides it, whatever the texel, which is as wide as all
// fields allow.
template <class Value, class Memory, class Mapping, class Dims, class Grouping, class... GROUPS>
struct Array<Value, Memory, Mapping, Dims, Apart<GROUPS...>, Grouping>
    : detail::Handle<Memory>, Mapping, PartStride<Value, Memory, Mapping, Apart<GROUPS...>> {
  using value_type = Value;
  using Texel = typename Memory::texel_type;
  using Offset = typename Mapping::Offset;
  using Runs = PartStride<Value, Memory, Mapping, Apart<GROUPS...>>;
  static constexpr int parts = sizeof(Value) / sizeof(Texel);
  static_assert(sizeof(Value) % sizeof(Texel) == 0, "a value is a whole number of texels");
  static_assert((GROUPS::count + ...) == parts, "each part is in one group");

  AUTOTUNE_DEVICE constexpr unsigned extent(int axis) const { return this->extents()[axis]; }
  template <int AXIS>
  AUTOTUNE_DEVICE constexpr unsigned extent() const {
    return this->extents()[AXIS];
  }
  AUTOTUNE_EVERYWHERE constexpr Runs& part_stride() { return *this; }
  AUTOTUNE_EVERYWHERE constexpr const Runs& part_stride() const { return *this; }

  template <class... Indices>
  AUTOTUNE_DEVICE Value load(Indices... indices) const {
    Parts read;
    const Offset element = Grouping::element(Mapping::offset(indices...));
    int before = 0;
    ((load_group<GROUPS>(read, element, before), before += GROUPS::count), ...);
    return bit_cast<Value>(read);
  }

  template <class... Indices>
  AUTOTUNE_DEVICE void store(const Value& value, Indices... indices) const {
    const Parts written = bit_cast<Parts>(value);
    const Offset element = Grouping::element(Mapping::offset(indices...));
    int before = 0;
    ((store_group<GROUPS>(written, element, before), before += GROUPS::count), ...);
  }

 private:
  struct Parts {
    Texel texel[parts];
  };
  template <class Group>
  struct Texels {
    Texel texel[Group::count];
  };
  // Texels of one access.
  template <class Group>
  static constexpr int width = Rebound<Memory, Texel>::is_possible && IsLine<Dims>::value
                                   ? common_divisor(Group::count * sizeof(Texel), 16) / sizeof(Texel)
                                   : 1;
  template <class Group>
  using Unit = autotune::Texel<static_cast<int>(width<Group> * sizeof(Texel))>;
  template <class Group>
  struct Units {
    Unit<Group> unit[Group::count / width<Group>];
  };

  template <class Group>
  AUTOTUNE_DEVICE auto units() const {
    if constexpr (width<Group> == 1)
      return this->memory;
    else
      return bit_cast<typename Rebound<Memory, Unit<Group>>::type>(this->memory);
  }

  // The first unit of the group, behind that of so many parts.
  template <class Group>
  AUTOTUNE_DEVICE Offset first(Offset element, int before) const {
    return before * static_cast<Offset>(part_stride()[0] / width<Group>) + element * (Group::count / width<Group>);
  }

  template <class Group>
  AUTOTUNE_DEVICE void load_group(Parts& read, Offset element, int before) const {
    Units<Group> moved;
    const Offset place = first<Group>(element, before);
#pragma unroll
    for (int u = 0; u < Group::count / width<Group>; ++u) moved.unit[u] = units<Group>().template load<Dims>(place + u);
    const Texels<Group> group = bit_cast<Texels<Group>>(moved);
#pragma unroll
    for (int k = 0; k < Group::count; ++k) read.texel[Group::part(k)] = group.texel[k];
  }

  template <class Group>
  AUTOTUNE_DEVICE void store_group(const Parts& written, Offset element, int before) const {
    Texels<Group> group;
#pragma unroll
    for (int k = 0; k < Group::count; ++k) group.texel[k] = written.texel[Group::part(k)];
    const Units<Group> moved = bit_cast<Units<Group>>(group);
    const Offset place = first<Group>(element, before);
#pragma unroll
    for (int u = 0; u < Group::count / width<Group>; ++u) units<Group>().template store<Dims>(place + u, moved.unit[u]);
  }
};

}  // namespace autotune
