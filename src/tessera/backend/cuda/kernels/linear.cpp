#include "tessera/backend/cuda/kernels/linear.h"

#include <map>
#include <mutex>

#include "tessera/backend/cuda/kernels/column_sums.h"
#include "tessera/backend/cuda/kernels/lt_product.h"
#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

// What follows a product of "linear" that the library made alone. See backend/cpu/simd/math.h for
// the formulae.
constexpr std::string_view kAfter = R"(
KERNEL tessera_linear($S* y, i64 y_step, $S* sum, const $S* bias, i64 bias_step, i64 columns,
                      i64 count) {
  const i64 i = POINT;
  if (i >= count) return;
  const i64 column = i % columns;
  y += i / columns * y_step + column;
  const $T x = LOAD(*y) + LOAD(bias[column * bias_step]);
  if (sum != nullptr) sum[i] = STORE(x);
  *y = STORE(($activation));
}
)";

// By attrs.axis of "linear". A library's relu may keep the sign of a zero.
constexpr std::string_view kActivations[] = {"x", "t_gelu_tanh_$T(x)", "x <= 0 ? ($T)0 : x"};
constexpr int64_t kGelu = 1, kRelu = 2;

// Operands: a, b, then bias or x, the result, and sum or sums.
class Linear : public gpu::GpuExecutable {
 public:
  Linear(Session& session, const KernelCall& call)
      : session_(session), call_(call), is_slope_(call.kernel == "linear_slope") {
    KernelCall product;
    product.kernel = "matmul";
    product.operands = {call.operands[0], call.operands[1], call.operands[3]};
    panels_ = panel_product(product);
    const View& beside = call.operands[2].view;
    const bool fits = panels_ && panels_->swapped && panels_->loops.empty() &&
                      dtype() != DType::f64 && is_contiguous(beside) && cublaslt_library().lt;
    if (!fits) panels_.reset();
    product_ = make_product(session, product);
    if (!product_) product_ = gpu::make_named_kernel(session, product);
    if (is_slope_) {
      slope_.emplace(session, call.kernel, call.operands[3], &call.operands[2]);
      return;
    }
    const std::string source = gpu::complete_source(
        session, kAfter, dtype(), {{"$activation", std::string(kActivations[call.attrs.axis])}});
    after_ = session.build(call.kernel, source, "tessera_linear");
  }

  ~Linear() override {
    if (unwanted_ != 0) session_.free(unwanted_);
  }
  Linear(const Linear&) = delete;
  Linear& operator=(const Linear&) = delete;

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* p[5];
    for (size_t i = 0; i < 5; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem);
      if (p[i] != nullptr) p[i] += operand.start * size_of(dtype());
    }
    if (p[3] != nullptr && by_library(at, p, stream)) return;
    by_parts(at, p, stream);
  }

 private:
  DType dtype() const { return call_.operands[0].dtype; }

  LtEpilogue epilogue(bool has_second) const {
    if (is_slope_) return has_second ? kLtGeluSlopeSums : kLtGeluSlope;
    if (call_.attrs.axis == kRelu) return kLtReluBias;
    if (call_.attrs.axis != kGelu) return kLtBias;
    return has_second ? kLtGeluBiasBeside : kLtGeluBias;
  }

  // False where the library cannot, or the parts are faster.
  bool by_library(std::span<const BufferRef> at, std::byte* const* p, Stream stream) const {
    const bool has_second = p[4] != nullptr;
    const bool has_gelu = is_slope_ || call_.attrs.axis == kGelu;
    if (!panels_ || (has_second && !has_gelu)) return false;
    // The library's gelu is good for halves: of f32, 65 ulps were seen.
    if (has_gelu && !is_half(dtype())) return false;
    const std::vector<uint32_t> alignments = {alignment_of(p[1]), alignment_of(p[0]),
                                              alignment_of(p[3])};
    const LtProduct::Operands operands = {p[1], p[0], p[3], is_slope_ ? p[4] : p[2],
                                          is_slope_ ? p[2] : p[4]};
    for (const std::byte* pointer : {p[2], p[4]}) {
      if (alignment_of(pointer) < 16) return false;
    }
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = prepared_.try_emplace(std::pair(alignments, has_second));
    if (is_new) {
      auto made = std::make_unique<LtProduct>(session_, *panels_, alignments, epilogue(has_second));
      const LtProduct::Parts parts = {[&] { by_parts(at, p, stream); },
                                      is_slope_ ? slope_->source() : ""};
      if (made->choose(operands, stream, is_slope_ ? &parts : nullptr)) {
        found->second = std::move(made);
      }
    }
    if (found->second == nullptr) return false;
    found->second->run(operands, stream);
    return true;
  }

  void by_parts(std::span<const BufferRef> at, std::byte* const* p, Stream stream) const {
    const Shape& shape = call_.operands[3].view.shape;
    const int64_t columns = shape[1], count = numel(shape);
    std::byte* const y = p[3] != nullptr ? p[3] : unwanted(count * size_of(dtype()));
    const BufferRef result = p[3] != nullptr ? at[3] : BufferRef{y, 0};
    const std::vector<BufferRef> operands = {at[0], at[1], result};
    product_->launch(operands, 0, stream);
    if (is_slope_) return (*slope_)(stream, y, p[2], p[4]);
    (*after_)(stream, gpu::range_of(count, gpu::group_size(session_, 256)), y,
              call_.operands[3].view.strides[0], p[4], p[2], call_.operands[2].view.strides[0],
              columns, count);
  }

  // Room for a result that is on the way to what is asked for.
  std::byte* unwanted(int64_t bytes) const {
    const std::lock_guard lock(mutex_);
    if (unwanted_ == 0) unwanted_ = session_.allocate(bytes);
    return reinterpret_cast<std::byte*>(unwanted_);
  }

  Session& session_;
  const KernelCall call_;
  const bool is_slope_;
  std::optional<PanelProduct> panels_;
  std::unique_ptr<gpu::GpuExecutable> product_;
  std::unique_ptr<gpu::Kernel> after_;
  std::optional<ColumnSums> slope_;  // with the sums
  mutable std::mutex mutex_;
  mutable Address unwanted_ = 0;
  mutable std::map<std::pair<std::vector<uint32_t>, bool>, std::unique_ptr<LtProduct>> prepared_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_linear(Session& session, const KernelCall& call) {
  return std::make_unique<Linear>(session, call);
}

}  // namespace tessera::cuda
