#include "tessera/backend/gpu/named_kernel.h"

#include <algorithm>

#include "tessera/codegen/prelude.h"
#include "tessera/codegen/text.h"

namespace tessera::gpu {

namespace {

constexpr NamedKernelRow kRows[] = {
    {"matmul", 3, make_matmul},
    {"sort", 3, make_sort},
    {"topk", 3, make_sort},
    {"scatter_add", 4, make_scatter},
    {"scatter", 4, make_scatter},
    {"update_slice", 4, make_update_slice},
    {"attention", -1, make_attention},
    {"attention_backward", -1, make_attention_backward},
    {"copy", 2, make_copy},
};

}  // namespace

std::span<const NamedKernelRow> named_kernels() { return kRows; }

std::unique_ptr<GpuExecutable> make_named_kernel(Session& session, const KernelCall& call) {
  for (const NamedKernelRow& row : kRows) {
    if (row.name != call.kernel) continue;
    if (row.operands >= 0 && int(call.operands.size()) != row.operands) {
      fail(row.name, ": expected ", row.operands, " operands, got ", call.operands.size());
    }
    return row.make(session, call);
  }
  fail(session.device().name, ": expected the name of a kernel it has, got '", call.kernel, "'");
}

std::string complete_source(const Session& session, std::string_view text, DType dtype,
                            Replacements words) {
  const Dialect& dialect = *session.device().dialect;
  std::string kernel = cat("#define LOAD(x) ", from_storage(dtype, "(x)"), "\n#define STORE(x) ",
                           to_storage(dtype, "(x)"), "\n", text);
  for (const auto& [word, value] : words) kernel = replace_all(kernel, word, value);
  kernel = replace_all(kernel, "$S", storage_type(dtype));
  kernel = replace_all(kernel, "$T", register_type(compute_type(dtype)));
  return cat(prelude(kernel, dialect, false), dialect.words, kernel);
}

Range range_of(int64_t items, int64_t group) {
  Range range;
  range.group[0] = size_t(group);
  range.groups[0] = size_t((items + group - 1) / group);
  return range;
}

int64_t group_size(const Session& session, int64_t wanted) {
  return std::min(wanted, session.device().largest_group);
}

Axes axes_of(const Dims& dims, int64_t otherwise) {
  Axes axes;
  std::fill(std::begin(axes.at), std::end(axes.at), otherwise);
  std::copy(dims.begin(), dims.end(), axes.at);
  return axes;
}

}  // namespace tessera::gpu
