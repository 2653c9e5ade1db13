// The spectrum of a cyclic peptide: 0, the total, and every sum of L = 1 .. n - 1 consecutive masses of the ring,
// sorted. (Non-linear Thinking with CUDA, 2015: its programs cyclospec, cyclospecOpt, cyclospecKernel and
// cyclospecOptKernel are presets; `autotune list cyclospectrum --preset post` names them.)
//
// residues is (n), spectrum (n (n - 1) + 2, packed). Sums are unsigned: none passes the total, which is below 2^31.
#include "autotune/array.cuh"

enum class Generation { brute, iterated, prefix, sequential_brute, sequential_iterated };
enum class Wrap { conditional, doubled };
enum class Finish { host_sort, radix_sort, counting };
enum class CountBy { differences, transform };
enum class PrimeSize { wide, narrow };
enum class Launch { stream, graph };
enum class Scan { passes, look_back, listing };
enum class Find { search, table };
enum class Eviction { normal, hinted };
enum class Order { sorted, unsorted };
enum class Output { list, pairs };

// After the names of the policies.
#include "autocorrelation.cuh"
#include "generation.cuh"
#include "look_back.cuh"

#ifndef AUTOTUNE_VARIANTS
#include "default.cuh"
#endif
