// Maximal exact matches of reads in a reference, by a walk over its suffix tree (Trapnell and Schatz,
// MUMmerGPU 2.0): match finds the longest match of every suffix of every read, print_count, scan and print_emit turn
// those into MEMs in an array of exactly their number. With a table, match looks words of the reads up in the suffix
// array, and no tree is read.
#include "match.cuh"
#include "print.cuh"

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
