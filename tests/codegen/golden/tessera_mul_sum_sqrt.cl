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

// mul sum sqrt over (| extent0), a part of each row
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_mul_sum_sqrt(
    __global const f32* in0,
    __global f32* out1,
    i64 extent0, __global i32* error, __global u64* scratch, i64 splits) {
  __local f32 shared_f32[256];
  const idx rows = 1;
  const idx cols = extent0;
  const idx whole = cols - cols % 4;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane;
  const idx split = (idx)get_group_id(0) % (idx)splits;
  const idx stride = (idx)get_num_groups(0) / (idx)splits;
  for (idx row = (idx)get_group_id(0) / (idx)splits; row < rows; row += stride) {
    f32 sum_2 = 0.0f;
    for (idx col = (split * 256 + part) * 4; col < whole; col += (idx)splits * 256 * 4) {
      const f32x4 wide_0 = *(__global const f32x4*)(in0 + col);
      #pragma unroll
      for (i32 v = 0; v < 4; ++v) {
        const f32 load_0 = wide_0.v[v];
        const f32 mul_1 = load_0 * load_0;
        sum_2 = sum_2 + mul_1;
      }
    }
    for (idx col = whole + (split * 256 + part); col < cols; col += (idx)splits * 256) {
      const f32 load_0 = in0[col];
      const f32 mul_1 = load_0 * load_0;
      sum_2 = sum_2 + mul_1;
    }
    shared_f32[lane] = sum_2;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 256; k += 16) {
        const f32 other_sum_2 = shared_f32[k];
        sum_2 = sum_2 + other_sum_2;
      }
      shared_f32[lane] = sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_2 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_sum_2 = shared_f32[k];
      sum_2 = sum_2 + other_sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part == 0) {
      ((__global f32*)scratch)[split] = sum_2;
    }
  }
}

// mul sum sqrt over (| extent0), of the parts
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_mul_sum_sqrt_fold(
    __global const f32* in0,
    __global f32* out1,
    i64 extent0, __global i32* error, __global u64* scratch, i64 splits) {
  __local f32 shared_f32[256];
  const idx rows = 1;
  const i32 lane = (i32)get_local_id(0);
  const i32 part = lane;
  const idx stride = (idx)get_num_groups(0);
  for (idx row = (idx)get_group_id(0); row < rows; row += stride) {
    f32 sum_2 = 0.0f;
    for (idx s = part; s < splits; s += 256) {
      const f32 other_sum_2 = ((__global f32*)scratch)[s];
      sum_2 = sum_2 + other_sum_2;
    }
    shared_f32[lane] = sum_2;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (part < 16) {
      for (i32 k = part + 16; k < 256; k += 16) {
        const f32 other_sum_2 = shared_f32[k];
        sum_2 = sum_2 + other_sum_2;
      }
      shared_f32[lane] = sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    sum_2 = shared_f32[0];
    #pragma unroll
    for (i32 k = 1; k < 16; ++k) {
      const f32 other_sum_2 = shared_f32[k];
      sum_2 = sum_2 + other_sum_2;
    }
    barrier(CLK_LOCAL_MEM_FENCE);
    const f32 sqrt_3 = sqrt(sum_2);
    if (part == 0) {
      out1[0] = sqrt_3;
    }
  }
}
