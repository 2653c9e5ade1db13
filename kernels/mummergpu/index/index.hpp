// A suffix tree of DNA made on the device: the suffixes' order, what neighbours in it share, and from that the nodes.
// steps.py, suffixes.py, nodes.py and builder.py launch these kernels. They are CUDA C++ in headers: what ends with .cu
// or .cuh belongs to the tuned kernels, whose measured times hold as long as none of it changes.
#pragma once
#include "nearest.hpp"
#include "nodes.hpp"
#include "prefixes.hpp"
#include "radix_sort.hpp"
#include "scan.hpp"
#include "suffixes.hpp"
#include "words.hpp"
