typedef char i8;
typedef int i32;
typedef long i64;
typedef uchar u8;
typedef ushort u16;
typedef uint u32;
typedef ulong u64;
typedef float f32;

// concat pad over (extent0, 6)
__kernel __attribute__((reqd_work_group_size(256, 1, 1))) void tessera_concat_pad(
    __global const f32* in0,
    __global const f32* in1,
    __global f32* out2,
    i64 extent0, __global i32* error) {
  const i64 count = extent0 * 6;
  const i64 first = (i64)get_group_id(0) * 256 + (i32)get_local_id(0);
  const i64 stride = (i64)get_num_groups(0) * 256;
  for (i64 point = first; point < count; point += stride) {
    const i64 d1 = point % 6;
    const i64 d0 = point / 6;
    const f32 constant_0 = -1.0f;
    const f32 load_1 = d0 < 1048576 && d1 >= 3 && d1 < 5 ? in1[d0 * 2 + d1 - 3] : constant_0;
    const f32 load_2 = d1 < 3 ? in0[d0 * 3 + d1] : load_1;
    out2[point] = load_2;
  }
}
