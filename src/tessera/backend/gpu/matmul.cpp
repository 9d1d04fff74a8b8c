// matmul: a (…, M, K), b (…, K, N) -> c (…, M, N); any strides.
//
// A group computes a tile of c, $side · 4 rows and as many columns. It walks along K in steps of
// 16: both operands' parts go to local memory, then every lane adds to its 4 × 4 elements, which
// stay in registers.
#include "tessera/backend/gpu/named_kernel.h"

namespace tessera::gpu {

namespace {

constexpr std::string_view kText = R"(
typedef struct {
  i64 m, n, k;
  i64 a_row, a_col, b_row, b_col, c_row, c_col;
  Axes extent, a_step, b_step, c_step;  // of the batch
} Product;

#define DEPTH 16
#define TILE ($side * 4)

KERNEL_OF($side * $side)
tessera_matmul(GLOBAL const $S* a, i64 a_start, GLOBAL const $S* b, i64 b_start,
                    GLOBAL $S* c, i64 c_start, Product p) {
  SHARED $A a_tile[DEPTH][TILE + 1];  // (K, M)
  SHARED $A b_tile[DEPTH][TILE + 1];  // (K, N)
  a += a_start;
  b += b_start;
  c += c_start;
  // One dimension of groups: others are limited to 65535 on some devices.
  const i64 columns = (p.n + TILE - 1) / TILE, rows = (p.m + TILE - 1) / TILE;
  const i64 tile = (i64)GROUP % (rows * columns);
  i64 batch = (i64)GROUP / (rows * columns);
  for (i32 d = 7; d >= 0; --d) {
    const i64 at = batch % p.extent.at[d];
    batch /= p.extent.at[d];
    a += at * p.a_step.at[d];
    b += at * p.b_step.at[d];
    c += at * p.c_step.at[d];
  }
  const i32 lane = LANE, x = lane % $side, y = lane / $side;
  const i64 row0 = tile / columns * TILE, col0 = tile % columns * TILE;
  $A sum[4][4] = {{0}};
  for (i64 k0 = 0; k0 < p.k; k0 += DEPTH) {
    // Neighbouring lanes read along the dimension that is contiguous.
    for (i32 e = lane; e < DEPTH * TILE; e += $side * $side) {
      const i32 k = p.a_row == 1 ? e / TILE : e % DEPTH, m = p.a_row == 1 ? e % TILE : e / DEPTH;
      const bool inside = row0 + m < p.m && k0 + k < p.k;
      a_tile[k][m] = inside ? ($A)LOAD(a[(row0 + m) * p.a_row + (k0 + k) * p.a_col]) : 0;
    }
    for (i32 e = lane; e < DEPTH * TILE; e += $side * $side) {
      const i32 k = p.b_row == 1 ? e % DEPTH : e / TILE, n = p.b_row == 1 ? e / DEPTH : e % TILE;
      const bool inside = col0 + n < p.n && k0 + k < p.k;
      b_tile[k][n] = inside ? ($A)LOAD(b[(k0 + k) * p.b_row + (col0 + n) * p.b_col]) : 0;
    }
    BARRIER;
    for (i32 k = 0; k < DEPTH; ++k) {
      for (i32 i = 0; i < 4; ++i) {
        const $A left = a_tile[k][y + i * $side];
        for (i32 j = 0; j < 4; ++j) sum[i][j] += left * b_tile[k][x + j * $side];
      }
    }
    BARRIER;
  }
  for (i32 i = 0; i < 4; ++i) {
    for (i32 j = 0; j < 4; ++j) {
      const i64 row = row0 + y + i * $side, col = col0 + x + j * $side;
      if (row < p.m && col < p.n) c[row * p.c_row + col * p.c_col] = STORE(($T)sum[i][j]);
    }
  }
}
)";

struct Product {
  int64_t m, n, k;
  int64_t a_row, a_col, b_row, b_col, c_row, c_col;
  Axes extent, a_step, b_step, c_step;
};

// Integers wrap: they are added up unsigned and cut.
std::string accumulator(DType dtype) {
  if (is_float(dtype)) return std::string(name(compute_type(dtype)));
  return size_of(dtype) == 8 ? "u64" : "u32";
}

class Matmul : public GpuExecutable {
 public:
  Matmul(Session& session, const KernelCall& call) : call_(call) {
    const View &a = call.operands[0].view, &b = call.operands[1].view, &c = call.operands[2].view;
    const int rank = c.shape.rank();
    product_ = {c.shape[rank - 2],   c.shape[rank - 1],   a.shape[rank - 1],   a.strides[rank - 2],
                a.strides[rank - 1], b.strides[rank - 2], b.strides[rank - 1], c.strides[rank - 2],
                c.strides[rank - 1], axes_of({}, 1),      axes_of({}, 0),      axes_of({}, 0),
                axes_of({}, 0)};
    for (int d = 0; d < rank - 2; ++d) {
      batch_ *= c.shape[d];
      product_.extent.at[d] = c.shape[d];
      product_.a_step.at[d] = a.strides[d];
      product_.b_step.at[d] = b.strides[d];
      product_.c_step.at[d] = c.strides[d];
    }
    const DType dtype = call.operands[0].dtype;
    side_ = session.device().largest_group >= 256  ? 16
            : session.device().largest_group >= 64 ? 8
                                                   : 4;
    kernel_ = session.build("matmul",
                            complete_source(session, cat(kAxesText, kText), dtype,
                                            {{"$side", cat(side_)}, {"$A", accumulator(dtype)}}),
                            "tessera_matmul");
  }

  void launch(std::span<const BufferRef> at, int64_t, Stream stream) const override {
    Operand operands[3];
    for (size_t i = 0; i < 3; ++i) operands[i] = operand(at[i], call_.operands[i]);
    const int64_t tile = side_ * 4;
    Range range;
    range.group[0] = size_t(side_ * side_);
    range.groups[0] =
        size_t((product_.n + tile - 1) / tile * ((product_.m + tile - 1) / tile) * batch_);
    (*kernel_)(stream, range, operands[0], operands[1], operands[2], product_);
  }

 private:
  const KernelCall call_;
  Product product_ = {};
  int64_t batch_ = 1;
  int64_t side_ = 0;
  std::unique_ptr<Kernel> kernel_;
};

}  // namespace

std::unique_ptr<GpuExecutable> make_matmul(Session& session, const KernelCall& call) {
  return std::make_unique<Matmul>(session, call);
}

}  // namespace tessera::gpu
