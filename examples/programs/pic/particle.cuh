// The particles of the plasma and where they lie on its periodic grid, whose cells are 1 wide.
#pragma once
#include "autotune/array.cuh"

struct Particle {
  float x, y, u, v;
};

// The node before a coordinate, the one behind it, and how far between them it lies.
struct Between {
  unsigned before, behind;
  float share;
};

AUTOTUNE_DEVICE Between between(float coordinate, unsigned nodes) {
  const unsigned before = min(static_cast<unsigned>(coordinate), nodes - 1);
  return {before, before + 1 == nodes ? 0 : before + 1, coordinate - before};
}
