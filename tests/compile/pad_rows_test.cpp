// Rows that lie apart: where, and what is computed from them.
#include <gtest/gtest.h>

#include <algorithm>

#include "compile/function_builder.h"
#include "tessera/compile/views.h"
#include "tessera/exec/executor.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

using namespace graph;

// A view of four rows, once they begin `step` elements apart.
std::optional<View> with_row_step(const View& view, int64_t columns, int64_t step) {
  const Shape shape = {4, columns};
  return rearranged(view, contiguous_view(shape), row_view(shape, step));
}

void expect_moved(const View& view, int64_t columns, int64_t step) {
  const std::optional<View> moved = with_row_step(view, columns, step);
  ASSERT_TRUE(moved);
  std::vector<int64_t> expected = places(view);
  for (int64_t& place : expected) place = place / columns * step + place % columns;
  EXPECT_EQ(places(*moved), expected);
}

TEST(PadRows, MovesViewsThatStayInTheirRows) {
  expect_moved(contiguous_view({4, 7}), 7, 8);
  expect_moved(contiguous_view({2, 2, 7}), 7, 16);
  expect_moved({{7, 4}, {1, 7}, 0}, 7, 8);        // transposed
  expect_moved({{2, 3}, {14, 2}, 8}, 7, 8);       // every second row from the second on
  expect_moved({{4, 7}, {-7, -1}, 27}, 7, 8);     // reversed
  expect_moved({{3, 4, 7}, {0, 7, 1}, 0}, 7, 8);  // repeated
  expect_moved({{4, 2, 3}, {6, 3, 1}, 0}, 6, 8);  // columns in halves
  expect_moved({{4, 1, 1}, {7, 3, 1}, 6}, 7, 8);  // one column
  EXPECT_FALSE(with_row_step(contiguous_view({28}), 7, 8));
  EXPECT_FALSE(with_row_step(contiguous_view({2, 14}), 7, 8));
  EXPECT_FALSE(with_row_step({{3, 7}, {7, 1}, 1}, 7, 8));
  EXPECT_FALSE(with_row_step({{3, 7}, {7, -1}, 5}, 7, 8));
  EXPECT_TRUE(with_row_step({{0, 7}, {3, 1}, 0}, 7, 8));
}

constexpr int64_t kRows = 6, kWidth = 16;

// The last layer of a language model, of so many classes.
struct Head {
  explicit Head(int64_t classes)
      : w(leaf({classes, kWidth}, DType::bf16)), logits(matmul(x, swap_last(w))) {
    const std::vector<Value> both = cross_entropy(logits, targets, g);
    loss = both[0];
    slope = both[1];
    dx = matmul(slope, w);
    dw = matmul(swap_last(slope), x);
  }
  GraphFunction of(std::vector<Value> outputs) const {
    return function({x, w, targets, g}, std::move(outputs));
  }

  Value x = leaf({kRows, kWidth}, DType::bf16);
  Value w;
  Value targets = leaf({kRows, 1}, DType::i64), g = leaf({kRows, 1});
  Value logits, loss, slope, dx, dw;
};

Target aligned_target(int64_t row_bytes = 16) {
  Target target = target_with({"matmul", "linear", "cross_entropy", "copy"});
  target.row_bytes = row_bytes;
  return target;
}

Program compiled(const GraphFunction& f, const Target& target = aligned_target(),
                 bool pads = true) {
  CompileOptions options;
  options.pad_rows = pads;
  options.verify = true;
  return compile_graph(f, target, options);
}

// Strides of the operands of kernel number `i`.
std::vector<Dims> strides_of(const Program& program, size_t i) {
  std::vector<Dims> result;
  for (const OperandView& o : program.instructions.at(i).call.operands) {
    result.push_back(o.view.strides);
  }
  return result;
}

// Temporaries whose buffer is larger than what it holds.
int padded(const Program& program) {
  return int(std::ranges::count_if(
      program.buffers, [](const PlannedBuffer& b) { return b.bytes != byte_size(b.type); }));
}

TEST(PadRows, LogitsAndTheirGradient) {
  const Head head(131);
  const Program program = compiled(head.of({head.loss, head.dx, head.dw}));
  ASSERT_EQ(program.instructions.size(), 4);
  EXPECT_EQ(strides_of(program, 0), (std::vector<Dims>{{16, 1}, {1, 16}, {136, 1}}));
  EXPECT_EQ(strides_of(program, 1),
            (std::vector<Dims>{{136, 1}, {1, 1}, {1, 1}, {1, 1}, {136, 1}}));
  const std::vector<Dims> dx = strides_of(program, 2), dw = strides_of(program, 3);
  const bool is_first = dx[0] == Dims{136, 1};
  EXPECT_EQ(is_first ? dx[0] : dw[0], (Dims{136, 1}));
  EXPECT_EQ(is_first ? dw[0] : dx[0], (Dims{1, 136}));
  EXPECT_EQ(padded(program), 2);
  for (const PlannedBuffer& b : program.buffers) {
    if (b.type == Type{DType::bf16, {kRows, 131}}) EXPECT_EQ(b.bytes, kRows * 136 * 2);
    if (b.kind != BufferKind::temporary) EXPECT_EQ(b.bytes, byte_size(b.type));
  }
  EXPECT_EQ(program.report.peak_bytes, kRows * 136 * 2);  // the gradient takes the logits' place
  EXPECT_EQ(program.report.copies, 0);
  // What is read and written is what there was before.
  EXPECT_EQ(program.report.bytes_moved,
            compiled(head.of({head.loss, head.dx, head.dw}), aligned_target(0)).report.bytes_moved);
}

TEST(PadRows, IsAskedForByTheTargetAndTheOptions) {
  const Head head(131);
  const GraphFunction f = head.of({head.loss, head.dx});
  EXPECT_EQ(padded(compiled(f)), 2);
  EXPECT_EQ(padded(compiled(f, aligned_target(0))), 0);
  EXPECT_EQ(padded(compiled(f, aligned_target(), false)), 0);
  const Head wide(257);
  const Program program = compiled(wide.of({wide.loss, wide.dx}), aligned_target(64));
  EXPECT_EQ(strides_of(program, 0)[2], (Dims{288, 1}));
}

TEST(PadRows, OnlyRowsThatNeedItAndHardlyGrow) {
  const auto row_of = [](int64_t classes) {
    const Head head(classes);
    const Program program = compiled(head.of({head.loss, head.dx}));
    const std::vector<Dims> loss = strides_of(program, 1);
    EXPECT_EQ(loss[0], loss[4]);
    return loss[0][0];
  };
  EXPECT_EQ(row_of(136), 136);
  EXPECT_EQ(row_of(49), 49);  // 98 bytes would be 112
  EXPECT_EQ(row_of(65), 72);
  EXPECT_EQ(row_of(1001), 1008);    // 2048 bytes would be too many
  EXPECT_EQ(row_of(50257), 50304);  // lines of 128 bytes
  EXPECT_EQ(row_of(50264), 50264);
}

TEST(PadRows, ResultsAndVarsArePacked) {
  const Head head(131);
  EXPECT_EQ(padded(compiled(head.of({head.loss, head.logits, head.dx}))), 1);
  EXPECT_EQ(padded(compiled(head.of({head.loss, head.slope, head.dx}))), 1);
  const Value var = leaf({kRows, 131}, DType::bf16);
  GraphFunction f = function({head.x, head.w, head.targets, head.g, var}, {head.loss}, {});
  f.assigns.push_back({4, head.logits});
  EXPECT_EQ(padded(compiled(f)), 0);
}

TEST(PadRows, NotWhereAnotherKernelReads) {
  const Head head(131);
  const auto exp = [](const Value& x) { return apply(Op::exp, x); };
  EXPECT_EQ(padded(compiled(head.of({head.loss, exp(head.logits)}))), 0);
  // The gradient stays packed, the logits need not.
  const Program program = compiled(head.of({matmul(exp(head.slope), head.w)}));
  EXPECT_EQ(padded(program), 1);
  EXPECT_EQ(strides_of(program, 1)[0], (Dims{136, 1}));
  EXPECT_EQ(strides_of(program, 1)[4], (Dims{131, 1}));
}

TEST(PadRows, NotWhereAViewLeavesARow) {
  const Head head(130);
  const Value halves = reshape(head.logits, {2 * kRows, 65});
  EXPECT_EQ(padded(compiled(head.of({matmul(swap_last(halves), halves)}))), 0);
  // A product takes columns in halves, a loss does not.
  const Value split = reshape(head.logits, {kRows, 2, 65});
  EXPECT_EQ(padded(compiled(head.of({matmul(split, swap_last(split))}))), 1);
  const Value targets = leaf({kRows, 2, 1}, DType::i64), g = leaf({kRows, 2, 1});
  const Value loss = cross_entropy(split, targets, g)[0];
  EXPECT_EQ(padded(compiled(function({head.x, head.w, targets, g}, {loss}))), 0);
}

TEST(PadRows, ALinearsResultUnlessItsSumIsUsed) {
  const Value a = leaf({kRows, kWidth}), b = leaf({kWidth, 131}), bias = leaf({131});
  const Value c = leaf({131, 5});
  Attrs attrs;
  attrs.axis = 1;
  const NodePtr node = make_node(Op::linear, {a, b, bias}, attrs);
  const Value y{node, 0}, sum{node, 1};
  EXPECT_EQ(padded(compiled(function({a, b, bias, c}, {matmul(y, c)}))), 1);
  EXPECT_EQ(padded(compiled(function({a, b, bias, c}, {matmul(y, c), matmul(sum, c)}))), 0);
}

// Whole numbers, so that every order of adding gives the same.
std::vector<float> numbers(int64_t count, int64_t step) {
  std::vector<float> values;
  for (int64_t i = 0; i < count; ++i) values.push_back(float(i * step % 7 - 3));
  return values;
}

TEST(PadRows, ProductsOfSuchRows) {
  constexpr int64_t kBatch = 3, kM = 5, kK = 9, kN = 75;
  const Value a = leaf({kBatch, kM, kK}), b = leaf({kBatch, kK, kN});
  const Value product = matmul(a, b);  // (3, 5, 75)
  const GraphFunction f = function({a, b}, {matmul(swap_last(product), product)});
  Backend& device = backend("cpu");
  Target target = device.target();
  target.row_bytes = 16;
  const Program program = compiled(f, target);
  ASSERT_EQ(padded(program), 1);

  const std::vector<float> left = numbers(kBatch * kM * kK, 5),
                           right = numbers(kBatch * kK * kN, 3);
  const auto buffer = [&](int64_t elements) {
    return Buffer{device.allocate(elements * 4), 0, elements * 4};
  };
  const std::vector<Buffer> in = {buffer(kBatch * kM * kK), buffer(kBatch * kK * kN)};
  const std::vector<Buffer> out = {buffer(kBatch * kN * kN)};
  device.upload(ref(in[0]), left.data(), in[0].bytes, {});
  device.upload(ref(in[1]), right.data(), in[1].bytes, {});
  ExecContext context{device};
  Executor(program, context).run(in, out);
  std::vector<float> result(size_t(kBatch * kN * kN));
  device.download(result.data(), ref(out[0]), out[0].bytes, {});

  for (int64_t s = 0; s < kBatch; ++s) {
    std::vector<float> c(size_t(kM * kN));
    for (int64_t i = 0; i < kM; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        for (int64_t k = 0; k < kK; ++k) {
          c[size_t(i * kN + j)] +=
              left[size_t((s * kM + i) * kK + k)] * right[size_t((s * kK + k) * kN + j)];
        }
      }
    }
    for (int64_t i = 0; i < kN; ++i) {
      for (int64_t j = 0; j < kN; ++j) {
        float expected = 0;
        for (int64_t k = 0; k < kM; ++k) expected += c[size_t(k * kN + i)] * c[size_t(k * kN + j)];
        ASSERT_EQ(result[size_t((s * kN + i) * kN + j)], expected) << s << " " << i << " " << j;
      }
    }
  }
}

TEST(PadRows, TheVerifierSeesRowsThatDoNotFit) {
  const Head head(131);
  Instances instances = layout(head.of({head.loss, head.dx}));
  pad_rows(instances, 16);
  EXPECT_EQ(verify_instances(instances), "");
  const auto product = std::ranges::find(instances.list, Op::matmul, &Instance::op);
  product->stored[0].elements = kRows * 131;
  EXPECT_NE(verify_instances(instances).find("is stored outside its buffer"), std::string::npos);
  product->stored[0].view = contiguous_view({kRows, 131});
  EXPECT_NE(verify_instances(instances).find("reads outside bf16(6, 131)"), std::string::npos)
      << verify_instances(instances);
  product->stored.push_back({});
  EXPECT_NE(verify_instances(instances).find("does not know where its outputs lie"),
            std::string::npos);
}

}  // namespace
}  // namespace tessera
