#include "tessera/backend/cuda/kernels/product.h"

#include <algorithm>
#include <map>

#include "tessera/backend/cuda/kernels/few.h"
#include "tessera/backend/cuda/kernels/lt_product.h"
#include "tessera/base/precision.h"

namespace tessera::cuda {

namespace {

// rows × columns with these strides as a panel, either way round.
std::optional<Panel> panel(int64_t rows, int64_t columns, int64_t row, int64_t column) {
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) {
    return Panel{false, rows, columns, std::max(column, rows)};
  }
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) {
    return Panel{true, columns, rows, std::max(row, columns)};
  }
  return std::nullopt;
}

// Adjacent dimensions that one stride each walks through become one.
std::vector<PanelProduct::Loop> batch_loops(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  std::vector<PanelProduct::Loop> loops;
  for (int d = 0; d < c.shape.rank() - 2; ++d) {
    const PanelProduct::Loop here = {c.shape[d], a.strides[d], b.strides[d], c.strides[d]};
    if (here.extent == 1) continue;
    if (!loops.empty()) {
      PanelProduct::Loop& outer = loops.back();
      if (outer.a == here.a * here.extent && outer.b == here.b * here.extent &&
          outer.c == here.c * here.extent) {
        outer = {outer.extent * here.extent, here.a, here.b, here.c};
        continue;
      }
    }
    loops.push_back(here);
  }
  return loops;
}

class Product : public gpu::GpuExecutable {
 public:
  Product(Session& session, const KernelCall& call, PanelProduct product)
      : session_(session), call_(call), product_(std::move(product)) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    std::byte* start[3];
    for (size_t i = 0; i < 3; ++i) {
      const gpu::Operand operand = gpu::operand(at[i], call_.operands[i]);
      start[i] = static_cast<std::byte*>(operand.mem) + operand.start * size();
    }
    walk(0, start[0], start[1], start[2], stream);
  }

 private:
  int64_t size() const { return size_of(product_.dtype); }

  void walk(size_t depth, std::byte* a, std::byte* b, std::byte* c, Stream stream) const {
    if (depth == product_.loops.size()) return run(a, b, c, stream);
    const PanelProduct::Loop& loop = product_.loops[depth];
    for (int64_t i = 0; i < loop.extent; ++i) {
      walk(depth + 1, a + i * loop.a * size(), b + i * loop.b * size(), c + i * loop.c * size(),
           stream);
    }
  }

  void run(std::byte* a, std::byte* b, std::byte* c, Stream stream) const {
    std::byte* const first = product_.swapped ? b : a;
    std::byte* const second = product_.swapped ? a : b;
    const std::vector<uint32_t> alignments = {alignment_of(first), alignment_of(second),
                                              alignment_of(c)};
    const LtProduct::Operands operands = {first, second, c};
    const std::lock_guard lock(mutex_);
    std::unique_ptr<LtProduct>& prepared = prepared_[alignments];
    if (prepared == nullptr) {
      auto made = std::make_unique<LtProduct>(session_, product_, alignments);
      if (!made->choose(operands, stream)) {
        fail("matmul: cuBLASLt knows no algorithm for ", made->description());
      }
      prepared = std::move(made);
    }
    prepared->run(operands, stream);
  }

  Session& session_;
  const KernelCall call_;
  const PanelProduct product_;
  mutable std::mutex mutex_;
  mutable std::map<std::vector<uint32_t>, std::unique_ptr<LtProduct>> prepared_;
};

// The library has fast algorithms of half types for extents of whole 16-byte chunks. A long extent
// that is none is cut: what is left over is small.
constexpr int64_t kChunk = 8, kLong = 512;

bool is_cut(int64_t extent) { return extent >= kLong && extent % kChunk != 0; }

// Elements [begin, end) of one of the last two dimensions.
OperandView piece_of(OperandView operand, int dim, int64_t begin, int64_t end) {
  View& view = operand.view;
  const int at = view.shape.rank() - 2 + dim;
  view.offset += begin * view.strides[at];
  view.shape[at] = end - begin;
  return operand;
}

bool has_chunked_rows(const View& view) {
  const int rank = view.shape.rank();
  const int64_t row = view.strides[rank - 2], column = view.strides[rank - 1];
  return view.offset % kChunk == 0 && (row == 1 ? column : row) % kChunk == 0;
}

// Products one after the other.
class Pieces : public gpu::GpuExecutable {
 public:
  std::vector<std::unique_ptr<gpu::GpuExecutable>> products;

  void launch(std::span<const BufferRef> at, int64_t extent0, Stream stream) const override {
    for (const auto& product : products) product->launch(at, extent0, stream);
  }
};

// The call by two pieces of its longest extent that is cut; null where there is none.
std::unique_ptr<gpu::GpuExecutable> make_pieces(Session& session, const KernelCall& call) {
  const OperandView &a = call.operands[0], &b = call.operands[1], &c = call.operands[2];
  if (!is_half(a.dtype) || c.view.shape.rank() != 2) return nullptr;
  for (const OperandView& operand : call.operands) {
    if (!has_chunked_rows(operand.view)) return nullptr;
  }
  const int64_t m = c.view.shape[0], n = c.view.shape[1], k = a.view.shape[1];
  const int64_t longest = std::max({is_cut(m) ? m : 0, is_cut(n) ? n : 0, is_cut(k) ? k : 0});
  if (longest == 0) return nullptr;
  const auto piece = [&](int64_t begin, int64_t end) {
    KernelCall result = call;
    if (n == longest) {
      result.operands = {a, piece_of(b, 1, begin, end), piece_of(c, 1, begin, end)};
    } else if (m == longest) {
      result.operands = {piece_of(a, 0, begin, end), b, piece_of(c, 0, begin, end)};
    } else {
      result.operands = {piece_of(a, 1, begin, end), piece_of(b, 0, begin, end), c};
    }
    return result;
  };
  const int64_t whole = longest / kChunk * kChunk;
  auto pieces = std::make_unique<Pieces>();
  pieces->products.push_back(make_product(session, piece(0, whole)));
  if (pieces->products[0] == nullptr) return nullptr;
  const bool adds = n != longest && m != longest;
  pieces->products.push_back(make_few(session, piece(whole, longest), adds));
  return pieces;
}

}  // namespace

std::optional<PanelProduct> panel_product(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  const DType dtype = call.operands[0].dtype;
  const int rank = c.shape.rank();
  const int64_t m = c.shape[rank - 2], n = c.shape[rank - 1], k = a.shape[rank - 1];
  if (!is_float(dtype) || numel(c.shape) == 0 || k == 0) return std::nullopt;
  const auto strides = [rank](const View& view) {
    return std::pair(view.strides[rank - 2], view.strides[rank - 1]);
  };
  const auto [a_row, a_col] = strides(a);
  const auto [b_row, b_col] = strides(b);
  const auto [c_row, c_col] = strides(c);
  PanelProduct product;
  product.dtype = dtype;
  product.tf32 = dtype == DType::f32 && allows_tf32();
  // The library's columns are contiguous. Where ours are rows, cᵀ = bᵀ aᵀ.
  auto result = panel(n, m, c_col, c_row);
  product.swapped = result && !result->transposed;
  if (!product.swapped) result = panel(m, n, c_row, c_col);
  if (!result || result->transposed) return std::nullopt;
  const auto first = product.swapped ? panel(n, k, b_col, b_row) : panel(m, k, a_row, a_col);
  const auto second = product.swapped ? panel(k, m, a_col, a_row) : panel(k, n, b_row, b_col);
  if (!first || !second) return std::nullopt;
  product.first = *first;
  product.second = *second;
  product.result = *result;
  product.loops = batch_loops(call);
  if (!product.loops.empty()) {
    // The longest loop is the batch: it is one launch.
    const auto longest =
        std::max_element(product.loops.begin(), product.loops.end(),
                         [](const auto& x, const auto& y) { return x.extent < y.extent; });
    product.batch = *longest;
    product.loops.erase(longest);
  }
  return product;
}

std::unique_ptr<gpu::GpuExecutable> make_product(Session& session, const KernelCall& call) {
  if (call.kernel != "matmul" || call.operands.size() != 3 || !cublaslt_library().lt) {
    return nullptr;
  }
  if (auto pieces = make_pieces(session, call)) return pieces;
  std::optional<PanelProduct> product = panel_product(call);
  if (!product) return nullptr;
  return std::make_unique<Product>(session, call, *std::move(product));
}

}  // namespace tessera::cuda
