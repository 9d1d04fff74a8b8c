#include <tessera/tessera.h>

#include <iostream>
#include <vector>

int main() {
  tessera::init();
  const auto a = tessera::tensor(std::vector<float>{1, 2, 3, 4}, {2, 2});
  const auto b = tessera::tensor(std::vector<float>{5, 6, 7, 8}, {2, 2});
  const tessera::Tensor product = tessera::matmul(a, b) + 0.5;
  std::cout << product << "\n";
  for (const float value : product.to_vector<float>()) std::cout << value << " ";
  std::cout << "\n";
  try {
    tessera::matmul(a, tessera::ones({3, 2}));
  } catch (const tessera::Error& error) {
    std::cout << error.what() << "\n";
  }
  return 0;
}
