// Blocks of codes against queries. Included by simd/codes.cpp.

constexpr int kHalf = kBlock / 2;

// Puts bits [from, from + width) of each byte of `packed` to bits [shift, shift + width) of `to`'s.
TESSERA_INLINE void add_piece(Shorts& to, const Shorts& packed, int from, int width, int shift) {
  const uint16_t mask = uint16_t(((1 << width) - 1) * 0x101);
  for (int i = 0; i < kParts; ++i) to.part[i] |= (packed.part[i] >> from & mask) << shift;
}

// The bytes of quad kQuad, from a full group of kBits.
template <int kBits, int kQuad>
TESSERA_INLINE Shorts quad_codes(const char* group) {
  Shorts code = {};
  int shift = kBits;
#pragma GCC unroll 4
  for (int width = 8; width > 0; width /= 2) {
    if ((kBits & width) == 0) continue;
    shift -= width;
    const int of_register = 8 / width;
    const auto packed = load<Shorts>(group + kQuad / of_register * kRegister);
    group += width * kRegister;
    if (width == 8) return packed;
    add_piece(code, packed, kQuad % of_register * width, width, shift);
  }
  return code;
}

// The last group, of fewer quads: its registers end early.
template <int kBits>
TESSERA_INLINE void unpack_last(const char* from, int quads, Shorts (&codes)[kQuads]) {
  for (Shorts& code : codes) code = Shorts{};
  int shift = kBits;
  for (int width = 8; width > 0; width /= 2) {
    if ((kBits & width) == 0) continue;
    shift -= width;
    const int of_register = 8 / width;
    for (int quad = 0; quad < quads; ++quad) {
      const auto packed = load<Shorts>(from + quad / of_register * kRegister);
      add_piece(codes[quad], packed, quad % of_register * width, width, shift);
    }
    from += (quads * width + 7) / 8 * kRegister;
  }
}

// Calls use.template operator()<kBits>(group, codes) and returns where the next group is.
template <int kBits, class Use>
TESSERA_INLINE const char* one_group(const char* from, int group, int quads, Use use) {
  if (__builtin_expect(quads == kQuads, 1)) {
    const Shorts codes[kQuads] = {quad_codes<kBits, 0>(from), quad_codes<kBits, 1>(from),
                                  quad_codes<kBits, 2>(from), quad_codes<kBits, 3>(from),
                                  quad_codes<kBits, 4>(from), quad_codes<kBits, 5>(from),
                                  quad_codes<kBits, 6>(from), quad_codes<kBits, 7>(from)};
    use.template operator()<kBits>(group, codes);
    return from + kBits * kRegister;
  }
  Shorts codes[kQuads];
  unpack_last<kBits>(from, quads, codes);
  use.template operator()<kBits>(group, codes);
  return from;
}

TESSERA_INLINE int quads_of(const CodeShape& shape, int group) {
  const int left = (shape.dim - group * kGroup + 3) / 4;
  return left < kQuads ? left : kQuads;
}

// Calls it for the groups of half a block, in order; bits_of(group) of each.
template <class Bits, class Use>
TESSERA_INLINE void each_group_of(const CodeShape& shape, const char* from, Bits bits_of, Use use) {
  for (int group = 0; group * kGroup < shape.dim; ++group) {
    const int quads = quads_of(shape, group);
    switch (bits_of(group)) {
      case 0: {
        const Shorts none[kQuads] = {};
        use.template operator()<0>(group, none);
        break;
      }
      case 1: from = one_group<1>(from, group, quads, use); break;
      case 2: from = one_group<2>(from, group, quads, use); break;
      case 3: from = one_group<3>(from, group, quads, use); break;
      case 4: from = one_group<4>(from, group, quads, use); break;
      case 5: from = one_group<5>(from, group, quads, use); break;
      case 6: from = one_group<6>(from, group, quads, use); break;
      case 7: from = one_group<7>(from, group, quads, use); break;
      default: from = one_group<8>(from, group, quads, use); break;
    }
  }
}

template <class Use>
TESSERA_INLINE void each_group(const CodeShape& shape, const char* from, Use use) {
  each_group_of(
      shape, from, [&](int group) { return shape.group_bits[group]; }, use);
}

// A block as bytes, (2, padded_dim / 4, 16, 4). What lies past the last group is zero already.
TESSERA_INLINE void unpack_block(const CodeShape& shape, const char* block, char* to) {
  for (int half = 0; half < 2; ++half) {
    char* base = to + half * int64_t(kHalf) * shape.padded_dim;
    each_group(shape, block + half * shape.half_bytes,
               [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
#pragma GCC unroll 8
                 for (int k = 0; k < kQuads; ++k) {
                   store(base + (group * kQuads + k) * kRegister, codes[k]);
                 }
               });
  }
}

// dots[q * 32 + v] = <query q, codes of vector v>, straight from packed codes: for one query,
// where storing the bytes would cost more than it saves.
TESSERA_INLINE void single_dots(const CodeShape& shape, const char* block, const int8_t* query,
                                int32_t* dots) {
  for (int half = 0; half < 2; ++half) {
    Ints sums = {};
    each_group(shape, block + half * shape.half_bytes,
               [&]<int kBits>(int group, const Shorts(&codes)[kQuads]) {
                 if constexpr (kBits > 0) add_group<kBits>(sums, codes, query + group * kGroup);
               });
    store(dots + half * kHalf, sums);
  }
}

#if defined(__AMX_INT8__)

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};

  constexpr TileConfig() {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = 64;
      rows[i] = 16;
    }
  }
};

// A constant: compilers do not see that the instruction reads all of it, and could drop stores.
constexpr TileConfig kTileConfig;

void begin() { _tile_loadconfig(&kTileConfig); }
void end() { _tile_release(); }

// Tiles 0 to 3 are sums, 16 queries × 16 vectors each; 4 and 5 queries, 6 and 7 codes. Rows of
// queries past `count` are read as far as the tile goes: the buffer has kTileQueries rows.
TESSERA_INLINE void many_dots(const CodeShape& shape, const char* bytes, const int8_t* queries,
                              int count, int32_t* dots) {
  const int64_t half = int64_t(kHalf) * shape.padded_dim, step = shape.padded_dim;
  constexpr int kTileRows = 16, kDotsStep = kBlock * 4;
  for (int q = 0; q < count; q += 2 * kTileRows) {
    const int8_t* rows = queries + q * step;
    const bool two = q + kTileRows < count;
    _tile_zero(0);
    _tile_zero(1);
    _tile_zero(2);
    _tile_zero(3);
    for (int32_t d = 0; d < shape.padded_dim; d += 64) {
      _tile_loadd(4, rows + d, step);
      _tile_loadd(6, bytes + d * kHalf, kRegister);
      _tile_loadd(7, bytes + half + d * kHalf, kRegister);
      _tile_dpbsud(0, 4, 6);
      _tile_dpbsud(1, 4, 7);
      if (two) {
        _tile_loadd(5, rows + kTileRows * step + d, step);
        _tile_dpbsud(2, 5, 6);
        _tile_dpbsud(3, 5, 7);
      }
    }
    int32_t* to = dots + q * kBlock;
    _tile_stored(0, to, kDotsStep);
    _tile_stored(1, to + kHalf, kDotsStep);
    if (two) {
      _tile_stored(2, to + kTileRows * kBlock, kDotsStep);
      _tile_stored(3, to + kTileRows * kBlock + kHalf, kDotsStep);
    }
  }
}

#else

void begin() {}
void end() {}

#if defined(__AVX512VNNI__)

template <int kCount>
TESSERA_INLINE void tile_dots(const CodeShape& shape, const char* bytes, const int8_t* queries,
                              int32_t* dots) {
  const int64_t half = int64_t(kHalf) * shape.padded_dim, step = shape.padded_dim;
  __m512i sums[kCount][2] = {};
  for (int32_t d = 0; d < shape.dim; d += 4) {
    const __m512i first = _mm512_load_si512(bytes + d * kHalf);
    const __m512i second = _mm512_load_si512(bytes + half + d * kHalf);
#pragma GCC unroll 12
    for (int q = 0; q < kCount; ++q) {
      const __m512i quad = _mm512_set1_epi32(query_quad(queries + q * step + d));
      sums[q][0] = _mm512_dpbusd_epi32(sums[q][0], first, quad);
      sums[q][1] = _mm512_dpbusd_epi32(sums[q][1], second, quad);
    }
  }
#pragma GCC unroll 12
  for (int q = 0; q < kCount; ++q) {
    _mm512_store_si512(dots + q * kBlock, sums[q][0]);
    _mm512_store_si512(dots + q * kBlock + kHalf, sums[q][1]);
  }
}

#else

// Group by group: sums of 16 bits must be widened before they overflow, which depends on the bits.
template <int kBits, int kCount>
TESSERA_INLINE void add_groups(Ints (&sums)[kCount], const char* codes, const int8_t* queries,
                               int64_t step) {
  for (int q = 0; q < kCount; ++q) {
    add_group<kBits>(sums[q], codes, queries + q * step);
  }
}

template <int kCount>
TESSERA_INLINE void tile_dots(const CodeShape& shape, const char* bytes, const int8_t* queries,
                              int32_t* dots) {
  const int64_t step = shape.padded_dim;
  for (int half = 0; half < 2; ++half) {
    const char* base = bytes + half * int64_t(kHalf) * shape.padded_dim;
    Ints sums[kCount] = {};
    for (int group = 0; group * kGroup < shape.dim; ++group) {
      const char* codes = base + group * kQuads * kRegister;
      const int8_t* parts = queries + group * kGroup;
      const int bits = shape.group_bits[group];
      if (bits <= 4) {
        add_groups<4>(sums, codes, parts, step);
      } else if (bits < 8) {
        add_groups<7>(sums, codes, parts, step);
      } else {
        add_groups<8>(sums, codes, parts, step);
      }
    }
    for (int q = 0; q < kCount; ++q) store(dots + q * kBlock + half * kHalf, sums[q]);
  }
}

#endif

TESSERA_INLINE void many_dots(const CodeShape& shape, const char* bytes, const int8_t* queries,
                              int count, int32_t* dots) {
  int q = 0;
  const auto take = [&]<int kCount>() {
    for (; q + kCount <= count; q += kCount) {
      tile_dots<kCount>(shape, bytes, queries + q * int64_t(shape.padded_dim), dots + q * kBlock);
    }
  };
#if defined(__AVX512VNNI__)
  take.template operator()<12>();
  take.template operator()<8>();
#endif
  take.template operator()<4>();
  take.template operator()<2>();
  take.template operator()<1>();
}

#endif

// Keys of a block from its products; those within a query's threshold go to the sink.
TESSERA_INLINE void take_keys(const CodeShape& shape, const char* factors, int64_t first,
                              uint32_t valid, const ScanTile& tile, const int32_t* dots) {
  const float n2_unit = shape.n2_unit * tile.n2_weight;
  const Floats n2[2] = {widen_halves(factors) * n2_unit, widen_halves(factors + 32) * n2_unit};
  const Floats g[2] = {widen_halves(factors + 64) * shape.g_unit,
                       widen_halves(factors + 96) * shape.g_unit};
  for (int q = 0; q < tile.count; ++q) {
    const float slope = tile.slopes[q];
    const int32_t offset = tile.offsets[q];
    Floats keys[2];
    for (int half = 0; half < 2; ++half) {
      const auto dot = load<Ints>(dots + q * kBlock + half * kHalf);
      const Ints twice = each_part<Ints>([&](int i) { return dot.part[i] * 2 - offset; });
      keys[half] = n2[half] + g[half] * (to_floats(twice) * slope);
    }
    const float threshold = tile.thresholds[q];
    const uint32_t mask = (at_most(keys[0], threshold) | at_most(keys[1], threshold) << 16) & valid;
    if (__builtin_expect(mask != 0, 0)) {
      alignas(64) float values[kBlock];
      store(values, keys[0]);
      store(values + kHalf, keys[1]);
      tile.thresholds[q] = tile.sink(tile.context, q, first, mask, values);
    }
  }
}

void scan_whole(const CodeShape& shape, const std::byte* blocks, int64_t count,
                const ScanTile& tile) {
  char* bytes = reinterpret_cast<char*>(tile.scratch);
  auto* dots = reinterpret_cast<int32_t*>(bytes + int64_t(kBlock) * shape.padded_dim);
  const bool single = tile.count == 1;
  if (!single) __builtin_memset(bytes, 0, size_t(kBlock) * size_t(shape.padded_dim));
  const char* block = reinterpret_cast<const char*>(blocks);
  for (int64_t first = 0; first < count; first += kBlock, block += shape.block_bytes) {
    if (single) {
      single_dots(shape, block, tile.queries, dots);
    } else {
      unpack_block(shape, block, bytes);
      many_dots(shape, bytes, tile.queries, tile.count, dots);
    }
    const int64_t left = count - first;
    const uint32_t valid = left >= kBlock ? ~0u : (1u << left) - 1;
    take_keys(shape, block + 2 * shape.half_bytes, first, valid, tile, dots);
  }
}
