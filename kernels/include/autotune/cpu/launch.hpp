// From a kernel template to a function that a host program can call.
#pragma once
#include <utility>

#include "autotune/cpu/abi.hpp"

namespace autotune::cpu {

// Of the thread that runs. Nothing but the lines below may write them and nobody takes their address, so stores of
// a kernel cannot change them: the compiler keeps them in registers and may even run several threads at once in
// the lanes of a vector. An access is an offset from an address that is computed once for a whole kernel.
static thread_local Place here{};
static thread_local Setting setting{};

// Calls suspend(worker, thread), which may run any number of other threads before it returns.
template <class Suspend>
inline __attribute__((always_inline)) auto suspended(Suspend suspend) {
  const uint3 thread = here.thread;
  const auto result = suspend(setting.worker, thread);
  here.thread = thread;
  here.straight_end = 0;
  return result;
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

  static void loop(const Place* place, Parameters... parameters) {
    for (;;) {
      here = *place;
      for (unsigned x = here.thread.x; x < here.straight_end; ++x) {
        here.thread.x = x;
        Kernel(parameters...);
      }
      setting.runtime->next(setting.worker);
    }
  }

  template <size_t... I>
  static void unpack(const void* const* arguments, const Place* place, std::index_sequence<I...>) {
    loop(place, Copied<Parameters>(arguments[I]).value()...);
  }

  static void threads(const void* const* arguments, const Setting* shared, const Place* place) {
    setting = *shared;
    unpack(arguments, place, std::make_index_sequence<sizeof...(Parameters)>());
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
