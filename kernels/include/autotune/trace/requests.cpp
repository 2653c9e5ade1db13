// SPDX-License-Identifier: Apache-2.0
// Which thread of a launch on the cpu accesses which byte, as tsan.hpp notes it: written down for the first blocks of a
// launch, which then ends. The session is mirrored by
// autotune/device/cpu/requests.py.
#include "autotune/cpu/abi.hpp"
#include "autotune/trace/tsan.hpp"

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

void note(const volatile void* place, unsigned long bytes, Kind kind, const void* site) {
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
