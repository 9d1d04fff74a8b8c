// Ops over rows: norms, softmax, sums, losses, gradients of tables, sorting.
#include <cmath>

#include "tessera/bench/op_case.h"
#include "tessera/bench/plain_rows.h"
#include "tessera/bench/suites.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

using Tensors = std::vector<Tensor>;

struct Extent {
  int64_t rows, columns;
  int64_t size() const { return rows * columns; }
  std::string text() const { return cat(rows, " x ", columns); }
};

constexpr Extent kExtents[] = {{64, 1024}, {4096, 1024}};

Operand matrix(const Extent& e, uint64_t seed, double low = -2, double high = 2) {
  return {{e.rows, e.columns}, make_data(e.size(), low, high, seed)};
}
Operand vector(int64_t n, uint64_t seed) { return {{n}, make_data(n, 0.5, 1.5, seed)}; }
Operand indices(int64_t n, int64_t below, uint64_t seed) {
  Operand operand{{n}, make_data(n, 0, double(below), seed), DType::i64};
  for (float& value : operand.values) value = std::floor(value);
  return operand;
}

int64_t rows_of(const Operands& in) { return in[0].shape[0]; }
int64_t columns_of(const Operands& in) { return in[0].shape[1]; }

double row_tolerance(Op op, int64_t terms) { return tolerance_of(op, double(terms)); }

OpCase named(std::string name, bool slow = false) {
  OpCase op;
  op.suite = "rows";
  op.name = std::move(name);
  op.slow = slow;
  return op;
}

OpCase softmax_case(const Extent& e) {
  OpCase op = named("softmax " + e.text());
  op.operands = [=] { return Operands{matrix(e, 1)}; };
  op.apply = [](const Tensors& in) { return Tensors{softmax(in[0])}; };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::softmax(rows_of(in), columns_of(in), in[0].values.data(), out[0].data());
  });
  op.outputs = {{e.size(), row_tolerance(Op::softmax, e.columns)}};
  op.moved = {{Move::copy, e.size()}};
  return op;
}

// Both results: a training step needs y for later, and dx from y and g.
OpCase softmax_both_case(const Extent& e) {
  OpCase op = named("softmax forward + backward " + e.text());
  op.operands = [=] { return Operands{matrix(e, 1), matrix(e, 2)}; };
  op.apply = [](const Tensors& in) {
    const Tensor y = softmax(in[0]);
    return Tensors{y, grad(sum(y * in[1]), in[0])};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    const int64_t rows = rows_of(in), columns = columns_of(in);
    plain::softmax(rows, columns, in[0].values.data(), out[0].data());
    plain::softmax_backward(rows, columns, out[0].data(), in[1].values.data(), out[1].data());
  });
  const double tolerance = row_tolerance(Op::softmax, e.columns);
  op.outputs = {{e.size(), tolerance}, {e.size(), tolerance}};
  op.moved = {{Move::copy, e.size()}, {Move::add, e.size()}};
  return op;
}

OpCase layer_norm_case(const Extent& e) {
  OpCase op = named("layer_norm " + e.text());
  op.operands = [=] { return Operands{matrix(e, 1), vector(e.columns, 2), vector(e.columns, 3)}; };
  op.apply = [](const Tensors& in) { return Tensors{layer_norm(in[0], in[1], in[2])}; };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::layer_norm(rows_of(in), columns_of(in), in[0].values.data(), in[1].values.data(),
                      in[2].values.data(), out[0].data());
  });
  op.outputs = {{e.size(), row_tolerance(Op::layer_norm, e.columns)}};
  op.moved = {{Move::copy, e.size()}};
  return op;
}

OpCase layer_norm_both_case(const Extent& e) {
  OpCase op = named("layer_norm forward + backward " + e.text());
  op.operands = [=] {
    return Operands{matrix(e, 1), vector(e.columns, 2), vector(e.columns, 3), matrix(e, 4)};
  };
  op.apply = [](const Tensors& in) {
    const Tensor y = layer_norm(in[0], in[1], in[2]);
    Tensors results = grad(sum(y * in[3]), {in[0], in[1], in[2]});
    results.insert(results.begin(), y);
    return results;
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    const int64_t rows = rows_of(in), columns = columns_of(in);
    const float *x = in[0].values.data(), *gamma = in[1].values.data();
    plain::layer_norm(rows, columns, x, gamma, in[2].values.data(), out[0].data());
    plain::layer_norm_backward(rows, columns, x, gamma, in[3].values.data(), out[1].data(),
                               out[2].data(), out[3].data());
  });
  const double along_row = row_tolerance(Op::layer_norm_backward, e.columns);
  const double along_column = row_tolerance(Op::layer_norm_backward, e.rows);
  op.outputs = {{e.size(), row_tolerance(Op::layer_norm, e.columns)},
                {e.size(), along_row},
                {e.columns, along_column},
                {e.columns, along_column}};
  op.moved = {{Move::copy, e.size()}, {Move::add, e.size()}};
  return op;
}

OpCase sum_case(const Extent& e, bool over_rows) {
  OpCase op = named(cat(over_rows ? "sum of each row " : "sum of each column ", e.text()));
  op.operands = [=] { return Operands{matrix(e, 1, 0, 1)}; };
  op.apply = [=](const Tensors& in) { return Tensors{sum(in[0], over_rows ? 1 : 0)}; };
  op.loop = over_rows ? loop_of([](const Operands& in, auto& out) {
    plain::sum_rows(rows_of(in), columns_of(in), in[0].values.data(), out[0].data());
  })
                      : loop_of([](const Operands& in, auto& out) {
                          plain::sum_columns(rows_of(in), columns_of(in), in[0].values.data(),
                                             out[0].data());
                        });
  op.outputs = {over_rows ? Output{e.rows, row_tolerance(Op::sum, e.columns)}
                          : Output{e.columns, row_tolerance(Op::sum, e.rows)}};
  op.moved = {{Move::read, e.size()}};
  return op;
}

// The loss, and the gradient that it always comes with.
OpCase cross_entropy_case(const Extent& e, bool slow) {
  OpCase op = named("cross-entropy + backward " + e.text(), slow);
  op.operands = [=] { return Operands{matrix(e, 1, -4, 4), indices(e.rows, e.columns, 2)}; };
  op.apply = [](const Tensors& in) {
    const Tensor loss = cross_entropy(in[0], in[1]);
    return Tensors{loss, grad(loss, in[0])};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::cross_entropy(rows_of(in), columns_of(in), in[0].values.data(), in[1].values.data(),
                         out[0].data(), out[1].data());
  });
  const double tolerance = row_tolerance(Op::softmax, e.columns);
  op.outputs = {{1, tolerance}, {e.size(), tolerance}};
  op.moved = {{Move::read, e.size()}, {Move::copy, e.size()}};
  return op;
}

// Gradient of a table (count, width) of which `tokens` rows were taken.
OpCase embedding_case(int64_t count, int64_t width, int64_t tokens) {
  OpCase op = named(cat("embedding backward ", tokens, " of ", count, " x ", width));
  op.operands = [=] {
    return Operands{matrix({count, width}, 1), indices(tokens, count, 2),
                    matrix({tokens, width}, 3)};
  };
  op.apply = [](const Tensors& in) {
    return Tensors{grad(sum(take(in[0], in[1]) * in[2]), in[0])};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::scatter_rows(rows_of(in), columns_of(in), in[1].shape[0], in[1].values.data(),
                        in[2].values.data(), out[0].data());
  });
  op.outputs = {{count * width, row_tolerance(Op::scatter_add, 4)}};
  op.moved = {{Move::write, count * width}, {Move::read, tokens * width}};
  return op;
}

constexpr int64_t kTop = 40;

OpCase topk_case(const Extent& e) {
  OpCase op = named(cat("topk ", kTop, " of ", e.text()));
  op.operands = [=] { return Operands{matrix(e, 1)}; };
  op.apply = [](const Tensors& in) {
    const Ordered top = topk(in[0], kTop);
    return Tensors{top.values, top.indices};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::order(rows_of(in), columns_of(in), kTop, true, in[0].values.data(), out[0].data(),
                 out[1].data());
  });
  op.outputs = {{e.rows * kTop, 0}, {e.rows * kTop, 0}};
  op.moved = {{Move::read, e.size()}};
  return op;
}

OpCase sort_case(const Extent& e) {
  OpCase op = named("sort " + e.text());
  op.operands = [=] { return Operands{matrix(e, 1)}; };
  op.apply = [](const Tensors& in) {
    const Ordered sorted = sort(in[0]);
    return Tensors{sorted.values, sorted.indices};
  };
  op.loop = loop_of([](const Operands& in, auto& out) {
    plain::order(rows_of(in), columns_of(in), columns_of(in), false, in[0].values.data(),
                 out[0].data(), out[1].data());
  });
  op.outputs = {{e.size(), 0}, {e.size(), 0}};
  op.moved = {{Move::copy, e.size()}, {Move::write, 2 * e.size()}};
  op.slow = e.rows > 64;
  return op;
}

}  // namespace

std::vector<Case> rows_cases() {
  std::vector<Case> cases;
  const auto add = [&](OpCase op) { cases.push_back(to_case(std::move(op))); };
  for (const Extent& e : kExtents) {
    add(softmax_case(e));
    add(softmax_both_case(e));
    add(layer_norm_case(e));
    add(layer_norm_both_case(e));
  }
  const Extent large = kExtents[1];
  add(cold(softmax_case(large)));
  add(cold(layer_norm_case(large)));
  add(sum_case(large, true));
  add(sum_case(large, false));
  add(cross_entropy_case({128, 50304}, false));
  add(cross_entropy_case({2048, 50304}, true));
  add(embedding_case(50304, 384, 2048));
  add(topk_case({64, 50304}));
  for (const Extent& e : kExtents) add(sort_case(e));
  return cases;
}

}  // namespace tessera::bench
