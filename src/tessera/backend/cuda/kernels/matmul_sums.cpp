#include "tessera/backend/cuda/kernels/matmul_sums.h"

#include <map>
#include <mutex>

#include "tessera/backend/cuda/kernels/column_sums.h"
#include "tessera/backend/cuda/kernels/lt_product.h"
#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

// Operands: a, b, their product, the sums of b's columns. One of the results may be unwanted.
class MatmulSums : public gpu::GpuExecutable {
 public:
  MatmulSums(Session& session, const KernelCall& call)
      : session_(session), call_(call), sums_(session, call.kernel, call.operands[1]) {
    KernelCall product;
    product.kernel = "matmul";
    product.operands = {call.operands[0], call.operands[1], call.operands[2]};
    panels_ = panel_product(product);
    const bool fits = panels_ && panels_->loops.empty() && dtype() != DType::f64 &&
                      is_contiguous(call.operands[3].view) && cublaslt_library().lt;
    if (!fits) panels_.reset();
    product_ = make_product(session, product);
    if (!product_) product_ = gpu::make_named_kernel(session, product);
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* p[4];
    for (size_t i = 0; i < 4; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem);
      if (p[i] != nullptr) p[i] += operand.start * size_of(dtype());
    }
    if (p[2] != nullptr && p[3] != nullptr && by_library(at, p, stream)) return;
    by_parts(at, p, stream);
  }

 private:
  DType dtype() const { return call_.operands[0].dtype; }

  void by_parts(std::span<const BufferRef> at, std::byte* const* p, Stream stream) const {
    if (p[2] != nullptr) product_->launch(at.first(3), 0, stream);
    if (p[3] != nullptr) sums_(stream, p[1], nullptr, p[3]);
  }

  // False where the library cannot, or the parts are faster.
  bool by_library(std::span<const BufferRef> at, std::byte* const* p, Stream stream) const {
    if (!panels_ || alignment_of(p[3]) < 16) return false;
    const size_t first = panels_->swapped ? 1 : 0;
    const LtEpilogue epilogue = panels_->swapped ? kLtSumsOfFirst : kLtSumsOfSecond;
    const std::vector<uint32_t> alignments = {alignment_of(p[first]), alignment_of(p[1 - first]),
                                              alignment_of(p[2])};
    const LtProduct::Operands operands = {p[first], p[1 - first], p[2], p[3]};
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = prepared_.try_emplace(alignments);
    if (is_new) {
      auto made = std::make_unique<LtProduct>(session_, *panels_, alignments, epilogue);
      const LtProduct::Parts parts = {[&] { by_parts(at, p, stream); }, sums_.source()};
      if (made->choose(operands, stream, &parts)) found->second = std::move(made);
    }
    if (found->second == nullptr) return false;
    found->second->run(operands, stream);
    return true;
  }

  Session& session_;
  const KernelCall call_;
  const ColumnSums sums_;
  std::optional<PanelProduct> panels_;
  std::unique_ptr<gpu::GpuExecutable> product_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<uint32_t>, std::unique_ptr<LtProduct>> prepared_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_matmul_sums(Session& session, const KernelCall& call) {
  return std::make_unique<MatmulSums>(session, call);
}

}  // namespace tessera::cuda
