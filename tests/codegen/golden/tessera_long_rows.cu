typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
typedef i32 idx;
#define t_float(bits) __uint_as_float(bits)
#if defined(__CUDA_ARCH__)
static __device__ inline f32 t_divisor(f32 b) {
  return fabsf(b) > 1e-36f && fabsf(b) < 1e36f ? 1 / b : __uint_as_float(0x7fc00000u);
}
#else
static __device__ inline f32 t_divisor(f32 b) {
  return b;
}
#endif
#if defined(__CUDA_ARCH__)
static __device__ inline f32 t_quotient(f32 a, f32 b, f32 divisor) {
  f32 c = a * divisor;
  if (fabsf(c) < 1e38f) {
    c = fmaf(fmaf(-c, b, a), divisor, c);
  } else {
    asm volatile("div.full.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  }
  return c;
}
#else
static __device__ inline f32 t_quotient(f32 a, f32 b, f32 divisor) {
  return a / divisor;
}
#endif
#if defined(__CUDA_ARCH__)
static __device__ inline void t_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" : : : "memory");
}
#else
void t_arrive();
#endif
#if defined(__CUDA_ARCH__)
static __device__ inline void t_await() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" : : : "memory");
}
#else
void t_await();
#endif
#if defined(__CUDA_ARCH__)
static __device__ inline void* t_of_group(void* at, i32 group) {
  void* there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(at), "r"(group));
  return there;
}
#else
void* t_of_group(void* at, i32 group);
#endif
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
static __device__ inline f32 t_maximum_f32(f32 a, f32 b) {
  f32 c;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  return c;
}
#else
static __device__ inline f32 t_maximum_f32(f32 a, f32 b) {
  return a > b || a != a ? a : b;
}
#endif

// long rows over (extent0 | 50257)
extern "C" __global__ void __launch_bounds__(512, 2) __cluster_dims__(4, 1, 1) tessera_long_rows(
    const f32* in0,
    f32* out1,
    f32* out2,
    i64 extent0, i32* error) {
  __shared__ f32 shared_f32[64];
  const idx rows = extent0;
  const idx cols = 50257;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = (i32)((idx)blockIdx.x % 4) * 512 + lane;
  const idx stride = (idx)gridDim.x / 4;
  t_arrive();
  for (idx row = (idx)blockIdx.x / 4; row < rows; row += stride) {
    f32 kept_load_0[25];
    f32 kept_exp_3[25];
    f32 max_1 = t_float(0xff800000u);
    #pragma unroll
    for (i32 k = 0; k < 25; ++k) {
      const idx col = k * 2048 + part;
      if (col < cols) {
        const f32 load_0 = in0[row * 50257 + col];
        kept_load_0[k] = load_0;
        max_1 = t_maximum_f32(max_1, load_0);
      }
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_max_1 = __shfl_down_sync(0xffffffffu, max_1, step, 32);
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    max_1 = __shfl_sync(0xffffffffu, max_1, 0, 32);
    t_await();
    if (lane % 32 < 4) {
      *(f32*)t_of_group(shared_f32 + part / 32, lane % 32) = max_1;
    }
    t_arrive();
    t_await();
    max_1 = shared_f32[lane % 32];
    #pragma unroll
    for (i32 k = 32; k < 64; k += 32) {
      const f32 other_max_1 = shared_f32[k + lane % 32];
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_max_1 = __shfl_down_sync(0xffffffffu, max_1, step, 32);
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    max_1 = __shfl_sync(0xffffffffu, max_1, 0, 32);
    t_arrive();
    f32 sum_4 = 0.0f;
    #pragma unroll
    for (i32 k = 0; k < 25; ++k) {
      const idx col = k * 2048 + part;
      if (col < cols) {
        const f32 load_0 = kept_load_0[k];
        const f32 sub_2 = load_0 - max_1;
        const f32 exp_3 = exp(sub_2);
        kept_exp_3[k] = exp_3;
        sum_4 = sum_4 + exp_3;
      }
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_4 = __shfl_down_sync(0xffffffffu, sum_4, step, 32);
      sum_4 = sum_4 + other_sum_4;
    }
    sum_4 = __shfl_sync(0xffffffffu, sum_4, 0, 32);
    t_await();
    if (lane % 32 < 4) {
      *(f32*)t_of_group(shared_f32 + part / 32, lane % 32) = sum_4;
    }
    t_arrive();
    t_await();
    sum_4 = shared_f32[lane % 32];
    #pragma unroll
    for (i32 k = 32; k < 64; k += 32) {
      const f32 other_sum_4 = shared_f32[k + lane % 32];
      sum_4 = sum_4 + other_sum_4;
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_4 = __shfl_down_sync(0xffffffffu, sum_4, step, 32);
      sum_4 = sum_4 + other_sum_4;
    }
    sum_4 = __shfl_sync(0xffffffffu, sum_4, 0, 32);
    t_arrive();
    const f32 divisor_4 = t_divisor(sum_4);
    #pragma unroll
    for (i32 k = 0; k < 25; ++k) {
      const idx col = k * 2048 + part;
      if (col < cols) {
        const f32 exp_3 = kept_exp_3[k];
        const f32 div_6 = t_quotient(exp_3, sum_4, divisor_4);
        out1[row * 50257 + col] = div_6;
      }
    }
    if (part == 0) {
      out2[row] = max_1;
    }
  }
  t_await();
}
