#include "tessera/codegen/dialect.h"

namespace tessera {

namespace {

// Single instructions for what C spells out.
constexpr NativeHelper kCudaNatives[] = {
    {"t_f16_to_f32(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_f16_to_f32(u16 h) {\n"
     "  f32 f;\n  asm(\"cvt.f32.f16 %0, %1;\" : \"=f\"(f) : \"h\"(h));\n  return f;\n}\n"},
    {"t_f32_to_f16(", "defined(__CUDA_ARCH__)",
     "$fn u16 t_f32_to_f16(f32 f) {\n"
     "  u16 h;\n  asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n  return h;\n}\n"},
    {"t_f32_to_bf16(", "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800",
     "$fn u16 t_f32_to_bf16(f32 f) {\n"
     "  u16 h;\n  asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(h) : \"f\"(f));\n  return h;\n}\n"},
    {"t_maximum_f32(", "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800",
     "$fn f32 t_maximum_f32(f32 a, f32 b) {\n"
     "  f32 c;\n  asm(\"max.NaN.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));\n"
     "  return c;\n}\n"},
    {"t_minimum_f32(", "defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800",
     "$fn f32 t_minimum_f32(f32 a, f32 b) {\n"
     "  f32 c;\n  asm(\"min.NaN.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));\n"
     "  return c;\n}\n"},
    // Within 2 ulps.
    {"t_near_quotient(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_near_quotient(f32 a, f32 b) {\n"
     "  f32 c;\n  asm(\"div.full.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));\n"
     "  return c;\n}\n"},
    {"t_near_exp(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_near_exp(f32 a) {\n"
     "  f32 c;\n  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(c) : \"f\"(a * 1.4426950409f));\n"
     "  return c;\n}\n"},
    // Corrected by what a first guess leaves over; out of the ordinary range, within 2 ulps.
    {"t_divisor(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_divisor(f32 b) {\n"
     "  return fabsf(b) > 1e-36f && fabsf(b) < 1e36f ? 1 / b : __uint_as_float(0x7fc00000u);\n"
     "}\n"},
    {"t_quotient(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_quotient(f32 a, f32 b, f32 divisor) {\n"
     "  f32 c = a * divisor;\n"
     "  if (fabsf(c) < 1e38f) {\n"
     "    c = fmaf(fmaf(-c, b, a), divisor, c);\n"
     "  } else {\n"
     "    asm volatile(\"div.full.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));\n"
     "  }\n  return c;\n}\n"},
    // Within 2 ulps.
    {"t_near_share(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_near_share(f32 a, f32 b, f32 divisor) {\n"
     "  f32 c = a * divisor;\n"
     "  if (!(fabsf(c) < 1e38f)) {\n"
     "    asm volatile(\"div.full.f32 %0, %1, %2;\" : \"=f\"(c) : \"f\"(a), \"f\"(b));\n"
     "  }\n  return c;\n}\n"},
    {"t_arrive(", "defined(__CUDA_ARCH__)",
     "$fn void t_arrive() {\n"
     "  asm volatile(\"barrier.cluster.arrive.release.aligned;\" : : : \"memory\");\n}\n"},
    {"t_await(", "defined(__CUDA_ARCH__)",
     "$fn void t_await() {\n"
     "  asm volatile(\"barrier.cluster.wait.acquire.aligned;\" : : : \"memory\");\n}\n"},
    {"t_of_group(", "defined(__CUDA_ARCH__)",
     "$fn void* t_of_group(void* at, i32 group) {\n"
     "  void* there;\n"
     "  asm(\"mapa.u64 %0, %1, %2;\" : \"=l\"(there) : \"l\"(at), \"r\"(group));\n"
     "  return there;\n}\n"},
    {"t_prefetch(", "defined(__CUDA_ARCH__)",
     "$fn void t_prefetch(const void* at) {\n"
     "  asm volatile(\"prefetch.global.L2 [%0];\" : : \"l\"(at));\n}\n"},
    // NVRTC takes an assignment apart where it cannot see that the address is aligned.
    {"t_put(", "defined(__CUDA_ARCH__)",
     "$fn void t_put(void* at, const void* from) {\n"
     "  const uint4 all = *(const uint4*)from;\n"
     "  asm volatile(\"st.global.v4.b32 [%0], {%1, %2, %3, %4};\"\n"
     "               : : \"l\"(at), \"r\"(all.x), \"r\"(all.y), \"r\"(all.z), \"r\"(all.w));\n}\n"},
    // Within 1 ulp.
    {"t_inverse_f32(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_inverse_f32(f32 a) {\n"
     "  f32 c;\n  asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(c) : \"f\"(a));\n  return c;\n}\n"},
    // 1 - 2 / (exp(2x) + 1) loses digits near 0, where a series takes over.
    {"t_tanh_f32(", "defined(__CUDA_ARCH__)",
     "$fn f32 t_tanh_f32(f32 x) {\n"
     "  f32 power, share;\n"
     "  asm(\"ex2.approx.ftz.f32 %0, %1;\" : \"=f\"(power) : \"f\"(fabsf(x) * 2.885390082f));\n"
     "  asm(\"rcp.approx.ftz.f32 %0, %1;\" : \"=f\"(share) : \"f\"(power + 1));\n"
     "  const f32 far = copysignf(1 - 2 * share, x), s = x * x;\n"
     "  f32 near = -0.00661574677f * s + 0.0213127397f;\n"
     "  near = near * s - 0.0539100654f;\n"
     "  near = near * s + 0.13333118f;\n"
     "  near = near * s - 0.333333313f;\n"
     "  return fabsf(x) < 0.55f ? x + x * (s * near) : far;\n}\n"},
};

}  // namespace

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
      .kernel = "extern \"C\" __global__ void __launch_bounds__($bounds)",
      .global = "",
      .local = "__shared__ ",
      .row_memory = "alignas(16) extern __shared__ u8 $name[];",
      .is_sized_by_launch = true,
      .shared_pointer = "",
      .barrier = "__syncthreads();",
      .group_index = "(idx)blockIdx.x",
      .group_count = "(idx)gridDim.x",
      .lane = "(i32)threadIdx.x",
      .warp = 32,
      .shuffle_down = "__shfl_down_sync($mask, $value, $step, $width)",
      .shuffle_first = "__shfl_sync($mask, $value, 0, $width)",
      .cluster = "__cluster_dims__($groups, 1, 1)",
      .cluster_arrive = "t_arrive();",
      .cluster_wait = "t_await();",
      .of_group = "t_of_group($at, $group)",
      .prefetch = "t_prefetch($address);",
      .put = "t_put($address, &$value);",
      .words =
          "#define KERNEL extern \"C\" __global__ void\n"
          "#define KERNEL_OF(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)\n"
          "#define DEVICE static __device__ inline\n"
          "#define GLOBAL\n#define SHARED __shared__\n#define SHARED_PTR\n"
          "#define BARRIER __syncthreads()\n#define WARP_BARRIER __syncwarp()\n"
          "#define GROUP blockIdx.x\n#define LANE threadIdx.x\n"
          "#define POINT ((i64)blockIdx.x * blockDim.x + threadIdx.x)\n"
          "#define clamp(x, low, high) min(max((x), (low)), (high))\n"
          "#ifndef INFINITY\n#define INFINITY __uint_as_float(0x7f800000u)\n#endif\n",
      .natives = kCudaNatives,
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
      .row_memory = "__local u8 $name[$bytes] __attribute__((aligned(16)));",
      .is_sized_by_launch = false,
      .shared_pointer = "__local ",
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
