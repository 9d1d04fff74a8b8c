typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
typedef struct {
  f32 v[4];
} __attribute__((aligned(16))) f32x4;

// mul sum mul add rsqrt mul mul over (extent0 | 768)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_mul_sum_mul_add_rsqrt_mul_mul(
    __global const f32* in0,
    __global const f32* in1,
    __global f32* out2,
    i64 extent0, __global i32* error) {
  __local f32 shared_f32[256];
  const idx rows = extent0;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane % 32;
  const i32 team = lane / 32;
  const idx stride = (idx)get_num_groups(0) * 8;
  for (idx first = (idx)get_group_id(0) * 8; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 kept_load_0[24];
    const f32 constant_3 = 0.0013020834f;
    const f32 constant_5 = 1e-06f;
    f32 sum_2 = 0.0f;
    #pragma unroll
    for (i32 k = 0; k < 6; ++k) {
      const idx col = k * 128 + part * 4;
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + row * 768 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 mul_1 = load_0 * load_0;
        kept_load_0[k * 4 + v] = load_0;
        sum_2 = sum_2 + mul_1;
      }
    }
    shared_f32[lane] = sum_2;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 32; k += 16) {
        const f32 other_sum_2 = shared_f32[team * 32 + k];
        sum_2 = sum_2 + other_sum_2;
      }
      shared_f32[lane] = sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_2 = shared_f32[team * 32];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_sum_2 = shared_f32[team * 32 + k];
      sum_2 = sum_2 + other_sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const f32 mul_4 = sum_2 * constant_3;
    const f32 add_6 = mul_4 + constant_5;
    const f32 rsqrt_7 = 1 / sqrt(add_6);
    #pragma unroll
    for (i32 k = 0; k < 6; ++k) {
      const idx col = k * 128 + part * 4;
      const f32x4 wide_9 = *(__global const f32x4*)(in1 + col);
      f32x4 wide_11;
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = kept_load_0[k * 4 + v];
        const f32 mul_8 = load_0 * rsqrt_7;
        const f32 load_9 = wide_9.v[v];
        const f32 mul_10 = mul_8 * load_9;
        wide_11.v[v] = mul_10;
      }
      if (is_mine) *(__global f32x4*)(out2 + row * 768 + col) = wide_11;
    }
  }
}
