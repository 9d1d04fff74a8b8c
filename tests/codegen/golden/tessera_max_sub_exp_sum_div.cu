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
#define t_bits(value) __float_as_uint(value)
static __device__ inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
static __device__ inline u16 t_f32_to_bf16(f32 f) {
  u16 h;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
  return h;
}
#else
static __device__ inline u16 t_f32_to_bf16(f32 f) {
  const u32 bits = t_bits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x0040u);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
#endif
#if defined(__CUDA_ARCH__)
static __device__ inline f32 t_near_exp(f32 a) {
  f32 c;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(c) : "f"(a * 1.4426950409f));
  return c;
}
#else
static __device__ inline f32 t_near_exp(f32 a) {
  return exp(a);
}
#endif
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
static __device__ inline f32 t_near_share(f32 a, f32 b, f32 divisor) {
  f32 c = a * divisor;
  if (!(fabsf(c) < 1e38f)) {
    asm volatile("div.full.f32 %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b));
  }
  return c;
}
#else
static __device__ inline f32 t_near_share(f32 a, f32 b, f32 divisor) {
  return a / divisor;
}
#endif
struct alignas(8) u16x4 {
  u16 v[4];
};
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

// max sub exp sum div over (extent0 | 100)
extern "C" __global__ void __launch_bounds__(256) tessera_max_sub_exp_sum_div(
    const u16* in0,
    u16* out1,
    f32* out2,
    i64 extent0, i32* error) {
  const idx rows = extent0;
  const idx cols = 100;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane % 32;
  const i32 team = lane / 32;
  const idx stride = (idx)gridDim.x * 8;
  for (idx first = (idx)blockIdx.x * 8; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 kept_load_0[4];
    f32 kept_exp_3[4];
    f32 max_1 = t_float(0xff800000u);
    {
      const idx col = part * 4;
      if (col < cols) {
        const u16x4 wide_0 = *(const u16x4*)(in0 + row * 100 + col);
        #pragma unroll
        for (i32 v = 0; v < 4; ++v) {
          const f32 load_0 = t_bf16_to_f32(wide_0.v[v]);
          kept_load_0[v] = load_0;
          max_1 = t_maximum_f32(max_1, load_0);
        }
      }
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_max_1 = __shfl_down_sync(0xffffffffu, max_1, step, 32);
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    max_1 = __shfl_sync(0xffffffffu, max_1, 0, 32);
    f32 sum_4 = 0.0f;
    {
      const idx col = part * 4;
      if (col < cols) {
        #pragma unroll
        for (i32 v = 0; v < 4; ++v) {
          const f32 load_0 = kept_load_0[v];
          const f32 sub_2 = load_0 - max_1;
          const f32 exp_3 = t_near_exp(sub_2);
          kept_exp_3[v] = exp_3;
          sum_4 = sum_4 + exp_3;
        }
      }
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_4 = __shfl_down_sync(0xffffffffu, sum_4, step, 32);
      sum_4 = sum_4 + other_sum_4;
    }
    sum_4 = __shfl_sync(0xffffffffu, sum_4, 0, 32);
    const f32 divisor_4 = t_divisor(sum_4);
    {
      const idx col = part * 4;
      if (col < cols) {
        u16x4 wide_7;
        #pragma unroll
        for (i32 v = 0; v < 4; ++v) {
          const f32 exp_3 = kept_exp_3[v];
          const f32 div_6 = t_near_share(exp_3, sum_4, divisor_4);
          wide_7.v[v] = t_f32_to_bf16(div_6);
        }
        if (is_mine) *(u16x4*)(out1 + row * 100 + col) = wide_7;
      }
    }
    if (part == 0 && is_mine) {
      out2[row] = max_1;
    }
  }
}
