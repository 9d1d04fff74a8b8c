// e^x for x <= 0, within 2 ulp: one multiplication less than exp, which is most of a softmax.
// Included after math.h.

// e^x = p · 2^n: returns p, sets n.
TESSERA_INLINE float exp_parts(float x, int32_t& n) {
  const float r = reduce_ln2(x, n);
  float p = fused(0.008290272f, r, 0.04189816f);
  p = fused(p, r, 0.16667639f);
  p = fused(p, r, 0.49999148f);
  return fused(fused(p, r, 0.9999997f), r, 1);
}

TESSERA_INLINE float exp_below(float x) {
  int32_t n;
  const float p = exp_parts(x < -104.f ? -104.f : x, n);
  // In two steps, so that results below the normal range are rounded once.
  const int32_t biased = n + 2 * 127, half = biased >> 1;
  return p * float_of(uint32_t(half) << 23) * float_of(uint32_t(biased - half) << 23);
}
TESSERA_INLINE double exp_below(double x) { return exp(x); }

#if defined(__AVX512F__)
TESSERA_INLINE __m512 exp_parts(__m512 x, __m512& n) {
  const auto all = [](float value) { return _mm512_set1_ps(value); };
  const __m512 shifted = _mm512_fmadd_ps(x, all(0x1.715476p+0f), all(0x1.8p23f));
  n = _mm512_sub_ps(shifted, all(0x1.8p23f));
  __m512 r = _mm512_fmadd_ps(n, all(-0x1.62e43p-1f), x);
  r = _mm512_fmadd_ps(n, all(0x1.05c61p-29f), r);
  __m512 p = _mm512_fmadd_ps(all(0.008290272f), r, all(0.04189816f));
  p = _mm512_fmadd_ps(p, r, all(0.16667639f));
  p = _mm512_fmadd_ps(p, r, all(0.49999148f));
  p = _mm512_fmadd_ps(p, r, all(0.9999997f));
  return _mm512_fmadd_ps(p, r, all(1));
}

// The same bits: scalef rounds once, too. Masks of all lanes, because gcc 12 warns of what the
// plain forms leave undefined.
TESSERA_INLINE __m512 exp_below(__m512 x) {
  constexpr __mmask16 kAll = 0xffff;
  __m512 n;
  const __m512 p = exp_parts(_mm512_maskz_max_ps(kAll, _mm512_set1_ps(-104.f), x), n);
  return _mm512_maskz_scalef_ps(kAll, p, n);
}
#endif
