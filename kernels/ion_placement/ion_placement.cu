// Ions placed one at a time where the potential is lowest (cations) or highest (anions), each then added to the
// potential (Stone: the VMD case study's ion placement).
//
// potential and map are (slices, rows, columns) in float64, NaN where no ion may be. Scores are IEEE sums in one
// order, an ion after the other, so every policy finds the same places, bit for bit; of equal points the first one
// counts. Eager and fused updates go over the whole map for every ion. Lazy ones go over tiles that may matter, by
// bounds on these sums, and sum in order only what bounds do not tell apart.
#include "eager.cuh"
#include "lazy.cuh"

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
