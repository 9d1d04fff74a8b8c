// An op of one's own, from outside the library: swiglu(a, b) = a · sigmoid(a) · b, the gate of
// Llama's MLP, as one pass over memory with a gradient of two. It joins the graph as Tessera's own
// ops do: compiled steps, gradients of any order, devices.
#include <tessera/tessera.h>

#include <cmath>
#include <iostream>

using namespace tessera;

namespace {

using Operands = std::span<const CustomOperand>;

std::vector<Type> same_types(std::span<const Type> in, size_t outputs) {
  for (const Type& type : in) {
    if (type != in[0] || type.dtype != DType::f32) {
      fail("swiglu: expected f32 tensors of one shape, got ", in[0], " and ", type);
    }
  }
  return std::vector<Type>(outputs, in[0]);
}

float sigmoid_of(float x) { return 1 / (1 + std::exp(-x)); }

// The function in Tessera's own ops: what the kernels below are checked against, and what runs on a
// device that has no kernel.
std::vector<Tensor> swiglu_composite(const std::vector<Tensor>& in) {
  return {silu(in[0]) * in[1]};
}

// da = g · b · s · (1 + a · (1 - s)) and db = g · a · s, with s = sigmoid(a).
const CustomFunction& swiglu_backward() {
  static const CustomFunction op = custom_op({
      .name = "swiglu_backward",
      .types = [](std::span<const Type> in) { return same_types(in, 2); },
      .cpu =
          [](Operands in, Operands out) {
            const auto g = in[0].as<const float>(), a = in[1].as<const float>(),
                       b = in[2].as<const float>();
            const auto da = out[0].as<float>(), db = out[1].as<float>();
            for (size_t i = 0; i < g.size(); ++i) {
              const float s = sigmoid_of(a[i]);
              da[i] = g[i] * b[i] * s * (1 + a[i] * (1 - s));
              db[i] = g[i] * a[i] * s;
            }
          },
      // Gradients of gradients go through plain ops.
      .composite =
          [](const std::vector<Tensor>& in) {
            const Tensor &g = in[0], &a = in[1], &b = in[2];
            const Tensor s = sigmoid(a);
            return std::vector<Tensor>{g * b * s * (1 + a * (1 - s)), g * a * s};
          },
  });
  return op;
}

const CustomFunction& swiglu() {
  static const CustomFunction op = custom_op({
      .name = "swiglu",
      .types = [](std::span<const Type> in) { return same_types(in, 1); },
      .cpu =
          [](Operands in, Operands out) {
            const auto a = in[0].as<const float>(), b = in[1].as<const float>();
            const auto y = out[0].as<float>();
            for (size_t i = 0; i < y.size(); ++i) y[i] = a[i] * sigmoid_of(a[i]) * b[i];
          },
      .cuda = R"(
extern "C" __global__ void swiglu(const float* a, const float* b, float* y, long long n) {
  const long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = a[i] / (1 + expf(-a[i])) * b[i];
}
)",
      .opencl = R"(
kernel void swiglu(global const float* a, global const float* b, global float* y, long n) {
  const long i = get_global_id(0);
  if (i < n) y[i] = a[i] / (1 + exp(-a[i])) * b[i];
}
)",
      .vjp =
          [](const std::vector<Tensor>& in, const std::vector<Tensor>&,
             const std::vector<Tensor>& g) {
            return swiglu_backward()(std::vector<Tensor>{g[0], in[0], in[1]});
          },
      .composite = swiglu_composite,
  });
  return op;
}

double largest_difference(const Tensor& a, const Tensor& b) { return max(abs(a - b)).item(); }

}  // namespace

int main() {
  init();
  const Random random(1);
  const Tensor a = random.normal({64, 256}).detach(), b = random.normal({64, 256}).detach();

  const Tensor by_kernel = sum(square(swiglu()(a, b)));
  const Tensor by_ops = sum(square(swiglu_composite({a, b})[0]));
  std::cout << "value      " << by_kernel.item() << ", by plain ops " << by_ops.item() << "\n";
  const double difference = largest_difference(grad(by_kernel, a), grad(by_ops, a));
  std::cout << "gradient   differs by " << difference << "\n";
  const auto second = [&](const Tensor& loss) { return grad(sum(square(grad(loss, a))), b); };
  std::cout << "2nd order  differs by " << largest_difference(second(by_kernel), second(by_ops))
            << "\n";

  // In a compiled step, with a layer before it.
  const Var w(random.normal({32, 512}, 0, 0.1), "w");
  const Tensor x = random.normal({64, 32}).detach();
  const auto step = compile([&](const Tensor& input) {
    const std::vector<Tensor> halves = chunk(matmul(input, w), 2, 1);
    const Tensor loss = mean(square(swiglu()(halves[0], halves[1]) - 1));
    w.assign(w - 20 * grad(loss, w));
    return loss;
  });
  double first = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    last = step(x).item();
    if (i == 0) first = last;
  }
  std::cout << "training   loss " << first << " -> " << last << "\n";
  return difference < 1e-5 && last < 0.5 * first ? 0 : 1;
}
