// SPDX-License-Identifier: Apache-2.0
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

namespace detail {

AUTOTUNE_DEVICE constexpr int common_divisor(int a, int b) { return b == 0 ? a : common_divisor(b, a % b); }

}  // namespace detail

// Each group has its own run, as a record that holds no more has it in aos. The runs lie one behind the other, those of
// every part `part_stride` texels long, which is a multiple of 16 bytes. A group is moved by the widest access that
// divides it, whatever the texel, which is as wide as all fields allow.
template <class... GROUPS>
struct Apart {
  static constexpr int lanes = 1;
  static constexpr bool is_whole = false, is_grouped = true;
  static constexpr int parts = (GROUPS::count + ...);
  template <int PARTS>
  static constexpr bool has_runs = true;

  template <int PARTS, class Index>
  AUTOTUNE_DEVICE static Index offset(Index element, Index part, Index part_stride) {
    static_assert(PARTS == parts, "each part is in one group");
    Index found = 0, before = 0;
    ((found += within<GROUPS>(element, part, before), before += GROUPS::count * part_stride), ...);
    return found;
  }

  // All parts of a record, in `texel` by their numbers.
  template <class Dims, class Memory, class Offset>
  AUTOTUNE_DEVICE static void load(const Memory& memory, typename Memory::texel_type (&texel)[parts], Offset element,
                                   Offset part_stride) {
    int before = 0;
    ((load_group<Dims, GROUPS>(memory, texel, element, part_stride, before), before += GROUPS::count), ...);
  }
  template <class Dims, class Memory, class Offset>
  AUTOTUNE_DEVICE static void store(const Memory& memory, const typename Memory::texel_type (&texel)[parts],
                                    Offset element, Offset part_stride) {
    int before = 0;
    ((store_group<Dims, GROUPS>(memory, texel, element, part_stride, before), before += GROUPS::count), ...);
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

  // How a group is moved: as units of `width` texels.
  template <class Dims, class Memory, class Group>
  struct Moved {
    using Texel = typename Memory::texel_type;
    static constexpr int width = Memory::is_addressed && Dims::is_line
                                     ? detail::common_divisor(Group::count * sizeof(Texel), 16) / sizeof(Texel)
                                     : 1;
    using Unit = autotune::Texel<static_cast<int>(width * sizeof(Texel))>;
    struct Texels {
      Texel texel[Group::count];
    };
    struct Units {
      Unit unit[Group::count / width];
    };
    AUTOTUNE_DEVICE static auto units(const Memory& memory) {
      if constexpr (width == 1)
        return memory;
      else
        return bit_cast<typename Memory::template rebind<Unit>>(memory);
    }
    // The first unit of the group, behind that of so many parts.
    template <class Offset>
    AUTOTUNE_DEVICE static Offset first(Offset element, Offset part_stride, int before) {
      return before * static_cast<Offset>(part_stride / width) + element * (Group::count / width);
    }
  };

  template <class Dims, class Group, class Memory, class Offset>
  AUTOTUNE_DEVICE static void load_group(const Memory& memory, typename Memory::texel_type (&texel)[parts],
                                         Offset element, Offset part_stride, int before) {
    using How = Moved<Dims, Memory, Group>;
    typename How::Units moved;
    const Offset place = How::first(element, part_stride, before);
#pragma unroll
    for (int u = 0; u < Group::count / How::width; ++u)
      moved.unit[u] = How::units(memory).template load<Dims>(place + u);
    const auto group = bit_cast<typename How::Texels>(moved);
#pragma unroll
    for (int k = 0; k < Group::count; ++k) texel[Group::part(k)] = group.texel[k];
  }

  template <class Dims, class Group, class Memory, class Offset>
  AUTOTUNE_DEVICE static void store_group(const Memory& memory, const typename Memory::texel_type (&texel)[parts],
                                          Offset element, Offset part_stride, int before) {
    using How = Moved<Dims, Memory, Group>;
    typename How::Texels group;
#pragma unroll
    for (int k = 0; k < Group::count; ++k) group.texel[k] = texel[Group::part(k)];
    const auto moved = bit_cast<typename How::Units>(group);
    const Offset place = How::first(element, part_stride, before);
#pragma unroll
    for (int u = 0; u < Group::count / How::width; ++u)
      How::units(memory).template store<Dims>(place + u, moved.unit[u]);
  }
};

}  // namespace autotune
