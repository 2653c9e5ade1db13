// SPDX-License-Identifier: Apache-2.0
// The runtime library of kernels on a cpu, one for each process: the pool of threads and the workers in it.
// Compiled once and loaded beside any number of kernel libraries; autotune_runtime() is its one symbol.
//
// It needs the C library only. A C++ library would be one more thing to be missing, or to be compiled first.
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "autotune/cpu/worker.hpp"

namespace autotune::cpu {
namespace {

// Where `new` makes an object. The C++ library's way to say so is not there.
struct At {
  void* memory;
};

}  // namespace
}  // namespace autotune::cpu

inline void* operator new(size_t, autotune::cpu::At at) noexcept { return at.memory; }

namespace autotune::cpu {
namespace {

// Waking the pool takes the caller about this long, so less work than that is done alone.
constexpr double worth_sharing_ns = 20000;
// A thread looks for the next job, or for the end of one, this long before it sleeps: launches come in a row.
constexpr long long patience_ns = 50000;
// Blocks that are to meet on several threads wait this long for a second one.
constexpr long long meeting_ns = 4 * patience_ns;

long long now_ns() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000ll + now.tv_nsec;
}

template <class Condition>
void spin_while(Condition condition, long long longest_ns = patience_ns) {
  for (const long long until = now_ns() + longest_ns; condition() && now_ns() < until;)
    for (int i = 0; i < 16; ++i) {
#ifdef __x86_64__
      __builtin_ia32_pause();
#elif defined(__aarch64__)
      asm volatile("yield");
#endif
    }
}

template <Order ORDER>
class WorkerOfThread {
 public:
  // Made when first wanted; null when there is no memory.
  static BlockWorker<ORDER>* get() {
    pthread_once(&once_, [] {
      pthread_key_create(&key_, [](void* worker) {
        static_cast<BlockWorker<ORDER>*>(worker)->~BlockWorker();
        free(worker);
      });
    });
    if (void* const made = pthread_getspecific(key_)) return static_cast<BlockWorker<ORDER>*>(made);
    void* const memory = malloc(sizeof(BlockWorker<ORDER>));
    if (!memory) return nullptr;
    pthread_setspecific(key_, memory);
    return new (At{memory}) BlockWorker<ORDER>;
  }

 private:
  inline static pthread_key_t key_;
  inline static pthread_once_t once_ = PTHREAD_ONCE_INIT;
};

template <Order ORDER>
void run_blocks(Job& job) {
  if (BlockWorker<ORDER>* const worker = WorkerOfThread<ORDER>::get())
    worker->run(job);
  else
    job.fail(out_of_memory);
}

void work(Job& job) {
  const long long begin = now_ns();
  switch (job.launch.order) {
    case ascending:
      run_blocks<ascending>(job);
      break;
    case descending:
      run_blocks<descending>(job);
      break;
    case drawn:
      run_blocks<drawn>(job);
  }
  job.busy_ns.add(now_ns() - begin);
}

// Threads that help with one job at a time. They are started when first wanted and live as long as the process.
class Pool {
 public:
  // True when the pool now helps, and end() has to be called; false when it is busy with another caller's job.
  bool begin(Job& job, unsigned helpers) {
    if (pthread_mutex_trylock(&owner_) != 0) return false;
    pthread_mutex_lock(&mutex_);
    for (; started_ < helpers; ++started_) {
      pthread_t thread;
      if (pthread_create(&thread, nullptr, &Pool::help, this) != 0) break;  // as many as the system gives
      pthread_detach(thread);
    }
    job_ = &job;
    wanted_ = helpers;
    generation_.add(1);
    for (unsigned i = 0; i < helpers; ++i) pthread_cond_signal(&wake_);
    pthread_mutex_unlock(&mutex_);
    return true;
  }

  // Waits for the first thread of the pool to work on the job, but not for long.
  void meet() {
    spin_while([this] { return busy_.load() == 0; }, meeting_ns);
  }

  // Returns when no thread of the pool works on the job any more.
  void end() {
    pthread_mutex_lock(&mutex_);
    job_ = nullptr;
    pthread_mutex_unlock(&mutex_);
    spin_while([this] { return busy_.load() != 0; });
    pthread_mutex_lock(&mutex_);
    while (busy_.load() != 0) pthread_cond_wait(&done_, &mutex_);
    pthread_mutex_unlock(&mutex_);
    pthread_mutex_unlock(&owner_);
  }

 private:
  static void* help(void* self) {
    static_cast<Pool*>(self)->help();
    return nullptr;
  }

  void help() {
    pthread_mutex_lock(&mutex_);
    for (int seen = 0;;) {
      pthread_mutex_unlock(&mutex_);
      spin_while([&] { return generation_.load() == seen; });
      pthread_mutex_lock(&mutex_);
      while (generation_.load() == seen) pthread_cond_wait(&wake_, &mutex_);
      seen = generation_.load();
      if (!job_ || wanted_ == 0) continue;
      --wanted_;
      busy_.add(1);
      Job& job = *job_;
      pthread_mutex_unlock(&mutex_);
      work(job);
      pthread_mutex_lock(&mutex_);
      if (busy_.add(-1) == 1) pthread_cond_signal(&done_);
    }
  }

  // owner_ is held by the caller whose job it is, mutex_ guards what follows. Both counts change under mutex_ and
  // are watched without it.
  pthread_mutex_t owner_ = PTHREAD_MUTEX_INITIALIZER, mutex_ = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t wake_ = PTHREAD_COND_INITIALIZER, done_ = PTHREAD_COND_INITIALIZER;
  Atomic<int> generation_{0}, busy_{0};
  Job* job_ = nullptr;
  unsigned started_ = 0, wanted_ = 0;
};

// Never destroyed: its threads use it to the end of the process.
Atomic<Pool*> the_pool{nullptr};
pthread_once_t pool_once = PTHREAD_ONCE_INIT;

void make_pool() {
  void* const memory = malloc(sizeof(Pool));
  if (memory) the_pool.store(new (At{memory}) Pool);
}

// Null when there is no memory.
Pool* pool() {
  pthread_once(&pool_once, [] {
    make_pool();
    pthread_atfork(nullptr, nullptr, &make_pool);  // a fork's child has none of the threads
  });
  return the_pool.load();
}

// Divides the blocks that are left among the caller and the pool; false when the pool is not to be had.
bool share(Job& job, unsigned long long left) {
  const unsigned workers = left < job.launch.workers ? static_cast<unsigned>(left) : job.launch.workers;
  const bool is_reordered = job.launch.order != ascending;
  job.chunk = left / (16ull * workers);
  if (job.chunk == 0 || is_reordered) job.chunk = 1;
  job.shared = true;  // before the pool sees the job
  const long long begin = now_ns();
  if (!pool() || !pool()->begin(job, workers - 1)) job.shared = false;
  if (job.shared && is_reordered) pool()->meet();
  job.busy_ns.add(begin - now_ns());  // waking others is no work
  return job.shared;
}

// What is left in [begin, blocks) is done alone when it is little, as far as the blocks before it, or the last
// launch of the same kernel, tell. Otherwise the pool is asked; while it is busy, some blocks are done alone. In
// another order than the ascending one it is always asked: blocks that run at the same time show what they share.
bool take_alone(Job& job, unsigned long long& begin, unsigned long long& end) {
  begin = job.next_block.load();
  const unsigned long long left = job.blocks - begin;
  end = job.blocks;
  if (left > 0 && job.launch.workers > 1) {
    float last_ns;
    __atomic_load(job.program.block_nanoseconds, &last_ns, __ATOMIC_RELAXED);
    const double so_far = static_cast<double>(now_ns() - job.begin_ns);
    const double block_ns = begin ? so_far / static_cast<double>(begin) : last_ns;
    const bool little =
        job.launch.order == ascending && block_ns > 0 && block_ns * static_cast<double>(left) < worth_sharing_ns;
    if (!little && left > 1 && share(job, left)) return take_blocks(job, begin, end);
    const double some = block_ns > 0 ? worth_sharing_ns / 2 / block_ns : 0;
    if (some < static_cast<double>(left)) end = begin + 1 + static_cast<unsigned long long>(some);
  }
  job.next_block.store(end);
  return left > 0;
}

bool is_launchable(const Launch& launch) {
  unsigned long long threads = 1;
  for (const unsigned extent : launch.block) threads *= extent <= most_threads ? extent : most_threads + 1;
  const bool has_blocks = launch.grid[0] && launch.grid[1] && launch.grid[2];
  return has_blocks && threads > 0 && threads <= most_threads && launch.workers > 0;
}

bool fits(const Launch& launch, const Program& program) {
  if (launch.arguments_count != program.parameters) return false;
  for (unsigned i = 0; i < program.parameters; ++i)
    if (launch.argument_bytes[i] != program.parameter_bytes[i]) return false;
  return true;
}

int run(Launch& launch, const Program& program) noexcept;

// What a kernel's threads call: the functions of its launch's order.
template <Order ORDER>
struct Calls {
  static BlockWorker<ORDER>* at(Worker* worker) { return static_cast<BlockWorker<ORDER>*>(worker); }

  static const Resumable* next(Worker* worker) noexcept { return at(worker)->next(); }
  static BarrierCount barrier(Worker* worker, uint3 thread, bool predicate) noexcept {
    return at(worker)->barrier(thread, predicate);
  }
  static unsigned long long warp(Worker* worker, uint3 thread, WarpOperation operation, unsigned mask,
                                 unsigned long long value, unsigned operand, unsigned width) noexcept {
    return at(worker)->warp(thread, operation, mask, value, operand, width);
  }
  static void grid(Worker* worker) noexcept { at(worker)->grid(); }
  static void fail(Worker* worker, Status status) noexcept { at(worker)->fail(status); }

  static constexpr Runtime runtime{&run, &next, &barrier, &warp, &grid, &fail};
};

// Each block on a thread of its own, so that one that spins keeps no other from going on. None begins before there
// are threads for all.
void run_together(Job& job) {
  struct Together {
    Job& job;
    pthread_mutex_t begin = PTHREAD_MUTEX_INITIALIZER;
  } together{job};
  const auto help = [](void* self) -> void* {
    Together& all = *static_cast<Together*>(self);
    pthread_mutex_lock(&all.begin);
    pthread_mutex_unlock(&all.begin);
    work(all.job);
    return nullptr;
  };
  job.shared = true;
  const unsigned helpers = static_cast<unsigned>(job.blocks) - 1;
  pthread_t* const threads = static_cast<pthread_t*>(malloc(sizeof(pthread_t) * (helpers + 1)));
  unsigned started = 0;
  pthread_mutex_lock(&together.begin);
  while (threads && started < helpers && pthread_create(&threads[started], nullptr, help, &together) == 0) ++started;
  if (started < helpers) job.fail(out_of_memory);
  pthread_mutex_unlock(&together.begin);
  work(job);
  for (unsigned i = 0; i < started; ++i) pthread_join(threads[i], nullptr);
  free(threads);
}

int run(Launch& launch, const Program& program) noexcept {
  launch.elapsed_ns = 0;
  if (!is_launchable(launch)) return bad_geometry;
  if (!fits(launch, program)) return bad_arguments;
  if (launch.order == descending) launch.runtime = &Calls<descending>::runtime;
  if (launch.order == drawn) launch.runtime = &Calls<drawn>::runtime;
  const unsigned long long blocks = 1ull * launch.grid[0] * launch.grid[1] * launch.grid[2];
  Job job{launch, program, blocks, launch.block[0] * launch.block[1] * launch.block[2], now_ns()};
  if (launch.cooperative && blocks > 1) {
    run_together(job);
  } else {
    work(job);
    if (job.shared) the_pool.load()->end();
  }
  launch.elapsed_ns = now_ns() - job.begin_ns;
  if (launch.order == ascending) {
    float block_ns = static_cast<float>(job.busy_ns.load()) / static_cast<float>(blocks);
    __atomic_store(program.block_nanoseconds, &block_ns, __ATOMIC_RELAXED);
  }
  return job.status.load();
}

}  // namespace

bool take_blocks(Job& job, unsigned long long& begin, unsigned long long& end) {
  if (job.status.load() != ok) return false;
  if (!job.shared) return take_alone(job, begin, end);
  begin = job.next_block.add(job.chunk);
  end = begin + job.chunk < job.blocks ? begin + job.chunk : job.blocks;
  return begin < job.blocks;
}

}  // namespace autotune::cpu

extern "C" __attribute__((visibility("default"))) const autotune::cpu::Runtime* autotune_runtime() {
  using namespace autotune::cpu;
  return &Calls<ascending>::runtime;
}
