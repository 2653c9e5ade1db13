// Pieces of work that threads take one after the other. It needs the C library only.
#pragma once
#include <pthread.h>
#include <stdint.h>

namespace {

template <class Own, class Work>
struct Pieces {
  const Work& work;
  int64_t count, next;

  // What a thread keeps from one piece to the next is its own.
  static void* take(void* shared) {
    Pieces& pieces = *static_cast<Pieces*>(shared);
    Own own;
    for (;;) {
      const int64_t piece = __atomic_fetch_add(&pieces.next, 1, __ATOMIC_RELAXED);
      if (piece >= pieces.count) return nullptr;
      pieces.work(piece, own);
    }
  }
};

struct Nothing {};

// work(piece, own) for every piece below count, in at most so many threads, of which the calling one is the first; a
// thread that is not to be had is done without.
template <class Own = Nothing, class Work>
void in_threads(int64_t threads, int64_t count, const Work& work) {
  constexpr int64_t most = 512;
  Pieces<Own, Work> pieces = {work, count, 0};
  pthread_t others[most];
  int64_t begun = 0;
  const int64_t wanted = (threads < count ? threads : count) - 1;
  while (begun < wanted && begun < most && !pthread_create(others + begun, nullptr, pieces.take, &pieces)) ++begun;
  pieces.take(&pieces);
  while (begun) pthread_join(others[--begun], nullptr);
}

}  // namespace
