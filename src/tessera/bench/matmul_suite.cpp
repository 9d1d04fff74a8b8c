// Matrix products: squares, skinny and batched ones, those of a small GPT; beside CPU libraries.
#include <cmath>
#include <limits>

#include "tessera/base/thread_pool.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/peers.h"
#include "tessera/bench/suites.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/structure.h"

namespace tessera::bench {

namespace {

constexpr double kMostPlainFlops = 2.2e9;  // of 1024³; the plain loop takes too long above
constexpr double kMostAloneFlops = 1e8;    // several threads always win above
constexpr double kSlowFlops = 1e10;
constexpr int64_t kCompared = 2048;      // entries
constexpr double kSettleSeconds = 0.05;  // a library's threads spin: OpenBLAS' for some 30 ms

struct Product {
  const char* name;
  int64_t batch, m, n, k;
  bool transposed = false;  // b lies as (n, k): x · weightᵀ
  DType dtype = DType::f32;

  double flops() const { return 2 * double(batch) * double(m) * double(n) * double(k); }
};

constexpr Product kProducts[] = {
    {"f32 128", 1, 128, 128, 128},
    {"f32 256", 1, 256, 256, 256},
    {"f32 512", 1, 512, 512, 512},
    {"f32 1024", 1, 1024, 1024, 1024},
    {"f32 2048", 1, 2048, 2048, 2048},
    {"f32 4096", 1, 4096, 4096, 4096},
    {"one row: 1 x 768 x 768, b transposed", 1, 1, 768, 768, true},
    {"skinny: 8 x 3072 x 768", 1, 8, 3072, 768},
    {"skinny: 32 x 768 x 768, b transposed", 1, 32, 768, 768, true},
    {"skinny: 4096 x 4096 x 32", 1, 4096, 4096, 32},
    {"skinny: 4096 x 32 x 1024", 1, 4096, 32, 1024},
    {"batch of 256: 64 x 64 x 64", 256, 64, 64, 64},
    {"batch of 48: 256 x 256 x 64, b transposed", 48, 256, 256, 64, true},
    {"GPT qkv: 2048 x 1152 x 384, b transposed", 1, 2048, 1152, 384, true},
    {"GPT mlp: 2048 x 1536 x 384, b transposed", 1, 2048, 1536, 384, true},
    {"GPT mlp: 2048 x 384 x 1536, b transposed", 1, 2048, 384, 1536, true},
    {"bf16 2048", 1, 2048, 2048, 2048, false, DType::bf16},
};

// All of a product in plain memory, the operands as the tensors hold them.
struct Data {
  Product product;
  std::vector<float> a, b, c;

  Gemm gemm(int64_t batch) {
    const Product& p = product;
    return {p.m,
            p.n,
            p.k,
            p.transposed,
            a.data() + batch * p.m * p.k,
            b.data() + batch * p.k * p.n,
            c.data() + batch * p.m * p.n};
  }
};

void multiply_plainly(const Gemm& g) {
  for (int64_t i = 0; i < g.m; ++i) {
    const float* const a = g.a + i * g.k;
    float* const c = g.c + i * g.n;
    if (g.transposed) {
      for (int64_t j = 0; j < g.n; ++j) {
        float sum = 0;
        for (int64_t k = 0; k < g.k; ++k) sum += a[k] * g.b[j * g.k + k];
        c[j] = sum;
      }
      continue;
    }
    std::fill(c, c + g.n, 0.f);
    for (int64_t k = 0; k < g.k; ++k) {
      for (int64_t j = 0; j < g.n; ++j) c[j] += a[k] * g.b[k * g.n + j];
    }
  }
}

Tensor matrix(const Product& p, bool second) {
  const int64_t rows = second ? (p.transposed ? p.n : p.k) : p.m;
  const int64_t columns = second ? (p.transposed ? p.k : p.n) : p.k;
  const Shape shape = p.batch == 1 ? Shape{rows, columns} : Shape{p.batch, rows, columns};
  const std::vector<float> values = make_data(numel(shape), -1, 1, second ? 2 : 1);
  return tensor(values, shape).to(p.dtype).eval();
}

std::vector<Expected> reference(Data& data) {
  const Product& p = data.product;
  Expected expected;
  expected.positions = sample_positions(p.batch * p.m * p.n, kCompared);
  for (const int64_t at : expected.positions) {
    const Gemm g = data.gemm(at / (p.m * p.n));
    const int64_t i = at / p.n % p.m, j = at % p.n;
    double sum = 0;
    for (int64_t k = 0; k < p.k; ++k) {
      const int64_t place = p.transposed ? j * p.k + k : k * p.n + j;
      sum += double(g.a[i * p.k + k]) * double(g.b[place]);
    }
    expected.values.push_back(sum);
  }
  expected.dtype = p.dtype;
  expected.tolerance = tolerance_of(Op::matmul, double(p.k));
  // Half types compute in f32: of their own is the last rounding alone.
  if (is_half(p.dtype)) {
    const int lost = digits(DType::f32) - digits(p.dtype);
    expected.tolerance = 0.5 + std::ldexp(expected.tolerance, -lost);
  }
  return {expected};
}

template <class F>
Contender contender(std::string_view column, std::string by, std::shared_ptr<Data> data, F run,
                    double settle = 0) {
  const auto outputs = [run, data] {
    // The contenders share c: what another one left there must not count.
    std::fill(data->c.begin(), data->c.end(), std::numeric_limits<float>::quiet_NaN());
    run();
    return Outputs{data->c};
  };
  return {std::string(column), std::move(by), run, outputs, settle};
}

// Every way to use every library that might be the fastest; the best of them stays in the table.
void add_libraries(Contest& contest, const std::shared_ptr<Data>& data) {
  const int64_t batch = data->product.batch;
  for (const Peer& peer : peers()) {
    const auto together = [data, batch, multiply = peer.multiply] {
      for (int64_t i = 0; i < batch; ++i) multiply(data->gemm(i));
    };
    contest.contenders.push_back(contender(kLibrary, peer.name, data, together, kSettleSeconds));
    const bool may_win = batch > 1 || data->product.flops() <= kMostAloneFlops;
    if (peer.multiply_alone == nullptr || !may_win) continue;
    const auto alone = [data, batch, multiply = peer.multiply_alone] {
      thread_pool().parallel_for(batch, 1, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) multiply(data->gemm(i));
      });
    };
    const char* how = batch > 1 ? ", a product per thread" : ", one thread";
    contest.contenders.push_back(contender(kLibrary, peer.name + how, data, alone));
  }
}

Contest make_contest(const Product& product, const Setting& setting) {
  const auto data = std::make_shared<Data>();
  data->product = product;
  const Tensor a = matrix(product, false), b = matrix(product, true);
  data->a = a.to(DType::f32).to_vector<float>();
  data->b = b.to(DType::f32).to_vector<float>();
  data->c.resize(size_t(product.batch * product.m * product.n));
  Contest contest{reference(*data), {}};
  if (product.dtype == DType::f32) {
    if (product.flops() <= kMostPlainFlops / (product.transposed ? 5 : 1)) {
      contest.contenders.push_back(contender(kPlain, "", data, [data] {
        for (int64_t i = 0; i < data->product.batch; ++i) multiply_plainly(data->gemm(i));
      }));
    }
    add_libraries(contest, data);
  }
  const auto apply = [transposed = product.transposed](const std::vector<Tensor>& in) {
    return std::vector{matmul(in[0], transposed ? transpose(in[1]) : in[1])};
  };
  const TensorWork work{{a, b}, apply};
  add_tessera(contest, setting, {&work, 1});
  return contest;
}

}  // namespace

std::vector<Case> matmul_cases() {
  std::vector<Case> cases;
  for (const Product& product : kProducts) {
    Case one;
    one.suite = "matmul";
    one.name = product.name;
    one.unit = "GFLOP/s";
    one.flops = product.flops();
    one.amount = one.flops * 1e-9;
    // What bf16 can reach is another instruction's rate, which nobody measures here.
    one.limit = product.dtype == DType::f32 ? LimitKind::fma : LimitKind::none;
    one.slow = product.flops() > kSlowFlops;
    one.make = [product](const Setting& setting) { return make_contest(product, setting); };
    cases.push_back(std::move(one));
  }
  return cases;
}

}  // namespace tessera::bench
