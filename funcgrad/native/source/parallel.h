// Independent tasks on the threads that XLA computes with.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace funcgrad {

// Calls `work(i)` for each i in [0, count), each once, on this thread and as many of the pool's as are free.
//
// Whoever is free takes the next task, so a thread that is interrupted holds up one task and not a share of all. The
// caller takes tasks as well and waits for those only that another thread has begun, so nothing waits for a pool that
// has no thread to spare. Nobody spins: who waits, sleeps.
template <class Work>
void for_each_task(xla::ffi::ThreadPool& pool, int64_t count, const Work& work) {
  struct Shared {
    std::atomic<int64_t> next{0};
    int64_t count, done = 0;
    const Work* work;
    std::mutex mutex;
    std::condition_variable all_done;

    void take() {
      int64_t mine = 0;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < count; ++mine) (*work)(i);
      if (mine == 0) return;
      std::lock_guard<std::mutex> lock(mutex);
      done += mine;
      if (done == count) all_done.notify_one();
    }
  };
  const int64_t helpers = std::min<int64_t>(pool.num_threads(), count) - 1;
  if (helpers <= 0) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  // Kept by the helpers as well: one that comes late finds no task left, when the caller is gone.
  auto shared = std::make_shared<Shared>();
  shared->count = count;
  shared->work = &work;
  for (int64_t h = 0; h < helpers; ++h) pool.Schedule([shared] { shared->take(); });
  shared->take();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->all_done.wait(lock, [&] { return shared->done == count; });
}

// Memory of this thread, of at least so many elements, which the next call with the same `slot` gives again.
template <class T, int slot>
T* scratch(int64_t elements) {
  struct Block {
    void* at = nullptr;
    int64_t bytes = 0;
    ~Block() { std::free(at); }
  };
  static thread_local Block block;
  const int64_t bytes = (elements * int64_t(sizeof(T)) + 127) / 64 * 64;
  if (block.bytes < bytes) {
    std::free(block.at);
    block.bytes = 0;
    if (posix_memalign(&block.at, 64, bytes)) throw std::bad_alloc();
    block.bytes = bytes;
  }
  return static_cast<T*>(block.at);
}

}  // namespace funcgrad
