// Rows of the named kernels. Included by simd/loops.cpp.

template <class T>
void softmax_row(int64_t n, void* y, const void* x) {
  T* __restrict yp = static_cast<T*>(y);
  const T* __restrict xp = static_cast<const T*>(x);
  const T greatest = fold_run<Max, T>(xp, n);
  for (int64_t i = 0; i < n; ++i) yp[i] = exp(xp[i] - greatest);
  const T scale = 1 / fold_run<Sum, T>(yp, n);
  for (int64_t i = 0; i < n; ++i) yp[i] *= scale;
}

template <class T>
struct SquaredDistances {
  const T* x;
  T from;
  TESSERA_INLINE T one(int64_t i) const { return (x[i] - from) * (x[i] - from); }
  TESSERA_INLINE V<T> wide(int64_t i) const {
    const V<T> d = load_wide(x + i) - from;
    return d * d;
  }
};

template <class T>
void layer_norm_row(int64_t n, void* y, void* mean_out, void* rstd_out, const void* x,
                    const void* gamma, const void* beta, double epsilon) {
  T* __restrict yp = static_cast<T*>(y);
  const T* xp = static_cast<const T*>(x);
  const T* gp = static_cast<const T*>(gamma);
  const T* bp = static_cast<const T*>(beta);
  const T mean = fold_run<Sum, T>(xp, n) / T(n);
  const T variance = fold_source<Sum, T>(SquaredDistances<T>{xp, mean}, n) / T(n);
  const T rstd = 1 / sqrt(variance + T(epsilon));
  for (int64_t i = 0; i < n; ++i) yp[i] = (xp[i] - mean) * rstd * gp[i] + bp[i];
  *static_cast<T*>(mean_out) = mean;
  *static_cast<T*>(rstd_out) = rstd;
}

template <class T>
struct Products {
  const T* a;
  const T* b;
  TESSERA_INLINE T one(int64_t i) const { return a[i] * b[i]; }
  TESSERA_INLINE V<T> wide(int64_t i) const { return load_wide(a + i) * load_wide(b + i); }
};

template <class T>
struct ProductsWithNormal {
  const T* a;
  const T* b;
  const T* x;
  T mean, rstd;
  TESSERA_INLINE T one(int64_t i) const { return a[i] * b[i] * ((x[i] - mean) * rstd); }
  TESSERA_INLINE V<T> wide(int64_t i) const {
    return load_wide(a + i) * load_wide(b + i) * ((load_wide(x + i) - mean) * rstd);
  }
};

template <class T>
void layer_norm_backward_row(int64_t n, void* dx, void* dgamma, void* dbeta, const void* g,
                             const void* x, const void* gamma, const void* mean_in,
                             const void* rstd_in) {
  T* __restrict dxp = static_cast<T*>(dx);
  T* __restrict dgp = static_cast<T*>(dgamma);
  T* __restrict dbp = static_cast<T*>(dbeta);
  const T* gp = static_cast<const T*>(g);
  const T* xp = static_cast<const T*>(x);
  const T* wp = static_cast<const T*>(gamma);
  const T mean = *static_cast<const T*>(mean_in), rstd = *static_cast<const T*>(rstd_in);
  const T along_one = fold_source<Sum, T>(Products<T>{gp, wp}, n) / T(n);
  const T along_x = fold_source<Sum, T>(ProductsWithNormal<T>{gp, wp, xp, mean, rstd}, n) / T(n);
  for (int64_t i = 0; i < n; ++i) {
    const T normal = (xp[i] - mean) * rstd;
    dgp[i] += gp[i] * normal;
    dbp[i] += gp[i];
    dxp[i] = rstd * (gp[i] * wp[i] - along_one - normal * along_x);
  }
}

constexpr void fill_rows(LoopTable& table) {
  table.rows_f32 = {softmax_row<float>, layer_norm_row<float>, layer_norm_backward_row<float>};
  table.rows_f64 = {softmax_row<double>, layer_norm_row<double>, layer_norm_backward_row<double>};
}
