#include <algorithm>
#include <functional>
#include <type_traits>
#include <vector>

#include "tessera/backend/cpu/kernels/product.h"
#include "tessera/backend/cpu/scratch.h"
#include "tessera/base/thread_pool.h"

namespace tessera::cpu {

namespace {

constexpr int64_t kWorthAThread = 1 << 15;  // multiplications

// Sums are formed unsigned, in a type that is not promoted to int, so that they wrap.
template <class T>
using Wrapping = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

template <class T>
void multiply_row(const Product& p, int64_t i, const T* b, Wrapping<T>* sums) {
  using U = Wrapping<T>;
  const T* a = reinterpret_cast<const T*>(p.a) + i * p.a_row;
  std::fill(sums, sums + p.n, U(0));
  for (int64_t k = 0; k < p.k; ++k) {
    const U factor = U(a[k * p.a_column]);
    const T* row = b + k * p.n;
    for (int64_t j = 0; j < p.n; ++j) sums[j] += factor * U(row[j]);
  }
  T* c = reinterpret_cast<T*>(p.c) + i * p.c_row;
  for (int64_t j = 0; j < p.n; ++j) c[j * p.c_column] = T(sums[j]);
}

template <class T>
void multiply(const Product& p) {
  // b row by row, whatever its strides.
  T* b = reinterpret_cast<T*>(scratch(Scratch::launch, p.k * p.n * int64_t(sizeof(T))));
  for (int64_t k = 0; k < p.k; ++k) {
    const T* row = reinterpret_cast<const T*>(p.b) + k * p.b_row;
    for (int64_t j = 0; j < p.n; ++j) b[k * p.n + j] = row[j * p.b_column];
  }
  auto body = [&](int64_t begin, int64_t end) {
    auto* sums =
        reinterpret_cast<Wrapping<T>*>(scratch(Scratch::tile, p.n * int64_t(sizeof(Wrapping<T>))));
    for (int64_t i = begin; i < end; ++i) multiply_row<T>(p, i, b, sums);
  };
  const int64_t grain = std::max<int64_t>(1, kWorthAThread / std::max<int64_t>(1, p.n * p.k));
  thread_pool().parallel_for(p.m, grain, std::cref(body));
}

}  // namespace

void multiply_integers(const Product& product) {
  visit(product.dtype, [&]<class T>() {
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) multiply<T>(product);
  });
}

}  // namespace tessera::cpu
