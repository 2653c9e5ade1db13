// SPDX-License-Identifier: Apache-2.0
// Fibres: a stack and the place where it left off. Part of the runtime, not of kernels.
#pragma once
#include <sys/mman.h>
#include <unistd.h>

#include "autotune/cpu/abi.hpp"
#include "autotune/cpu/atomic_variable.hpp"

#if !defined(__x86_64__) && !defined(__aarch64__) && !defined(AUTOTUNE_UCONTEXT)
#define AUTOTUNE_UCONTEXT
#endif
#ifdef AUTOTUNE_UCONTEXT
#include <ucontext.h>
#endif

namespace autotune::cpu {

constexpr unsigned long stack_bytes = 128 << 10;
// Every guard page splits a memory mapping and Linux allows 65530 of them, so the fibres past this many go
// without. All run the same kernel: one that overflows its stack meets a guard page in the first fibres.
constexpr int most_guards = 16384;

struct Fibre : Start {
  Fibre* next;      // in the list it is in
  unsigned thread;  // of the block, the one it runs
  char *top, *mapping;
#ifdef AUTOTUNE_UCONTEXT
  void (*entry)(const Start*);
  ucontext_t context;
#endif
};

// A stack for fibre number `number` of its thread; false when there is no memory.
inline bool map_stack(Fibre& fibre, unsigned number) {
  static Atomic<int> guards{0};
  const unsigned long page = static_cast<unsigned long>(sysconf(_SC_PAGESIZE));
  void* const mapping =
      mmap(nullptr, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) return false;
  if (guards.add(1) < most_guards) mprotect(mapping, page, PROT_NONE);
  fibre.mapping = static_cast<char*>(mapping);
  // Stacks that all began at the same offset in a page would compete for the same lines of the cache.
  fibre.top = fibre.mapping + page + stack_bytes - number % 16 * 256;
  return true;
}

inline void unmap_stack(Fibre& fibre) {
  munmap(fibre.mapping, stack_bytes + static_cast<unsigned long>(sysconf(_SC_PAGESIZE)));
}

#ifndef AUTOTUNE_UCONTEXT

// Leaves `from` where it is and goes on with `to`. The clobbers make the compiler save what it still needs, often
// very little, and the jump is predicted better than a return. Nothing here is the floating-point environment's.
__attribute__((always_inline)) inline void switch_fibre(Fibre* from, Fibre* to) {
#ifdef __x86_64__
  asm volatile(
      "leaq 1f(%%rip), %%rax\n"
      "movq %%rsp, 0(%0)\n"
      "movq %%rax, 8(%0)\n"
      "movq %%rbp, 16(%0)\n"
      "movq 0(%1), %%rsp\n"
      "movq 16(%1), %%rbp\n"
      "jmpq *8(%1)\n"
      "1:\n"
      : "+S"(from), "+D"(to)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0", "xmm1", "xmm2",
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15",
        "cc", "memory");
#else
  register Fibre* x1 asm("x1") = from;
  register Fibre* x0 asm("x0") = to;
  asm volatile(
      "adr x9, 1f\n"
      "mov x10, sp\n"
      "stp x10, x9, [x1]\n"
      "str x29, [x1, #16]\n"
      "ldp x10, x9, [x0]\n"
      "ldr x29, [x0, #16]\n"
      "mov sp, x10\n"
      "br x9\n"
      "1:\n"
      : "+r"(x1), "+r"(x0)
      :
      : "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
#ifndef __APPLE__
        "x18",
#endif
        "x19", "x20", "x21", "x22", "x23", "x24", "x25", "x26", "x27", "x28", "x30", "v0", "v1", "v2", "v3", "v4", "v5",
        "v6", "v7", "v8", "v9", "v10", "v11", "v12", "v13", "v14", "v15", "v16", "v17", "v18", "v19", "v20", "v21",
        "v22", "v23", "v24", "v25", "v26", "v27", "v28", "v29", "v30", "v31", "cc", "memory");
#endif
}

// The next switch to `fibre` jumps to `entry` on its empty stack, with the fibre in the register of the first argument.
inline void reset_fibre(Fibre& fibre, void (*entry)(const Start*)) {
  fibre.resume_at = reinterpret_cast<void*>(entry);
  fibre.frame_pointer = nullptr;
#ifdef __x86_64__
  fibre.stack_pointer = fibre.top - 8;  // as after a call
#else
  fibre.stack_pointer = fibre.top;
#endif
}

#else  // any other machine; each switch is two system calls

inline void switch_fibre(Fibre* from, Fibre* to) { swapcontext(&from->context, &to->context); }

// makecontext passes ints only.
inline void enter_fibre(unsigned high, unsigned low) {
  auto* const self = reinterpret_cast<Fibre*>(static_cast<unsigned long>(high) << 16 << 16 | low);
  self->entry(self);
}

inline void reset_fibre(Fibre& fibre, void (*entry)(const Start*)) {
  fibre.entry = entry;
  getcontext(&fibre.context);
  fibre.context.uc_stack.ss_sp = fibre.top - (stack_bytes - 4096);
  fibre.context.uc_stack.ss_size = stack_bytes - 4096;
  fibre.context.uc_link = nullptr;
  const auto address = reinterpret_cast<unsigned long>(&fibre);
  makecontext(&fibre.context, reinterpret_cast<void (*)()>(&enter_fibre), 2, static_cast<unsigned>(address >> 16 >> 16),
              static_cast<unsigned>(address));
}

#endif

}  // namespace autotune::cpu
