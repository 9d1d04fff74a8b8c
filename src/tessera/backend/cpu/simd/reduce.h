// Folds. Included by simd/loops.cpp. The order of the operations is fixed by the counts alone, so
// that every instruction set and every number of threads gives the same bits.

struct Sum {
  template <class T>
  static constexpr T identity() {
    return T(0);
  }
  template <class X>
  TESSERA_INLINE static X apply(X a, X b) {
    return X(a + b);
  }
};
struct Prod {
  template <class T>
  static constexpr T identity() {
    return T(1);
  }
  template <class X>
  TESSERA_INLINE static X apply(X a, X b) {
    return X(a * b);
  }
};
// NaN wins, as in scalar_ops.def's maximum and minimum.
struct Max {
  template <class T>
  static constexpr T identity() {
    return lowest<T>();
  }
  template <class X>
  TESSERA_INLINE static X apply(X a, X b) {
    return by_halves([](auto x, auto y) { return ((x > y) | (x != x)) ? x : y; }, a, b);
  }
};
struct Min {
  template <class T>
  static constexpr T identity() {
    return highest<T>();
  }
  template <class X>
  TESSERA_INLINE static X apply(X a, X b) {
    return by_halves([](auto x, auto y) { return ((x < y) | (x != x)) ? x : y; }, a, b);
  }
};

// Halves upon halves. Vectors on purpose: an array of lanes would go through memory.
template <class Op, class T, class Lanes>
TESSERA_INLINE T fold_halves(Lanes v) {
  if constexpr (sizeof v == sizeof(T)) {
    return v[0];
  } else if constexpr (kIsPair<Lanes>) {
    return fold_halves<Op, T>(Op::apply(v.low, v.high));
  } else {
    typedef T Half __attribute__((vector_size(sizeof v / 2)));
    Half a, b;
    __builtin_memcpy(&a, &v, sizeof a);
    __builtin_memcpy(&b, reinterpret_cast<const char*>(&v) + sizeof a, sizeof b);
    return fold_halves<Op, T>(Half(Op::apply(a, b)));
  }
}

template <class Op, class T>
TESSERA_INLINE T fold_lanes(V<T> v) {
  return fold_halves<Op, T>(v);
}

// What is folded: element i as one value, and the elements from i on as a wide one.
template <class T>
struct Elements {
  const T* x;
  TESSERA_INLINE T one(int64_t i) const { return x[i]; }
  TESSERA_INLINE V<T> wide(int64_t i) const { return load_wide(x + i); }
};

struct Bools {  // there are no vectors of bool
  const bool* x;
  TESSERA_INLINE bool one(int64_t i) const { return x[i]; }
};

template <class Op, class T, class Source>
TESSERA_INLINE T fold_ones(Source source, int64_t begin, int64_t end) {
  T value = Op::template identity<T>();
  for (int64_t i = begin; i < end; ++i) value = Op::apply(value, source.one(i));
  return value;
}

// Four wide accumulators: fast, and close to a pairwise sum in accuracy.
template <class Op, class T, class Source>
TESSERA_INLINE T fold_source(Source source, int64_t n) {
  constexpr int64_t kLanes = Wide<T>::kLanes;
  if (n < kLanes) return fold_ones<Op, T>(source, 0, n);
  V<T> v0 = splat(Op::template identity<T>()), v1 = v0, v2 = v0, v3 = v0;
  int64_t i = 0;
  for (; i + 4 * kLanes <= n; i += 4 * kLanes) {
    v0 = Op::apply(v0, source.wide(i));
    v1 = Op::apply(v1, source.wide(i + kLanes));
    v2 = Op::apply(v2, source.wide(i + 2 * kLanes));
    v3 = Op::apply(v3, source.wide(i + 3 * kLanes));
  }
  for (; i + kLanes <= n; i += kLanes) v0 = Op::apply(v0, source.wide(i));
  v0 = Op::apply(Op::apply(v0, v1), Op::apply(v2, v3));
  return Op::apply(fold_lanes<Op, T>(v0), fold_ones<Op, T>(source, i, n));
}

template <class Op, class T>
TESSERA_INLINE T fold_run(const T* x, int64_t n) {
  if constexpr (kIsBool<T>) {
    return fold_ones<Op, T>(Bools{x}, 0, n);
  } else {
    return fold_source<Op, T>(Elements<T>{x}, n);
  }
}

// How many columns are folded at a time.
template <class T>
struct OneColumn {
  static constexpr int64_t kStep = 1;
  TESSERA_INLINE static T read(const T* p) { return *p; }
  TESSERA_INLINE static void write(T* p, T v) { *p = v; }
};
template <class T>
struct WideColumns {
  static constexpr int64_t kStep = Wide<T>::kLanes;
  TESSERA_INLINE static V<T> read(const T* p) { return load_wide(p); }
  TESSERA_INLINE static void write(T* p, V<T> v) { store_wide(p, v); }
};

// Folds kRows (1 or 4) rows at `a` into value, from column o on while there are as many as Columns
// takes. Returns the first column left.
template <class Op, class Columns, int kRows, class T>
TESSERA_INLINE int64_t fold_few_rows(T* value, const T* a, int64_t outer, int64_t o) {
  for (; o + Columns::kStep <= outer; o += Columns::kStep) {
    auto part = Columns::read(a + o);
    if constexpr (kRows == 4) {
      const T *a1 = a + outer, *a2 = a1 + outer, *a3 = a2 + outer;
      part = Op::apply(Op::apply(part, Columns::read(a1 + o)),
                       Op::apply(Columns::read(a2 + o), Columns::read(a3 + o)));
    }
    Columns::write(value + o, Op::apply(Columns::read(value + o), part));
  }
  return o;
}

template <class Op, int kRows, class T>
TESSERA_INLINE void fold_rows(T* value, const T* a, int64_t outer) {
  int64_t o = 0;
  // Wide on purpose: of Max and Min, compilers make loops over single values.
  if constexpr (!kIsBool<T>) o = fold_few_rows<Op, WideColumns<T>, kRows>(value, a, outer, o);
  fold_few_rows<Op, OneColumn<T>, kRows>(value, a, outer, o);
}

// Columns: value[o] op= a[i * outer + o], four rows at a time.
template <class Op, class T>
void fold_columns(T* value, const T* a, int64_t outer, int64_t inner) {
  int64_t i = 0;
  for (; i + 4 <= inner; i += 4, a += 4 * outer) fold_rows<Op, 4>(value, a, outer);
  for (; i < inner; ++i, a += outer) fold_rows<Op, 1>(value, a, outer);
}

template <class Op, class T>
void fold_loop(void* value, int64_t*, const void* a, const Fold& fold) {
  T* vp = static_cast<T*>(value);
  const T* ap = static_cast<const T*>(a);
  if (!fold.inner_fast) return fold_columns<Op, T>(vp, ap, fold.outer, fold.inner);
  for (int64_t o = 0; o < fold.outer; ++o) {
    vp[o] = Op::apply(vp[o], fold_run<Op, T>(ap + o * fold.inner, fold.inner));
  }
}

// As if the products had been stored, without doing so.
template <class T>
struct Products {
  const T *a, *b;
  TESSERA_INLINE T one(int64_t i) const { return a[i] * b[i]; }
  TESSERA_INLINE V<T> wide(int64_t i) const { return load_wide(a + i) * load_wide(b + i); }
};

template <class T>
void dot_loop(void* value, const void* a, const void* b, const Fold& fold) {
  T* vp = static_cast<T*>(value);
  Products<T> row{static_cast<const T*>(a), static_cast<const T*>(b)};
  for (int64_t o = 0; o < fold.outer; ++o, row.a += fold.inner, row.b += fold.inner) {
    vp[o] += fold_source<Sum, T>(row, fold.inner);
  }
}

template <class Op, class T>
void combine_loop(int64_t n, void* value, int64_t*, const void* part, const int64_t*) {
  T* __restrict vp = static_cast<T*>(value);
  const T* __restrict pp = static_cast<const T*>(part);
  for (int64_t i = 0; i < n; ++i) vp[i] = Op::apply(vp[i], pp[i]);
}

// Whether `next`, which comes later, replaces `best`.
template <class T>
TESSERA_INLINE bool beats(T next, T best) {
  return next > best || (next != next && best == best);
}

template <class T>
int64_t find_value(const T* x, int64_t n, T value) {
  int64_t i = 0;
  if (value != value) {
    while (i + 1 < n && x[i] == x[i]) ++i;
  } else {
    while (i + 1 < n && x[i] != value) ++i;
  }
  return i;
}

// The signed integer as wide as T.
template <class T>
using Place = typename Choose<sizeof(T) == 8, int64_t,
                              typename Choose<sizeof(T) == 4, int32_t, int8_t>::Type>::Type;

// As many columns as a register has. Places are counted in lanes as wide as the values, so no more
// rows at a time than those can count.
template <class T>
TESSERA_INLINE void argmax_columns(T* value, int64_t* where, const T* a, const Fold& fold) {
  using P = Place<T>;
  using Values = Register<T>;
  using Places = Register<P>;
  constexpr int64_t kMostRows = sizeof(P) == 1 ? 127 : 1 << 30;
  Values best = load_as<Values>(value);
  for (int64_t first = 0; first < fold.inner; first += kMostRows) {
    const int64_t rows = fold.inner - first < kMostRows ? fold.inner - first : kMostRows;
    Places places = splat_as<Places>(P(-1));
    for (int64_t i = 0; i < rows; ++i) {
      const Values next = load_as<Values>(a + (first + i) * fold.outer);
      const auto better = (next > best) | ((next != next) & (best == best));
      best = better ? next : best;
      places = better ? splat_as<Places>(P(i)) : places;
    }
    for (int64_t o = 0; o < kRegister / int64_t(sizeof(T)); ++o) {
      if (places[o] >= 0) where[o] = fold.base + first + int64_t(places[o]);
    }
  }
  __builtin_memcpy(value, &best, sizeof best);
}

template <class T>
void argmax_loop(void* value, int64_t* where, const void* a, const Fold& fold) {
  T* vp = static_cast<T*>(value);
  const T* ap = static_cast<const T*>(a);
  if (fold.inner_fast) {
    for (int64_t o = 0; o < fold.outer; ++o) {
      const T* run = ap + o * fold.inner;
      const T best = fold_run<Max, T>(run, fold.inner);
      if (!beats(best, vp[o])) continue;
      vp[o] = best;
      where[o] = fold.base + find_value(run, fold.inner, best);
    }
    return;
  }
  int64_t o = 0;
  if constexpr (!kIsBool<T>) {
    constexpr int64_t kColumns = kRegister / int64_t(sizeof(T));
    for (; o + kColumns <= fold.outer; o += kColumns) {
      argmax_columns(vp + o, where + o, ap + o, fold);
    }
  }
  for (; o < fold.outer; ++o) {
    for (int64_t i = 0; i < fold.inner; ++i) {
      const T next = ap[i * fold.outer + o];
      if (!beats(next, vp[o])) continue;
      vp[o] = next;
      where[o] = fold.base + i;
    }
  }
}

template <class T>
void combine_argmax_loop(int64_t n, void* value, int64_t* where, const void* part,
                         const int64_t* part_where) {
  T* vp = static_cast<T*>(value);
  const T* pp = static_cast<const T*>(part);
  for (int64_t i = 0; i < n; ++i) {
    if (!beats(pp[i], vp[i])) continue;
    vp[i] = pp[i];
    where[i] = part_where[i];
  }
}

template <class T>
constexpr void fill_folds_of(LoopTable& table, DType dtype) {
  const int t = int(dtype);
  table.fold[0][t] = fold_loop<Sum, T>;
  table.fold[1][t] = fold_loop<Prod, T>;
  table.fold[2][t] = fold_loop<Max, T>;
  table.fold[3][t] = fold_loop<Min, T>;
  table.fold[4][t] = argmax_loop<T>;
  table.combine[0][t] = combine_loop<Sum, T>;
  table.combine[1][t] = combine_loop<Prod, T>;
  table.combine[2][t] = combine_loop<Max, T>;
  table.combine[3][t] = combine_loop<Min, T>;
  table.combine[4][t] = combine_argmax_loop<T>;
}

constexpr void fill_folds(LoopTable& table) {
  table.dot_f32 = dot_loop<float>;
  table.dot_f64 = dot_loop<double>;
  fill_folds_of<float>(table, DType::f32);
  fill_folds_of<double>(table, DType::f64);
  fill_folds_of<int8_t>(table, DType::i8);
  fill_folds_of<int32_t>(table, DType::i32);
  fill_folds_of<int64_t>(table, DType::i64);
  fill_folds_of<uint8_t>(table, DType::u8);
  fill_folds_of<uint32_t>(table, DType::u32);
  fill_folds_of<bool>(table, DType::boolean);
}
