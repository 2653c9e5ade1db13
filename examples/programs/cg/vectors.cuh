// The vectors of all right-hand sides, element by element.
#pragma once
#include "autotune/array.cuh"

constexpr unsigned threads = 256;  // of a block

enum class Lanes { rows, sides };

struct Place {
  unsigned row, side;
};

// What a thread has to do with: `lanes` says which of the two numbers differs between neighbours in a warp.
template <class Policy>
AUTOTUNE_DEVICE Place place_of(unsigned thread, unsigned rows, unsigned sides) {
  if constexpr (Policy::lanes == Lanes::rows) return {thread % rows, thread / rows};
  return {thread / sides, thread % sides};
}
