// Fits a line to four points with a compiled training step.
#include <tessera/tessera.h>

#include <iostream>

using namespace tessera;

int main() {
  init();
  const Tensor x = tensor<float>({0, 1, 2, 3}, {4, 1});
  const Tensor y = 2 * x + 1;
  const Linear line("line", 1, 1, Random(42));
  SGD optimizer(line.parameters(), {.lr = 0.1});
  const auto step = compile([&](const Tensor& input, const Tensor& target) {
    const Tensor error = line(input) - target;
    const Tensor loss = mean(error * error);
    backward(loss);    // leaves gradients at the parameters
    optimizer.step();  // and this uses them up
    return loss;
  });
  for (int i = 0; i < 200; ++i) step(x, y);  // compiled once, replayed 199 times
  std::cout << "weight " << line.weight().value() << ", bias " << line.bias().value() << "\n";
}
