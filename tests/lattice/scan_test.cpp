#include "code_fixture.h"
#include "support/expect_error.h"
#include "tessera/lattice/code_layout.h"
#include "tessera/lattice/quantize.h"

namespace tessera::lattice {
namespace {

struct alignas(64) Line {
  std::byte bytes[64];
};

// What a scan gave to its sink, query by query: (position, key).
struct Seen {
  std::vector<std::vector<std::pair<int64_t, float>>> of_query;
  float threshold = INFINITY;

  static float take(void* context, int query, int64_t first, uint32_t mask, const float* keys) {
    Seen& seen = *static_cast<Seen*>(context);
    for (int i = 0; i < 32; ++i) {
      if ((mask >> i & 1) != 0) seen.of_query[size_t(query)].push_back({first + i, keys[i]});
    }
    return seen.threshold;
  }
  bool operator==(const Seen&) const = default;
};

// A list of random codes, with bits that may differ by group, against random queries.
class RandomList {
 public:
  RandomList(int32_t dim, std::vector<uint8_t> group_bits, int64_t count, bool planes = false)
      : spec_(rotation_spec(dim, 4, 1, dim)), count_(count) {
    spec_.planes = planes;
    if (!group_bits.empty()) spec_.group_bits = std::move(group_bits);
    lines_.resize(size_t(block_count(count) * block_bytes(spec_)) / 64);
    for (int64_t i = 0; i < count; ++i) {
      codes_.emplace_back(size_t(spec_.padded_dim), uint8_t(0));
      for (int32_t j = 0; j < dim; ++j) {
        const uint32_t mask = (1u << spec_.group_bits[size_t(j / 32)]) - 1;
        codes_.back()[size_t(j)] = uint8_t(philox(3, uint64_t(i), uint64_t(j))[0] & mask);
      }
      // The largest codes against the largest queries are where sums could overflow.
      if (i % 7 == 0) {
        for (int32_t j = 0; j < dim; ++j) {
          codes_.back()[size_t(j)] = uint8_t((1u << spec_.group_bits[size_t(j / 32)]) - 1);
        }
      }
      factors_.push_back(
          round_factors(spec_, {float(i) + 1, 0.5f + float(i % 5), 0.75f + float(i % 3)}));
      pack_code(spec_, lines_[0].bytes + i / 32 * block_bytes(spec_), int(i % 32), codes_.back(),
                factors_.back());
    }
  }

  Seen scan(int queries, float threshold) {
    const size_t padded = size_t(spec_.padded_dim);
    const CodeShape shape = code_shape(spec_);
    std::vector<Line> memory(
        size_t(kTileQueries * spec_.padded_dim + scan_scratch_bytes(spec_.padded_dim)) / 64);
    auto* bytes = reinterpret_cast<int8_t*>(memory.data());
    std::vector<float> slopes, thresholds(size_t(queries), threshold);
    std::vector<int32_t> offsets;
    queries_.clear();
    for (int q = 0; q < queries; ++q) {
      std::vector<float> row = padded_row(spec_, gaussians(uint64_t(q) + 100, spec_.dim));
      if (q % 3 == 0) {  // all as large as can be, of one sign
        for (int32_t j = 0; j < spec_.dim; ++j) row[size_t(j)] = q % 2 == 0 ? 1.f : -1.f;
      }
      const QuantizedQuery quantized =
          code_kernels().quantize(shape, row.data(), nullptr, nullptr, bytes + size_t(q) * padded);
      slopes.push_back(-quantized.scale);
      offsets.push_back(quantized.offset);
      queries_.emplace_back(bytes + size_t(q) * padded, bytes + size_t(q + 1) * padded);
    }
    const bool prunes = spec_.planes && queries == 1;
    refined_ = 0;
    Seen seen;
    seen.of_query.resize(size_t(queries));
    seen.threshold = threshold;
    const ScanTile tile = {.count = queries,
                           .n2_weight = 1,
                           .queries = bytes,
                           .slopes = slopes.data(),
                           .offsets = offsets.data(),
                           .thresholds = thresholds.data(),
                           .scratch = reinterpret_cast<std::byte*>(bytes + kTileQueries * padded),
                           .sink = Seen::take,
                           .context = &seen,
                           .hot = prunes ? &kHot : nullptr,
                           .refined = &refined_};
    code_kernels().begin();
    code_kernels().scan(shape, lines_[0].bytes, count_, tile);
    code_kernels().end();
    slopes_ = slopes;
    return seen;
  }

  // By integers one by one, in the order that the kernels document.
  float expected_key(int query, int64_t position) const {
    int64_t twice = 0;
    for (size_t j = 0; j < size_t(spec_.dim); ++j) {
      const int levels = (1 << spec_.group_bits[j / 32]) - 1;
      twice += queries_[size_t(query)][j] * (2 * codes_[size_t(position)][j] - levels);
    }
    const CodeFactors& f = factors_[size_t(position)];
    return f.n2 + f.g * (float(twice) * slopes_[size_t(query)]);
  }

  // What the top bits alone allow the only query.
  float least_key(int64_t position) const {
    int64_t twice = -kHot.offset;
    for (size_t j = 0; j < size_t(spec_.dim); ++j) {
      const int bits = spec_.group_bits[j / 32];
      if (bits == 0) continue;
      const int top = codes_[size_t(position)][j] >> (bits - 1);
      twice += 2 * queries_[0][j] * (top << (bits - 1));
    }
    const CodeFactors& f = factors_[size_t(position)];
    const float key = f.n2 + f.hot * (float(twice) * slopes_[0]);
    const float reach = std::max(f.hot * f.hot * kHot.n2 - f.n2, 0.f);
    return key - std::sqrt(reach * (kHot.spread * kHot.spread));
  }
  int64_t refined() const { return refined_; }

 private:
  static constexpr HotQuery kHot = {.offset = 37, .spread = 0.8f, .n2 = 90};

  CodeSpec spec_;
  int64_t count_, refined_ = 0;
  std::vector<Line> lines_;
  std::vector<std::vector<uint8_t>> codes_;
  std::vector<CodeFactors> factors_;
  std::vector<std::vector<int8_t>> queries_;
  std::vector<float> slopes_;
};

struct Shape {
  int32_t dim;
  std::vector<uint8_t> bits;
  int64_t count;
  int queries;
};

std::vector<Shape> shapes() {
  std::vector<Shape> result;
  for (uint8_t bits = 1; bits <= 8; ++bits) {
    result.push_back({128, std::vector<uint8_t>(4, bits), 65, 37});
    result.push_back({100, std::vector<uint8_t>(4, bits), 33, 1});
    result.push_back({7, {bits}, 5, 3});
  }
  result.push_back({128, {8, 5, 3, 0}, 96, 64});
  result.push_back({90, {6, 0, 1}, 40, 1});
  return result;
}

TEST(Scan, KeysAreTheIntegersTimesTheirFactors) {
  with_each_kernels([] {
    for (const Shape& s : shapes()) {
      RandomList list(s.dim, s.bits, s.count);
      const Seen seen = list.scan(s.queries, INFINITY);
      for (int q = 0; q < s.queries; ++q) {
        ASSERT_EQ(seen.of_query[size_t(q)].size(), size_t(s.count));
        for (int64_t i = 0; i < s.count; ++i) {
          const auto& [position, key] = seen.of_query[size_t(q)][size_t(i)];
          ASSERT_EQ(position, i);
          ASSERT_EQ(key, list.expected_key(q, i))
              << "dim " << s.dim << " bits " << int(s.bits[0]) << " query " << q << " at " << i;
        }
      }
    }
  });
}

TEST(Scan, OnlyKeysWithinTheThresholdReachTheSink) {
  with_each_kernels([] {
    for (const int queries : {1, 5, 64}) {
      RandomList list(64, {}, 70);
      constexpr float kThreshold = 40;
      const Seen seen = list.scan(queries, kThreshold);
      for (int q = 0; q < queries; ++q) {
        std::vector<std::pair<int64_t, float>> expected;
        for (int64_t i = 0; i < 70; ++i) {
          const float key = list.expected_key(q, i);
          if (key <= kThreshold) expected.push_back({i, key});
        }
        EXPECT_EQ(seen.of_query[size_t(q)], expected);
        EXPECT_LT(expected.size(), 70u);
      }
    }
  });
}

TEST(Scan, PlanesGiveTheKeysOfWholeCodes) {
  with_each_kernels([] {
    for (const Shape& s : shapes()) {
      RandomList list(s.dim, s.bits, s.count, true);
      const int queries = std::max(s.queries, 2);
      const Seen seen = list.scan(queries, INFINITY);
      for (int q = 0; q < queries; ++q) {
        ASSERT_EQ(seen.of_query[size_t(q)].size(), size_t(s.count));
        for (int64_t i = 0; i < s.count; ++i) {
          const std::pair<int64_t, float> expected = {i, list.expected_key(q, i)};
          ASSERT_EQ(seen.of_query[size_t(q)][size_t(i)], expected)
              << "dim " << s.dim << " bits " << int(s.bits[0]) << " query " << q;
        }
      }
    }
  });
}

// A key by all bits, but not below what the top bits allow; and only where those allow it.
TEST(Scan, TopBitsTurnVectorsAway) {
  with_each_kernels([] {
    for (const Shape& s : shapes()) {
      RandomList list(s.dim, s.bits, s.count, true);
      for (const float threshold : {INFINITY, 30.f, -200.f}) {
        const Seen seen = list.scan(1, threshold);
        std::vector<std::pair<int64_t, float>> expected;
        int64_t allowed = 0;
        for (int64_t i = 0; i < s.count; ++i) {
          const float least = list.least_key(i), key = std::max(list.expected_key(0, i), least);
          allowed += least <= threshold ? 1 : 0;
          if (key <= threshold) expected.push_back({i, key});
        }
        ASSERT_EQ(seen.of_query[0], expected) << "dim " << s.dim << " bits " << int(s.bits[0]);
        EXPECT_EQ(list.refined(), allowed);
      }
    }
  });
}

TEST(Scan, QuantisedQueriesAreNear) {
  const CodeSpec spec = rotation_spec(100, 4, 1, 1);
  const CodeShape shape = code_shape(spec);
  const std::vector<float> q = padded_row(spec, gaussians(1, 100));
  const std::vector<float> c = padded_row(spec, gaussians(2, 100));
  const std::vector<float> s = padded_row(spec, gaussians(3, 100));
  std::vector<int8_t> first;
  with_each_kernels([&] {
    std::vector<int8_t> bytes(128);
    const QuantizedQuery r =
        code_kernels().quantize(shape, q.data(), c.data(), s.data(), bytes.data());
    int32_t offset = 0;
    double n2 = 0;
    for (size_t j = 0; j < 128; ++j) {
      EXPECT_NEAR(float(bytes[j]) * r.scale, (q[j] - c[j]) * s[j], 0.51f * r.scale);
      offset += 15 * bytes[j];
      n2 += double(q[j] - c[j]) * (q[j] - c[j]);
    }
    EXPECT_EQ(offset, r.offset);
    EXPECT_NEAR(r.n2, n2, 1e-4 * n2);
    if (first.empty()) first = bytes;
    EXPECT_EQ(bytes, first);
  });
}

TEST(Scan, ProductsOfFloats) {
  const std::vector<float> a = gaussians(1, 7 * 64), b = gaussians(2, 9 * 64);
  std::vector<float> first;
  with_each_kernels([&] {
    std::vector<float> out(7 * 9);
    code_kernels().products(64, a.data(), 7, b.data(), 9, out.data(), 9);
    for (size_t i = 0; i < 7; ++i) {
      for (size_t j = 0; j < 9; ++j) {
        double dot = 0;
        for (size_t k = 0; k < 64; ++k) dot += double(a[i * 64 + k]) * b[j * 64 + k];
        EXPECT_NEAR(out[i * 9 + j], dot, 1e-4);
      }
    }
    if (first.empty()) first = out;
    EXPECT_EQ(out, first);
  });
}

TEST(CodeKernels, TheSettingIsTheLatestAllowed) {
  EXPECT_STREQ(choose_code_kernels("baseline").name, "baseline");
  EXPECT_EQ(&choose_code_kernels(nullptr), available_code_kernels().back());
  EXPECT_EQ(&choose_code_kernels(""), available_code_kernels().back());
  EXPECT_EQ(error_text([] { choose_code_kernels("mmx"); }),
            "TESSERA_ISA: the lattice has no kernels for 'mmx'");
}

}  // namespace
}  // namespace tessera::lattice
