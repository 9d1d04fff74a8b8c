#include <cmath>

#include "tessera/tensor/creation.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/network.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

// base^(-2i/D) for i < D/2, in f64 before rounding: large positions multiply its error.
Tensor frequencies(int64_t channels, double base, DType dtype) {
  const double step = -2 * std::log(base) / double(channels);
  return cast(exp(iota({channels / 2}, 0, DType::f64) * step), dtype);
}

}  // namespace

Tensor rotary(In x, In positions, double base, bool interleaved) {
  if (x.rank() < 2 || x.shape().back() % 2 != 0) {
    fail_here("rotary: expected x (…, T, D) with an even D, got ", x.shape());
  }
  Shape tokens = x.shape();
  tokens.erase(tokens.rank() - 1);
  if (!is_integer(positions.dtype()) || !broadcasts_to(positions.shape(), tokens)) {
    fail_here("rotary: expected integer positions that broadcast to ", tokens, " for ", x.shape(),
              ", got ", positions.value().type());
  }
  if (!(base > 0)) fail_here("rotary: expected a base above 0, got ", base);
  const DType dtype = as_float(x).dtype();
  if (x.numel() == 0) return cast(x, dtype);

  const Tensor wide = as_wide(x);
  const int64_t channels = x.shape().back(), half = channels / 2;
  const Tensor angle =
      unsqueeze(cast(positions, wide.dtype()), -1) * frequencies(channels, base, wide.dtype());
  const Tensor c = cos(angle), s = sin(angle);
  Tensor a, b;
  if (interleaved) {
    Shape pairs = tokens;
    pairs.push_back(half);
    pairs.push_back(2);
    const Tensor paired = reshape(wide, pairs);
    a = squeeze(slice(paired, -1, 0, 1), -1);
    b = squeeze(slice(paired, -1, 1, 2), -1);
  } else {
    a = slice(wide, -1, 0, half);
    b = slice(wide, -1, half, channels);
  }
  const Tensor first = a * c - b * s, second = b * c + a * s;
  const Tensor turned =
      interleaved ? reshape(stack({first, second}, -1), x.shape()) : concat({first, second}, -1);
  return cast(turned, dtype);
}

}  // namespace tessera
