// Which thread of a launch on the cpu accesses which byte: what a compiler's -fsanitize=thread calls at every access of
// memory writes it down, for the first blocks of a launch, which then ends. The session is mirrored by
// autotune/device/cpu/requests.py.
#include "autotune/cpu/abi.hpp"

#define VISIBLE extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;

struct Event {
  Address address;
  unsigned site;    // the place in the code, as the lower half of its address
  unsigned thread;  // of the block, x first
  unsigned block;   // of the launch, x first
  unsigned char bytes, kind;
  unsigned short array;  // the range, or `other`
};

enum Kind : unsigned char { read_of, write_of, change_of };

struct Range {
  Address begin, end;
};

struct Session {
  void (*place)(const autotune::cpu::Place**, const autotune::cpu::Setting**);  // null: nothing is written down
  Event* events;
  unsigned long long capacity, count, calls, most_calls;
  const Range* ranges;
  unsigned range_count, most_blocks, blocks, block;
};

Session session{};
constexpr unsigned short other = 0xFFFF;
constexpr Address stack = 128 << 10;

bool is_inside(Address address, const void* object, Address bytes) {
  return address - reinterpret_cast<Address>(object) < bytes;
}

unsigned short range_of(Address address) {
  for (unsigned i = 0; i < session.range_count; ++i)
    if (address >= session.ranges[i].begin && address < session.ranges[i].end) return static_cast<unsigned short>(i);
  return other;
}

void note(const volatile void* place, unsigned bytes, Kind kind, const void* site) {
  if (!session.place) return;
  const autotune::cpu::Place* here;
  const autotune::cpu::Setting* setting;
  session.place(&here, &setting);
  const unsigned block = here->block.x + setting->grid_dim.x * (here->block.y + setting->grid_dim.y * here->block.z);
  if (block != session.block || session.blocks == 0) {
    session.block = block;
    ++session.blocks;
  }
  if (session.blocks > session.most_blocks || ++session.calls > session.most_calls) {
    session.place = nullptr;
    setting->runtime->fail(setting->worker, autotune::cpu::trapped);
  }
  const auto address = reinterpret_cast<Address>(place), frame = reinterpret_cast<Address>(__builtin_frame_address(0));
  const unsigned short array = range_of(address);
  if (array == other && (address - (frame - stack) < 2 * stack || is_inside(address, here, sizeof *here) ||
                         is_inside(address, setting, sizeof *setting)))
    return;
  const uint3 thread = here->thread;
  if (session.count < session.capacity)
    session.events[session.count] = {address,
                                     static_cast<unsigned>(reinterpret_cast<Address>(site)),
                                     thread.x + setting->block_dim.x * (thread.y + setting->block_dim.y * thread.z),
                                     block,
                                     static_cast<unsigned char>(bytes),
                                     kind,
                                     array};
  ++session.count;
}

}  // namespace

VISIBLE void* autotune_trace_session() { return &session; }

#define NOTE(BYTES, KIND) note(place, BYTES, KIND, __builtin_return_address(0))
VISIBLE void __tsan_init() {}
VISIBLE void __tsan_func_entry(void*) {}
VISIBLE void __tsan_func_exit() {}
VISIBLE void __tsan_vptr_update(void**, void*) {}
VISIBLE void __tsan_vptr_read(void**) {}
VISIBLE void __tsan_read_range(void* place, unsigned long bytes) { NOTE(static_cast<unsigned>(bytes), read_of); }
VISIBLE void __tsan_write_range(void* place, unsigned long bytes) { NOTE(static_cast<unsigned>(bytes), write_of); }
#define HOOKS(BYTES)                                                                 \
  VISIBLE void __tsan_read##BYTES(void* place) { NOTE(BYTES, read_of); }             \
  VISIBLE void __tsan_write##BYTES(void* place) { NOTE(BYTES, write_of); }           \
  VISIBLE void __tsan_unaligned_read##BYTES(void* place) { NOTE(BYTES, read_of); }   \
  VISIBLE void __tsan_unaligned_write##BYTES(void* place) { NOTE(BYTES, write_of); } \
  VISIBLE void __tsan_volatile_read##BYTES(void* place) { NOTE(BYTES, read_of); }    \
  VISIBLE void __tsan_volatile_write##BYTES(void* place) { NOTE(BYTES, write_of); }
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)

#define CHANGE(BITS, T, NAME)                                               \
  VISIBLE T __tsan_atomic##BITS##_##NAME(volatile T* place, T value, int) { \
    NOTE(sizeof(T), change_of);                                             \
    return __atomic_##NAME(const_cast<T*>(place), value, __ATOMIC_RELAXED); \
  }
#define ATOMIC(BITS, T)                                                                                     \
  VISIBLE T __tsan_atomic##BITS##_load(const volatile T* place, int) {                                      \
    NOTE(sizeof(T), read_of);                                                                               \
    return __atomic_load_n(place, __ATOMIC_RELAXED);                                                        \
  }                                                                                                         \
  VISIBLE void __tsan_atomic##BITS##_store(volatile T* place, T value, int) {                               \
    NOTE(sizeof(T), write_of);                                                                              \
    __atomic_store_n(place, value, __ATOMIC_RELAXED);                                                       \
  }                                                                                                         \
  CHANGE(BITS, T, fetch_add)                                                                                \
  CHANGE(BITS, T, fetch_sub)                                                                                \
  CHANGE(BITS, T, fetch_and)                                                                                \
  CHANGE(BITS, T, fetch_or)                                                                                 \
  CHANGE(BITS, T, fetch_xor)                                                                                \
  VISIBLE T __tsan_atomic##BITS##_exchange(volatile T* place, T value, int) {                               \
    NOTE(sizeof(T), change_of);                                                                             \
    return __atomic_exchange_n(place, value, __ATOMIC_RELAXED);                                             \
  }                                                                                                         \
  VISIBLE int __tsan_atomic##BITS##_compare_exchange_strong(volatile T* place, T* old, T value, int, int) { \
    NOTE(sizeof(T), change_of);                                                                             \
    return __atomic_compare_exchange_n(place, old, value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);       \
  }
ATOMIC(8, unsigned char)
ATOMIC(16, unsigned short)
ATOMIC(32, unsigned)
ATOMIC(64, unsigned long long)
VISIBLE void __tsan_atomic_thread_fence(int) {}
VISIBLE void __tsan_atomic_signal_fence(int) {}
