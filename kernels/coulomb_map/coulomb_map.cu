// The potential of charged atoms at every point of a lattice, with a bound on its error: near atoms one by one, far
// ones by expansions around the middles of cubes of points.
//
// atoms is (atoms), coordinates relative to the lattice's origin; potential is (slices, rows, columns); a point lies at
// (column, row, slice) * spacing. Level 0 has cubes of `cell` points along an edge, each level above cubes of eight. An
// atom is added to the expansions of the highest level at which it is far, and those of a cube to the cubes in it, so
// each point has every atom once. (The cluster-particle treecode: Boateng and Krasny 2013, doi:10.1002/jcc.23371.)
#include "expand.cuh"
#include "map.cuh"
#include "shift.cuh"
#include "sort.cuh"

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
