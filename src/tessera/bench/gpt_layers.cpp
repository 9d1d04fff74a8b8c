// The layers of a GPT alone: x and the parameters in, the result out; with backward, the gradients
// of a weighted sum of the result as well.
#include <memory>

#include "tessera/bench/gpt_lines.h"
#include "tessera/bench/op_case.h"
#include "tessera/bench/tessera_contenders.h"
#include "tessera/tensor/ops.h"

namespace tessera::bench {

namespace {

using Tensors = std::vector<Tensor>;

struct Input {
  Shape shape;
  double low = -1, high = 1;
  bool is_index = false;
};

struct Layer {
  std::string name;
  std::vector<Input> inputs;
  TensorFunction apply;     // one result
  size_t first_graded;      // inputs before it have no gradient
  Shape result;             // (): a loss
  double flops = 0;         // of the forward pass
  double elements[2] = {};  // moved by the forward pass, and by both, where there are no products
  double terms = 1;         // that the longest sums have
};

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return matmul(x, transpose(weight)) + bias;
}

// Weights of deviation about 0.02, as models begin.
Input weight(Shape shape) { return {std::move(shape), -0.035, 0.035}; }

Layer linear_layer(std::string name, const GptSize& size, int64_t in, int64_t out) {
  const int64_t b = size.batch, t = size.config.context;
  return {std::move(name),
          {{{b, t, in}}, weight({out, in}), weight({out})},
          [](const Tensors& x) { return Tensors{linear(x[0], x[1], x[2])}; },
          0,
          {b, t, out},
          2.0 * double(b * t * in * out),
          {},
          double(b * t)};
}

Layer embedding_layer(const GptSize& size) {
  const int64_t b = size.batch, t = size.config.context, c = size.config.width;
  const int64_t words = size.config.vocabulary;
  const double n = double(b * t * c);
  return {"embedding",
          {{{b, t}, 0, double(words), true}, weight({words, c}), weight({t, c})},
          [](const Tensors& x) { return Tensors{take(x[1], x[0]) + x[2]}; },
          1,
          {b, t, c},
          0,
          {2 * n, 3 * n + double((words + t) * c)},
          double(b * t)};
}

Layer norm_layer(const GptSize& size) {
  const int64_t b = size.batch, t = size.config.context, c = size.config.width;
  const double n = double(b * t * c);
  return {"layer_norm",
          {{{b, t, c}}, {{c}, 0.5, 1.5}, weight({c})},
          [](const Tensors& x) { return Tensors{layer_norm(x[0], x[1], x[2])}; },
          0,
          {b, t, c},
          0,
          {2 * n, 5 * n},
          double(b * t)};
}

Layer attention_layer(const GptSize& size) {
  const int64_t b = size.batch, t = size.config.context, c = size.config.width;
  const Shape heads = {b, size.config.heads, t, c / size.config.heads};
  return {"attention",
          {{heads}, {heads}, {heads}},
          [](const Tensors& x) { return Tensors{attention(x[0], x[1], x[2], {.causal = true})}; },
          0,
          heads,
          2.0 * double(b * t * t * c),  // two products, half of each
          {},
          double(t)};
}

Layer mlp_layer(const GptSize& size) {
  const int64_t b = size.batch, t = size.config.context, c = size.config.width, h = 4 * c;
  return {"MLP",
          {{{b, t, c}}, weight({h, c}), weight({h}), weight({c, h}), weight({c})},
          [](const Tensors& x) {
            return Tensors{linear(gelu_tanh(linear(x[0], x[1], x[2])), x[3], x[4])};
          },
          0,
          {b, t, c},
          4.0 * double(b * t * c * h),
          {},
          double(b * t)};
}

Layer head_layer(const GptSize& size) {
  const int64_t b = size.batch, t = size.config.context, c = size.config.width;
  const int64_t words = size.config.vocabulary;
  return {
      "head + loss",
      {{{b, t}, 0, double(words), true}, {{b, t, c}}, weight({words, c})},
      [](const Tensors& x) { return Tensors{cross_entropy(matmul(x[1], transpose(x[2])), x[0])}; },
      1,
      {},
      2.0 * double(b * t * c * words),
      {},
      double(b * t)};
}

std::vector<Layer> layers_of(const GptSize& size) {
  const int64_t c = size.config.width;
  return {embedding_layer(size),
          norm_layer(size),
          linear_layer("qkv", size, c, 3 * c),
          attention_layer(size),
          linear_layer("projection", size, c, c),
          mlp_layer(size),
          head_layer(size)};
}

// Values that the line's type has; the last input weighs the result.
Tensors make_inputs(const Layer& layer, DType dtype, bool backward) {
  std::vector<Input> list = layer.inputs;
  if (backward && layer.result.rank() > 0) list.push_back({layer.result});
  Tensors tensors;
  for (size_t i = 0; i < list.size(); ++i) {
    const Input& input = list[i];
    const Tensor drawn =
        tensor(make_data(numel(input.shape), input.low, input.high, 1 + i), input.shape);
    tensors.push_back(drawn.to(input.is_index ? DType::i64 : dtype).eval());
  }
  return tensors;
}

TensorFunction with_backward(const Layer& layer) {
  return [layer](const Tensors& in) {
    const Tensor y = layer.apply(in)[0];
    const Tensors graded(in.begin() + int64_t(layer.first_graded),
                         in.begin() + int64_t(layer.inputs.size()));
    Tensors results = grad(y.rank() == 0 ? y : sum(y * in.back()), graded);
    results.insert(results.begin(), y);
    return results;
  };
}

Tensors widened(const Tensors& tensors, DType dtype) {
  Tensors result;
  for (const Tensor& tensor : tensors) {
    result.push_back(is_float(tensor.dtype()) ? tensor.to(dtype).eval() : tensor);
  }
  return result;
}

// By the definitions of the ops, nothing fused.
std::vector<Expected> reference(TensorWork work, const GptReference& by, DType dtype,
                                double tolerance) {
  constexpr int64_t kMostCompared = int64_t(1) << 20;
  work.inputs = widened(work.inputs, by.dtype);
  work.options.simplify = work.options.match = work.options.recompute = false;
  work.options.fuse = work.options.kernel_ops = false;
  std::vector<Expected> expected;
  for (const std::vector<float>& values : make_contender(work, by.device, false).outputs()) {
    Expected one{{}, sample_positions(int64_t(values.size()), kMostCompared), tolerance};
    one.dtype = dtype;
    for (const int64_t at : one.positions) one.values.push_back(double(values[size_t(at)]));
    expected.push_back(std::move(one));
  }
  return expected;
}

// A sum of `terms` products rounds so often; half types are rounded once behind an f32 sum, and
// once for each of the layer's ops.
double tolerance_of(const Layer& layer, DType dtype) {
  return dtype == DType::f32 ? bench::tolerance_of(Op::matmul, layer.terms) : 8;
}

Contest make_contest(const GptSize& size, size_t index, bool backward, const Setting& setting) {
  const Layer layer = layers_of(size)[index];
  const TensorWork work{make_inputs(layer, size.dtype, backward),
                        backward ? with_backward(layer) : layer.apply};
  Contest contest;
  contest.expected =
      reference(work, gpt_reference(size, setting), size.dtype, tolerance_of(layer, size.dtype));
  for (const Device device : gpt_devices(size.needs_gpu, setting)) {
    contest.contenders.push_back(make_contender(work, device, false));
  }
  return contest;
}

Case layer_case(const GptSize& size, size_t index, bool backward) {
  const Layer layer = layers_of(size)[index];
  Case one;
  one.suite = "step";
  one.name = gpt_line_name(size, name(size.dtype), layer.name + (backward ? " + backward" : ""));
  one.unit = "tokens/s";
  one.amount = double(size.batch * size.config.context);
  one.flops = layer.flops * (backward ? 3 : 1);
  one.bytes = layer.elements[backward] * double(size_of(size.dtype));
  one.limit = layer.flops > 0 ? LimitKind::fma : LimitKind::bytes;
  one.dtype = size.dtype;
  one.slow = true;
  one.needs_gpu = size.needs_gpu;
  one.most_seconds = kGptSeconds;
  one.make = [size, index, backward](const Setting& setting) {
    return largest_contest(size, [&](const GptSize& smaller) {
      return make_contest(smaller, index, backward, setting);
    });
  };
  return one;
}

}  // namespace

std::vector<Case> gpt_layer_cases(const GptSize& size) {
  std::vector<Case> cases;
  for (size_t i = 0; i < layers_of(size).size(); ++i) {
    for (const bool backward : {false, true}) cases.push_back(layer_case(size, i, backward));
  }
  return cases;
}

}  // namespace tessera::bench
