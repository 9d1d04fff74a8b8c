// Dot products of codes (bytes) and queries (signed bytes): what differs between instruction sets.
// Included by simd/codes.cpp. A register of codes is 16 vectors × 4 dimensions, a *quad*.

constexpr int kQuads = kGroup / 4;  // of a group
constexpr int64_t kRegister = 64;

TESSERA_INLINE int32_t query_quad(const int8_t* query) {
  int32_t quad;
  __builtin_memcpy(&quad, query, sizeof quad);
  return quad;
}

// Part i of quad k, of codes in registers or in memory.
TESSERA_INLINE ShortPart code_part(const Shorts (&codes)[kQuads], int k, int i) {
  return codes[k].part[i];
}
TESSERA_INLINE ShortPart code_part(const char* codes, int k, int i) {
  return load_part<ShortPart>(codes + k * kRegister + i * kPartBytes);
}

// part_products<kBits>(codes, i, query): part i of the products of one group of codes of kBits with
// the query's 32 bytes.
#if defined(__AVX512VNNI__)

template <int kBits, class Codes>
TESSERA_INLINE IntPart part_products(const Codes& codes, int i, const int8_t* query) {
  __m512i even = {}, odd = {};  // two chains: a product takes four cycles
#pragma GCC unroll 8
  for (int k = 0; k < kQuads; k += 2) {
    even = _mm512_dpbusd_epi32(even, (__m512i)code_part(codes, k, i),
                               _mm512_set1_epi32(query_quad(query + 4 * k)));
    odd = _mm512_dpbusd_epi32(odd, (__m512i)code_part(codes, k + 1, i),
                              _mm512_set1_epi32(query_quad(query + 4 * k + 4)));
  }
  return (IntPart)_mm512_add_epi32(even, odd);
}

#elif defined(__AVX2__)

template <int kBits, class Codes>
TESSERA_INLINE IntPart part_products(const Codes& codes, int i, const int8_t* query) {
  const __m256i ones = _mm256_set1_epi16(1), nibbles = _mm256_set1_epi8(15);
  __m256i low = {}, high = {};
#pragma GCC unroll 8
  for (int k = 0; k < kQuads; ++k) {
    const __m256i quad = _mm256_set1_epi32(query_quad(query + 4 * k));
    const __m256i code = (__m256i)code_part(codes, k, i);
    if constexpr (kBits <= 4) {  // 8 · 2 · 15 · 127 < 2^15: no sum overflows
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(code, quad));
    } else if constexpr (kBits < 8) {  // 2 · 127 · 127 < 2^15
      low = _mm256_add_epi32(low, _mm256_madd_epi16(_mm256_maddubs_epi16(code, quad), ones));
    } else {
      const __m256i upper = _mm256_and_si256(_mm256_srli_epi16(code, 4), nibbles);
      low = _mm256_add_epi16(low, _mm256_maddubs_epi16(_mm256_and_si256(code, nibbles), quad));
      high = _mm256_add_epi16(high, _mm256_maddubs_epi16(upper, quad));
    }
  }
  if constexpr (kBits > 4 && kBits < 8) return (IntPart)low;
  low = _mm256_madd_epi16(low, ones);
  if constexpr (kBits <= 4) return (IntPart)low;
  return (IntPart)_mm256_add_epi32(low, _mm256_slli_epi32(_mm256_madd_epi16(high, ones), 4));
}

#elif defined(__ARM_FEATURE_DOTPROD)

template <int kBits, class Codes>
TESSERA_INLINE IntPart part_products(const Codes& codes, int i, const int8_t* query) {
  int32x4_t sums = vdupq_n_s32(0);
  if constexpr (kBits == 8) {
    // The instruction takes signed codes: u - 128, and 128 times the query's sum added back.
    const int32_t total = vaddlvq_s8(vld1q_s8(query)) + vaddlvq_s8(vld1q_s8(query + 16));
    sums = vdupq_n_s32(128 * total);
  }
  for (int k = 0; k < kQuads; ++k) {
    const int8x16_t quad = vreinterpretq_s8_s32(vdupq_n_s32(query_quad(query + 4 * k)));
    auto code = (uint8x16_t)code_part(codes, k, i);
    if constexpr (kBits == 8) code = veorq_u8(code, vdupq_n_u8(128));
    sums = vdotq_s32(sums, vreinterpretq_s8_u8(code), quad);
  }
  return (IntPart)sums;
}

#else

template <int kBits, class Codes>
TESSERA_INLINE IntPart part_products(const Codes& codes, int i, const int8_t* query) {
  typedef int16_t SignedPart __attribute__((vector_size(kPartBytes)));
  const auto pair = [](int8_t first, int8_t second) {
    const uint32_t both = uint32_t(uint16_t(first)) | uint32_t(uint16_t(second)) << 16;
    return (SignedPart)(WordPart{} + both);
  };
  IntPart sums = {};
  for (int k = 0; k < kQuads; ++k) {
    const int8_t* q = query + 4 * k;
    const ShortPart code = code_part(codes, k, i);
    // A product of bytes fits 16 bits, a sum of two does not (unless the codes are small).
    SignedPart even = (SignedPart)(code & 0xff) * pair(q[0], q[2]);
    const SignedPart odd = (SignedPart)(code >> 8) * pair(q[1], q[3]);
    if constexpr (kBits <= 7) {
      even += odd;
    } else {
      sums += ((IntPart)odd >> 16) + ((IntPart)((WordPart)odd << 16) >> 16);
    }
    sums += ((IntPart)even >> 16) + ((IntPart)((WordPart)even << 16) >> 16);
  }
  return sums;
}

#endif

template <int kBits, class Codes>
TESSERA_INLINE void add_group(Ints& to, const Codes& codes, const int8_t* query) {
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) to.part[i] += part_products<kBits>(codes, i, query);
}

// Which of 16 keys are at most `threshold`, as bits.
TESSERA_INLINE uint32_t at_most(const Floats& keys, float threshold) {
  uint32_t result = 0;
#pragma GCC unroll 4
  for (int i = 0; i < kParts; ++i) {
#if defined(__AVX512F__)
    const uint32_t bits =
        _mm512_cmp_ps_mask((__m512)keys.part[i], _mm512_set1_ps(threshold), _CMP_LE_OQ);
#elif defined(__AVX2__)
    const auto bits = uint32_t(_mm256_movemask_ps(
        _mm256_cmp_ps((__m256)keys.part[i], _mm256_set1_ps(threshold), _CMP_LE_OQ)));
#elif defined(__SSE2__)
    const auto bits =
        uint32_t(_mm_movemask_ps(_mm_cmple_ps((__m128)keys.part[i], _mm_set1_ps(threshold))));
#else
    const IntPart hits = (IntPart)(keys.part[i] <= threshold) & IntPart{1, 2, 4, 8};
    const auto bits = uint32_t(hits[0] + hits[1] + hits[2] + hits[3]);
#endif
    result |= bits << (i * kPartLanes);
  }
  return result;
}
