// SPDX-License-Identifier: Apache-2.0
// CUDA C++ for the host compiler: with AUTOTUNE_CPU defined, a kernel is an ordinary function template, its
// blocks are spread over the cores, and the threads of a block are fibres that switch at barriers only.
//
// What differs from a GPU:
//  - Threads of a block run one after the other between barriers: one that spins until another one writes never ends.
//    In a cooperative launch each block has a thread of the host, so that blocks may spin for each other.
//  - Lanes of a warp meet at the _sync functions only; code that relies on lock step without __syncwarp is wrong.
//  - __activemask() waits until no other thread of the block can go on, and is the lanes that are there by then.
//  - What of the toolkit's headers is there is in cpu/toolkit, in files of their names.
//  - A kernel's stack is 128 KiB, its static and dynamic shared memory whatever the host has.
// No C++ standard header is needed: a kernel has none on a GPU either, and a compiler without a C++ library will do.
// Where there is one, as in a unit test, its overloads of C's functions are used; else those of arithmetic.hpp.
#pragma once

#include <assert.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// What <math.h> and <stdlib.h> came from: a C++ library, which overloads their functions for float and long, or C
// alone.
#if defined(_GLIBCXX_MATH_H) || defined(_LIBCPP_MATH_H) || defined(_LIBCPP_VERSION)
#define AUTOTUNE_CPU_STANDARD_LIBRARY
#if __has_include(<cuda_runtime.h>) && __has_include(<crt/host_config.h>)
#include <cuda_runtime.h>  // here or never, as it has parameters with the names of macros below
#endif
#endif

#define __host__
#define __device__
#define __constant__
#define __managed__
#define __grid_constant__
#define __global__ inline __attribute__((always_inline))
#define __forceinline__ inline __attribute__((always_inline))
#ifndef AUTOTUNE_CPU_STANDARD_LIBRARY  // which writes __attribute__((__noinline__))
#define __noinline__ __attribute__((noinline))
#endif
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __launch_bounds__(...)
// A block runs on one thread of the pool from its start to its end, and all its fibres with it.
#define __shared__ static thread_local

#include "autotune/cpu/vectors.hpp"
// After the vector types.
#include "autotune/cpu/abi.hpp"
// After the types it shares with the runtime.
#include "autotune/cpu/arithmetic.hpp"
#include "autotune/cpu/atomics.hpp"
// After those.
#include "autotune/cpu/intrinsics.hpp"
#include "autotune/cpu/layout.hpp"
