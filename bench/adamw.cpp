// AdamW over the parameters of the character GPT (models/gpt.h, "char"), whose gradients are given,
// beside a loop that reads and writes as many bytes: four arrays read, three of them written.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <vector>

#include "tessera/base/thread_pool.h"
#include "tessera/models/gpt.h"
#include "tessera/optim/optim.h"
#include "tessera/tensor/ops.h"
#include "tessera/tessera.h"

using namespace tessera;

namespace {

void move_all(std::vector<float>& p, std::vector<float>& m, std::vector<float>& v,
              const std::vector<float>& g) {
  const auto body = [&](int64_t begin, int64_t end) {
    for (size_t i = size_t(begin); i < size_t(end); ++i) {
      m[i] += g[i];
      v[i] -= g[i];
      p[i] += m[i];
    }
  };
  thread_pool().parallel_for(int64_t(p.size()), 32768, std::cref(body));
}

double milliseconds(const std::function<void()>& body) {
  const auto begin = std::chrono::steady_clock::now();
  body();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin)
      .count();
}

}  // namespace

int main() {
  init();
  constexpr int kRounds = 50;
  const Random random(1);
  const Gpt gpt(gpt_preset("char"), random);
  AdamW optimizer(gpt.parameters());
  std::vector<Var> grads;
  int64_t count = 0;
  for (const Var& p : gpt.parameters()) {
    grads.emplace_back(random.normal(p.shape()));
    count += numel(p.shape());
  }
  const auto step = compile([&](const Tensor& x) {
    Tensor loss = full({}, 0, DType::f32);
    size_t i = 0;
    for (const Var& p : gpt.parameters()) loss = loss + sum(p * grads[i++]);
    backward(loss);
    optimizer.step();
    return x + 1.0;
  });
  const Tensor x = full({}, 1, DType::f32);
  std::vector<float> p(size_t(count), 1.f), m = p, v = p, g = p;
  step(x).eval();
  double update = 1e9, loop = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    update = std::min(update, milliseconds([&] { step(x).eval(); }));
    loop = std::min(loop, milliseconds([&] { move_all(p, m, v, g); }));
  }
  const double bytes = 7.0 * sizeof(float) * double(count);
  std::printf("%lld parameters, best of %d\n", static_cast<long long>(count), kRounds);
  std::printf("update %6.2f ms %6.1f GB/s\n", update, bytes / update * 1e-6);
  std::printf("loop   %6.2f ms %6.1f GB/s, %.2f times\n", loop, bytes / loop * 1e-6, update / loop);
}
