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
#if defined(__CUDA_ARCH__)
static __device__ inline f32 t_f16_to_f32(u16 h) {
  f32 f;
  asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
  return f;
}
#else
static __device__ inline f32 t_f16_to_f32(u16 h) {
  const u32 sign = (u32)(h & 0x8000u) << 16, magnitude = h & 0x7fffu, tail = h & 0x3ffu;
  const u32 tiny = t_bits((f32)tail * 5.9604644775390625e-8f);
  const u32 finite = magnitude < 0x400u ? tiny : (magnitude << 13) + 0x38000000u;
  const u32 special = tail != 0 ? 0x7fc00000u | (tail << 13) : 0x7f800000u;
  return t_float((magnitude >= 0x7c00u ? special : finite) | sign);
}
#endif

// cast sum over (extent0 | 300)
extern "C" __global__ void __launch_bounds__(256) tessera_cast_sum(
    const u16* in0,
    f64* out1,
    i64 extent0, i32* error) {
  __shared__ f64 shared_f64[256];
  const idx rows = extent0;
  const idx cols = 300;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane / 32;
  const i32 team = lane % 32;
  const idx stride = (idx)gridDim.x * 32;
  for (idx first = (idx)blockIdx.x * 32; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f64 sum_2 = 0.0;
    for (idx col = part; col < cols; col += 8) {
      const f32 load_0 = t_f16_to_f32(in0[row + col * 7]);
      const f64 cast_1 = (f64)load_0;
      sum_2 = sum_2 + cast_1;
    }
    shared_f64[lane] = sum_2;
    __syncthreads();
    sum_2 = shared_f64[team];
    #pragma unroll
    for (i32 k = 1; k < 8; ++k) {
      const f64 other_sum_2 = shared_f64[k * 32 + team];
      sum_2 = sum_2 + other_sum_2;
    }
    __syncthreads();
    if (part == 0 && is_mine) {
      out1[row] = sum_2;
    }
  }
}
