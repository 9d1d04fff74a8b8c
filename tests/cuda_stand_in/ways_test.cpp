// Products with gelu's slope or with column sums, by the library and by kernels of our own behind a
// plain product: both right, and the faster one taken and kept.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "cuda_stand_in/stand_in_test.h"
#include "tessera/graph/build.h"
#include "tessera/tessera.h"

namespace tessera::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

enum class Way { library, parts };

class CudaWays : public OnStandIn<> {
 protected:
  void SetUp() override {
    OnStandIn<>::SetUp();
    if (IsSkipped()) return;
    matmul(ones({2, 2}), ones({2, 2})).eval();  // opens the library
    forget();
    set_default_device(DeviceKind::cpu);
  }
  void TearDown() override {
    if (!IsSkipped()) {
      tell(STAND_IN_DRIVER, "stand_in_slow_kernels", false);
      tell(STAND_IN_PRODUCTS, "stand_in_slow_epilogues", false);
      tell(STAND_IN_PRODUCTS, "stand_in_have_cache", false);
      set_version(130000);
    }
    OnStandIn<>::TearDown();
  }

  static void make_faster(Way way) {
    tell(STAND_IN_DRIVER, "stand_in_slow_kernels", way == Way::library);
    tell(STAND_IN_PRODUCTS, "stand_in_slow_epilogues", way == Way::parts);
  }
  // What is kept is kept for a version of the library: one that no run of the tests has had.
  static void forget() {
    static size_t next = size_t(std::chrono::system_clock::now().time_since_epoch().count());
    set_version(next++);
  }

 private:
  static void set_version(size_t version) {
    stand_in<void(size_t)>(STAND_IN_PRODUCTS, "stand_in_set_version")(version);
  }
};

struct Problem {
  Op op;
  DType dtype;
  int64_t m, k, n;
  bool turned = false;  // b lies in columns
  bool has_specials = false;
  bool has_product = true, has_sums = true;  // or they are left out
};

Tensor drawn(const Shape& shape, int seed, double scale) {
  return (Random(uint64_t(seed)).uniform(shape) - 0.5f) * scale;
}

// Of the problem's dtype and packed, on the CPU; b (n, k) where it lies in columns.
std::vector<Tensor> inputs_of(const Problem& p) {
  const Shape b = p.turned ? Shape{p.n, p.k} : Shape{p.k, p.n};
  std::vector<Tensor> inputs = {drawn({p.m, p.k}, 1, 2), drawn(b, 2, 2)};
  if (p.op == Op::linear_slope) {
    std::vector<float> x = drawn({p.m, p.n}, 3, 12).to_vector<float>();
    x[0] = 60;
    x[1] = -60;
    if (p.has_specials) {
      x[2] = kInfinity;
      x[3] = -kInfinity;
      x[4] = std::nanf("");
    }
    inputs.push_back(tensor(x, {p.m, p.n}));
  }
  for (Tensor& input : inputs) input = cast(input, p.dtype);
  return inputs;
}

struct Results {
  std::vector<double> product, sums;
  int64_t launches = 0;  // of our kernel, in a run after the choice
};

// By the op's composite, in f64.
Results reference(const Problem& p) {
  std::vector<Value> inputs;
  for (const Tensor& input : inputs_of(p)) inputs.push_back(cast(input, DType::f64).value());
  if (p.turned) inputs[1] = transpose(Tensor(inputs[1])).value();
  const std::vector<Value> made = graph::outputs_of(make_node(p.op, inputs));
  return {Tensor(made[0]).to_vector<double>(), Tensor(made[1]).to_vector<double>()};
}

int64_t launches() {
  const char* const entry = "tessera_column_parts";
  return stand_in<int64_t(const char*)>(STAND_IN_DRIVER, "stand_in_launches")(entry);
}

KernelCall call_of(const Problem& p) {
  const Shape matrix = {p.m, p.n};
  KernelCall call;
  call.kernel = info(p.op).kernel;
  call.outputs = 2;
  for (const Shape& shape : {Shape{p.m, p.k}, Shape{p.k, p.n}, matrix, matrix, Shape{p.n}}) {
    call.operands.push_back({p.dtype, contiguous_view(shape)});
  }
  if (p.turned) call.operands[1].view.strides = {1, p.k};
  if (p.op == Op::matmul_sums) call.operands.erase(call.operands.begin() + 2);
  return call;
}

// A kernel made anew, as in a new process: it knows no choice but what is kept on disk.
template <class T>
Results run_as(const Problem& p) {
  Backend& device = backend(kCuda);
  const KernelCall call = call_of(p);
  const std::vector<Tensor> inputs = inputs_of(p);
  std::vector<std::shared_ptr<Memory>> memory;
  std::vector<BufferRef> at;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const int64_t bytes = numel(call.operands[i].view.shape) * int64_t(sizeof(T));
    memory.push_back(device.allocate(bytes));
    at.push_back({memory.back()->handle, 0});
    if (i < inputs.size()) device.upload(at[i], inputs[i].to_vector<T>().data(), bytes, {});
  }
  const std::vector<BufferRef> all = at;
  if (!p.has_product) at[at.size() - 2] = {};
  if (!p.has_sums) at.back() = {};
  const auto kernel = device.compile(call);
  device.launch(*kernel, at, 0, {});
  const int64_t before = launches();
  device.launch(*kernel, at, 0, {});
  Results results;
  results.launches = launches() - before;
  const auto read = [&](size_t i, const Shape& shape) {
    std::vector<T> values(size_t(numel(shape)));
    device.download(values.data(), all[i], numel(shape) * int64_t(sizeof(T)), {});
    return cast(tensor(values, shape), DType::f64).template to_vector<double>();
  };
  results.product = read(at.size() - 2, {p.m, p.n});
  results.sums = read(at.size() - 1, {p.n});
  return results;
}

Results run(const Problem& p) {
  switch (p.dtype) {
    case DType::bf16: return run_as<bf16>(p);
    case DType::f16: return run_as<f16>(p);
    case DType::f32: return run_as<float>(p);
    default: return run_as<double>(p);
  }
}

double unit_of(DType dtype) {
  return dtype == DType::bf16 ? 0x1p-8 : dtype == DType::f16 ? 0x1p-11 : 0x1p-23;
}

void expect_near(double got, double expected, double tolerance, const std::string& what) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(got)) << what << " is " << got;
  } else {
    EXPECT_NEAR(got, expected, tolerance) << what;
  }
}

// The product may be rounded before it is multiplied by the slope, and is after.
void expect_right(const Problem& p, const Results& got, const Results& expected) {
  const double unit = unit_of(p.dtype), least = 1e-6 * double(std::max(p.m, p.k));
  ASSERT_EQ(got.product.size(), expected.product.size());
  ASSERT_EQ(got.sums.size(), expected.sums.size());
  for (size_t i = 0; p.has_product && i < got.product.size(); ++i) {
    const double value = expected.product[i];
    expect_near(got.product[i], value, 2.1 * unit * std::abs(value) + least, cat("element ", i));
  }
  for (size_t column = 0; p.has_sums && column < got.sums.size(); ++column) {
    double sizes = std::abs(expected.sums[column]);
    for (int64_t row = 0; p.op == Op::linear_slope && row < p.m; ++row) {
      sizes += std::abs(expected.product[size_t(row * p.n) + column]);
    }
    expect_near(got.sums[column], expected.sums[column], 1.1 * unit * sizes + least,
                cat("sum ", column));
  }
}

bool library_can(const Problem& p) {
  return p.op == Op::linear_slope ? is_half(p.dtype) : p.dtype != DType::f64;
}

TEST_F(CudaWays, AreBothRight) {
  for (const Op op : {Op::linear_slope, Op::matmul_sums}) {
    for (const DType dtype : {DType::bf16, DType::f16, DType::f32, DType::f64}) {
      for (const auto& [m, k, n] : {std::tuple{70, 4, 264}, {8, 70, 24}, {40, 4, 7}}) {
        const Problem problem = {op, dtype, m, k, n};
        const Results expected = reference(problem);
        for (const Way way : {Way::library, Way::parts}) {
          SCOPED_TRACE(
              cat(info(op).name, " ", dtype, " ", m, " x ", k, " x ", n, " way ", int(way)));
          forget();
          make_faster(way);
          const Results got = run(problem);
          EXPECT_EQ(got.launches, way == Way::library && library_can(problem) ? 0 : 1);
          expect_right(problem, got, expected);
        }
      }
    }
  }
}

TEST_F(CudaWays, TakeAnyNumberAndAnyStride) {
  make_faster(Way::parts);
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (const Problem& problem : {Problem{Op::linear_slope, dtype, 40, 8, 16, false, true},
                                   Problem{Op::linear_slope, dtype, 40, 8, 16, true},
                                   Problem{Op::matmul_sums, dtype, 8, 40, 16, true}}) {
      SCOPED_TRACE(cat(info(problem.op).name, " ", dtype));
      const Results got = run(problem);
      EXPECT_EQ(got.launches, 1);
      expect_right(problem, got, reference(problem));
    }
  }
}

TEST_F(CudaWays, MayLeaveOutAResult) {
  for (const Way way : {Way::library, Way::parts}) {
    forget();
    make_faster(way);
    for (const Op op : {Op::linear_slope, Op::matmul_sums}) {
      Problem problem = {op, DType::bf16, 40, 40, 24};
      const Results expected = reference(problem);
      problem.has_sums = false;
      expect_right(problem, run(problem), expected);
      std::swap(problem.has_sums, problem.has_product);
      expect_right(problem, run(problem), expected);
    }
  }
}

TEST_F(CudaWays, AreKept) {
  for (const Op op : {Op::linear_slope, Op::matmul_sums}) {
    const Problem problem = {op, DType::bf16, 16, 8, 24};
    const auto has_parts = [&] { return run(problem).launches == 1; };
    make_faster(Way::parts);
    EXPECT_TRUE(has_parts());
    make_faster(Way::library);
    EXPECT_TRUE(has_parts());
    forget();
    EXPECT_FALSE(has_parts());
    make_faster(Way::parts);
    EXPECT_FALSE(has_parts());
    forget();
  }
}

// An algorithm that is fast only while its operands are in the cache loses to one that always is
// good.
TEST_F(CudaWays, AreTimedWithAndWithoutTheirOperandsInTheCache) {
  set_default_device(kCuda);
  const Tensor a = Random(1).uniform({21, 22}).eval(), b = Random(2).uniform({22, 23}).eval();
  tell(STAND_IN_PRODUCTS, "stand_in_have_cache", true);
  matmul(a, b).eval();
  EXPECT_EQ(stand_in<uint64_t()>(STAND_IN_PRODUCTS, "stand_in_last_algorithm")(), 0u);
}

}  // namespace
}  // namespace tessera::test
