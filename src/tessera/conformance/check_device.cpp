#include "tessera/conformance/check_device.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <string>

#include "tessera/conformance/harness.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

double seconds_of(const auto& work) {
  using Clock = std::chrono::steady_clock;
  const auto start = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// No two words alike, so that nothing can be exchanged unseen.
std::vector<uint32_t> pattern(int64_t bytes) {
  std::vector<uint32_t> words(size_t(bytes + 3) / 4);
  for (size_t i = 0; i < words.size(); ++i) words[i] = uint32_t(i) * 2654435761u;
  return words;
}

std::optional<int64_t> first_difference(const void* a, const void* b, int64_t bytes) {
  const auto* left = static_cast<const unsigned char*>(a);
  const auto* right = static_cast<const unsigned char*>(b);
  const auto found = std::mismatch(left, left + bytes, right);
  if (found.first == left + bytes) return std::nullopt;
  return found.first - left;
}

const Row& row_of(Op op) {
  return *std::find_if(rows().begin(), rows().end(), [&](const Row& row) { return row.op == op; });
}

// Entry (row, column) of a @ b, both (n, n).
double exact_entry(const std::vector<float>& a, const std::vector<float>& b, int64_t n, int64_t row,
                   int64_t column) {
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    sum += double(a[size_t(row * n + k)]) * double(b[size_t(k * n + column)]);
  }
  return sum;
}

}  // namespace

std::optional<int64_t> free_memory(const Target& target) {
  if (target.device != "cpu") return std::nullopt;
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("MemAvailable:")) return 1024 * std::stoll(line.substr(13));
  }
  return std::nullopt;
}

MemoryCheck check_memory(Backend& backend, int64_t bytes) {
  const std::vector<uint32_t> sent = pattern(bytes);
  std::vector<uint32_t> received(sent.size());
  const std::shared_ptr<Memory> first = backend.allocate(bytes), second = backend.allocate(bytes);
  const BufferRef here{first->handle, 0}, there{second->handle, 0};
  MemoryCheck check;
  check.bytes = bytes;
  // The first round touches the pages, the second is timed.
  for (int round = 0; round < 2; ++round) {
    std::fill(received.begin(), received.end(), 0xFFFFFFFFu);
    check.upload_seconds = seconds_of([&] {
      backend.upload(here, sent.data(), bytes, Stream{});
      backend.synchronize(Stream{});
    });
    check.copy_seconds = seconds_of([&] {
      backend.copy(there, here, bytes, Stream{});
      backend.synchronize(Stream{});
    });
    check.download_seconds =
        seconds_of([&] { backend.download(received.data(), there, bytes, Stream{}); });
  }
  check.first_difference = first_difference(sent.data(), received.data(), bytes);
  return check;
}

SmallProduct check_small_product() {
  SmallProduct check{{1, 2, 3, 4}, {5, 6, 7, 8}, {19, 22, 43, 50}, {}};
  check.actual = matmul(tensor(check.a, {2, 2}), tensor(check.b, {2, 2})).to_vector<float>();
  return check;
}

double LargeProduct::gflops() const { return 2 * std::pow(double(size), 3) / seconds * 1e-9; }

LargeProduct check_large_product(int64_t size, int runs) {
  constexpr int64_t kSamples = 256, kSeed = 1;
  const Tensor a = random_tensor({size, size}, kSeed), b = random_tensor({size, size}, kSeed + 1);
  std::vector<float> result;
  std::vector<double> times;
  for (int run = 0; run <= runs; ++run) {
    // An expression that nobody holds any more is computed anew.
    const Tensor product = matmul(a, b);
    times.push_back(seconds_of([&] {
      product.eval();
      device_context(default_device()).backend.synchronize(Stream{});
    }));
    if (run == runs) result = product.to_vector<float>();
  }
  times.erase(times.begin());
  std::nth_element(times.begin(), times.begin() + runs / 2, times.end());

  const std::vector<float> left = a.to_vector<float>(), right = b.to_vector<float>();
  Array actual{{DType::f32, {kSamples}}, {}, {}}, expected = actual;
  for (const double place : uniform_data(kSamples, 0, double(size * size), kSeed + 2)) {
    const int64_t entry = std::min(int64_t(place), size * size - 1);
    actual.real.push_back(double(result[size_t(entry)]));
    expected.real.push_back(exact_entry(left, right, size, entry / size, entry % size));
  }
  Case one;
  one.growth = std::sqrt(double(size));
  const UlpErrors errors = ulp_errors(actual, expected, Unit::largest);
  return {size,
          kSamples,
          errors.largest,
          errors.sum / double(errors.count),
          tolerance(row_of(Op::matmul), one, DType::f32),
          times[size_t(runs / 2)],
          runs};
}

}  // namespace tessera
