// Random kernels in integer types, where every result is exact, against the plain interpretation:
// phases, register reuse, levels, collapsing and tiling in combinations nobody would write down.
#include <gtest/gtest.h>

#include <random>

#include "backend_cpu/kernel_builder.h"
#include "backend_cpu/threads.h"

namespace tessera::test {
namespace {

class RandomKernel {
 public:
  explicit RandomKernel(uint64_t seed) : random_(seed), k_(extents(), 0) {
    const int rank = k_.ir().extents.rank();
    reduces_ = pick(3) != 0;
    // A map's inner dimension is its last; otherwise any split will do.
    k_ = KernelBuilder(k_.ir().extents, reduces_ ? int(pick(uint64_t(rank))) : rank - 1);
    const int steps = 3 + int(pick(12));
    add_load();
    for (int i = 0; i < steps; ++i) add_step();
    if (reduces_) add_reduce();
    add_stores();
  }

  const KernelBuilder& builder() const { return k_; }

 private:
  uint64_t pick(uint64_t n) { return random_() % n; }
  const Dims& shape() const { return k_.ir().extents; }
  bool is_inner(int d) const { return d >= k_.ir().inner; }

  Dims extents() {
    static constexpr int64_t kSizes[] = {1, 2, 3, 7, 16, 33, 70, 300};
    Dims result;
    const int rank = 1 + int(pick(4));
    for (int d = 0; d < rank; ++d) result.push_back(kSizes[pick(rank > 2 ? 5 : 8)]);
    if (pick(6) == 0) result[int(pick(uint64_t(rank)))] = 5000;
    return result;
  }

  DType random_type() {
    static constexpr DType kTypes[] = {DType::i32, DType::i64, DType::i8, DType::u8};
    return kTypes[pick(4)];
  }

  // Strides of a dense array with the dimensions in any order, some of them broadcast.
  Dims random_strides(int64_t& count, int64_t& offset, bool row) {
    Dims order;
    for (int d = 0; d < shape().rank(); ++d) order.push_back(d);
    if (pick(3) == 0) std::shuffle(order.begin(), order.end(), random_);
    Dims strides = Dims::filled(shape().rank(), 0);
    count = 1;
    offset = 0;
    for (int i = shape().rank() - 1; i >= 0; --i) {
      const int d = int(order[i]);
      if ((row && is_inner(d)) || pick(5) == 0) continue;
      const bool backwards = pick(8) == 0;
      strides[d] = backwards ? -count : count;
      if (backwards) offset += count * (shape()[d] - 1);
      count *= shape()[d];
    }
    return strides;
  }

  void remember(int reg, bool row) { (row ? rows_ : elems_).push_back(reg); }

  int random_register(bool row) {
    const std::vector<int>& from = row || (!rows_.empty() && pick(4) == 0) ? rows_ : elems_;
    // Recent ones more often, so that chains grow and others stay alive for long.
    const size_t back = std::min<size_t>(from.size() - 1, pick(4) * pick(3));
    return from[from.size() - 1 - back];
  }

  DType type_of(int reg) const { return k_.ir().insts[size_t(reg)].dtype; }

  void add_load(bool row = false) {
    int64_t count = 0, offset = 0;
    const Dims strides = random_strides(count, offset, row);
    const IrLevel level = row ? IrLevel::row : IrLevel::elem;
    const int x = k_.input(random_array(random_type(), count, 0, 50, int(pick(1000))));
    remember(k_.load(x, strides, offset, level), row);
  }

  void add_masked_load() {
    const int fill = random_register(false);
    int64_t count = 0, offset = 0;
    const Dims strides = random_strides(count, offset, false);
    Dims low = Dims::filled(shape().rank(), 0), high = shape();
    const int d = int(pick(uint64_t(shape().rank())));
    low[d] = int64_t(pick(uint64_t(shape()[d] + 1)));
    high[d] = low[d] + int64_t(pick(uint64_t(shape()[d] - low[d] + 1)));
    const int x = k_.input(random_array(type_of(fill), count, 0, 50, int(pick(1000))));
    remember(k_.masked_load(x, strides, offset, low, high, fill), false);
  }

  void add_scalar(bool row) {
    static constexpr ScalarOp kOps[] = {ScalarOp::add, ScalarOp::sub, ScalarOp::mul,
                                        ScalarOp::maximum, ScalarOp::minimum};
    const int a = random_register(row);
    int b = random_register(row);
    const bool both_rows = row || (k_.ir().insts[size_t(a)].level == IrLevel::row &&
                                   k_.ir().insts[size_t(b)].level == IrLevel::row);
    if (type_of(b) != type_of(a)) b = k_.cast(b, type_of(a));
    const IrLevel level = both_rows ? IrLevel::row : IrLevel::elem;
    remember(k_.scalar(kOps[pick(5)], {a, b}, level), both_rows);
  }

  void add_reduce() {
    static constexpr ReduceOp kOps[] = {ReduceOp::sum, ReduceOp::max, ReduceOp::min,
                                        ReduceOp::argmax};
    remember(k_.reduce(kOps[pick(4)], elems_[elems_.size() - 1 - pick(elems_.size())]), true);
  }

  void add_step() {
    switch (pick(8)) {
      case 0: return add_load(reduces_ && pick(3) == 0);
      case 1: return add_masked_load();
      case 2: return remember(k_.index(random_index(), 5), false);
      case 3: return reduces_ ? add_reduce() : add_scalar(false);
      default: return add_scalar(!rows_.empty() && pick(4) == 0);
    }
  }

  Dims random_index() {
    int64_t count, offset;
    return random_strides(count, offset, false);
  }

  void add_stores() {
    int64_t count = 1;
    const Dims dense = row_major_strides(shape());
    for (int i = 0; i < 2; ++i) {
      const int value = elems_[elems_.size() - 1 - pick(elems_.size())];
      const int y = k_.output(type_of(value), numel(shape()));
      k_.store(y, value, dense);
    }
    if (rows_.empty()) return;
    Dims strides = Dims::filled(shape().rank(), 0);
    for (int d = k_.ir().inner - 1; d >= 0; --d) {
      strides[d] = count;
      count *= shape()[d];
    }
    const int value = rows_.back();
    const int y = k_.output(type_of(value), count);
    k_.store(y, value, strides, 0, IrLevel::row);
  }

  std::mt19937_64 random_;
  KernelBuilder k_;
  bool reduces_ = false;
  std::vector<int> elems_, rows_;
};

TEST(RandomKernels, MatchThePlainInterpretation) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    const RandomKernel kernel(seed);
    ASSERT_EQ(verify(kernel.builder().ir()), "");
    kernel.builder().expect_matches(0);
  }
}

TEST(RandomKernels, EqualBitsForAnyNumberOfThreads) {
  for (uint64_t seed = 1; seed <= 150 && !HasFailure(); ++seed) {
    const RandomKernel kernel(seed);
    std::vector<char> alone;
    run_alone([&] { alone = all_bytes(kernel.builder().run()); });
    EXPECT_EQ(all_bytes(kernel.builder().run()), alone) << seed;
  }
}

}  // namespace
}  // namespace tessera::test
