// Causal attention over 6 heads of 64, forward and with its gradients; the reference holds all
// weights of a head.
#include <cmath>

#include "tessera/bench/op_case.h"
#include "tessera/bench/suites.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

constexpr int64_t kHeads = 6, kWidth = 64;
constexpr int64_t kMostPlain = 512;  // T; the plain loop takes too long above
constexpr double kTerms = 4096;      // whose rounding adds up: rows of weights, then of values

// One head: q, k, v, g (T, D) -> o (T, D) and, unless null, dq, dk, dv.
template <class T>
struct Head {
  int64_t length;
  const float *q, *k, *v, *g;
  T *o, *dq, *dk, *dv;

  T dot(const float* a, int64_t i, const float* b, int64_t j) const {
    T sum = 0;
    for (int64_t d = 0; d < kWidth; ++d) sum += T(a[i * kWidth + d]) * b[j * kWidth + d];
    return sum;
  }

  void run() const {
    const T scale = 1 / std::sqrt(T(kWidth));
    std::vector<T> weights(static_cast<size_t>(length));
    for (int64_t i = 0; i < length; ++i) {
      T greatest = -INFINITY, sum = 0;
      for (int64_t j = 0; j <= i; ++j) {
        weights[size_t(j)] = dot(q, i, k, j) * scale;
        greatest = std::max(greatest, weights[size_t(j)]);
      }
      for (int64_t j = 0; j <= i; ++j) {
        sum += weights[size_t(j)] = std::exp(weights[size_t(j)] - greatest);
      }
      for (int64_t d = 0; d < kWidth; ++d) o[i * kWidth + d] = 0;
      for (int64_t j = 0; j <= i; ++j) {
        weights[size_t(j)] /= sum;
        for (int64_t d = 0; d < kWidth; ++d) {
          o[i * kWidth + d] += weights[size_t(j)] * v[j * kWidth + d];
        }
      }
      if (dq != nullptr) add_gradients(i, weights, scale);
    }
  }

  void add_gradients(int64_t i, const std::vector<T>& weights, T scale) const {
    T mean = 0;  // Σ weight · its gradient
    for (int64_t d = 0; d < kWidth; ++d) mean += o[i * kWidth + d] * g[i * kWidth + d];
    for (int64_t j = 0; j <= i; ++j) {
      const T weight = weights[size_t(j)];
      const T slope = weight * (dot(g, i, v, j) - mean) * scale;
      for (int64_t d = 0; d < kWidth; ++d) {
        dq[i * kWidth + d] += slope * k[j * kWidth + d];
        dk[j * kWidth + d] += slope * q[i * kWidth + d];
        dv[j * kWidth + d] += weight * g[i * kWidth + d];
      }
    }
  }
};

// Operands q, k, v, g (1, H, T, D); outputs o and, where there are more than one, dq, dk, dv.
const auto kLoop = [](const Operands& in, auto& out) {
  using T = typename std::remove_reference_t<decltype(out[0])>::value_type;
  const int64_t length = in[0].shape[2], head = length * kWidth;
  const bool both = out.size() > 1;
  for (size_t i = 1; i < out.size(); ++i) std::fill(out[i].begin(), out[i].end(), T(0));
  for (int64_t h = 0; h < kHeads; ++h) {
    const auto from = [&](size_t i) { return in[i].values.data() + h * head; };
    const auto to = [&](size_t i) { return both || i == 0 ? out[i].data() + h * head : nullptr; };
    Head<T>{length, from(0), from(1), from(2), from(3), to(0), to(1), to(2), to(3)}.run();
  }
};

OpCase line(int64_t length, bool both) {
  const int64_t size = kHeads * length * kWidth;
  OpCase op;
  op.suite = "rows";
  op.name = cat("attention T = ", length, both ? ", forward + backward" : "");
  op.operands = [=] {
    Operands operands;
    for (uint64_t i = 0; i < 4; ++i) {
      operands.push_back({{1, kHeads, length, kWidth}, make_data(size, -1, 1, i)});
    }
    return operands;
  };
  op.apply = [both](const std::vector<Tensor>& in) {
    const Tensor o = attention(in[0], in[1], in[2], {.causal = true});
    if (!both) return std::vector{o};
    std::vector<Tensor> results = grad(sum(o * in[3]), {in[0], in[1], in[2]});
    results.insert(results.begin(), o);
    return results;
  };
  op.loop = loop_of(kLoop);
  op.outputs.assign(both ? 4 : 1, {size, tolerance_of(Op::softmax, kTerms)});
  // Forward two products, backward four more (what a kernel computes again does not count), each
  // over the half that is seen.
  op.flops = (both ? 6 : 2) * double(kHeads) * double(length) * double(length) * double(kWidth);
  op.slow = length > kMostPlain;
  op.plain = length <= kMostPlain;
  return op;
}

}  // namespace

std::vector<Case> attention_cases() {
  std::vector<Case> cases;
  for (const bool both : {false, true}) {
    for (const int64_t length : {256, 512, 1024, 2048}) {
      cases.push_back(to_case(line(length, both)));
    }
  }
  return cases;
}

}  // namespace tessera::bench
