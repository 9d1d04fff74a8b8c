#include "tessera/backend/opencl/kernels/clblast.h"

#include <algorithm>
#include <cstdlib>

#include "tessera/runtime/shared_library.h"

namespace tessera::opencl {

namespace {

constexpr int64_t kWorthIt = int64_t(1) << 21;  // multiplications

template <class T>
using Gemm = int(int layout, int a_transposed, int b_transposed, size_t m, size_t n, size_t k,
                 T alpha, MemId a, size_t a_offset, size_t a_step, MemId b, size_t b_offset,
                 size_t b_step, T beta, MemId c, size_t c_offset, size_t c_step, QueueId* queue,
                 EventId* event);

struct ClBlast {
  Gemm<float>* f32 = nullptr;
  Gemm<double>* f64 = nullptr;
};

const ClBlast& clblast() {
  static const ClBlast instance = [] {
    ClBlast found;
    const char* asked = std::getenv("TESSERA_CLBLAST");
    if (asked != nullptr && std::string_view(asked) == "0") return found;
    const char* const names[] = {"libclblast.so.1"};
    const std::optional<SharedLibrary> library = SharedLibrary::open(names);
    if (!library) return found;
    found.f32 = library->function<Gemm<float>>("CLBlastSgemm");
    found.f64 = library->function<Gemm<double>>("CLBlastDgemm");
    return found;
  }();
  return instance;
}

// The step between rows where columns are contiguous, or else between columns.
std::optional<int64_t> step_of(const View& view, bool& transposed) {
  const int rank = view.shape.rank();
  const int64_t rows = view.shape[rank - 2], columns = view.shape[rank - 1];
  const int64_t row = view.strides[rank - 2], column = view.strides[rank - 1];
  transposed = false;
  if ((column == 1 || columns == 1) && (row >= columns || rows == 1)) return std::max(row, columns);
  transposed = true;
  if ((row == 1 || rows == 1) && (column >= rows || columns == 1)) return std::max(column, rows);
  return std::nullopt;
}

MemId mem(const gpu::Operand& operand) { return static_cast<MemId>(operand.mem); }

template <class T>
int multiply(Gemm<T>* gemm, const DenseProduct& p, const gpu::Operand* at, QueueId queue) {
  constexpr int kRowMajor = 101, kPlain = 111, kTransposed = 112;
  return gemm(kRowMajor, p.a_transposed ? kTransposed : kPlain,
              p.b_transposed ? kTransposed : kPlain, size_t(p.m), size_t(p.n), size_t(p.k), 1,
              mem(at[0]), size_t(at[0].start), size_t(p.a_step), mem(at[1]), size_t(at[1].start),
              size_t(p.b_step), 0, mem(at[2]), size_t(at[2].start), size_t(p.c_step), &queue,
              nullptr);
}

class Product : public gpu::GpuExecutable {
 public:
  Product(Session& session, const KernelCall& call, const DenseProduct& product)
      : session_(session), call_(call), product_(product) {}

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    gpu::Operand operands[3];
    for (size_t i = 0; i < 3; ++i) operands[i] = gpu::operand(at[i], call_.operands[i]);
    multiply_dense(product_, operands, session_.queue(stream));
  }

 private:
  Session& session_;
  const KernelCall call_;
  const DenseProduct product_;
};

}  // namespace

std::unique_ptr<gpu::GpuExecutable> make_clblast(Session& session, const KernelCall& call) {
  if (call.kernel != "matmul" || call.operands.size() != 3) return nullptr;
  const std::optional<DenseProduct> product = dense_product(call);
  return product ? std::make_unique<Product>(session, call, *product) : nullptr;
}

std::optional<DenseProduct> dense_product(const KernelCall& call) {
  const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
  const int rank = c.shape.rank();
  DenseProduct p = {call.operands[0].dtype,
                    c.shape[rank - 2],
                    c.shape[rank - 1],
                    a.shape[rank - 1],
                    false,
                    false,
                    0,
                    0,
                    0};
  const bool has = (p.dtype == DType::f32 && clblast().f32 != nullptr) ||
                   (p.dtype == DType::f64 && clblast().f64 != nullptr);
  if (!has || p.m * p.n * p.k < kWorthIt || numel(c.shape) != p.m * p.n) return std::nullopt;
  bool c_transposed = false;
  const auto a_step = step_of(a, p.a_transposed), b_step = step_of(b, p.b_transposed),
             c_step = step_of(c, c_transposed);
  if (!a_step || !b_step || !c_step || c_transposed) return std::nullopt;
  p.a_step = *a_step;
  p.b_step = *b_step;
  p.c_step = *c_step;
  return p;
}

void multiply_dense(const DenseProduct& product, const gpu::Operand operands[3], QueueId queue) {
  const int status = product.dtype == DType::f32
                         ? multiply(clblast().f32, product, operands, queue)
                         : multiply(clblast().f64, product, operands, queue);
  if (status != 0) fail("matmul: CLBlast failed with status ", status);
}

}  // namespace tessera::opencl
