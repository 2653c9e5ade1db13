// SPDX-License-Identifier: Apache-2.0
// A launch under way, as the threads that work on it share it. Part of the runtime.
#pragma once
#include "autotune/cpu/abi.hpp"
#include "autotune/cpu/atomic_variable.hpp"

namespace autotune::cpu {

// One launch. Until it is shared with the pool only its caller takes blocks, afterwards each worker takes `chunk`
// of them at a time.
struct Job {
  const Launch& launch;
  const Program& program;
  unsigned long long blocks;
  unsigned threads;  // of a block
  long long begin_ns;
  Atomic<int> status{ok};
  Atomic<unsigned long long> next_block{0};
  Atomic<long long> busy_ns{0};           // all workers together
  Atomic<unsigned long long> at_grid{0};  // how often a block came to wait for all
  unsigned long long chunk = 1;
  bool shared = false;

  void fail(Status reason) { status.replace(ok, reason); }  // the first reason stays
};

// The next blocks of the job, [begin, end); false when there are none left.
bool take_blocks(Job& job, unsigned long long& begin, unsigned long long& end);

}  // namespace autotune::cpu
