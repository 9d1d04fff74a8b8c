typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;
typedef i32 idx;

// mul neg over (extent0, 2, 5)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_mul_neg(
    __global const i32* in0,
    __global i32* out1,
    i64 extent0, __global i32* error) {
  const idx count = extent0 * 10;
  const idx first = (idx)get_group_id(0) * 256 + (i32)get_local_id(0);
  const idx stride = (idx)get_num_groups(0) * 256;
  for (idx point = first; point < count; point += stride) {
    const idx d2 = point % 5;
    const idx d1 = point / 5 % 2;
    const idx d0 = point / 10;
    const i32 load_0 = in0[d0 - d1 * 15 + d2 * 3 + 15];
    const i32 mul_1 = (i32)((u32)load_0 * (u32)load_0);
    const i32 neg_2 = (i32)(-(u32)mul_1);
    out1[point] = neg_2;
  }
}
