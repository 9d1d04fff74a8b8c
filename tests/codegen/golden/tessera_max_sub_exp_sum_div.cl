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
#define t_bits(value) as_uint(value)
static inline f32 t_bf16_to_f32(u16 h) {
  return t_float((u32)h << 16);
}
static inline u16 t_f32_to_bf16(f32 f) {
  const u32 bits = t_bits(f);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (u16)((bits >> 16) | 0x0040u);
  return (u16)((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}
static inline f32 t_near_exp(f32 a) {
  return exp(a);
}
static inline f32 t_divisor(f32 b) {
  return b;
}
static inline f32 t_near_share(f32 a, f32 b, f32 divisor) {
  return a / divisor;
}
typedef struct {
  u16 v[4];
} __attribute__((aligned(8))) u16x4;
static inline f32 t_maximum_f32(f32 a, f32 b) {
  return a > b || a != a ? a : b;
}

// max sub exp sum div over (extent0 | 100)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_max_sub_exp_sum_div(
    __global const u16* in0,
    __global u16* out1,
    __global f32* out2,
    i64 extent0, __global i32* error) {
  __local f32 shared_f32[256];
  const idx rows = extent0;
  const idx cols = 100;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane % 32;
  const i32 team = lane / 32;
  const idx stride = (idx)get_num_groups(0) * 8;
  for (idx first = (idx)get_group_id(0) * 8; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f32 kept_load_0[4];
    f32 kept_exp_3[4];
    f32 max_1 = t_float(0xff800000u);
    {
      const idx col = part * 4;
      if (col < cols) {
        const u16x4 wide_0 = *(__global const u16x4*)(in0 + row * 100 + col);
        #pragma unroll
        for (i32 v = 0; v < 4; ++v) {
          const f32 load_0 = t_bf16_to_f32(wide_0.v[v]);
          kept_load_0[v] = load_0;
          max_1 = t_maximum_f32(max_1, load_0);
        }
      }
    }
    shared_f32[lane] = max_1;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 32; k += 16) {
        const f32 other_max_1 = shared_f32[team * 32 + k];
        max_1 = t_maximum_f32(max_1, other_max_1);
      }
      shared_f32[lane] = max_1;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    max_1 = shared_f32[team * 32];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_max_1 = shared_f32[team * 32 + k];
      max_1 = t_maximum_f32(max_1, other_max_1);
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
    shared_f32[lane] = sum_4;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 32; k += 16) {
        const f32 other_sum_4 = shared_f32[team * 32 + k];
        sum_4 = sum_4 + other_sum_4;
      }
      shared_f32[lane] = sum_4;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_4 = shared_f32[team * 32];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_sum_4 = shared_f32[team * 32 + k];
      sum_4 = sum_4 + other_sum_4;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
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
        if (is_mine) *(__global u16x4*)(out1 + row * 100 + col) = wide_7;
      }
    }
    if (part == 0 && is_mine) {
      out2[row] = max_1;
    }
  }
}
