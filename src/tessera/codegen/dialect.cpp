#include "tessera/codegen/dialect.h"

namespace tessera {

// Pointers carry no `restrict`: an output may share its buffer with an input it replaces.

const Dialect& cuda_dialect() {
  static constexpr Dialect kCuda = {
      .name = "cuda",
      .header =
          "typedef signed char i8;\ntypedef int i32;\ntypedef long long i64;\n"
          "typedef unsigned char u8;\ntypedef unsigned short u16;\n"
          "typedef unsigned int u32;\ntypedef unsigned long long u64;\n"
          "typedef float f32;\ntypedef double f64;\n",
      .f64_header = "",
      .float_from_bits = "#define t_float(bits) __uint_as_float(bits)\n",
      .bits_from_float = "#define t_bits(value) __float_as_uint(value)\n",
      .double_from_bits = "#define t_double(bits) __longlong_as_double((i64)(bits))\n",
      .vector = "struct alignas($bytes) $name {\n  $type v[$width];\n};\n",
      .function = "static __device__ inline",
      .kernel = "extern \"C\" __global__ void __launch_bounds__($group)",
      .global = "",
      .local = "__shared__ ",
      .barrier = "__syncthreads();",
      .group_index = "(idx)blockIdx.x",
      .group_count = "(idx)gridDim.x",
      .lane = "(i32)threadIdx.x",
      .warp = 32,
      .shuffle_down = "__shfl_down_sync($mask, $value, $step, $width)",
      .shuffle_first = "__shfl_sync($mask, $value, 0, $width)",
      .words =
          "#define KERNEL extern \"C\" __global__ void\n"
          "#define KERNEL_OF(size) extern \"C\" __global__ void __launch_bounds__(size)\n"
          "#define DEVICE static __device__ inline\n"
          "#define GLOBAL\n#define SHARED __shared__\n#define SHARED_PTR\n"
          "#define BARRIER __syncthreads()\n"
          "#define GROUP blockIdx.x\n#define LANE threadIdx.x\n"
          "#define POINT ((i64)blockIdx.x * blockDim.x + threadIdx.x)\n"
          "#define clamp(x, low, high) min(max((x), (low)), (high))\n"
          "#ifndef INFINITY\n#define INFINITY __uint_as_float(0x7f800000u)\n#endif\n",
  };
  return kCuda;
}

const Dialect& opencl_dialect() {
  static constexpr Dialect kOpenCl = {
      .name = "opencl",
      .header =
          "typedef char i8;\ntypedef int i32;\ntypedef long i64;\n"
          "typedef uchar u8;\ntypedef ushort u16;\ntypedef uint u32;\ntypedef ulong u64;\n"
          "typedef float f32;\n",
      .f64_header = "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\ntypedef double f64;\n",
      .float_from_bits = "#define t_float(bits) as_float(bits)\n",
      .bits_from_float = "#define t_bits(value) as_uint(value)\n",
      .double_from_bits = "#define t_double(bits) as_double(bits)\n",
      .vector = "typedef struct {\n  $type v[$width];\n} __attribute__((aligned($bytes))) $name;\n",
      .function = "static inline",
      .kernel = "__kernel __attribute__((reqd_work_group_size($group, 1, 1))) void",
      .global = "__global ",
      .local = "__local ",
      .barrier = "barrier(CLK_LOCAL_MEM_FENCE);",
      .group_index = "(idx)get_group_id(0)",
      .group_count = "(idx)get_num_groups(0)",
      .lane = "(i32)get_local_id(0)",
      .words =
          "#define KERNEL __kernel void\n"
          "#define KERNEL_OF(size) __kernel __attribute__((reqd_work_group_size(size, 1, 1))) "
          "void\n"
          "#define DEVICE static inline\n"
          "#define GLOBAL __global\n#define SHARED __local\n#define SHARED_PTR __local\n"
          "#define BARRIER barrier(CLK_LOCAL_MEM_FENCE)\n"
          "#define GROUP get_group_id(0)\n#define LANE get_local_id(0)\n"
          "#define POINT ((i64)get_global_id(0))\n",
  };
  return kOpenCl;
}

}  // namespace tessera
