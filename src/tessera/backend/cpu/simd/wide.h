// 64 bytes of T, whatever the instruction set: a register, or two halves that are as many registers
// as it takes. Included by simd/loops.cpp. A vector type wider than a register would say the same,
// but compilers send its operations through memory.

template <class H>
struct Pair {
  H low, high;
};
template <class X>
inline constexpr bool kIsPair = false;
template <class H>
inline constexpr bool kIsPair<Pair<H>> = true;

template <class T, int64_t kBytes>
struct WideOf {
  using V = Pair<typename WideOf<T, kBytes / 2>::V>;
};
template <class T>
struct WideOf<T, kRegister> {
  typedef T V __attribute__((vector_size(kRegister)));
};

template <class T>
using Register = typename WideOf<T, kRegister>::V;

template <class T>
struct Wide {
  using V = typename WideOf<T, 64>::V;
  static constexpr int64_t kLanes = 64 / int64_t(sizeof(T));
};
template <class T>
using V = typename Wide<T>::V;

// f of single values, of registers, or of both halves.
template <class F, class X, class... Xs>
TESSERA_INLINE X by_halves(F f, X a, Xs... b) {
  if constexpr (kIsPair<X>) {
    return {by_halves(f, a.low, b.low...), by_halves(f, a.high, b.high...)};
  } else {
    return X(f(a, b...));
  }
}

template <class X, class T>
TESSERA_INLINE X splat_as(T value) {
  if constexpr (kIsPair<X>) {
    const auto half = splat_as<decltype(X::low)>(value);
    return {half, half};
  } else {
    return value - X{};  // not plus: -0 stays -0
  }
}
template <class T>
TESSERA_INLINE V<T> splat(T value) {
  return splat_as<V<T>>(value);
}

template <class X, class T>
TESSERA_INLINE X load_as(const T* p) {
  if constexpr (kIsPair<X>) {
    using H = decltype(X::low);
    return {load_as<H>(p), load_as<H>(p + sizeof(H) / sizeof(T))};
  } else {
    X v;
    __builtin_memcpy(&v, p, sizeof v);
    return v;
  }
}
template <class T>
TESSERA_INLINE V<T> load_wide(const T* p) {
  return load_as<V<T>>(p);
}

// put(address, register), one register after another.
template <class Put, class T, class X>
TESSERA_INLINE void store_by(Put put, T* p, X v) {
  if constexpr (kIsPair<X>) {
    store_by(put, p, v.low);
    store_by(put, p + sizeof v.low / sizeof(T), v.high);
  } else {
    put(p, v);
  }
}
template <class T>
TESSERA_INLINE void store_wide(T* p, V<T> v) {
  store_by([](T* to, auto part) { __builtin_memcpy(to, &part, sizeof part); }, p, v);
}

// Past the caches. REQUIRES p aligned to 64.
template <class T>
TESSERA_INLINE void stream_wide(T* p, V<T> v) {
  store_by(
      [](T* to, auto part) {
#if defined(__AVX512F__)
        _mm512_stream_si512(reinterpret_cast<__m512i*>(to), __m512i(part));
#elif defined(__AVX2__)
        _mm256_stream_si256(reinterpret_cast<__m256i*>(to), __m256i(part));
#elif defined(__x86_64__)
        _mm_stream_si128(reinterpret_cast<__m128i*>(to), __m128i(part));
#else
        __builtin_memcpy(to, &part, sizeof part);
#endif
      },
      p, v);
}

template <class H>
TESSERA_INLINE Pair<H> operator-(Pair<H> a) {
  return {-a.low, -a.high};
}
template <class H>
TESSERA_INLINE Pair<H> operator+(Pair<H> a, Pair<H> b) {
  return {a.low + b.low, a.high + b.high};
}
template <class H>
TESSERA_INLINE Pair<H> operator-(Pair<H> a, Pair<H> b) {
  return {a.low - b.low, a.high - b.high};
}
template <class H>
TESSERA_INLINE Pair<H> operator*(Pair<H> a, Pair<H> b) {
  return {a.low * b.low, a.high * b.high};
}
template <class H>
TESSERA_INLINE Pair<H> operator/(Pair<H> a, Pair<H> b) {
  return {a.low / b.low, a.high / b.high};
}
