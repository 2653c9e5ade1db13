// SPDX-License-Identifier: Apache-2.0
// One thread of the pool at work: it takes blocks of a job and runs their threads. Part of the runtime.
//
// A fibre runs one thread of the block after the other. When a thread has to wait, its fibre is parked with it
// and another fibre goes on; when there is nobody left to wait for, the parked fibres become ready, and are
// resumed in order. Nothing of this is even set up in a block whose threads never wait.
//
// In another order than the ascending one each thread is started by itself. What a kernel may not rely on is then
// chosen: which thread comes next, among those that have not started and those that wait for nobody any more. Each
// order has a class of its own, so that the choice costs the ascending one nothing.
#pragma once
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "autotune/cpu/abi.hpp"
#include "autotune/cpu/fibre.hpp"
#include "autotune/cpu/job.hpp"
#include "autotune/cpu/order.hpp"
#include "autotune/cpu/shared_memory.hpp"
#include "autotune/cpu/warp.hpp"

namespace autotune::cpu {

// The place after this one, x first; false when it was the last.
inline bool advance(uint3& place, const dim3& extent) {
  if (++place.x < extent.x) return true;
  place.x = 0;
  if (++place.y < extent.y) return true;
  place.y = 0;
  return ++place.z < extent.z;
}

// The place with that number, x first.
inline uint3 place_of(unsigned long long number, const dim3& extent) {
  const unsigned long long row = number / extent.x;
  return {static_cast<unsigned>(number % extent.x), static_cast<unsigned>(row % extent.y),
          static_cast<unsigned>(row / extent.y)};
}

struct Worker {};

template <Order ORDER>
class BlockWorker : public Worker {
 public:
  ~BlockWorker() {
    for (unsigned i = 0; i < fibre_count_; ++i) unmap_stack(fibres_[i]);
    free(dynamic_shared_);
  }

  // Runs blocks of the job until none are left or one fails.
  void run(Job& job) {
    unsigned long long begin;
    if (!take_blocks(job, begin, turn_end_)) return;
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
    if constexpr (ORDER != ascending) fill_static_shared(job.program);
    enter_block(begin);
    switch_fibre(&main_, running_);
  }

  const Resumable* next() {
    if (parking_) return end_thread();
    place_.thread.x = setting_.block_dim.x - 1;
    if (!advance(place_.thread, setting_.block_dim)) next_block();
    return nullptr;
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

  void grid() {
    if (job_->blocks == 1) return;
    if (!job_->launch.cooperative) return fail(not_together);
    const unsigned long long all = (job_->at_grid.add(1) / job_->blocks + 1) * job_->blocks;
    while (job_->at_grid.load() < all) {
      if (job_->status.load() != ok) return leave();  // a block that failed does not come
      sched_yield();
    }
  }

  void fail(Status reason) {
    job_->fail(reason);
    leave();
  }

 private:
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
    reset_fibre(*fibre, job_->program.threads);
    fibre->arguments = job_->launch.arguments;
    fibre->setting = &setting_;
    fibre->place = &place_;
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

  // The block whose turn it is.
  void enter_block(unsigned long long turn) {
    turn_ = turn;
    place_.block = place_of(item_at<ORDER>(turn, job_->blocks, job_->launch.seed), setting_.grid_dim);
    begin_block();
  }

  void begin_block() {
    if constexpr (ORDER != ascending) return begin_reordered();
    place_.thread = {0, 0, 0};
    place_.straight_end = setting_.block_dim.x;
    parking_ = false;
  }

  // Every thread by itself from the start.
  void begin_reordered() {
    random_ = Random(job_->launch.seed ^ turn_);
    if (job_->launch.shared_bytes) memset(dynamic_shared_, unwritten, job_->launch.shared_bytes);
    for (unsigned i = 0; i < job_->threads; ++i)
      start_[i] = static_cast<unsigned short>(ORDER == drawn ? i : job_->threads - 1 - i);
    if (ORDER == drawn) shuffle_items(start_, job_->threads, random_);
    started_ = 0;
    expect(0);
    start_thread(running_);
  }

  // The current fibre goes on with the first thread of another block, or the job is over.
  void next_block() {
    if (turn_ + 1 < turn_end_) {
      if constexpr (ORDER != ascending) return enter_block(turn_ + 1);
      ++turn_;
      advance(place_.block, setting_.grid_dim);
      return begin_block();
    }
    unsigned long long begin;
    if (!take_blocks(*job_, begin, turn_end_)) return leave();
    enter_block(begin);
  }

  void leave() { switch_fibre(running_, &main_); }

  // The first thread to wait in a block: those before it have returned, those after it have not started.
  void begin_parking(uint3 thread) {
    place_.thread = thread;
    const dim3& dim = setting_.block_dim;
    const unsigned self = thread.x + dim.x * (thread.y + dim.y * thread.z);
    running_->thread = self;
    started_ = self + 1;
    expect(self);
  }

  // The threads from `first` on live and none of them waits.
  void expect(unsigned first) {
    parking_ = true;
    live_count_ = job_->threads - first;
    at_barrier_ = 0;
    holding_ = 0;
    barrier_end_ = &barrier_;
    ready_ = nullptr;
    for (unsigned w = 0; w * lanes < job_->threads; ++w) {
      const unsigned here = job_->threads - w * lanes;
      live_[w] = here < lanes ? (1u << here) - 1 : ~0u;
      waiting_[w] = 0;
    }
    for (unsigned w = 0; w < first / lanes; ++w) live_[w] = 0;
    live_[first / lanes] &= ~0u << first % lanes;
  }

  // place_ becomes the next thread that has not started; it is alone in its fibre.
  void start_thread(Fibre* fibre) {
    const unsigned turn = started_++;
    if constexpr (ORDER != ascending) {
      fibre->thread = start_[turn];
      place_.thread = place_of(fibre->thread, setting_.block_dim);
    } else {
      fibre->thread = turn;
      advance(place_.thread, setting_.block_dim);
    }
    place_.straight_end = place_.thread.x + 1;
    running_ = fibre;
  }

  // Whether a thread is to start now, rather than one that is ready to go on.
  bool starts_another() {
    const bool goes_on = ready_ && (ORDER != drawn || random_.coin());
    return !goes_on && started_ < job_->threads;
  }

  // Another thread goes on, and the current one when it is its turn again. Inlined: each kind of wait has its own jump
  // to predict.
  __attribute__((always_inline)) void park() {
    Fibre* const self = running_;
    if (!ready_ && started_ == job_->threads && !release_asking()) return fail(deadlock);
    Fibre* other = ready_;
    if (starts_another()) {
      other = new_fibre();
      if (!other) return fail(out_of_memory);
      start_thread(other);
    } else {
      ready_ = other->next;
      if (other == self) return;
      running_ = other;
    }
    switch_fibre(self, other);
  }

  // The current thread has returned while others wait, or have waited.
  const Resumable* end_thread() {
    const unsigned w = running_->thread / lanes;
    live_[w] &= ~(1u << running_->thread % lanes);
    if (--live_count_ == 0) {
      next_block();
      return nullptr;
    }
    release_barrier();
    // Each lane that waits may have waited for this one only.
    for (unsigned left = waiting_[w]; left; left &= left - 1)
      if (waiting_[w] >> lowest(left) & 1) release_lanes(w, lane_[w * lanes + lowest(left)].mask);
    if (starts_another()) {
      start_thread(running_);
      return nullptr;
    }
    if (!ready_ && !release_asking()) fail(deadlock);
    return end_fibre();
  }

  // The current fibre has no more to do, and one that is ready goes on.
  const Resumable* end_fibre() {
    Fibre* const self = running_;
    spare(self);
    running_ = ready_;
    ready_ = running_->next;
#ifdef AUTOTUNE_UCONTEXT
    switch_fibre(self, running_);  // for ever
#endif
    return running_;
  }

  // Once all threads that live are at the barrier, they are ready, and nobody else.
  void release_barrier() {
    if (at_barrier_ != live_count_) return;
    released_ = {holding_, at_barrier_};
    at_barrier_ = 0;
    holding_ = 0;
    *barrier_end_ = nullptr;
    barrier_end_ = &barrier_;
    ready_ = ORDER == drawn ? redrawn(barrier_) : barrier_;
  }

  // The list in an order of its own.
  Fibre* redrawn(Fibre* list) {
    unsigned count = 0;
    for (; list; list = list->next) redrawn_[count++] = list;
    shuffle_items(redrawn_, count, random_);
    for (; count > 0; list = redrawn_[count]) redrawn_[--count]->next = list;
    return list;
  }

  // Once all lanes of `mask` that live wait with that mask, they get what they wait for and are ready, before
  // any other thread.
  void release_lanes(unsigned w, unsigned mask) {
    const unsigned need = mask & live_[w];
    if ((waiting_[w] & need) == need && agree(&lane_[w * lanes], need)) resume_lanes(w, need);
  }

  void resume_lanes(unsigned w, unsigned need) {
    Lane* const lane = &lane_[w * lanes];
    exchange(lane, need);
    waiting_[w] &= ~need;
    if constexpr (ORDER != ascending) return resume_reordered(lane, need);
    Fibre* first = nullptr;
    Fibre** end = &first;
    for (unsigned left = need; left; left &= left - 1) {
      *end = lane[lowest(left)].fibre;
      end = &(*end)->next;
    }
    *end = ready_;
    ready_ = first;
  }

  void resume_reordered(const Lane* lane, unsigned need) {
    unsigned count = 0;
    for (unsigned left = need; left; left &= left - 1) redrawn_[count++] = lane[lowest(left)].fibre;
    if (ORDER == drawn) shuffle_items(redrawn_, count, random_);
    for (unsigned i = 0; i < count; ++i) {  // a list begins with what was put there last
      redrawn_[i]->next = ready_;
      ready_ = redrawn_[i];
    }
  }

  // Nobody can go on: those who only ask which lanes are there are told. False when there are none.
  bool release_asking() {
    for (unsigned w = 0; w * lanes < job_->threads; ++w)
      if (const unsigned found = asking(&lane_[w * lanes], waiting_[w])) resume_lanes(w, found);
    return ready_;
  }

  Job* job_ = nullptr;
  Setting setting_{};
  Place place_{};                               // where the next fibre begins
  unsigned long long turn_ = 0, turn_end_ = 0;  // of the blocks, in that order
  Random random_;

  // Of the current block, once a thread of it waits. Threads are numbered as CUDA does, x first.
  bool parking_ = false;
  unsigned started_ = 0, live_count_ = 0, at_barrier_ = 0, holding_ = 0;
  BarrierCount released_{};
  Fibre *ready_ = nullptr, *barrier_ = nullptr, **barrier_end_ = nullptr;  // lists
  unsigned live_[most_warps], waiting_[most_warps];
  Lane lane_[most_threads];
  unsigned short start_[most_threads];  // in another order than the ascending one: who starts when
  Fibre* redrawn_[most_threads];        // while a list is

  Fibre main_{};
  Fibre *running_ = nullptr, *spare_ = nullptr;
  unsigned fibre_count_ = 0;
  Fibre fibres_[most_threads];

  void* dynamic_shared_ = nullptr;
  unsigned long long dynamic_shared_bytes_ = 0;
};

}  // namespace autotune::cpu
