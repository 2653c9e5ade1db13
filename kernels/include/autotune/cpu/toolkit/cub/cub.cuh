// SPDX-License-Identifier: Apache-2.0
// Stands in for the toolkit's header on the cpu device: what threads of a block or a warp do together. What a host
// program calls (DeviceReduce, ...) is not there.
#pragma once
#include "block/block_adjacent_difference.cuh"
#include "block/block_discontinuity.cuh"
#include "block/block_exchange.cuh"
#include "block/block_histogram.cuh"
#include "block/block_load.cuh"
#include "block/block_merge_sort.cuh"
#include "block/block_radix_sort.cuh"
#include "block/block_reduce.cuh"
#include "block/block_scan.cuh"
#include "block/block_store.cuh"
#include "util.cuh"
#include "warp/warp_exchange.cuh"
#include "warp/warp_reduce.cuh"
#include "warp/warp_scan.cuh"
