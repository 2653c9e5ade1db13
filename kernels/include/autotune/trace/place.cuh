// SPDX-License-Identifier: Apache-2.0
// Tells requests.cpp which thread of which block runs. Included behind a family's source, in a build for the cpu whose
// accesses of memory call functions.
#pragma once
#include "autotune/cpu.hpp"

extern "C" __attribute__((visibility("default"), no_sanitize("thread"))) void autotune_trace_place(
    const autotune::cpu::Place** place, const autotune::cpu::Setting** setting) {
  *place = &autotune::cpu::here;
  *setting = &autotune::cpu::setting;
}
