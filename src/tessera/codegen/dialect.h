// A Dialect is what differs between the C languages that kernels are rendered in, as data. The
// shared text is written over the typedefs i8 … f64 and u16, which every dialect's header gives,
// and idx, the type of indices.
#pragma once

#include <span>
#include <string_view>

namespace tessera {

// What a compiler of the language makes better of a helper of the prelude, under a condition of the
// preprocessor; elsewhere the helper's own text holds.
struct NativeHelper {
  std::string_view trigger;  // "t_maximum_f32("
  std::string_view condition, text;
};

inline constexpr int kPrefetched = 128;

struct Dialect {
  std::string_view name;
  std::string_view header;      // the typedefs; starts every source
  std::string_view f64_header;  // follows where f64 occurs
  // Bit casts between floats and integers of one size, as macros; they follow where they are used.
  std::string_view float_from_bits;   // t_float(u32)
  std::string_view bits_from_float;   // t_bits(f32)
  std::string_view double_from_bits;  // t_double(u64)
  std::string_view vector;            // the type $name of $width elements $type, $bytes aligned
  std::string_view function;          // qualifiers of helper functions
  // Qualifiers of the entry. $group stands for the group size, $bounds for it and, where large
  // groups are to have many registers, how many groups share a unit's: else compilers save them.
  std::string_view kernel;
  std::string_view global;  // qualifier of pointers to device memory
  std::string_view local;   // qualifier of arrays shared by a group
  // Declares the bytes $name that a group shares for a row: $bytes of them, or as many as the
  // launch says.
  std::string_view row_memory;
  bool is_sized_by_launch;
  std::string_view shared_pointer;  // qualifier of pointers to what a group shares
  std::string_view barrier;         // statement: waits for the group, local memory is then seen
  std::string_view group_index;     // expressions
  std::string_view group_count;
  std::string_view lane;  // index inside the group
  // Lanes that can hand each other registers, where the language knows of such: how many, and the
  // expressions for $value of the lane $step further, and of the first, among $width lanes; $mask
  // names the lanes that take part.
  int warp = 0;
  std::string_view shuffle_down = "", shuffle_first = "";
  // Groups that run at once and reach each other's local memory, where the language knows of such:
  // the qualifier of an entry with clusters of $groups; statements that say that a lane is there,
  // and that wait until every lane of the cluster has been; the address of $at in the group $group.
  std::string_view cluster = "";
  std::string_view cluster_arrive = "", cluster_wait = "", of_group = "";
  // Statement: brings the kPrefetched bytes around $address nearer. Empty: the language has none.
  std::string_view prefetch = "";
  // Statement: stores the 16 bytes of $value at $address at once. Empty: assignments do.
  std::string_view put = "";
  // Macros that kernels written by hand for every dialect use: KERNEL and KERNEL_OF(group size)
  // begin an entry, DEVICE a function; GLOBAL and SHARED_PTR qualify pointers, SHARED arrays of a
  // group; BARRIER, and WARP_BARRIER for 32 lanes where the language has it; GROUP, LANE, POINT:
  // the group, the lane in it, the lane in the launch.
  std::string_view words = "";
  std::span<const NativeHelper> natives = {};
};

const Dialect& cuda_dialect();
const Dialect& opencl_dialect();  // OpenCL C 1.2

}  // namespace tessera
