// Dot products of codes (bytes) and queries (signed bytes): what differs between instruction sets.
// Included by simd/codes.cpp. A register of codes is 16 vectors × 4 dimensions, a *quad*.

constexpr int kQuads = kGroup / 4;  // of a group

TESSERA_INLINE int32_t query_quad(const int8_t* query) {
  int32_t quad;
  __builtin_memcpy(&quad, query, sizeof quad);
  return quad;
}

#if defined(__AVX512VNNI__)

// Adds the products of one group of codes of kBits with the query's 32 bytes.
template <int kBits>
TESSERA_INLINE void add_group(Ints& to, const Bytes (&codes)[kQuads], const int8_t* query) {
  __m512i even = (__m512i)to, odd = {};  // two chains: the latency is four products
#pragma GCC unroll 8
  for (int k = 0; k < kQuads; k += 2) {
    even =
        _mm512_dpbusd_epi32(even, (__m512i)codes[k], _mm512_set1_epi32(query_quad(query + 4 * k)));
    odd = _mm512_dpbusd_epi32(odd, (__m512i)codes[k + 1],
                              _mm512_set1_epi32(query_quad(query + 4 * k + 4)));
  }
  to = (Ints)_mm512_add_epi32(even, odd);
}

#elif defined(__AVX2__)

// Adds 8 vectors' products: codes are `at`, 8 × 4 bytes of each quad.
template <int kBits>
TESSERA_INLINE __m256i half_group(const Bytes (&codes)[kQuads], int half, const int8_t* query) {
  const __m256i ones = _mm256_set1_epi16(1), nibbles = _mm256_set1_epi8(15);
  __m256i low = {}, high = {};
#pragma GCC unroll 8
  for (int k = 0; k < kQuads; ++k) {
    const __m256i quad = _mm256_set1_epi32(query_quad(query + 4 * k));
    const __m256i code = load<__m256i>(reinterpret_cast<const char*>(&codes[k]) + 32 * half);
    if constexpr (kBits <= 4) {  // 8 · 2 · 15 · 127 < 2^15: no sum saturates
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(code, quad));
    } else if constexpr (kBits < 8) {  // 2 · 127 · 127 < 2^15
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_maddubs_epi16(code, quad), ones));
    } else {
      const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibbles);
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_and_si256(code, nibbles), quad));
      high = _mm256_add_epi16(high, _mm256_maddubs_epi16(upper, quad));
    }
  }
  if constexpr (kBits > 4 && kBits < 8) return low;
  low = _mm256_madd_epi16(low, ones);
  if constexpr (kBits <= 4) return low;
  return _mm256_add_epi32(low, _mm256_slli_epi32(_mm256_madd_epi16(high, ones), 4));
}

template <int kBits>
TESSERA_INLINE void add_group(Ints& to, const Bytes (&codes)[kQuads], const int8_t* query) {
  union {
    Ints all;
    __m256i halves[2];
  } sums = {to};
  sums.halves[0] = _mm256_add_epi32(sums.halves[0], half_group<kBits>(codes, 0, query));
  sums.halves[1] = _mm256_add_epi32(sums.halves[1], half_group<kBits>(codes, 1, query));
  to = sums.all;
}

#elif defined(__ARM_FEATURE_DOTPROD)

template <int kBits>
TESSERA_INLINE void add_group(Ints& to, const Bytes (&codes)[kQuads], const int8_t* query) {
  union {
    Ints all;
    int32x4_t parts[4];
  } sums = {to};
  // The instruction takes signed codes: u - 128, and 128 times the query's sum added back.
  const int8x16_t first = vld1q_s8(query), second = vld1q_s8(query + 16);
  const int32_t total = vaddlvq_s8(first) + vaddlvq_s8(second);
  for (int p = 0; p < 4; ++p) {
    int32x4_t part = sums.parts[p];
    for (int k = 0; k < kQuads; ++k) {
      const int8x16_t quad = vreinterpretq_s8_s32(vdupq_n_s32(query_quad(query + 4 * k)));
      const auto code = load<uint8x16_t>(reinterpret_cast<const char*>(&codes[k]) + 16 * p);
      if constexpr (kBits < 8) {
        part = vdotq_s32(part, vreinterpretq_s8_u8(code), quad);
      } else {
        part = vdotq_s32(part, vreinterpretq_s8_u8(veorq_u8(code, vdupq_n_u8(128))), quad);
      }
    }
    sums.parts[p] = kBits < 8 ? part : vaddq_s32(part, vdupq_n_s32(128 * total));
  }
  to = sums.all;
}

#else

template <int kBits>
TESSERA_INLINE void add_group(Ints& to, const Bytes (&codes)[kQuads], const int8_t* query) {
  typedef int16_t Signed __attribute__((vector_size(64)));
  const auto pair = [](int8_t even, int8_t odd) {
    return int32_t(uint32_t(uint16_t(even)) | uint32_t(uint16_t(odd)) << 16);
  };
  for (int k = 0; k < kQuads; ++k) {
    // A product of bytes fits 16 bits, a sum of two does not.
    const int8_t* q = query + 4 * k;
    const Signed even = (Signed)((Shorts)codes[k] & 0xff) * (Signed)(Ints{} + pair(q[0], q[2]));
    const Signed odd = (Signed)((Shorts)codes[k] >> 8) * (Signed)(Ints{} + pair(q[1], q[3]));
    to += ((Ints)even >> 16) + ((Ints)odd >> 16) + ((Ints)((Words)even << 16) >> 16) +
          ((Ints)((Words)odd << 16) >> 16);
  }
}

#endif

// Which of 16 keys are at most `threshold`, as bits.
#if defined(__AVX512F__)

TESSERA_INLINE uint32_t at_most(Floats keys, float threshold) {
  return _mm512_cmp_ps_mask((__m512)keys, _mm512_set1_ps(threshold), _CMP_LE_OQ);
}

#elif defined(__AVX2__)

TESSERA_INLINE uint32_t at_most(Floats keys, float threshold) {
  union {
    Floats all;
    __m256 halves[2];
  } parts = {keys};
  const __m256 limit = _mm256_set1_ps(threshold);
  const int low = _mm256_movemask_ps(_mm256_cmp_ps(parts.halves[0], limit, _CMP_LE_OQ));
  const int high = _mm256_movemask_ps(_mm256_cmp_ps(parts.halves[1], limit, _CMP_LE_OQ));
  return uint32_t(low | high << 8);
}

#else

TESSERA_INLINE uint32_t at_most(Floats keys, float threshold) {
  const Ints bits = {1,      1 << 1, 1 << 2,  1 << 3,  1 << 4,  1 << 5,  1 << 6,  1 << 7,
                     1 << 8, 1 << 9, 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14, 1 << 15};
  return uint32_t(sum((Ints)(keys <= threshold) & bits));
}

#endif
