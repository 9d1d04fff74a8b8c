// Loops of the scalar functions and of casts. Included by simd/loops.cpp.

// One struct per row of scalar_ops.def, holding its expression.
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...)                         \
  struct Op_##name {                                                               \
    template <class T>                                                             \
    TESSERA_INLINE static auto apply([[maybe_unused]] T a, [[maybe_unused]] T b) { \
      return (__VA_ARGS__);                                                        \
    }                                                                              \
  };
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP

// Ops whose form for floats holds within kTrigonometryReach, and libm's function for the rest.
template <class Op>
inline constexpr auto kBeyondReach = nullptr;
template <>
inline constexpr auto kBeyondReach<Op_sin> = [](float x) { return __builtin_sinf(x); };
template <>
inline constexpr auto kBeyondReach<Op_cos> = [](float x) { return __builtin_cosf(x); };
template <>
inline constexpr auto kBeyondReach<Op_tan> = [](float x) { return __builtin_tanf(x); };

TESSERA_INLINE bool is_beyond_reach(float x) { return !(t_abs(x) < kTrigonometryReach); }

template <class Op>
void redo_beyond_reach(int64_t n, float* __restrict d, const float* __restrict a) {
  uint32_t any = 0;  // not bool: reductions of that are not vectorised
  for (int64_t i = 0; i < n; ++i) any |= is_beyond_reach(a[i]) ? 1u : 0u;
  for (int64_t i = 0; any != 0 && i < n; ++i) {
    if (is_beyond_reach(a[i])) d[i] = kBeyondReach<Op>(a[i]);
  }
}

template <class Op, class T, class D>
void unary_loop(int64_t n, void* d, const void* a, const void*, const void*, unsigned) {
  D* __restrict dp = static_cast<D*>(d);
  const T* __restrict ap = static_cast<const T*>(a);
  for (int64_t i = 0; i < n; ++i) dp[i] = D(Op::template apply<T>(ap[i], T()));
  if constexpr (sizeof(T) == sizeof(float) && kIsFloat<T> && kBeyondReach<Op> != nullptr) {
    redo_beyond_reach<Op>(n, dp, ap);
  }
}

template <class Op, class T, class D>
void binary_loop(int64_t n, void* d, const void* a, const void* b, const void*, unsigned scalars) {
  D* __restrict dp = static_cast<D*>(d);
  const T* ap = static_cast<const T*>(a);
  const T* bp = static_cast<const T*>(b);
  if (scalars == 0) {
    for (int64_t i = 0; i < n; ++i) dp[i] = D(Op::template apply<T>(ap[i], bp[i]));
  } else if (scalars == 2) {
    const T value = *bp;
    for (int64_t i = 0; i < n; ++i) dp[i] = D(Op::template apply<T>(ap[i], value));
  } else if (scalars == 1) {
    const T value = *ap;
    for (int64_t i = 0; i < n; ++i) dp[i] = D(Op::template apply<T>(value, bp[i]));
  } else {
    const D value = D(Op::template apply<T>(*ap, *bp));
    for (int64_t i = 0; i < n; ++i) dp[i] = value;
  }
}

template <class T>
void copy_or_fill(int64_t n, T* __restrict d, const T* __restrict a, bool scalar) {
  if (scalar) {
    const T value = *a;
    for (int64_t i = 0; i < n; ++i) d[i] = value;
  } else {
    for (int64_t i = 0; i < n; ++i) d[i] = a[i];
  }
}

// T is an unsigned integer of the operands' size: only bits are moved.
template <class T>
void where_loop(int64_t n, void* d, const void* a, const void* b, const void* c, unsigned scalars) {
  T* __restrict dp = static_cast<T*>(d);
  const uint8_t* __restrict ap = static_cast<const uint8_t*>(a);
  const T* bp = static_cast<const T*>(b);
  const T* cp = static_cast<const T*>(c);
  const bool b_scalar = (scalars & 2) != 0, c_scalar = (scalars & 4) != 0;
  if (scalars & 1)
    return *ap ? copy_or_fill(n, dp, bp, b_scalar) : copy_or_fill(n, dp, cp, c_scalar);
  const T bv = *bp, cv = *cp;
  if (b_scalar && c_scalar) {
    for (int64_t i = 0; i < n; ++i) dp[i] = ap[i] ? bv : cv;
  } else if (b_scalar) {
    for (int64_t i = 0; i < n; ++i) dp[i] = ap[i] ? bv : cp[i];
  } else if (c_scalar) {
    for (int64_t i = 0; i < n; ++i) dp[i] = ap[i] ? bp[i] : cv;
  } else {
    for (int64_t i = 0; i < n; ++i) dp[i] = ap[i] ? bp[i] : cp[i];
  }
}

// Floats that an integer type cannot hold become its nearest value, NaN becomes 0: C++ leaves both
// undefined, and instruction sets differ.
template <class From, class To>
TESSERA_INLINE To convert(From x) {
  if constexpr (kIsFloat<From> && !kIsFloat<To> && kIsBool<To>) {
    return x != 0;
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    constexpr To kLow = lowest<To>(), kHigh = highest<To>();
    // For the wide types From(kHigh) rounds up to the first value that does not fit.
    const bool above = x >= From(kHigh), below = x <= From(kLow);
    const To inside = To(above || below || x != x ? From(0) : x);
    return above ? kHigh : below ? kLow : inside;
  } else {
    return To(x);
  }
}

template <class From, class To>
void cast_loop(int64_t n, void* d, const void* a) {
  To* __restrict dp = static_cast<To*>(d);
  const From* __restrict ap = static_cast<const From*>(a);
  for (int64_t i = 0; i < n; ++i) dp[i] = convert<From, To>(ap[i]);
}

void round_f16_loop(int64_t n, void* d, const void* a) {
  float* __restrict dp = static_cast<float*>(d);
  const float* __restrict ap = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; ++i) dp[i] = f16_to_float(float_to_f16(ap[i]));
}

void round_bf16_loop(int64_t n, void* d, const void* a) {
  float* __restrict dp = static_cast<float*>(d);
  const float* __restrict ap = static_cast<const float*>(a);
  for (int64_t i = 0; i < n; ++i) dp[i] = bf16_to_float(float_to_bf16(ap[i]));
}

template <class Op, int Arity, ScalarOut Out, class T>
constexpr ScalarLoop scalar_loop() {
  constexpr bool kLogical = Out == ScalarOut::logical;
  using D = typename Choose<kLogical, bool, T>::Type;
  if constexpr (Arity == 1) return unary_loop<Op, T, D>;
  if constexpr (Arity == 2) return binary_loop<Op, T, D>;
}

// The loops of one row of the table, for the types it takes.
template <class Op, int Arity, ScalarIn In, ScalarOut Out>
constexpr void fill_scalar_row(ScalarLoop* row) {
  if constexpr (takes_floats(In)) {
    row[int(DType::f32)] = scalar_loop<Op, Arity, Out, float>();
    row[int(DType::f64)] = scalar_loop<Op, Arity, Out, double>();
  }
  if constexpr (takes_integers(In)) {
    row[int(DType::i8)] = scalar_loop<Op, Arity, Out, int8_t>();
    row[int(DType::i32)] = scalar_loop<Op, Arity, Out, int32_t>();
    row[int(DType::i64)] = scalar_loop<Op, Arity, Out, int64_t>();
    row[int(DType::u8)] = scalar_loop<Op, Arity, Out, uint8_t>();
    row[int(DType::u32)] = scalar_loop<Op, Arity, Out, uint32_t>();
  }
  if constexpr (takes_bool(In)) {
    row[int(DType::boolean)] = scalar_loop<Op, Arity, Out, bool>();
  }
}

constexpr void fill_scalars(LoopTable& table) {
#define SCALAR_OP(name, arity, in, out, algebra, ulp, ...)         \
  fill_scalar_row<Op_##name, arity, ScalarIn::in, ScalarOut::out>( \
      table.scalar[int(ScalarOp::name)]);
#include "tessera/base/scalar_ops.def"
#undef SCALAR_OP
  ScalarLoop* where = table.scalar[int(ScalarOp::where)];
  where[int(DType::f32)] = where_loop<uint32_t>;
  where[int(DType::f64)] = where_loop<uint64_t>;
  where[int(DType::i8)] = where_loop<uint8_t>;
  where[int(DType::i32)] = where_loop<uint32_t>;
  where[int(DType::i64)] = where_loop<uint64_t>;
  where[int(DType::u8)] = where_loop<uint8_t>;
  where[int(DType::u32)] = where_loop<uint32_t>;
  where[int(DType::boolean)] = where_loop<uint8_t>;
}

template <class From>
constexpr void fill_casts_from(CastLoop* row) {
  row[int(DType::f32)] = cast_loop<From, float>;
  row[int(DType::f64)] = cast_loop<From, double>;
  row[int(DType::i8)] = cast_loop<From, int8_t>;
  row[int(DType::i32)] = cast_loop<From, int32_t>;
  row[int(DType::i64)] = cast_loop<From, int64_t>;
  row[int(DType::u8)] = cast_loop<From, uint8_t>;
  row[int(DType::u32)] = cast_loop<From, uint32_t>;
  row[int(DType::boolean)] = cast_loop<From, bool>;
}

constexpr void fill_casts(LoopTable& table) {
  fill_casts_from<float>(table.cast[int(DType::f32)]);
  fill_casts_from<double>(table.cast[int(DType::f64)]);
  fill_casts_from<int8_t>(table.cast[int(DType::i8)]);
  fill_casts_from<int32_t>(table.cast[int(DType::i32)]);
  fill_casts_from<int64_t>(table.cast[int(DType::i64)]);
  fill_casts_from<uint8_t>(table.cast[int(DType::u8)]);
  fill_casts_from<uint32_t>(table.cast[int(DType::u32)]);
  fill_casts_from<bool>(table.cast[int(DType::boolean)]);
  table.round_f16 = round_f16_loop;
  table.round_bf16 = round_bf16_loop;
}
