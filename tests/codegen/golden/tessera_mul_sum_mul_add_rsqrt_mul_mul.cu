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
struct alignas(16) f32x4 {
  f32 v[4];
};

// mul sum mul add rsqrt mul mul over (extent0 | 768)
extern "C" __global__ void __launch_bounds__(256) tessera_mul_sum_mul_add_rsqrt_mul_mul(
    const f32* in0,
    const f32* in1,
    f32* out2,
    i64 extent0, i32* error) {
  const idx rows = extent0;
  const i32 lane = (i32)threadIdx.x;
  const i32 part = lane % 32;
  const i32 team = lane / 32;
  const idx stride = (idx)gridDim.x * 8;
  for (idx first = (idx)blockIdx.x * 8; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 kept_load_0[24];
    const f32 constant_3 = 0.0013020834f;
    const f32 constant_5 = 1e-06f;
    f32 sum_2 = 0.0f;
    #pragma unroll
    for (i32 k = 0; k < 6; ++k) {
      const idx col = k * 128 + part * 4;
      const f32x4 wide_0 = *(const f32x4*)(in0 + row * 768 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 mul_1 = load_0 * load_0;
        kept_load_0[k * 4 + v] = load_0;
        sum_2 = sum_2 + mul_1;
      }
    }
    #pragma unroll
    for (i32 step = 16; step > 0; step /= 2) {
      const f32 other_sum_2 = __shfl_down_sync(0xffffffffu, sum_2, step, 32);
      sum_2 = sum_2 + other_sum_2;
    }
    sum_2 = __shfl_sync(0xffffffffu, sum_2, 0, 32);
    const f32 mul_4 = sum_2 * constant_3;
    const f32 add_6 = mul_4 + constant_5;
    const f32 rsqrt_7 = 1 / sqrt(add_6);
    #pragma unroll
    for (i32 k = 0; k < 6; ++k) {
      const idx col = k * 128 + part * 4;
      const f32x4 wide_9 = *(const f32x4*)(in1 + col);
      f32x4 wide_11;
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = kept_load_0[k * 4 + v];
        const f32 mul_8 = load_0 * rsqrt_7;
        const f32 load_9 = wide_9.v[v];
        const f32 mul_10 = mul_8 * load_9;
        wide_11.v[v] = mul_10;
      }
      if (is_mine) *(f32x4*)(out2 + row * 768 + col) = wide_11;
    }
  }
}
