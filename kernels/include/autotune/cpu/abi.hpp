// SPDX-License-Identifier: Apache-2.0
// What a library of kernels and the runtime library agree on. Both are C++17 of one machine, nothing more:
// the runtime is compiled once, kernels come and go.
#pragma once
#include "autotune/cpu/vectors.hpp"

namespace autotune::cpu {

enum Status : int {
  ok = 0,
  deadlock = 1,       // some threads of a block wait for others that never come
  bad_geometry = 2,   // no threads, more than most_threads in a block, or no blocks
  bad_arguments = 3,  // not as many as the kernel has parameters, or of other sizes
  out_of_memory = 4,  // for stacks or dynamic shared memory
  trapped = 5,        // the kernel called __trap()
  not_together = 6,   // it waits for the grid in a launch that is not cooperative
};

constexpr unsigned lanes = 32, most_warps = 32, most_threads = lanes * most_warps;

// Which of a launch's blocks comes first, and which of a block's threads when several can go on.
enum Order : unsigned { ascending, descending, drawn };

// Operations on the lanes of a warp.
enum WarpOperation : unsigned char {
  synchronise,
  shuffle,  // operand is a lane
  shuffle_up,
  shuffle_down,
  shuffle_xor,
  ballot,
  active_lanes,  // waits for the whole warp as long as it may come
  reduce_add,    // the reductions are of 32-bit words
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
  match_any,  // the lanes that have the same 64 bits
};

struct BarrierCount {
  unsigned holding, arrived;  // threads whose predicate held, and all that arrived
};

struct Worker;  // a thread of the pool at work, the runtime's own
struct Runtime;

// Where a fibre goes on; see fibre.hpp.
struct Resumable {
  void *stack_pointer, *resume_at, *frame_pointer;
};

// Which thread of the launch runs. As long as none of its block waits, those after it in its row, up to
// straight_end, may run right after it in the same fibre.
struct Place {
  uint3 thread;
  unsigned straight_end;
  uint3 block;
};

// What is the same for all threads that a worker runs in a launch.
struct Setting {
  dim3 block_dim, grid_dim;
  void* dynamic_shared;
  const Runtime* runtime;
  Worker* worker;
};

// What a new fibre is told: it begins with the thread at `place`, asks for the next, and does not return.
struct Start : Resumable {
  const void* const* arguments;
  const Setting* setting;
  const Place* place;
};

// A kernel as the runtime sees it. `block_nanoseconds` remembers what a block cost in the last launch.
struct Program {
  void (*threads)(const Start*);
  const unsigned long long* parameter_bytes;
  unsigned parameters;
  float* block_nanoseconds;
};

// A request, mirrored by autotune/device/cpu/native.py. At most `workers` threads take part, but in a cooperative
// launch, which has a thread for each block. What is `drawn` is so from the seed.
struct Launch {
  const Runtime* runtime;
  unsigned grid[3], block[3];
  unsigned workers, arguments_count;
  unsigned long long shared_bytes;
  const void* const* arguments;
  const unsigned long long* argument_bytes;
  Order order;
  unsigned cooperative;  // not 0: blocks wait for each other
  unsigned long long seed;
  long long elapsed_ns;  // result
};

// What may wait is told which thread it is; the runtime does not count threads that go straight.
struct Runtime {
  int (*run)(Launch&, const Program&) noexcept;
  // All threads up to straight_end have returned. Comes back with another place, or says which fibre goes on in
  // place of this one.
  const Resumable* (*next)(Worker*) noexcept;
  BarrierCount (*barrier)(Worker*, uint3 thread, bool predicate) noexcept;
  unsigned long long (*warp)(Worker*, uint3 thread, WarpOperation, unsigned mask, unsigned long long value,
                             unsigned operand, unsigned width) noexcept;
  // One thread of each block, while the others wait for it: returns when all blocks have called.
  void (*grid)(Worker*) noexcept;
  // Does not return.
  void (*fail)(Worker*, Status) noexcept;
};

}  // namespace autotune::cpu
