// Facts of types, without the standard library. Included by simd/loops.cpp.

// Bytes of a register.
#if defined(__AVX512F__)
inline constexpr int64_t kRegister = 64;
#elif defined(__AVX2__)
inline constexpr int64_t kRegister = 32;
#else
inline constexpr int64_t kRegister = 16;
#endif

template <bool Condition, class A, class B>
struct Choose {
  using Type = A;
};
template <class A, class B>
struct Choose<false, A, B> {
  using Type = B;
};

// A number that is known when compiling, as an argument.
template <int K>
struct Count {};

template <class T>
inline constexpr bool kIsFloat = T(0.5) != T(0) && T(2) != T(1);
template <class T>
inline constexpr bool kIsBool = T(2) == T(1);

template <class T>
constexpr T lowest() {
  if constexpr (kIsFloat<T>) {
    return -T(__builtin_inf());
  } else if constexpr (T(-1) > T(0)) {
    return T(0);
  } else {
    return T(T(1) << (sizeof(T) * 8 - 1));
  }
}

template <class T>
constexpr T highest() {
  if constexpr (kIsFloat<T>) {
    return T(__builtin_inf());
  } else if constexpr (kIsBool<T>) {
    return true;
  } else {
    return T(~lowest<T>());
  }
}
