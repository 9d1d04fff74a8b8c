// Rotation, encoding, quantised queries, products of floats. Included by simd/codes.cpp.

// x (block, a power of two), not scaled.
TESSERA_INLINE void hadamard(float* x, int32_t block) {
  if (block < kLanes) {
    for (int32_t h = 1; h < block; h *= 2) {
      for (int32_t i = 0; i < block; ++i) {
        if ((i & h) != 0) continue;
        const float a = x[i], b = x[i + h];
        x[i] = a + b;
        x[i + h] = a - b;
      }
    }
    return;
  }
  for (int32_t i = 0; i < block; i += kLanes) {
    const Floats v = butterfly<8>(butterfly<4>(butterfly<2>(butterfly<1>(load<Floats>(x + i)))));
    store(x + i, v);
  }
  int32_t h = kLanes;
  for (; 2 * h < block; h *= 4) {  // two stages at a time: half the loads and stores
    for (int32_t i = 0; i < block; i += 4 * h) {
      for (int32_t j = i; j < i + h; j += kLanes) {
        const Floats a = load<Floats>(x + j), b = load<Floats>(x + j + h);
        const Floats c = load<Floats>(x + j + 2 * h), d = load<Floats>(x + j + 3 * h);
        const Floats ab = a + b, a_b = a - b, cd = c + d, c_d = c - d;
        store(x + j, ab + cd);
        store(x + j + h, a_b + c_d);
        store(x + j + 2 * h, ab - cd);
        store(x + j + 3 * h, a_b - c_d);
      }
    }
  }
  if (h < block) {
    for (int32_t j = 0; j < h; j += kLanes) {
      const Floats a = load<Floats>(x + j), b = load<Floats>(x + j + h);
      store(x + j, a + b);
      store(x + j + h, a - b);
    }
  }
}

void rotate(const RotationPlan& plan, float* x) {
  for (int32_t round = 0; round < plan.rounds; ++round) {
    const float* signs = plan.signs + int64_t(round) * plan.padded_dim;
    for (int32_t i = 0; i < plan.padded_dim; i += kLanes) {
      store(x + i, load<Floats>(x + i) * load<Floats>(signs + i));
    }
    hadamard(x, plan.block);
    if (plan.block == plan.dim) continue;
    float* last = x + plan.dim - plan.block;
    for (int32_t i = 0; i < plan.block; ++i) last[i] *= plan.block_scale;
    hadamard(last, plan.block);
    const int32_t half = plan.dim / 2;
    constexpr float kRoot = 0.70710678f;
    for (int32_t i = 0; i < half; ++i) {
      const float a = x[i] * kRoot, b = x[i + half] * kRoot;
      x[i] = a + b;
      x[i + half] = a - b;
    }
  }
}

constexpr float kTrialSteps[kTrials] = {0.8f, 0.9f, 1.f, 1.1f, 1.22f};

// Levels of one step: codes, and what they have in common with the residual.
struct Overlap {
  float residual, self;  // <r, w>, <w, w>
};

TESSERA_INLINE Floats codes_of(Floats scaled, float levels) {
  const Floats shifted = scaled + levels * 0.5f;
  return least(greatest(shifted, Floats{}), all(levels - 1));
}

// `scaled` is residual / diagonal, `weighted` residual * diagonal, `squares` diagonal².
TESSERA_INLINE Overlap overlap(const CodeShape& shape, const float* scaled, const float* weighted,
                               const float* squares, float inverse_step) {
  Floats residual = {}, self = {};
  for (int32_t i = 0; i < shape.dim; i += kLanes) {
    const float levels = float(1 << shape.group_bits[i / kGroup]);
    const Floats code = codes_of(load<Floats>(scaled + i) * inverse_step, levels);
    const Floats w = to_floats(truncated(code)) - (levels - 1) * 0.5f;
    residual = residual + w * load<Floats>(weighted + i);
    self = self + (squares == nullptr ? w * w : w * w * load<Floats>(squares + i));
  }
  return {sum(residual), sum(self)};
}

Encoded encode(const CodeShape& shape, const float* r, const float* diagonal, uint8_t* codes) {
  alignas(64) float scaled[kMostDims], weighted[kMostDims], squares[kMostDims];
  Floats n2 = {};
  for (int32_t i = 0; i < shape.dim; i += kLanes) {
    const Floats v = load<Floats>(r + i);
    n2 = n2 + v * v;
    if (diagonal == nullptr) continue;
    const Floats s = load<Floats>(diagonal + i);
    store(scaled + i, quotient(v, s));
    store(weighted + i, v * s);
    store(squares + i, s * s);
  }
  const float* quotients = diagonal == nullptr ? r : scaled;
  const float* products = diagonal == nullptr ? r : weighted;
  Encoded result = {sum(n2), 0, 0};
  const float middle = shape.step_ratio * __builtin_sqrtf(result.n2);
  float best_step = 0, best_overlap = 0, best = -1;
  // Zeros past dim are coded as +½; with a diagonal they weigh nothing.
  const int32_t vectors = (shape.dim + kLanes - 1) / kLanes;
  const bool counted = diagonal == nullptr && shape.group_bits[(shape.dim - 1) / kGroup] != 0;
  const float padding = counted ? 0.25f * float(vectors * kLanes - shape.dim) : 0;
  for (int t = 0; t < kTrials && middle > 0; ++t) {
    const float step = middle * kTrialSteps[t];
    const Overlap o =
        overlap(shape, quotients, products, diagonal == nullptr ? nullptr : squares, 1 / step);
    const float score = o.residual * o.residual / (o.self - padding);
    if (score > best) {
      best = score;
      best_step = step;
      best_overlap = o.residual;
    }
  }
  const float inverse_step = best_step > 0 ? 1 / best_step : 0;
  for (int32_t i = 0; i < shape.padded_dim; i += kLanes) {
    Ints bytes = {};
    if (i < shape.dim) {
      const float levels = float(1 << shape.group_bits[i / kGroup]);
      bytes = truncated(codes_of(load<Floats>(quotients + i) * inverse_step, levels));
    }
    store_bytes(codes + i, bytes);
  }
  if (best_overlap > 0) {
    result.g = result.n2 / best_overlap;
    result.cosine = __builtin_sqrtf(best / result.n2);
  }
  return result;
}

QuantizedQuery quantize(const CodeShape& shape, const float* query, const float* anchor,
                        const float* diagonal, int8_t* bytes) {
  alignas(64) float values[kMostDims];
  Floats n2 = {}, peak = {};
  for (int32_t i = 0; i < shape.padded_dim; i += kLanes) {
    Floats v = load<Floats>(query + i);
    if (anchor != nullptr) v = v - load<Floats>(anchor + i);
    n2 = n2 + v * v;
    if (diagonal != nullptr) v = v * load<Floats>(diagonal + i);
    peak = greatest(peak, greatest(v, Floats{} - v));
    store(values + i, v);
  }
  const float largest = maximum(peak);
  const float inverse = largest > 0 ? 127.f / largest : 0;
  Ints offset = {};
  for (int32_t i = 0; i < shape.padded_dim; i += kLanes) {
    const Ints v = nearest(load<Floats>(values + i) * inverse);
    store_bytes(bytes + i, v);
    if (i >= shape.dim) continue;  // zeros
    const int32_t levels = (1 << shape.group_bits[i / kGroup]) - 1;
    offset = each_part<Ints>([&](int k) { return offset.part[k] + v.part[k] * levels; });
  }
  return {largest / 127.f, sum(offset), sum(n2)};
}

template <int kRows, int kColumns>
TESSERA_INLINE void product_tile(int32_t dim, const float* a, const float* b, float* out,
                                 int64_t out_step) {
  Floats sums[kRows][kColumns] = {};
  for (int32_t k = 0; k < dim; k += kLanes) {
    Floats columns[kColumns];
    for (int j = 0; j < kColumns; ++j) columns[j] = load<Floats>(b + int64_t(j) * dim + k);
    for (int i = 0; i < kRows; ++i) {
      const Floats row = load<Floats>(a + int64_t(i) * dim + k);
      for (int j = 0; j < kColumns; ++j) sums[i][j] = sums[i][j] + row * columns[j];
    }
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kColumns; ++j) out[i * out_step + j] = sum(sums[i][j]);
  }
}

void products(int32_t dim, const float* a, int64_t a_count, const float* b, int64_t b_count,
              float* out, int64_t out_step) {
  constexpr int kRows = 4, kColumns = 4;
  for (int64_t j = 0; j < b_count; j += kColumns) {
    const float* columns = b + j * dim;
    for (int64_t i = 0; i < a_count; i += kRows) {
      const float* rows = a + i * dim;
      float* to = out + i * out_step + j;
      if (i + kRows <= a_count && j + kColumns <= b_count) {
        product_tile<kRows, kColumns>(dim, rows, columns, to, out_step);
        continue;
      }
      for (int64_t y = 0; y < kRows && i + y < a_count; ++y) {
        for (int64_t x = 0; x < kColumns && j + x < b_count; ++x) {
          product_tile<1, 1>(dim, rows + y * dim, columns + x * dim, to + y * out_step + x, 0);
        }
      }
    }
  }
}
