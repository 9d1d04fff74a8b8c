typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double f64;
#define t_float(bits) as_float(bits)
#define t_bits(value) as_uint(value)
static inline f32 t_f16_to_f32(u16 h) {
  const u32 sign = (u32)(h & 0x8000u) << 16, magnitude = h & 0x7fffu, tail = h & 0x3ffu;
  const u32 tiny = t_bits((f32)tail * 5.9604644775390625e-8f);
  const u32 finite = magnitude < 0x400u ? tiny : (magnitude << 13) + 0x38000000u;
  const u32 special = tail != 0 ? 0x7fc00000u | (tail << 13) : 0x7f800000u;
  return t_float((magnitude >= 0x7c00u ? special : finite) | sign);
}

// cast sum over (extent0 | 300)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_cast_sum(
    __global const u16* in0,
    __global f64* out1,
    i64 extent0, __global i32* error) {
  __local f64 shared_f64[256];
  const idx rows = extent0;
  const idx cols = 300;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane / 32;
  const i32 team = lane % 32;
  const idx stride = (idx)get_num_groups(0) * 32;
  for (idx first = (idx)get_group_id(0) * 32; first < rows; first += stride) {
    const bool is_mine = first + team < rows;
    const idx row = is_mine ? first + team : rows - 1;
    f64 sum_2 = 0.0;
    for (idx col = part; col < cols; col += 8) {
      const f32 load_0 = t_f16_to_f32(in0[row + col * 7]);
      const f64 cast_1 = (f64)load_0;
      sum_2 = sum_2 + cast_1;
    }
    shared_f64[lane] = sum_2;
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_2 = shared_f64[team];
    #pragma unroll
    for (i32 k = 1; k < 8; ++k) {
      const f64 other_sum_2 = shared_f64[k * 32 + team];
      sum_2 = sum_2 + other_sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0 && is_mine) {
      out1[row] = sum_2;
    }
  }
}
