#include <algorithm>
#include <memory>

#include "tessera/bench/device_guard.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/timing.h"
#include "tessera/tensor/linalg.h"

namespace tessera::bench {

namespace {

constexpr double kLongProduct = 5e-3;
constexpr int64_t kLeastExtent = 256, kMostExtent = 8192;
constexpr int64_t kPartOfMemory = 8;  // that may be taken for a measurement

// A limit is no average: noise only ever makes it slower.
double least_seconds(const Contender& contender, bool quick) {
  const Work work{contender.run, 0, contender.wait};
  return measure({&work, 1}, quick ? quick_policy() : full_policy())[0].least;
}

double copy_rate(Backend& backend, bool quick) {
  int64_t bytes = int64_t(quick ? 64 : 512) << 20;
  if (const int64_t memory = backend.target().memory_bytes; memory > 0) {
    bytes = std::min(bytes, memory / kPartOfMemory);
  }
  const std::shared_ptr<Memory> from = backend.allocate(bytes), to = backend.allocate(bytes);
  const Contender copying{.column = "copy",
                          .run =
                              [&] {
                                backend.copy({to->handle, 0}, {from->handle, 0}, bytes, Stream{});
                              },
                          .wait = [&] { backend.synchronize(Stream{}); }};
  return 2 * double(bytes) / least_seconds(copying, quick);
}

// What the device multiplies costs it power, and so speed: zeros would flatter it.
Tensor square(int64_t n, DType dtype, uint64_t seed) {
  return tensor(make_data(n * n, -1, 1, seed), {n, n}).to(dtype).eval();
}

bool fits(const Target& target, int64_t n) {
  return target.memory_bytes <= 0 || 3 * 4 * n * n <= target.memory_bytes / kPartOfMemory;
}

// The fastest of products that double in extent until one takes long.
Limits::Product best_product(Device device, DType dtype, bool quick) {
  const Target& target = device_context(device).backend.target();
  const double enough = quick ? kLongProduct / 5 : kLongProduct;
  Limits::Product best{dtype, 0, 0};
  for (int64_t n = kLeastExtent; n <= kMostExtent && fits(target, n); n *= 2) {
    const TensorWork work{
        {square(n, dtype, 1), square(n, dtype, 2)},
        [](const std::vector<Tensor>& in) { return std::vector{matmul(in[0], in[1])}; }};
    const double seconds = least_seconds(make_contender(work, device, false), quick);
    const double flops = 2 * double(n) * double(n) * double(n) / seconds;
    if (flops > best.flops) best = {dtype, n, flops};
    if (seconds >= enough) break;
  }
  return best;
}

}  // namespace

Limits::OfDevice measure_device(Device device, bool quick, std::span<const DType> products) {
  const DeviceGuard host((Device()));
  Backend& backend = device_context(device).backend;
  Limits::OfDevice limits{to_string(device), backend.target().description};
  limits.copy_bytes = copy_rate(backend, quick);
  for (const DType dtype : products) {
    limits.products.push_back(best_product(device, dtype, quick));
  }
  return limits;
}

}  // namespace tessera::bench
