#include "tessera/base/thread_pool.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/base/error.h"
#include "tessera/base/log.h"

namespace tessera {

namespace {

// More parts than this would only add overhead; fewer would balance badly on many cores.
constexpr int64_t kMaxParts = 1024;
constexpr int kMaxThreads = 1024;

// Sleeping and waking costs some 50 µs, and on a virtual machine a thread that slept may wake on a
// busy core. Pauses between the kernels of a step are shorter than this, so its threads stay awake.
constexpr std::chrono::microseconds kSpinTime{500};

thread_local bool inside_body = false;

struct InsideBody {
  InsideBody() { inside_body = true; }
  ~InsideBody() { inside_body = false; }
};

void pause_cpu() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

template <class Condition>
bool spin_until(Condition condition) {
  const auto deadline = std::chrono::steady_clock::now() + kSpinTime;
  do {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return true;
      pause_cpu();
    }
  } while (std::chrono::steady_clock::now() < deadline);
  return condition();
}

// The parts of [0, n): a function of n and the grain alone, never of the number of threads, so that
// partial results per part add up to the same bits everywhere.
struct Parts {
  int64_t n;
  int64_t size;
  int64_t count;

  Parts(int64_t n_, int64_t grain) : n(n_) {
    const int64_t unit = std::min(grain, n);
    const int64_t units = ceil_div(n, unit);
    size = unit * ceil_div(units, kMaxParts);
    count = ceil_div(n, size);
  }

  int64_t begin(int64_t part) const { return part * size; }
  int64_t end(int64_t part) const { return part == count - 1 ? n : (part + 1) * size; }

  static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
};

using Body = std::function<void(int64_t, int64_t)>;

// Parts [begin, end) that nobody has begun, in one word. Far from other threads' words.
class alignas(64) Slice {
 public:
  void fill(int64_t begin, int64_t end) {
    left_.store(word(begin, end), std::memory_order_relaxed);
  }

  // A part from the front or the back; -1: none is left.
  int64_t take(bool front) {
    uint64_t left = left_.load(std::memory_order_relaxed);
    for (;;) {
      const int64_t begin = int64_t(left & kHalf), end = int64_t(left >> 32);
      if (begin >= end) return -1;
      const uint64_t rest = front ? word(begin + 1, end) : word(begin, end - 1);
      if (left_.compare_exchange_weak(left, rest, std::memory_order_relaxed)) {
        return front ? begin : end - 1;
      }
    }
  }

 private:
  static constexpr uint64_t kHalf = 0xffffffff;
  static uint64_t word(int64_t begin, int64_t end) { return uint64_t(begin) | uint64_t(end) << 32; }
  std::atomic<uint64_t> left_{0};
};

// Every thread has a run of neighbouring parts and takes them in order, then helps others from the
// end of theirs. So a thread walks along memory, and in the next kernel along the same.
class Slices {
 public:
  explicit Slices(int threads) : all_(size_t(threads)) {}

  void fill(int64_t parts) {
    count_ = std::min(int64_t(all_.size()), parts);
    for (int64_t i = 0; i < count_; ++i) {
      all_[size_t(i)].fill(parts * i / count_, parts * (i + 1) / count_);
    }
  }

  void clear() {
    for (int64_t i = 0; i < count_; ++i) all_[size_t(i)].fill(0, 0);
  }

  // The next part for a thread; -1: all are taken.
  int64_t take(int thread) {
    const int64_t own = thread % count_;
    int64_t part = all_[size_t(own)].take(true);
    for (int64_t i = 1; part < 0 && i < count_; ++i) {
      part = all_[size_t((own + i) % count_)].take(false);
    }
    return part;
  }

 private:
  std::vector<Slice> all_;
  int64_t count_ = 1;
};

void run_alone(const Parts& parts, const Body& body) {
  for (int64_t part = 0; part < parts.count; ++part) body(parts.begin(part), parts.end(part));
}

}  // namespace

// One job at a time. Its owner fills in body and parts, sets open, helps, clears open and waits for
// helpers == 0. A worker counts itself into helpers before it looks at open; both are sequentially
// consistent, so either it finds the job closed and leaves the fields alone, or the owner sees it.
struct ThreadPool::State {
  std::vector<std::thread> threads;

  std::mutex mutex;
  std::condition_variable wake;  // workers wait for a new round
  std::condition_variable done;  // the owner waits for its helpers
  std::atomic<uint32_t> round{0};
  std::atomic<bool> stop{false};

  std::atomic<bool> busy{false};
  std::atomic<bool> open{false};
  std::atomic<int> helpers{0};

  const Body* body = nullptr;
  const Parts* parts = nullptr;
  Slices slices;
  std::atomic<bool> failed{false};
  std::exception_ptr error;

  explicit State(int workers) : slices(workers + 1) { TESSERA_ASSERT(workers >= 0); }

  ~State() {
    stop = true;
    start_round(int64_t(threads.size()));
    for (std::thread& thread : threads) thread.join();
  }

  void start_round(int64_t wanted) {
    {
      // Under the mutex, so that no worker falls asleep between its check and our notification.
      const std::lock_guard lock(mutex);
      ++round;
    }
    if (wanted >= int64_t(threads.size())) {
      wake.notify_all();
    } else {
      for (int64_t i = 0; i < wanted; ++i) wake.notify_one();
    }
  }

  // Thread 0 is the owner.
  void work(int thread) {
    const InsideBody inside;
    for (;;) {
      const int64_t part = slices.take(thread);
      if (part < 0) return;
      try {
        (*body)(parts->begin(part), parts->end(part));
      } catch (...) {
        if (!failed.exchange(true)) error = std::current_exception();
        slices.clear();
      }
    }
  }

  void help(int thread) {
    ++helpers;
    if (open) work(thread);
    if (--helpers == 0) {
      // Passing through the mutex orders this after the owner's check or before its sleep.
      { const std::lock_guard lock(mutex); }
      done.notify_one();
    }
  }

  void worker_loop(int thread) {
    uint32_t seen = 0;
    const auto new_round = [&] { return round != seen; };
    for (;;) {
      if (!spin_until(new_round)) {
        std::unique_lock lock(mutex);
        wake.wait(lock, new_round);
      }
      seen = round;
      if (stop) return;
      help(thread);
    }
  }

  // REQUIRES: this thread has set busy.
  std::exception_ptr run_job(const Parts& job_parts, const Body& job_body) {
    body = &job_body;
    parts = &job_parts;
    slices.fill(job_parts.count);
    failed = false;
    open = true;
    start_round(job_parts.count - 1);
    work(0);
    open = false;
    const auto all_left = [&] { return helpers == 0; };
    if (!spin_until(all_left)) {
      std::unique_lock lock(mutex);
      done.wait(lock, all_left);
    }
    return std::exchange(error, nullptr);
  }
};

ThreadPool::ThreadPool(int workers) : state_(std::make_unique<State>(workers)) {
  state_->threads.reserve(size_t(workers));
  for (int i = 0; i < workers; ++i) {
    try {
      state_->threads.emplace_back([state = state_.get(), i] { state->worker_loop(i + 1); });
    } catch (const std::system_error& e) {
      // Results do not depend on the number of threads, so fewer are no failure.
      log_warning("thread pool: expected ", workers, " workers, got ", i, ": ", e.what());
      break;
    }
  }
}

ThreadPool::~ThreadPool() = default;

int ThreadPool::workers() const { return int(state_->threads.size()); }

void ThreadPool::parallel_for(int64_t n, int64_t grain, const Body& body) {
  TESSERA_ASSERT(n >= 0 && grain > 0);
  if (n == 0) return;
  const Parts parts(n, grain);
  if (inside_body) return run_alone(parts, body);
  if (parts.count == 1 || workers() == 0 || state_->busy.exchange(true)) {
    const InsideBody inside;
    return run_alone(parts, body);
  }
  const std::exception_ptr error = state_->run_job(parts, body);
  state_->busy = false;
  if (error) std::rethrow_exception(error);
}

namespace {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int cores = sched_getaffinity(0, sizeof(set), &set) == 0
                        ? CPU_COUNT(&set)
                        : int(std::thread::hardware_concurrency());
  return std::clamp(cores, 1, kMaxThreads);
}

int configured_threads() {
  const char* variable = std::getenv("TESSERA_THREADS");
  if (variable == nullptr) return available_cores();
  const std::string_view text = variable;
  int threads = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), threads);
  const bool whole = code == std::errc() && end == text.data() + text.size();
  if (!whole || threads < 1 || threads > kMaxThreads) {
    fail("TESSERA_THREADS: expected a number from 1 to ", kMaxThreads, ", got '", text, "'");
  }
  return threads;
}

}  // namespace

ThreadPool& thread_pool() {
  static ThreadPool pool(configured_threads() - 1);
  return pool;
}

}  // namespace tessera
