// SPDX-License-Identifier: Apache-2.0
// From a kernel template to a function that a host program can call.
#pragma once
#include "autotune/cpu/abi.hpp"

namespace autotune::cpu {

// Of the thread that runs. Nothing but the lines below may write them and nobody takes their address, so stores of
// a kernel cannot change them: the compiler keeps them in registers and may even run several threads at once in
// the lanes of a vector. An access is an offset from an address that is computed once for a whole kernel.
static thread_local Place here{};
static thread_local Setting setting{};

// Word by word, as they were written a moment ago: one wide load would have to wait for the narrow stores.
inline void go_to(const volatile Place* place) {
  here.thread = {place->thread.x, place->thread.y, place->thread.z};
  here.straight_end = place->straight_end;
  here.block = {place->block.x, place->block.y, place->block.z};
}

// Calls suspend(worker, thread), which may run any number of other threads before it returns.
template <class Suspend>
inline __attribute__((always_inline)) auto suspended(Suspend suspend) {
  const uint3 thread = here.thread;
  const auto result = suspend(setting.worker, thread);
  here.thread = thread;
  here.straight_end = 0;
  return result;
}

// Leaves this fibre for ever. The runtime could do it too, but a processor foresees the returns of functions by their
// calls, and this way there is a return for each call.
[[noreturn]] inline void resume(const Resumable* fibre) {
#if defined(__x86_64__)
  asm volatile("movq 0(%0), %%rsp\n movq 16(%0), %%rbp\n jmpq *8(%0)" : : "D"(fibre) : "memory");
#elif defined(__aarch64__)
  register const Resumable* x0 asm("x0") = fibre;
  asm volatile("ldp x10, x9, [x0]\n ldr x29, [x0, #16]\n mov sp, x10\n br x9" : : "r"(x0) : "memory");
#endif
  __builtin_unreachable();
}

template <class Parameter>
struct Copied {
  alignas(Parameter) unsigned char bytes[sizeof(Parameter)];
  explicit Copied(const void* from) { memcpy(bytes, from, sizeof(Parameter)); }
  const Parameter& value() const { return reinterpret_cast<const Parameter&>(bytes); }
};

template <auto Kernel>
struct Entry;

template <class... Parameters, void (*Kernel)(Parameters...)>
struct Entry<Kernel> {
  static constexpr unsigned long long parameter_bytes[] = {sizeof(Parameters)..., 0};

  // Constructed, as arguments in braces are evaluated in their order.
  struct Loop {
    Loop(const Place* place, Parameters... parameters) {
      for (;;) {
        go_to(place);
        for (unsigned x = here.thread.x; x < here.straight_end; ++x) {
          here.thread.x = x;
          Kernel(parameters...);
        }
        if (const Resumable* other = setting.runtime->next(setting.worker)) resume(other);
      }
    }
  };

  static void threads(const Start* start) {
    setting = *start->setting;
    const void* const* next = start->arguments;
    Loop{start->place, Copied<Parameters>(*next++).value()...};
  }
};

template <auto Kernel>
int launch(Launch& launch) {
  static float block_nanoseconds = 0;
  static constexpr auto& bytes = Entry<Kernel>::parameter_bytes;
  const Program program{&Entry<Kernel>::threads, bytes, sizeof(bytes) / sizeof(bytes[0]) - 1, &block_nanoseconds};
  return launch.runtime->run(launch, program);
}

}  // namespace autotune::cpu

#define threadIdx (::autotune::cpu::here.thread)
#define blockIdx (::autotune::cpu::here.block)
#define blockDim (::autotune::cpu::setting.block_dim)
#define gridDim (::autotune::cpu::setting.grid_dim)
static constexpr int warpSize = 32;
