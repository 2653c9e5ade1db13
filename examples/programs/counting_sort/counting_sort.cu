// A family of its own, for programs whose later steps read the cells.
#include "counting_sort.cuh"
