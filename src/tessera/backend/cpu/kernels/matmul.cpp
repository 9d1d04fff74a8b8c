// matmul: a (…, M, K), b (…, K, N) -> c (…, M, N); any strides; batch extents equal.
#include <algorithm>
#include <functional>

#include "tessera/backend/cpu/kernels/named_kernel.h"
#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kSmallProduct = 1 << 20;  // multiplications: below, one thread takes a whole one

class Matmul : public NamedKernel {
 public:
  explicit Matmul(const KernelCall& call) {
    const OperandView &a = call.operands[0], &b = call.operands[1], &c = call.operands[2];
    const int rank = c.view.shape.rank();
    size_ = size_of(a.dtype);
    offsets_[0] = a.view.offset * size_;
    offsets_[1] = b.view.offset * size_;
    offsets_[2] = c.view.offset * size_;
    product_ = {a.dtype,
                c.view.shape[rank - 2],
                c.view.shape[rank - 1],
                a.view.shape[rank - 1],
                nullptr,
                a.view.strides[rank - 2],
                a.view.strides[rank - 1],
                nullptr,
                b.view.strides[rank - 2],
                b.view.strides[rank - 1],
                nullptr,
                c.view.strides[rank - 2],
                c.view.strides[rank - 1]};
    for (int d = 0; d < rank - 2; ++d) {
      const int64_t extent = c.view.shape[d];
      batch_ *= extent;
      if (extent == 1) continue;
      extents_.push_back(extent);
      steps_[0].push_back(a.view.strides[d]);
      steps_[1].push_back(b.view.strides[d]);
      steps_[2].push_back(c.view.strides[d]);
    }
    fold_batch_into_rows();
    prefer_contiguous_rows();
  }

  void run(std::span<char* const> at) const override {
    if (batch_ == 0 || product_.m == 0 || product_.n == 0) return;
    const int64_t work = product_.m * product_.n * std::max<int64_t>(1, product_.k);
    auto body = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) run_one(at, i);
    };
    // Large products share their own work between threads; small ones are dealt out whole.
    const int64_t threads = 1 + thread_pool().workers();
    if (batch_ == 1 || (work > kSmallProduct && batch_ < 4 * threads)) return body(0, batch_);
    const int64_t grain = std::max<int64_t>(1, kSmallProduct / 8 / work);
    thread_pool().parallel_for(batch_, grain, std::cref(body));
  }

 private:
  // One b for a whole batch of a: the batch is only more rows.
  void fold_batch_into_rows() {
    while (!extents_.empty() && steps_[1].back() == 0 &&
           steps_[0].back() == product_.m * product_.a_row &&
           steps_[2].back() == product_.m * product_.c_row) {
      product_.m *= extents_.back();
      batch_ /= std::max<int64_t>(1, extents_.back());
      const int last = extents_.rank() - 1;
      extents_.erase(last);
      for (Dims& steps : steps_) steps.erase(last);
    }
  }

  // c's columns contiguous instead of its rows: compute the transposed product.
  void prefer_contiguous_rows() {
    Product& p = product_;
    if (p.c_column == 1 || p.c_row != 1) return;
    std::swap(p.m, p.n);
    std::swap(p.a_row, p.b_column);
    std::swap(p.a_column, p.b_row);
    std::swap(p.c_row, p.c_column);
    std::swap(steps_[0], steps_[1]);
    std::swap(offsets_[0], offsets_[1]);
    swapped_ = true;
  }

  void run_one(std::span<char* const> at, int64_t index) const {
    int64_t moved[3] = {0, 0, 0};
    for (int d = extents_.rank() - 1; d >= 0; --d) {
      const int64_t i = index % extents_[d];
      index /= extents_[d];
      for (int k = 0; k < 3; ++k) moved[k] += i * steps_[k][d];
    }
    Product p = product_;
    p.a = at[swapped_ ? 1 : 0] + offsets_[0] + moved[0] * size_;
    p.b = at[swapped_ ? 0 : 1] + offsets_[1] + moved[1] * size_;
    p.c = at[2] + offsets_[2] + moved[2] * size_;
    if (multiply_with_onednn(p)) return;
    is_float(p.dtype) ? multiply_floats(p) : multiply_integers(p);
  }

  Product product_;  // without addresses
  int size_ = 0;
  int64_t offsets_[3] = {};  // bytes
  int64_t batch_ = 1;
  Dims extents_, steps_[3];  // of the batch dimensions; elements
  bool swapped_ = false;
};

}  // namespace

std::unique_ptr<NamedKernel> make_matmul(const KernelCall& call) {
  const Shape &a = call.operands[0].view.shape, &b = call.operands[1].view.shape;
  if (a.rank() < 2 || a.rank() != b.rank()) {
    fail("matmul: expected two operands of one rank, at least 2, got ", a, " @ ", b);
  }
  const int rank = a.rank();
  if (a[rank - 1] != b[rank - 2]) fail("matmul: inner dimensions differ: ", a, " @ ", b);
  Shape c = a;
  c[rank - 1] = b[rank - 1];
  for (int d = 0; d < rank - 2; ++d) {
    if (a[d] != b[d]) fail("matmul: batch dimensions differ: ", a, " @ ", b);
  }
  const DType dtype = call.operands[0].dtype;
  if (dtype == DType::boolean) fail("matmul: expected a numeric type, got bool");
  expect_dtype(call, 1, "b", dtype);
  expect_dtype(call, 2, "c", dtype);
  expect_shape(call, 2, "c", c);
  return std::make_unique<Matmul>(call);
}

}  // namespace tessera::cpu
