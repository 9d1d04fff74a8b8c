typedef signed char i8;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef float f32;
typedef double f64;
#define t_float(bits) __uint_as_float(bits)
#define t_bits(value) __float_as_uint(value)
static __device__ inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}
static __device__ inline u16 t_f32_to_bf16(f32 f) {
  const u32 bits = t_bits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x0040u);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

// max sub exp sum div over (extent0 | 100)
extern "C" __global__ void __launch_bounds__(128) tessera_max_sub_exp_sum_div(
    const u16* in0,
    u16* out1,
    f32* out2,
    i64 extent0, i32* error) {
  __shared__ f32 scratch_f32[128];
  const i64 rows = extent0;
  const i64 cols = 100;
  const i32 lane = (i32)threadIdx.x;
  const i64 stride = (i64)gridDim.x;
  for (i64 row = (i64)blockIdx.x; row < rows; row += stride) {
    f32 acc_1 = t_float(0xff800000u);
    for (i64 col = lane; col < cols; col += 128) {
      const f32 load_0 = t_bf16_to_f32(in0[row * 100 + col]);
      acc_1 = acc_1 > load_0 || acc_1 != acc_1 ? acc_1 : load_0;
    }
    scratch_f32[lane] = acc_1;
    __syncthreads();
    for (i32 width = 64; width > 0; width /= 2) {
      if (lane < width) {
        const f32 a = scratch_f32[lane], b = scratch_f32[lane + width];
        scratch_f32[lane] = a > b || a != a ? a : b;
      }
      __syncthreads();
    }
    const f32 max_1 = scratch_f32[0];
    __syncthreads();
    f32 acc_4 = 0.0f;
    for (i64 col = lane; col < cols; col += 128) {
      const f32 load_0 = t_bf16_to_f32(in0[row * 100 + col]);
      const f32 sub_2 = load_0 - max_1;
      const f32 exp_3 = exp(sub_2);
      acc_4 = acc_4 + exp_3;
    }
    scratch_f32[lane] = acc_4;
    __syncthreads();
    for (i32 width = 64; width > 0; width /= 2) {
      if (lane < width) {
        const f32 a = scratch_f32[lane], b = scratch_f32[lane + width];
        scratch_f32[lane] = a + b;
      }
      __syncthreads();
    }
    const f32 sum_4 = scratch_f32[0];
    __syncthreads();
    for (i64 col = lane; col < cols; col += 128) {
      const f32 load_0 = t_bf16_to_f32(in0[row * 100 + col]);
      const f32 sub_2 = load_0 - max_1;
      const f32 exp_3 = exp(sub_2);
      const f32 div_6 = exp_3 / sum_4;
      out1[row * 100 + col] = t_f32_to_bf16(div_6);
    }
    if (lane == 0) {
      out2[row] = max_1;
    }
  }
}
