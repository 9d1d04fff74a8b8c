typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
#define t_float(bits) as_float(bits)
static inline f32 t_divisor(f32 b) {
  return b;
}
static inline f32 t_quotient(f32 a, f32 b, f32 divisor) {
  return a / divisor;
}
typedef struct {
  f32 v[4];
} __attribute__((aligned(16))) f32x4;
static inline f32 t_maximum_f32(f32 a, f32 b) {
  return a > b || a != a ? a : b;
}

// long rows over (extent0 | 50257)
__kernel __attribute__((reqd_work_group_size(1024, 1, 1))) void tessera_long_rows(
    __global const f32* in0,
    __global f32* out1,
    __global f32* out2,
    i64 extent0, __global i32* error) {
  __local f32 shared_f32[1024];
  const idx rows = extent0;
  const idx cols = 50257;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane;
  const idx stride = (idx)get_num_groups(0);
  for (idx row = (idx)get_group_id(0); row < rows; row += stride) {
    const idx shift = (row * 50257) % 4;
    const idx last = (cols + shift - 1) / 4;
    f32 max_1 = t_float(0xff800000u);
    for (idx access = part + 1; access < last; access += 1024) {
      const idx col = access * 4 - shift;
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + row * 50257 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        max_1 = t_maximum_f32(max_1, load_0);
      }
    }
    if (part >= 1016) {
      const i32 end = part - 1016;
      const idx col = end < 4 ? end - shift : last * 4 - shift + end - 4;
      if (col >= 0 && col < cols) {
        const f32 load_0 = in0[row * 50257 + col];
        max_1 = t_maximum_f32(max_1, load_0);
      }
    }
    shared_f32[lane] = max_1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 1024; k += 16) {
        const f32 other_max_1 = shared_f32[k];
        max_1 = t_maximum_f32(max_1, other_max_1);
      }
      shared_f32[lane] = max_1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    max_1 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_max_1 = shared_f32[k];
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    f32 sum_4 = 0.0f;
    for (idx access = part + 1; access < last; access += 1024) {
      const idx col = access * 4 - shift;
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + row * 50257 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 sub_2 = load_0 - max_1;
        const f32 exp_3 = exp(sub_2);
        sum_4 = sum_4 + exp_3;
      }
    }
    if (part >= 1016) {
      const i32 end = part - 1016;
      const idx col = end < 4 ? end - shift : last * 4 - shift + end - 4;
      if (col >= 0 && col < cols) {
        const f32 load_0 = in0[row * 50257 + col];
        const f32 sub_2 = load_0 - max_1;
        const f32 exp_3 = exp(sub_2);
        sum_4 = sum_4 + exp_3;
      }
    }
    shared_f32[lane] = sum_4;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 1024; k += 16) {
        const f32 other_sum_4 = shared_f32[k];
        sum_4 = sum_4 + other_sum_4;
      }
      shared_f32[lane] = sum_4;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_4 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_sum_4 = shared_f32[k];
      sum_4 = sum_4 + other_sum_4;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const f32 divisor_4 = t_divisor(sum_4);
    for (idx access = part + 1; access < last; access += 1024) {
      const idx col = access * 4 - shift;
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + row * 50257 + col);
      f32x4 wide_7;
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 sub_2 = load_0 - max_1;
        const f32 exp_3 = exp(sub_2);
        const f32 div_6 = t_quotient(exp_3, sum_4, divisor_4);
        wide_7.v[v] = div_6;
      }
      *(__global f32x4*)(out1 + row * 50257 + col) = wide_7;
    }
    if (part >= 1016) {
      const i32 end = part - 1016;
      const idx col = end < 4 ? end - shift : last * 4 - shift + end - 4;
      if (col >= 0 && col < cols) {
        const f32 load_0 = in0[row * 50257 + col];
        const f32 sub_2 = load_0 - max_1;
        const f32 exp_3 = exp(sub_2);
        const f32 div_6 = t_quotient(exp_3, sum_4, divisor_4);
        out1[row * 50257 + col] = div_6;
      }
    }
    if (part == 0) {
      out2[row] = max_1;
    }
  }
}
