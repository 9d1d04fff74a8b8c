#include "codegen/zoo.h"

#include "kernel/ir_builder.h"

namespace tessera {

namespace {

// y[i, j] = exp(x[i, j] * 0.5 + bias[j]): contiguous and broadcast loads.
KernelIR map_chain() {
  IrBuilder b("mul add exp", {4, 6}, 1);
  const int x = b.in(DType::f32), bias = b.in(DType::f32), y = b.out(DType::f32);
  const int half = b.constant(DType::f32, 0.5);
  const int scaled = b.scalar(ScalarOp::mul, {b.load(x, {6, 1}), half});
  const int moved = b.scalar(ScalarOp::add, {scaled, b.load(bias, {0, 1})});
  b.store(y, {6, 1}, b.scalar(ScalarOp::exp, {moved}));
  return b.build();
}

// A copy of a reversed, transposed view, with integers that wrap.
KernelIR strided() {
  IrBuilder b("mul neg", {3, 2, 5}, 2);
  const int x = b.in(DType::i32), y = b.out(DType::i32);
  const int v = b.load(x, {1, -15, 3}, 15);
  b.store(y, {10, 5, 1}, b.scalar(ScalarOp::neg, {b.scalar(ScalarOp::mul, {v, v})}));
  return b.build();
}

// y = concat(a (n, 3), b (n, 2)) along axis 1, padded by one element on the right.
KernelIR concat_pad() {
  IrBuilder b("concat pad", {4, 6}, 1);
  const int p = b.in(DType::f32), q = b.in(DType::f32), y = b.out(DType::f32);
  const int fill = b.constant(DType::f32, -1);
  const int right = b.load_masked(q, {2, 1}, -3, {0, 3}, {1 << 20, 5}, fill);
  b.store(y, {6, 1}, b.load_masked(p, {3, 1}, 0, {0, 0}, {INT64_MAX, 3}, right));
  return b.build();
}

// y[i, j] = table[index[i], j]
KernelIR gather() {
  IrBuilder b("gather", {5, 3}, 1);
  const int table = b.in(DType::bf16), index = b.in(DType::i32), y = b.out(DType::f16);
  const int i = b.cast(b.load(index, {1, 0}), DType::i64);
  b.store(y, {3, 1}, b.load_indexed(table, {0, 1}, i, 3, 10));
  return b.build();
}

// y[i] = where(uniform(i; key, offset) < keep, x[i] / keep, 0), and the mask.
KernelIR dropout() {
  IrBuilder b("uniform lt div where", {100}, 0);
  const int x = b.in(DType::f32), state = b.in(DType::i64);
  const int y = b.out(DType::f32), mask = b.out(DType::boolean);
  const int draw =
      b.scalar(ScalarOp::uniform, {b.index({1}), b.load(state, {0}), b.load(state, {0}, 1)});
  const int keep = b.constant(DType::f32, 0.9);
  const int kept = b.scalar(ScalarOp::lt, {draw, keep});
  const int scaled = b.scalar(ScalarOp::div, {b.load(x, {1}), keep});
  b.store(y, {1}, b.scalar(ScalarOp::where, {kept, scaled, b.constant(DType::f32, 0)}));
  b.store(mask, {1}, kept);
  return b.build();
}

// y[j] = Σ_i x[i, j] of (300, n): the inner dimension is the slow one in memory.
KernelIR column_sum() {
  IrBuilder b("cast sum", {7, 300}, 1);
  const int x = b.in(DType::f16), y = b.out(DType::f64);
  const int v = b.cast(b.load(x, {1, 7}), DType::f64);
  b.store(y, {1, 0}, b.reduce(ReduceOp::sum, v));
  return b.build();
}

KernelIR argmax() {
  IrBuilder b("argmax", {4, 3, 20}, 1);
  const int x = b.in(DType::f32), y = b.out(DType::i64);
  b.store(y, {1, 0, 0}, b.reduce(ReduceOp::argmax, b.load(x, {60, 20, 1})));
  return b.build();
}

// y = gelu(x) * g in bf16, all contiguous: any number of elements, 16 bytes at a time.
KernelIR gated() {
  IrBuilder b("gelu_tanh mul", {64}, 0);
  const int x = b.in(DType::bf16), g = b.in(DType::bf16), y = b.out(DType::bf16);
  const int gelu = b.cast(b.scalar(ScalarOp::gelu_tanh, {b.load(x, {1})}), DType::bf16);
  b.store(y, {1}, b.scalar(ScalarOp::mul, {gelu, b.load(g, {1})}));
  return b.build();
}

// y = x / sqrt(mean(x²) + ε) · w
KernelIR rms_norm() {
  IrBuilder b("mul sum mul add rsqrt mul mul", {4, 768}, 1);
  const int x = b.in(DType::f32), w = b.in(DType::f32), y = b.out(DType::f32);
  const int v = b.load(x, {768, 1});
  const int total = b.reduce(ReduceOp::sum, b.scalar(ScalarOp::mul, {v, v}));
  const int share = b.constant(DType::f32, 1.0 / 768, IrLevel::row);
  const int mean = b.scalar(ScalarOp::mul, {total, share});
  const int moved = b.scalar(ScalarOp::add, {mean, b.constant(DType::f32, 1e-6, IrLevel::row)});
  const int normed = b.scalar(ScalarOp::mul, {v, b.scalar(ScalarOp::rsqrt, {moved})});
  b.store(y, {768, 1}, b.scalar(ScalarOp::mul, {normed, b.load(w, {0, 1})}));
  return b.build();
}

// Softmax of rows that start anywhere, too long for the registers of one group.
KernelIR long_rows() {
  KernelIR ir = softmax_kernel(DType::f32, 4, 50257);
  ir.name = "long rows";
  return ir;
}

}  // namespace

KernelIR norm_kernel(DType dtype) {
  IrBuilder b("mul sum sqrt", {1000}, 0);
  const int x = b.in(dtype), y = b.out(compute_type(dtype));
  const int v = b.load(x, {1});
  const int total = b.reduce(ReduceOp::sum, b.scalar(ScalarOp::mul, {v, v}));
  b.store(y, {0}, b.scalar(ScalarOp::sqrt, {total}));
  return b.build();
}

KernelIR softmax_kernel(DType dtype, int64_t rows, int64_t cols) {
  IrBuilder b("max sub exp sum div", {rows, cols}, 1);
  const int x = b.in(dtype), y = b.out(dtype), m = b.out(compute_type(dtype));
  const int v = b.load(x, {cols, 1});
  const int top = b.reduce(ReduceOp::max, v);
  const int e = b.scalar(ScalarOp::exp, {b.scalar(ScalarOp::sub, {v, top})});
  const int total = b.reduce(ReduceOp::sum, e);
  b.store(m, {1, 0}, top);
  b.store(y, {cols, 1}, b.scalar(ScalarOp::div, {e, total}));
  return b.build();
}

KernelIR layer_norm_kernel(DType dtype, int64_t rows, int64_t cols) {
  IrBuilder b("layer norm", {rows, cols}, 1);
  const int x = b.in(dtype), gamma = b.in(dtype), beta = b.in(dtype), y = b.out(dtype);
  const int count = b.constant(DType::f32, double(cols), IrLevel::row);
  const int v = b.load(x, {cols, 1});
  const int mean = b.scalar(ScalarOp::div, {b.reduce(ReduceOp::sum, v), count});
  const int d = b.scalar(ScalarOp::sub, {v, mean});
  const int squares = b.reduce(ReduceOp::sum, b.scalar(ScalarOp::mul, {d, d}));
  const int variance = b.scalar(ScalarOp::div, {squares, count});
  const int moved = b.scalar(ScalarOp::add, {variance, b.constant(DType::f32, 1e-5, IrLevel::row)});
  const int normed = b.scalar(ScalarOp::mul, {d, b.scalar(ScalarOp::rsqrt, {moved})});
  const int scaled = b.scalar(ScalarOp::mul, {normed, b.load(gamma, {0, 1})});
  b.store(y, {cols, 1}, b.scalar(ScalarOp::add, {scaled, b.load(beta, {0, 1})}));
  return b.build();
}

KernelIR vector_softmax_kernel(DType dtype) {
  IrBuilder b("max sub exp sum div", {1000}, 0);
  const int x = b.in(dtype), y = b.out(dtype);
  const int v = b.load(x, {1});
  const int e = b.scalar(ScalarOp::exp, {b.scalar(ScalarOp::sub, {v, b.reduce(ReduceOp::max, v)})});
  b.store(y, {1}, b.scalar(ScalarOp::div, {e, b.reduce(ReduceOp::sum, e)}));
  return b.build();
}

AllOps all_ops_kernel(DType dtype) {
  AllOps all;
  IrBuilder b(cat("all_ops_", dtype), {9}, 0);
  const int first = b.in(dtype), second = b.in(dtype);
  const int a = b.load(first, {1}), c = b.load(second, {1});
  for (int i = 0; i < kScalarOpCount; ++i) {
    const ScalarOp op = static_cast<ScalarOp>(i);
    if (op == ScalarOp::uniform || !accepts(op, compute_type(dtype))) continue;
    int value = 0;
    if (op == ScalarOp::where) {
      value = b.scalar(op, {b.scalar(ScalarOp::ne, {a, c}), a, c});
    } else if (info(op).arity == 2) {
      value = b.scalar(op, {a, c});
    } else {
      value = b.scalar(op, {a});
    }
    const bool logical = info(op).out == ScalarOut::logical;
    b.store(b.out(logical ? DType::boolean : dtype), {1}, value);
    all.ops.push_back(op);
  }
  all.ir = b.build();
  return all;
}

KernelIR all_casts_kernel(DType from) {
  IrBuilder b(cat("all_casts_", from), {9}, 0);
  const int v = b.load(b.in(from), {1});
  for (int i = 0; i < kDTypeCount; ++i) {
    const DType to = static_cast<DType>(i);
    b.store(b.out(to), {1}, b.cast(v, to));
  }
  return b.build();
}

KernelIR all_reductions_kernel(DType dtype, int64_t cols) {
  IrBuilder b(cat("all_reductions_", dtype), {5, cols}, 1);
  const int v = b.load(b.in(dtype), {cols, 1});
  for (const ReduceOp op : {ReduceOp::sum, ReduceOp::prod, ReduceOp::max, ReduceOp::min}) {
    b.store(b.out(dtype), {1, 0}, b.reduce(op, v));
  }
  b.store(b.out(DType::i64), {1, 0}, b.reduce(ReduceOp::argmax, v));
  return b.build();
}

std::vector<KernelIR> golden_kernels() {
  return {map_chain(),
          strided(),
          concat_pad(),
          gather(),
          dropout(),
          column_sum(),
          argmax(),
          softmax_kernel(DType::bf16, 4, 100),
          gated(),
          rms_norm(),
          norm_kernel(DType::f32),
          long_rows()};
}

}  // namespace tessera
