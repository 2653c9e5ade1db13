// SPDX-License-Identifier: Apache-2.0
// What each part of an accessor has to have. array.cuh checks all of it, so that the compiler names the part that lacks
// something, before it stumbles over what is missing.
//
//   Memory    texel_type, is_writable, is_addressed, load<Dims>(offset); one handle of 8 bytes. Where it is writable,
//             store<Dims>(offset, texel); where it is addressed, rebind<Unit>, the same memory in other units.
//   Mapping   rank, is_strided, Stride, Offset, extents(), offset(indices...), which depends on nothing else. One that
//   is
//             composed of others (Tiled, Curved, Swizzled) has what they have.
//   Dims      is_line, and linear(offset), or x(offset) and y(offset) for a texture.
//   Records   lanes, is_whole, is_grouped, has_runs<PARTS>, offset<PARTS>(element, part, part_stride).
//   Grouping  element(index).
#pragma once
#include "autotune/device.cuh"

namespace autotune {
namespace detail {

template <class Type>
AUTOTUNE_EVERYWHERE Type declared();  // of no value: for what an expression would be
template <class...>
using Known = void;

template <class Memory, class Dims, class Offset, class = void>
static constexpr bool is_memory = false;
template <class Memory, class Dims, class Offset>
static constexpr bool
    is_memory<Memory, Dims, Offset,
              Known<typename Memory::texel_type, decltype(Memory::is_writable), decltype(Memory::is_addressed),
                    decltype(declared<const Memory&>().template load<Dims>(declared<Offset>()))>> = sizeof(Memory) == 8;

template <class Mapping, class = void>
static constexpr bool is_mapping = false;
template <class Mapping>
static constexpr bool
    is_mapping<Mapping, Known<typename Mapping::Stride, typename Mapping::Offset, decltype(Mapping::rank),
                              decltype(Mapping::is_strided), decltype(declared<const Mapping&>().extents()[0])>> =
        Mapping::rank >= 1;

template <class Dims, class = void>
static constexpr bool is_dims = false;
template <class Dims>
static constexpr bool is_dims<Dims, Known<decltype(Dims::is_line)>> = true;

template <class Records, int PARTS, class Offset, class = void>
static constexpr bool is_records = false;
template <class Records, int PARTS, class Offset>
static constexpr bool is_records<
    Records, PARTS, Offset,
    Known<decltype(Records::lanes), decltype(Records::is_whole), decltype(Records::is_grouped),
          decltype(Records::template offset<PARTS>(declared<Offset>(), declared<Offset>(), declared<Offset>()))>> =
    true;

template <class Grouping, class Offset, class = void>
static constexpr bool is_grouping = false;
template <class Grouping, class Offset>
static constexpr bool is_grouping<Grouping, Offset, Known<decltype(Grouping::element(declared<Offset>()))>> = true;

}  // namespace detail
}  // namespace autotune
