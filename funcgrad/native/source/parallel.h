// Independent tasks on the threads that XLA computes with.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <utility>

#include "xla/ffi/api/ffi.h"

namespace funcgrad {

// The caller looks for so long whether the others have finished before it sleeps: waking it up takes as long.
constexpr std::chrono::microseconds kLooking{50};

inline void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Calls `work(i)` for each i in [0, count), each once, on this thread and as many of the pool's as are free. Each thread
// calls a copy of `work`, which may keep what its next task needs.
//
// Whoever is free takes the next task, so a thread that is interrupted holds up one task and not a share of all. The
// caller takes tasks as well and waits for those only that another thread has begun, so nothing waits for a pool that
// has no thread to spare.
template <class Work>
void for_each_task(xla::ffi::ThreadPool& pool, int64_t count, const Work& work) {
  struct Shared {
    std::atomic<int64_t> next{0}, done{0};
    int64_t count;
    const Work* work;
    std::mutex mutex;
    std::condition_variable all_done;

    void take() {
      int64_t i = next.fetch_add(1, std::memory_order_relaxed), mine = 0;
      if (i >= count) return;
      Work own = *work;
      for (; i < count; i = next.fetch_add(1, std::memory_order_relaxed), ++mine) own(i);
      if (done.fetch_add(mine, std::memory_order_acq_rel) + mine < count) return;
      std::lock_guard<std::mutex> lock(mutex);
      all_done.notify_one();
    }

    bool finished() const { return done.load(std::memory_order_acquire) == count; }

    void wait() {
      const auto end = std::chrono::steady_clock::now() + kLooking;
      do {
        for (int i = 0; i < 16; ++i) {
          if (finished()) return;
          pause();
        }
      } while (std::chrono::steady_clock::now() < end);
      std::unique_lock<std::mutex> lock(mutex);
      all_done.wait(lock, [this] { return finished(); });
    }
  };
  const int64_t helpers = std::min<int64_t>(pool.num_threads(), count) - 1;
  if (helpers <= 0) {
    Work own = work;
    for (int64_t i = 0; i < count; ++i) own(i);
    return;
  }
  // Kept by the helpers as well: one that comes late finds no task left, when the caller is gone.
  auto shared = std::make_shared<Shared>();
  shared->count = count;
  shared->work = &work;
  for (int64_t h = 0; h < helpers; ++h) pool.Schedule([shared] { shared->take(); });
  shared->take();
  shared->wait();
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
