// Work-units (quartets of shells, as two positions in the list of pairs) and their components: who has which. A number
// stands for a bra as row, and a ket as column.
#pragma once
#include "autotune/runs.cuh"

enum class Expansion { components, work_units, index };
enum class Granularity { thread, component, block, tile };

// A work-unit on a list: positions of its pairs, its shells, where its integral goes, how many components it has.
struct WorkUnit {
  unsigned bra, ket, i, j, k, l, target, components;
};

// A component on a list: its primitives, their shells, where its integral goes.
struct Component {
  unsigned a, b, c, d, i, j, k, l, target;
};
