// The hand-written kernels of backend/gpu through NVIDIA's compiler, where that is installed.
#include <gtest/gtest.h>

#include <set>

#include "codegen/nvrtc.h"
#include "tessera/backend/cuda/kernels/attention_few.h"
#include "tessera/backend/cuda/kernels/attention_tiles.h"
#include "tessera/backend/cuda/kernels/column_sums.h"
#include "tessera/backend/cuda/kernels/cross_entropy.h"
#include "tessera/backend/cuda/kernels/few.h"
#include "tessera/backend/cuda/kernels/layer_norm_backward.h"
#include "tessera/backend/cuda/kernels/long_rows.h"
#include "tessera/backend/cuda/kernels/order_rows.h"
#include "tessera/backend/cuda/kernels/scan.h"
#include "tessera/backend/cuda/kernels/scatter_rows.h"
#include "tessera/backend/gpu/named_kernel.h"
#include "tessera/base/attention_options.h"

namespace tessera {
namespace {

// Builds nothing and keeps the sources.
class Collector : public gpu::Session {
 public:
  struct Nothing : gpu::Kernel {
    int64_t largest_group() const override { return 1024; }
    int64_t groups_at_once(int64_t) const override { return 2; }
    void launch(Stream, const gpu::Range&, const gpu::Arguments&) const override {}
  };

  explicit Collector(int64_t shared_bytes = 232448) {
    traits_ = {"cuda:0", &cuda_dialect(), true, 132, 49152, 224256, 1024, shared_bytes};
    traits_.cluster_groups = 8;
  }
  const gpu::DeviceTraits& device() const override { return traits_; }
  std::unique_ptr<gpu::Kernel> build(const std::string&, const std::string& source,
                                     const std::string&) override {
    sources.insert(source);
    return std::make_unique<Nothing>();
  }
  void* workspace(Stream, int64_t) override { return nullptr; }
  void copy(BufferRef, BufferRef, int64_t, Stream) override {}
  std::shared_ptr<const gpu::IndexCheck> make_check(std::string, std::string,
                                                    std::string) override {
    return std::make_shared<gpu::IndexCheck>();
  }
  void watch(Stream, const std::shared_ptr<const gpu::IndexCheck>&) override {}

  std::set<std::string> sources;

 private:
  gpu::DeviceTraits traits_;
};

OperandView packed(DType dtype, const Shape& shape) { return {dtype, contiguous_view(shape)}; }

template <class Make>
void add_attention(Collector& collector, DType dtype, bool added_mask, const Make& make,
                   int64_t queries = 33, int64_t columns = 64) {
  const Shape heads = {2, 4, queries, columns}, row = {2, 4, queries};
  const DType wide = compute_type(dtype);
  KernelCall call;
  call.kernel = "attention";
  call.outputs = 2;
  call.attrs.axis = kAttentionMask | kAttentionLengths | kAttentionDropout;
  const std::vector<OperandView> options = {
      packed(added_mask ? wide : DType::boolean, {2, 4, queries, queries}), packed(DType::i64, {2}),
      packed(DType::i64, {}), packed(DType::i64, {})};
  call.operands.assign(3, packed(dtype, heads));
  call.operands.insert(call.operands.end(), options.begin(), options.end());
  call.operands.push_back(packed(dtype, heads));
  call.operands.push_back(packed(wide, row));
  EXPECT_TRUE(make(collector, call));
  call.kernel = "attention_backward";
  call.outputs = 3;
  call.operands.assign(5, packed(dtype, heads));
  call.operands.push_back(packed(wide, row));
  call.operands.insert(call.operands.end(), options.begin(), options.end());
  call.operands.insert(call.operands.end(), 3, packed(dtype, heads));
  EXPECT_EQ(make(collector, call) != nullptr, queries > 1);  // few have no gradient of their own
}

void add_all(Collector& collector, DType dtype) {
  const auto add = [&](const char* kernel, std::vector<OperandView> operands, int outputs = 1) {
    KernelCall call;
    call.kernel = kernel;
    call.operands = std::move(operands);
    call.outputs = outputs;
    gpu::make_named_kernel(collector, call);
  };
  const OperandView x = packed(dtype, {8, 16});
  OperandView turned = x;
  turned.view.strides = {1, 8};
  add("copy", {x, turned});
  if (dtype != DType::boolean) {
    add("matmul", {x, packed(dtype, {16, 4}), packed(dtype, {8, 4})});
    add("sort", {x, x, packed(DType::i64, {8, 16})}, 2);
    add("scatter_add", {x, packed(DType::i32, {3, 16}), packed(dtype, {3, 16}), x});
  }
  add("scatter", {x, packed(DType::i64, {3, 16}), packed(dtype, {3, 16}), x});
  add("update_slice", {x, packed(dtype, {2, 16}), packed(DType::i64, {}), x});
}

void add_norms(Collector& collector, DType dtype) {
  const DType wide = compute_type(dtype);
  for (const int64_t columns : {768, 1024, 4096, 16384, 50257}) {
    KernelCall call;
    call.kernel = "layer_norm_backward";
    call.outputs = 3;
    const OperandView x = packed(dtype, {8, columns}), row = packed(dtype, {columns});
    const OperandView statistic = packed(wide, {8, 1});
    call.operands = {x, x, row, statistic, statistic, x, row, row};
    cuda::make_layer_norm_backward(collector, call);
  }
}

// For one, two, four and eight groups.
void add_long_rows(Collector& collector, DType dtype) {
  const int64_t bytes = size_of(dtype);
  for (const int64_t columns : {80001 / bytes, 50257 * 4 / bytes, 400001 / bytes, 600000 / bytes}) {
    const OperandView x = packed(dtype, {8, columns}), row = packed(dtype, {columns});
    const OperandView statistic = packed(compute_type(dtype), {8, 1});
    KernelCall call;
    call.kernel = "softmax";
    call.operands = {x, x};
    EXPECT_TRUE(cuda::make_long_rows(collector, call));
    call.kernel = "layer_norm";
    call.operands = {x, row, row, x, statistic, statistic};
    call.outputs = 3;
    EXPECT_TRUE(cuda::make_long_rows(collector, call));
  }
}

void add_losses(Collector& collector, DType dtype) {
  const DType wide = compute_type(dtype);
  for (const int64_t columns : {10, 1000, 50304, 128256}) {
    KernelCall call;
    call.kernel = "cross_entropy";
    call.outputs = 2;
    const OperandView x = packed(dtype, {8, columns}), row = packed(wide, {8, 1});
    call.operands = {x, packed(DType::i64, {8, 1}), row, row, x};
    cuda::make_cross_entropy(collector, call);
  }
}

void add_column_sums(Collector& collector, DType dtype) {
  for (const int64_t columns : {3072, 7}) {
    const OperandView x = packed(dtype, {8, columns});
    cuda::ColumnSums(collector, "matmul_sums", x);
    cuda::ColumnSums(collector, "linear_slope", x, &x);
  }
}

void add_few(Collector& collector, DType dtype) {
  for (const auto& [m, n, k] :
       {std::tuple(1, 40, 600), std::tuple(600, 7, 40), std::tuple(40, 600, 3)}) {
    KernelCall call;
    call.kernel = "matmul";
    call.operands = {packed(dtype, {m, k}), packed(dtype, {k, n}), packed(dtype, {m, n})};
    cuda::make_few(collector, call, k == 3);
  }
}

void add_embedding(Collector& collector, DType dtype) {
  for (const int64_t columns : {768, 5}) {
    KernelCall call;
    call.kernel = "scatter_add";
    OperandView index = packed(DType::i64, {8, columns});
    index.view.strides = {1, 0};
    const OperandView y = packed(dtype, {100, columns});
    call.operands = {y, index, packed(dtype, {8, columns}), y};
    EXPECT_TRUE(cuda::make_scatter_rows(collector, call));
  }
}

void add_orders(Collector& collector, DType dtype) {
  for (const auto& [columns, kept] : {std::pair(int64_t(50257), int64_t(64)), {8192, 8192}}) {
    KernelCall call;
    call.kernel = "topk";
    call.outputs = 2;
    call.attrs.axis = 1;
    call.operands = {packed(dtype, {8, columns}), packed(dtype, {8, kept}),
                     packed(DType::i64, {8, kept})};
    EXPECT_TRUE(cuda::make_order_rows(collector, call));
  }
}

void add_scans(Collector& collector, DType dtype) {
  const OperandView x = packed(dtype, {8, 5000});
  for (const int axis : {0, 1}) {
    for (const char* kernel : {"cumsum", "cumprod"}) {
      KernelCall call;
      call.kernel = kernel;
      call.attrs.axis = axis;
      call.operands = {x, x};
      cuda::make_scan(collector, call);
    }
  }
}

// Nothing but causal: tiles are the largest.
void add_plain_attention(Collector& collector, DType dtype, int64_t columns) {
  const OperandView heads = packed(dtype, {2, 4, 1024, columns});
  const OperandView row = packed(compute_type(dtype), {2, 4, 1024});
  KernelCall call;
  call.kernel = "attention";
  call.outputs = 2;
  call.attrs.axis = kAttentionCausal;
  call.operands = {heads, heads, heads, heads, row};
  gpu::make_named_kernel(collector, call);
  call.kernel = "attention_backward";
  call.outputs = 3;
  call.operands = {heads, heads, heads, heads, heads, row, heads, heads, heads};
  gpu::make_named_kernel(collector, call);
}

constexpr const char* kArchitectures[] = {"sm_80", "sm_90a", "sm_100"};

void expect_compiled_for(const Nvrtc& nvrtc, const char* architecture, const std::string& source) {
  const CompiledText text = nvrtc.compile(source, architecture);
  EXPECT_TRUE(text.compiled) << text.log << source;
  EXPECT_EQ(text.spill_bytes, 0) << architecture << "\n" << source;
}

// Each for one of the architectures, in turns.
void expect_compiled(const Collector& collector) {
  const Nvrtc nvrtc;
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc";
  size_t number = 0;
  for (const std::string& source : collector.sources) {
    expect_compiled_for(nvrtc, kArchitectures[number++ % 3], source);
  }
}

class NamedSources : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "NVRTC is slow under sanitizers, and the texts are the same";
#endif
  }
};

KernelCall attention_call(DType dtype, int64_t queries, int64_t columns) {
  KernelCall call;
  call.kernel = "attention";
  call.outputs = 2;
  call.attrs.scalar = 0.125;
  const OperandView heads = packed(dtype, {2, 4, queries, columns});
  call.operands.assign(4, heads);
  call.operands.push_back(packed(compute_type(dtype), {2, 4, queries}));
  return call;
}

TEST(AttentionKernels, TakeWhatSuitsThem) {
  Collector collector;
  const auto tiles = [&](const KernelCall& call) {
    return cuda::make_attention_tiles(collector, call) != nullptr;
  };
  const auto few = [&](const KernelCall& call) {
    return cuda::make_attention_few(collector, call) != nullptr;
  };
  EXPECT_TRUE(tiles(attention_call(DType::bf16, 33, 64)));
  EXPECT_TRUE(tiles(attention_call(DType::f16, 33, 8)));
  EXPECT_FALSE(tiles(attention_call(DType::f32, 33, 64)));
  EXPECT_FALSE(tiles(attention_call(DType::bf16, 33, 60)));
  EXPECT_FALSE(tiles(attention_call(DType::bf16, 33, 136)));
  KernelCall negative = attention_call(DType::bf16, 33, 64);
  negative.attrs.scalar = -1;
  EXPECT_FALSE(tiles(negative));
  KernelCall shifted = attention_call(DType::bf16, 33, 64);
  shifted.operands[1].view.offset = 4;
  EXPECT_FALSE(tiles(shifted));
  Collector small(60000);  // of shared memory
  EXPECT_TRUE(cuda::make_attention_tiles(small, attention_call(DType::bf16, 33, 64)));
  EXPECT_FALSE(cuda::make_attention_tiles(small, attention_call(DType::bf16, 33, 128)));

  EXPECT_TRUE(few(attention_call(DType::bf16, 1, 64)));
  EXPECT_TRUE(few(attention_call(DType::f32, 4, 128)));
  EXPECT_FALSE(few(attention_call(DType::bf16, 5, 64)));
  EXPECT_FALSE(few(attention_call(DType::bf16, 1, 72)));
  EXPECT_FALSE(few(attention_call(DType::f64, 1, 64)));
}

TEST_F(NamedSources, CompileWithNvrtcWithoutSpills) {
  Collector collector;
  for (int i = 0; i < kDTypeCount; ++i) add_all(collector, static_cast<DType>(i));
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    add_attention(collector, dtype, dtype == DType::f32, gpu::make_named_kernel);
    add_norms(collector, dtype);
  }
  EXPECT_GE(collector.sources.size(), 60u);
  expect_compiled(collector);
}

TEST_F(NamedSources, OfCudaAloneCompileWithoutSpills) {
  Collector collector;
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (dtype != DType::boolean) add_scans(collector, dtype);
    if (size_of(dtype) < 8) add_orders(collector, dtype);
    if (!is_float(dtype)) continue;
    add_losses(collector, dtype);
    add_embedding(collector, dtype);
    if (dtype == DType::f64) continue;
    add_attention(collector, dtype, true, cuda::make_attention_few, 1);
    if (!is_half(dtype)) continue;
    add_few(collector, dtype);
    for (const int64_t columns : {64, 128}) {
      add_attention(collector, dtype, columns == 64, cuda::make_attention_tiles, 33, columns);
    }
  }
  EXPECT_GE(collector.sources.size(), 70u);
  expect_compiled(collector);
}

TEST_F(NamedSources, OfPlainAttentionCompileWithoutSpills) {
  Collector collector;
  for (const int64_t columns : {16, 32, 64, 80, 128}) {
    add_plain_attention(collector, DType::f32, columns);
  }
  add_plain_attention(collector, DType::f64, 64);
  add_plain_attention(collector, DType::bf16, 60);
  EXPECT_EQ(collector.sources.size(), 28u);
  expect_compiled(collector);
}

// For those that have clusters.
TEST_F(NamedSources, OfLongRowsCompileWithoutSpills) {
  const Nvrtc nvrtc;
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc";
  Collector collector;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) add_long_rows(collector, dtype);
  EXPECT_EQ(collector.sources.size(), 24u);
  for (const std::string& source : collector.sources) {
    for (const char* architecture : {"sm_90a", "sm_100"}) {
      expect_compiled_for(nvrtc, architecture, source);
    }
  }
}

TEST_F(NamedSources, OfColumnSumsCompileWithoutSpillsForAll) {
  const Nvrtc nvrtc;
  if (!nvrtc.is_there()) GTEST_SKIP() << "no libnvrtc";
  Collector collector;
  for (const DType dtype : {DType::f32, DType::f64, DType::f16, DType::bf16}) {
    add_column_sums(collector, dtype);
  }
  EXPECT_EQ(collector.sources.size(), 16u);
  for (const std::string& source : collector.sources) {
    for (const char* architecture : kArchitectures) {
      expect_compiled_for(nvrtc, architecture, source);
    }
  }
}

}  // namespace
}  // namespace tessera
