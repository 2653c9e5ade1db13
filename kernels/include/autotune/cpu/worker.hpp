// One thread of the pool at work: it takes blocks of a job and runs their threads. Part of the runtime.
//
// A fibre runs one thread of the block after the other. When a thread has to wait, its fibre is parked with it
// and another fibre goes on; when there is nobody left to wait for, the parked fibres become ready, and are
// resumed in order. Nothing of this is even set up in a block whose threads never wait.
#pragma once
#include <stdlib.h>

#include <atomic>

#include "autotune/cpu/abi.hpp"
#include "autotune/cpu/fibre.hpp"
#include "autotune/cpu/warp.hpp"

namespace autotune::cpu {

// One launch. Until it is shared with the pool only its caller takes blocks, afterwards each worker takes `chunk`
// of them at a time.
struct Job {
  const Launch& launch;
  const Program& program;
  unsigned long long blocks;
  unsigned threads;  // of a block
  long long begin_ns;
  std::atomic<int> status{ok};
  std::atomic<unsigned long long> next_block{0};
  unsigned long long chunk = 1;
  unsigned workers = 1;
  bool shared = false;

  void fail(Status reason) {
    int expected = ok;
    status.compare_exchange_strong(expected, reason);
  }
};

// The next blocks of the job, [begin, end); false when there are none left.
bool take_blocks(Job& job, unsigned long long& begin, unsigned long long& end);

// The place after this one, x first; false when it was the last.
inline bool advance(uint3& place, const dim3& extent) {
  if (++place.x < extent.x) return true;
  place.x = 0;
  if (++place.y < extent.y) return true;
  place.y = 0;
  return ++place.z < extent.z;
}

class Worker {
 public:
  ~Worker() {
    for (unsigned i = 0; i < fibre_count_; ++i) unmap_stack(fibres_[i]);
    free(dynamic_shared_);
  }

  // Runs blocks of the job until none are left or one fails.
  void run(Job& job) {
    unsigned long long begin;
    if (!take_blocks(job, begin, block_end_)) return;
    const Launch& launch = job.launch;
    job_ = &job;
    spare_ = nullptr;
    for (unsigned i = fibre_count_; i-- > 0;) spare(&fibres_[i]);
    running_ = new_fibre();
    if (!running_ || !reserve(launch.shared_bytes)) return job.fail(out_of_memory);
    setting_ = {{launch.block[0], launch.block[1], launch.block[2]},
                {launch.grid[0], launch.grid[1], launch.grid[2]},
                dynamic_shared_,
                launch.runtime,
                this};
    enter_block(begin);
    switch_fibre(&main_, running_);
  }

  void next() {
    if (parking_) return end_thread();
    place_.thread.x = setting_.block_dim.x - 1;
    if (!advance(place_.thread, setting_.block_dim)) next_block();
  }

  BarrierCount barrier(uint3 thread, bool predicate) {
    if (!parking_) begin_parking(thread);
    holding_ += predicate;
    ++at_barrier_;
    *barrier_end_ = running_;
    barrier_end_ = &running_->next;
    release_barrier();
    park();
    return released_;
  }

  unsigned long long warp(uint3 thread, WarpOperation operation, unsigned mask, unsigned long long value,
                          unsigned operand, unsigned width) {
    if (!parking_) begin_parking(thread);
    const unsigned self = running_->thread, w = self / lanes, own = 1u << self % lanes;
    Lane& lane = lane_[self];
    lane.fibre = running_;
    lane.value = value;
    lane.mask = mask | own;
    lane.operation = operation;
    lane.operand = static_cast<unsigned char>(operand);
    lane.width = static_cast<unsigned char>(width);
    waiting_[w] |= own;
    release_lanes(w, mask | own);
    park();
    return lane.result;
  }

  unsigned active(uint3 thread) {
    if (!parking_) begin_parking(thread);
    return live_[running_->thread / lanes];
  }

  void fail(Status reason) {
    job_->fail(reason);
    leave();
  }

 private:
  static void enter(void* self) {
    const Worker& worker = *static_cast<Worker*>(self);
    worker.job_->program.threads(worker.job_->launch.arguments, &worker.setting_, &worker.place_);
  }

  void spare(Fibre* fibre) {
    fibre->next = spare_;
    spare_ = fibre;
  }

  // A fibre that begins with the thread at place_; null when there is no memory.
  Fibre* new_fibre() {
    Fibre* fibre = spare_;
    if (fibre) {
      spare_ = fibre->next;
    } else {
      fibre = &fibres_[fibre_count_];
      if (!map_stack(*fibre, fibre_count_)) return nullptr;
      ++fibre_count_;
    }
    reset_fibre(*fibre, &enter, this);
    return fibre;
  }

  bool reserve(unsigned long long bytes) {
    if (bytes <= dynamic_shared_bytes_) return true;
    free(dynamic_shared_);
    const unsigned long long rounded = (bytes + 63) / 64 * 64;
    dynamic_shared_ = aligned_alloc(64, rounded);
    dynamic_shared_bytes_ = dynamic_shared_ ? rounded : 0;
    return dynamic_shared_;
  }

  void enter_block(unsigned long long block) {
    block_ = block;
    const dim3& dim = setting_.grid_dim;
    const unsigned long long row = block / dim.x;
    place_.block = {static_cast<unsigned>(block % dim.x), static_cast<unsigned>(row % dim.y),
                    static_cast<unsigned>(row / dim.y)};
    begin_block();
  }

  void begin_block() {
    place_.thread = {0, 0, 0};
    place_.straight_end = setting_.block_dim.x;
    parking_ = false;
  }

  // The current fibre goes on with the first thread of another block, or the job is over.
  void next_block() {
    if (block_ + 1 < block_end_) {
      ++block_;
      advance(place_.block, setting_.grid_dim);
      return begin_block();
    }
    unsigned long long begin;
    if (!take_blocks(*job_, begin, block_end_)) return leave();
    enter_block(begin);
  }

  void leave() { switch_fibre(running_, &main_); }

  // The first thread to wait in a block: those before it have returned, those after it have not started.
  void begin_parking(uint3 thread) {
    parking_ = true;
    place_.thread = thread;
    const dim3& dim = setting_.block_dim;
    const unsigned self = thread.x + dim.x * (thread.y + dim.y * thread.z);
    running_->thread = self;
    started_ = self + 1;
    live_count_ = job_->threads - self;
    at_barrier_ = 0;
    holding_ = 0;
    barrier_end_ = &barrier_;
    ready_ = nullptr;
    for (unsigned w = 0; w * lanes < job_->threads; ++w) {
      const unsigned here = job_->threads - w * lanes;
      live_[w] = here < lanes ? (1u << here) - 1 : ~0u;
      waiting_[w] = 0;
    }
    for (unsigned w = 0; w < self / lanes; ++w) live_[w] = 0;
    live_[self / lanes] &= ~0u << self % lanes;
  }

  // place_ becomes the next thread that has not started; it is alone in its fibre.
  void start_thread(Fibre* fibre) {
    advance(place_.thread, setting_.block_dim);
    place_.straight_end = place_.thread.x + 1;
    fibre->thread = started_++;
    running_ = fibre;
  }

  // Another thread goes on, and the current one when it is its turn again.
  void park() {
    Fibre* const self = running_;
    Fibre* other = ready_;
    if (other) {
      ready_ = other->next;
      if (other == self) return;
      running_ = other;
    } else if (started_ < job_->threads) {
      other = new_fibre();
      if (!other) return fail(out_of_memory);
      start_thread(other);
    } else {
      return fail(deadlock);
    }
    switch_fibre(self, other);
  }

  // The current thread has returned while others wait, or have waited.
  void end_thread() {
    const unsigned w = running_->thread / lanes;
    live_[w] &= ~(1u << running_->thread % lanes);
    if (--live_count_ == 0) return next_block();
    release_barrier();
    // Each lane that waits may have waited for this one only.
    for (unsigned left = waiting_[w]; left; left &= left - 1)
      if (waiting_[w] >> lowest(left) & 1) release_lanes(w, lane_[w * lanes + lowest(left)].mask);
    if (ready_) {
      Fibre* const self = running_;
      spare(self);
      running_ = ready_;
      ready_ = running_->next;
      switch_fibre(self, running_);  // for ever
    }
    if (started_ == job_->threads) return fail(deadlock);
    start_thread(running_);
  }

  // Once all threads that live are at the barrier, they are ready, and nobody else.
  void release_barrier() {
    if (at_barrier_ != live_count_) return;
    released_ = {holding_, at_barrier_};
    at_barrier_ = 0;
    holding_ = 0;
    *barrier_end_ = nullptr;
    barrier_end_ = &barrier_;
    ready_ = barrier_;
  }

  // Once all lanes of `mask` that live wait with that mask, they get what they wait for and are ready, before
  // any other thread.
  void release_lanes(unsigned w, unsigned mask) {
    const unsigned need = mask & live_[w];
    Lane* const lane = &lane_[w * lanes];
    if ((waiting_[w] & need) != need || !agree(lane, need)) return;
    exchange(lane, need);
    waiting_[w] &= ~need;
    Fibre* first = nullptr;
    Fibre** end = &first;
    for (unsigned left = need; left; left &= left - 1) {
      *end = lane[lowest(left)].fibre;
      end = &(*end)->next;
    }
    *end = ready_;
    ready_ = first;
  }

  Job* job_ = nullptr;
  Setting setting_{};
  Place place_{};  // where the next fibre begins
  unsigned long long block_ = 0, block_end_ = 0;

  // Of the current block, once a thread of it waits. Threads are numbered as CUDA does, x first.
  bool parking_ = false;
  unsigned started_ = 0, live_count_ = 0, at_barrier_ = 0, holding_ = 0;
  BarrierCount released_{};
  Fibre *ready_ = nullptr, *barrier_ = nullptr, **barrier_end_ = nullptr;  // lists
  unsigned live_[most_warps], waiting_[most_warps];
  Lane lane_[most_threads];

  Fibre main_{};
  Fibre *running_ = nullptr, *spare_ = nullptr;
  unsigned fibre_count_ = 0;
  Fibre fibres_[most_threads];

  void* dynamic_shared_ = nullptr;
  unsigned long long dynamic_shared_bytes_ = 0;
};

}  // namespace autotune::cpu
