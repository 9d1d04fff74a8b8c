// The named kernels of kernel/kernel_call.h as source text, specialised by replacing words that
// start with $. Views are arguments, so that one program serves all shapes.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "tessera/backend/gpu/session.h"

namespace tessera::gpu {

using NamedKernelFactory = std::unique_ptr<GpuExecutable> (*)(Session&, const KernelCall&);

struct NamedKernelRow {
  std::string_view name;
  int operands;  // -1: any number
  NamedKernelFactory make;
};

// softmax, layer_norm, cumsum, cumprod and so on are not here: their composites become generated
// kernels. A backend may have kernels of its own that come first.
std::span<const NamedKernelRow> named_kernels();

// Throws where there is none of the call's name.
std::unique_ptr<GpuExecutable> make_named_kernel(Session& session, const KernelCall& call);

std::unique_ptr<GpuExecutable> make_matmul(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_sort(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_scatter(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_update_slice(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_copy(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_attention(Session& session, const KernelCall& call);
std::unique_ptr<GpuExecutable> make_attention_backward(Session& session, const KernelCall& call);

using Replacements = std::initializer_list<std::pair<std::string_view, std::string>>;

// A whole source for the session's device: the prelude of generated kernels, then LOAD(x) and
// STORE(x), which turn an element of `dtype` into a number of its compute type and back, then
// `text` with its words replaced.
std::string complete_source(const Session& session, std::string_view text, DType dtype,
                            Replacements words);

// Groups of `group` work items in one dimension, for at least `items`.
Range range_of(int64_t items, int64_t group);

// At most `wanted` work items, and what the device takes.
int64_t group_size(const Session& session, int64_t wanted);

// An array of strides or extents as an argument: the kernels declare the same struct.
struct Axes {
  int64_t at[kMaxRank] = {};
};
Axes axes_of(const Dims& dims, int64_t otherwise);
inline constexpr std::string_view kAxesText = "typedef struct { i64 at[8]; } Axes;\n";

}  // namespace tessera::gpu
