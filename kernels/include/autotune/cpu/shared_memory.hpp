// SPDX-License-Identifier: Apache-2.0
// What shared memory holds before anything was written to it: no number. Part of the runtime.
#pragma once
#ifdef __linux__
#include <link.h>
#endif
#include <string.h>

#include "autotune/cpu/abi.hpp"

namespace autotune::cpu {

constexpr int unwritten = 0xff;  // every byte; as floating point NaN

#ifdef __linux__

inline int fill_where_code_is(dl_phdr_info* library, size_t, void* code) {
  const ElfW(Phdr)* thread_local_part = nullptr;
  bool is_here = false;
  for (int i = 0; i < library->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = library->dlpi_phdr[i];
    if (part.p_type == PT_TLS) thread_local_part = &part;
    const ElfW(Addr) begin = library->dlpi_addr + part.p_vaddr;
    if (part.p_type == PT_LOAD && reinterpret_cast<ElfW(Addr)>(code) - begin < part.p_memsz) is_here = true;
  }
  if (is_here && thread_local_part && library->dlpi_tls_data)
    memset(library->dlpi_tls_data, unwritten, thread_local_part->p_memsz);
  return is_here;
}

// The static shared memory of all kernels in the library is the calling thread's instance of what is thread-local
// there. The two other things in that are a thread's place and setting, which every fibre writes when it starts: none
// may be under way. A thread that never ran a kernel of the library has no instance yet, which then begins as zeros.
inline void fill_static_shared(const Program& program) {
  dl_iterate_phdr(&fill_where_code_is, reinterpret_cast<void*>(program.threads));
}

#else

inline void fill_static_shared(const Program&) {}

#endif

}  // namespace autotune::cpu
