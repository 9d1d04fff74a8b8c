#include "tessera/backend/cuda/kernels/matmul_add.h"

#include <map>
#include <mutex>

#include "tessera/backend/cuda/kernels/lt_product.h"
#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::cuda {

namespace {

// y = product + c, where y may be c's memory.
constexpr std::string_view kAdd = R"(
KERNEL tessera_add_matrix(const $S* product, const $S* c, $S* y, i64 c_row, i64 c_column, i64 y_row,
                          i64 y_column, i64 columns, i64 count) {
  const i64 i = POINT;
  if (i >= count) return;
  const i64 row = i / columns, column = i % columns;
  y[row * y_row + column * y_column] =
      STORE((LOAD(product[i]) + LOAD(c[row * c_row + column * c_column])));
}
)";

class MatmulAdd : public gpu::GpuExecutable {
 public:
  MatmulAdd(Session& session, const KernelCall& call) : session_(session), call_(call) {
    const Shape& shape = call.operands[3].view.shape;
    bytes_ = numel(shape) * size_of(dtype());
    KernelCall product;
    product.kernel = "matmul";
    product.operands = {call.operands[0], call.operands[1], call.operands[3]};
    panels_ = panel_product(product);
    const bool fits = panels_ && panels_->loops.empty() && cublaslt_library().lt &&
                      call.operands[2].view.strides == call.operands[3].view.strides;
    if (!fits) panels_.reset();
    product.operands[2].view = contiguous_view(shape);
    product_ = make_product(session, product);
    if (!product_) product_ = gpu::make_named_kernel(session, product);
    add_ = session.build(call.kernel, gpu::complete_source(session, kAdd, dtype(), {}),
                         "tessera_add_matrix");
  }

  ~MatmulAdd() override {
    if (room_ != 0) session_.free(room_);
  }
  MatmulAdd(const MatmulAdd&) = delete;
  MatmulAdd& operator=(const MatmulAdd&) = delete;

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* p[4];  // a, b, c, y
    for (size_t i = 0; i < 4; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      p[i] = static_cast<std::byte*>(operand.mem) + operand.start * size_of(dtype());
    }
    if (!by_library(p, stream)) by_parts(at, p, stream);
  }

 private:
  DType dtype() const { return call_.operands[0].dtype; }

  // False where the library cannot.
  bool by_library(std::byte* const* p, Stream stream) const {
    if (!panels_) return false;
    const size_t first = panels_->swapped ? 1 : 0;
    const std::vector<uint32_t> alignments = {alignment_of(p[first]), alignment_of(p[1 - first]),
                                              std::min(alignment_of(p[2]), alignment_of(p[3]))};
    LtProduct::Operands operands = {p[first], p[1 - first], p[3]};
    operands.added = p[2];
    const std::lock_guard lock(mutex_);
    const auto [found, is_new] = prepared_.try_emplace(alignments);
    if (is_new) {
      auto made = std::make_unique<LtProduct>(session_, *panels_, alignments, kLtPlain, true);
      // Into other memory: trying the algorithms in place would add the product many times.
      LtProduct::Operands elsewhere = operands;
      elsewhere.result = panels_room();
      if (made->choose(elsewhere, stream)) found->second = std::move(made);
    }
    if (found->second == nullptr) return false;
    found->second->run(operands, stream);
    return true;
  }

  void by_parts(std::span<const BufferRef> at, std::byte* const* p, Stream stream) const {
    const View &c = call_.operands[2].view, &y = call_.operands[3].view;
    const int64_t columns = y.shape[1], count = numel(y.shape);
    const std::lock_guard lock(mutex_);
    std::byte* const product = room(bytes_);
    const std::vector<BufferRef> operands = {at[0], at[1], BufferRef{product, 0}};
    product_->launch(operands, 0, stream);
    (*add_)(stream, gpu::range_of(count, gpu::group_size(session_, 256)), product, p[2], p[3],
            c.strides[0], c.strides[1], y.strides[0], y.strides[1], columns, count);
  }

  // As many bytes as the library's result spans, which may be part of a wider matrix.
  std::byte* panels_room() const {
    const Panel& result = panels_->result;
    return room(result.step * result.columns * size_of(dtype()));
  }
  std::byte* room(int64_t bytes) const {
    if (room_ == 0) room_ = session_.allocate(std::max(bytes, bytes_));
    return reinterpret_cast<std::byte*>(room_);
  }

  Session& session_;
  const KernelCall call_;
  int64_t bytes_ = 0;
  std::optional<PanelProduct> panels_;
  std::unique_ptr<gpu::GpuExecutable> product_;
  std::unique_ptr<gpu::Kernel> add_;
  mutable std::mutex mutex_;
  mutable Address room_ = 0;
  mutable std::map<std::vector<uint32_t>, std::unique_ptr<LtProduct>> prepared_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_matmul_add(Session& session, const KernelCall& call) {
  return std::make_unique<MatmulAdd>(session, call);
}

}  // namespace tessera::cuda
