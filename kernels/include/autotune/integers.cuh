// SPDX-License-Identifier: Apache-2.0
// A pack of integers: UpTo<3> is Integers<0, 1, 2>.
#pragma once

namespace autotune {

template <int... INTEGERS>
struct Integers {};

namespace detail {

template <int COUNT, int... INTEGERS>
struct CountedTo : CountedTo<COUNT - 1, COUNT - 1, INTEGERS...> {};
template <int... INTEGERS>
struct CountedTo<0, INTEGERS...> {
  using type = Integers<INTEGERS...>;
};

}  // namespace detail

template <int COUNT>
using UpTo = typename detail::CountedTo<COUNT>::type;

}  // namespace autotune
