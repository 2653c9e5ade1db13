// A suffix tree of DNA made on the device: the suffixes' order, what neighbours in it share, and from that the nodes.
// steps.py, suffixes.py, nodes.py and builder.py launch these kernels.
#include "nearest.cuh"
#include "nodes.cuh"
#include "prefixes.cuh"
#include "radix_sort.cuh"
#include "scan.cuh"
#include "suffixes.cuh"
#include "words.cuh"
