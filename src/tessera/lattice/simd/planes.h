// Blocks whose top bits lie apart from the others, code_layout.h. Included by simd/codes.cpp behind
// simd/scan.h.

TESSERA_INLINE int cold_bits_of(const CodeShape& shape, int group) {
  const int bits = shape.group_bits[group];
  return bits > 0 ? bits - 1 : 0;
}

// Calls use.template operator()<1>(group, codes) for the groups of the top bits of half a block.
template <class Use>
TESSERA_INLINE void each_hot_group(const CodeShape& shape, const char* from, Use use) {
  for (int group = 0; group * kGroup < shape.dim; ++group) {
    if (shape.group_bits[group] == 0) continue;
    from = one_group<1>(from, group, quads_of(shape, group), use);
  }
}

// The same for the other bits, in the order of registers.
template <class Use>
TESSERA_INLINE void each_cold_group(const CodeShape& shape, const char* from, Use use) {
  each_group_of(
      shape, from, [&](int group) { return cold_bits_of(shape, group); }, use);
}

// Products of a query and the top bits, each counted as it counts in the whole code.
TESSERA_INLINE void hot_dots(const CodeShape& shape, const char* block, const int8_t* query,
                             int32_t* dots) {
  for (int half = 0; half < 2; ++half) {
    Ints sums = {};
    each_hot_group(
        shape, block + half * shape.hot_half_bytes,
        [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
          Ints some = {};
          add_group<1>(some, codes, query + group * kGroup);
          const int shift = cold_bits_of(shape, group);
          sums = each_part<Ints>([&](int i) { return sums.part[i] + (some.part[i] << shift); });
        });
    store(dots + half * kHalf, sums);
  }
}

// Puts a row into slot `slot` of registers, (2, registers of half a block, 16, 4).
TESSERA_INLINE void spread_row(const CodeShape& shape, const char* row, int slot, char* registers) {
  char* to = registers + slot / kHalf * shape.cold_half_bytes + slot % kHalf * 4;
  for (int64_t at = 0; at < shape.cold_half_bytes; at += kRegister, row += 4, to += kRegister) {
    __builtin_memcpy(to, row, 4);
  }
}

TESSERA_INLINE const char* row_of(const CodeShape& shape, const char* block, int slot) {
  return block + shape.hot_bytes + slot * shape.row_bytes;
}

// A block as bytes, as unpack_block gives them; and its factors as a block without planes has them.
TESSERA_INLINE void unpack_planes(const CodeShape& shape, const char* block, char* registers,
                                  char* to, char* factors) {
  __builtin_memcpy(factors, block + 2 * shape.hot_half_bytes, kBlock * 2);
  for (int slot = 0; slot < kBlock; ++slot) {
    const char* row = row_of(shape, block, slot);
    spread_row(shape, row, slot, registers);
    __builtin_memcpy(factors + (kBlock + slot) * 2, row + shape.row_bytes - 2, 2);
  }
  for (int half = 0; half < 2; ++half) {
    char* base = to + half * int64_t(kHalf) * shape.padded_dim;
    each_cold_group(shape, registers + half * shape.cold_half_bytes,
                    [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
                      for (int k = 0; k < kQuads; ++k) {
                        store(base + (group * kQuads + k) * kRegister, codes[k]);
                      }
                    });
    each_hot_group(shape, block + half * shape.hot_half_bytes,
                   [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
                     const int shift = cold_bits_of(shape, group);
                     for (int k = 0; k < kQuads; ++k) {
                       char* at = base + (group * kQuads + k) * kRegister;
                       const auto low = load<Shorts>(at);
                       store(at, each_part<Shorts>([&](int i) {
                               return low.part[i] | codes[k].part[i] << shift;
                             }));
                     }
                   });
  }
}

// Vectors that their top bits did not turn away, until there is a block of them.
struct Survivors {
  int count = 0;
  int64_t positions[kBlock];
  const char* rows[kBlock];
  alignas(64) int32_t dots[kBlock];  // of the top bits
  alignas(64) float n2[kBlock];
  alignas(64) float least[kBlock];  // keys that these bits allow
  alignas(64) uint16_t g[kBlock];
};

// Measures them by all bits. A key is at least what the top bits allow: so a result does not depend
// on how far the threshold had come down when its vector was looked at.
inline void refine(const CodeShape& shape, const ScanTile& tile, Survivors& found) {
  char* registers = reinterpret_cast<char*>(tile.scratch);
  for (int i = 0; i < found.count; ++i) {
    spread_row(shape, found.rows[i], i, registers);
    __builtin_memcpy(&found.g[i], found.rows[i] + shape.row_bytes - 2, 2);
  }
  const int32_t offset = tile.offsets[0];
  alignas(64) float keys[kBlock];
  for (int half = 0; half * kHalf < found.count; ++half) {
    auto sums = load<Ints>(found.dots + half * kHalf);
    each_cold_group(shape, registers + half * shape.cold_half_bytes,
                    [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
                      if constexpr (kBits > 0) {
                        add_group<kBits>(sums, codes, tile.queries + group * kGroup);
                      }
                    });
    const Ints twice = each_part<Ints>([&](int i) { return sums.part[i] * 2 - offset; });
    const Floats g = widen_halves(found.g + half * kHalf) * shape.g_unit;
    const Floats key =
        load<Floats>(found.n2 + half * kHalf) + g * (to_floats(twice) * tile.slopes[0]);
    store(keys + half * kHalf, greatest(key, load<Floats>(found.least + half * kHalf)));
  }
  for (int i = 0; i < found.count; ++i) {
    if (!(keys[i] <= tile.thresholds[0])) continue;
    tile.thresholds[0] = tile.sink(tile.context, 0, found.positions[i], 1, &keys[i]);
  }
  *tile.refined += found.count;
  found.count = 0;
}

// One query: only vectors whose key could be within the threshold are read beyond their top bits.
inline void scan_hot(const CodeShape& shape, const char* block, int64_t count,
                     const ScanTile& tile) {
  Survivors found;
  const HotQuery& hot = *tile.hot;
  alignas(64) int32_t dots[kBlock];
  alignas(64) float keys[kBlock], squares[kBlock], n2[kBlock];
  for (int64_t first = 0; first < count; first += kBlock, block += shape.block_bytes) {
    hot_dots(shape, block, tile.queries, dots);
    const char* factors = block + 2 * shape.hot_half_bytes;
    uint32_t mask = 0;
    for (int half = 0; half < 2; ++half) {
      const Floats length = widen_halves(factors + half * 32) * shape.n2_unit;
      const Floats g = widen_halves(factors + 64 + half * 32) * shape.g_unit;
      const auto dot = load<Ints>(dots + half * kHalf);
      const Ints twice = each_part<Ints>([&](int i) { return dot.part[i] * 2 - hot.offset; });
      const Floats weighted = length * tile.n2_weight;
      const Floats key = weighted + g * (to_floats(twice) * tile.slopes[0]);
      // |r| tan, and what it could take from the key, squared. A difference d is within reach if
      // it is below 0, or d² is not above that: d |d| says both.
      const Floats reach = greatest(g * g * hot.n2 - length, Floats{}) * (hot.spread * hot.spread);
      const Floats above = key - tile.thresholds[0];
      mask |= at_most(above * greatest(above, Floats{} - above) - reach, 0) << (half * kHalf);
      store(keys + half * kHalf, key);
      store(squares + half * kHalf, reach);
      store(n2 + half * kHalf, weighted);
    }
    const int64_t left = count - first;
    for (mask &= left >= kBlock ? ~0u : (1u << left) - 1; mask != 0; mask &= mask - 1) {
      const int i = __builtin_ctz(mask), to = found.count++;
      const char* row = row_of(shape, block, i);
      __builtin_prefetch(row);
      __builtin_prefetch(row + shape.row_bytes - 1);
      found.positions[to] = first + i;
      found.rows[to] = row;
      found.dots[to] = dots[i];
      found.n2[to] = n2[i];
      found.least[to] = keys[i] - __builtin_sqrtf(squares[i]);
      if (found.count == kBlock) refine(shape, tile, found);
    }
  }
  refine(shape, tile, found);
}

void scan_planes(const CodeShape& shape, const std::byte* blocks, int64_t count,
                 const ScanTile& tile) {
  const char* block = reinterpret_cast<const char*>(blocks);
  if (tile.hot != nullptr) return scan_hot(shape, block, count, tile);
  char* bytes = reinterpret_cast<char*>(tile.scratch);
  auto* dots = reinterpret_cast<int32_t*>(bytes + int64_t(kBlock) * shape.padded_dim);
  char* registers = reinterpret_cast<char*>(dots + kTileQueries * kBlock);
  alignas(64) char factors[kBlock * 4];
  __builtin_memset(bytes, 0, size_t(kBlock) * size_t(shape.padded_dim));
  for (int64_t first = 0; first < count; first += kBlock, block += shape.block_bytes) {
    unpack_planes(shape, block, registers, bytes, factors);
    many_dots(shape, bytes, tile.queries, tile.count, dots);
    const int64_t left = count - first;
    const uint32_t valid = left >= kBlock ? ~0u : (1u << left) - 1;
    take_keys(shape, factors, first, valid, tile, dots);
  }
}
