#include "tessera/backend/gpu/generated_kernel.h"

#include <algorithm>
#include <bit>

namespace tessera::gpu {

namespace {

constexpr int64_t kLargestGroup = 256, kLargestRowGroup = 1024;

// What indices must be in; empty where no load is indexed.
std::string index_range(const KernelIR& ir) {
  int64_t limit = -1;
  bool one_limit = true;
  for (const IrInst& inst : ir.insts) {
    if (!inst.indexed) continue;
    one_limit = one_limit && (limit == -1 || limit == inst.index_limit);
    limit = inst.index_limit;
  }
  if (limit == -1) return "";
  return one_limit ? cat("[0, ", limit, ")") : "of its axis";
}

}  // namespace

Range range_of_groups(int64_t groups, const RenderedKernel& rendered) {
  Range range;
  range.group[0] = size_t(rendered.group_size);
  range.local_bytes = size_t(rendered.local_bytes);
  range.groups[0] = size_t(groups);
  return range;
}

void* address(BufferRef buffer) {
  return buffer.handle == nullptr ? nullptr
                                  : static_cast<std::byte*>(buffer.handle) + buffer.offset;
}

bool are_aligned(std::span<const BufferRef> operands) {
  return std::ranges::all_of(
      operands, [](const BufferRef& buffer) { return buffer.offset % kOperandAlignment == 0; });
}

int64_t splits_of(const Session& session, const KernelIR& ir, int64_t extent0) {
  const int64_t groups = tuning().groups_per_unit * session.device().compute_units;
  return split_count(ir, extent0, groups, tuning().split_points);
}

Tuning& tuning() {
  static Tuning values;
  return values;
}

int64_t groups_at_once(const DeviceTraits& device, const RenderedKernel& rendered) {
  const int64_t by_lanes = device.lanes_per_unit / rendered.group_size;
  const int64_t by_memory = device.local_bytes_asked / std::max<int64_t>(rendered.local_bytes, 1);
  return device.compute_units * std::max<int64_t>(1, std::min(by_lanes, by_memory));
}

std::unique_ptr<BuiltKernel> build_generated(Session& session, const KernelIR& ir,
                                             RenderOptions options) {
  const gpu::DeviceTraits& device = session.device();
  const auto at_most = [&](int64_t size) {
    return int(std::bit_floor(uint64_t(std::min(size, device.largest_group))));
  };
  options.operand_offsets = !device.has_addresses;
  options.max_group_size = at_most(kLargestGroup);
  options.max_row_group = at_most(kLargestRowGroup);
  options.local_bytes = device.row_bytes;
  options.cluster_groups = int(std::min<int64_t>(device.cluster_groups, tuning().cluster_groups));
  auto made = std::make_unique<BuiltKernel>();
  // A kernel that needs many registers may fit fewer work items than the device.
  for (;; options.max_group_size /= 2, options.max_row_group = options.max_group_size) {
    made->rendered = render(ir, *device.dialect, options);
    const RenderedKernel& rendered = made->rendered;
    made->kernel = session.build(ir.name, rendered.source, rendered.entry);
    if (options.split) made->fold = session.build(ir.name, rendered.source, rendered.fold_entry);
    const bool fits = made->kernel->largest_group() >= rendered.group_size &&
                      (!made->fold || made->fold->largest_group() >= rendered.group_size);
    if (options.max_group_size == 1 || fits) break;
  }
  return made;
}

GeneratedKernel::GeneratedKernel(Session& session, const KernelIR& ir)
    : session_(session), ir_(ir) {
  const std::string range = index_range(ir);
  if (!range.empty()) check_ = session.make_check(ir.name, "an index is", range);
  variant(promises(ir.extents[0], true));
}

GeneratedKernel::Promises GeneratedKernel::promises(int64_t extent0, bool aligned) const {
  return {aligned, fits_narrow_index(ir_, extent0), splits_of(session_, ir_, extent0) > 1};
}

const BuiltKernel& GeneratedKernel::variant(const Promises& p) const {
  const std::lock_guard lock(mutex_);
  auto& made = variants_[size_t(p.aligned) + 2 * size_t(p.narrow) + 4 * size_t(p.split)];
  if (made == nullptr) {
    made = build_generated(session_, ir_,
                           {.alignment = p.aligned ? kOperandAlignment : 1,
                            .narrow_index = p.narrow,
                            .split = p.split,
                            .turns = tuning().map_turns});
  }
  return *made;
}

void GeneratedKernel::launch(std::span<const BufferRef> operands, int64_t extent0,
                             Stream stream) const {
  const BuiltKernel& v = variant(promises(extent0, are_aligned(operands)));
  const RenderedKernel& rendered = v.rendered;
  const int64_t splits = v.fold ? splits_of(session_, ir_, extent0) : 1;
  void* const scratch =
      v.fold ? session_.workspace(stream, rendered.scratch_bytes(ir_, extent0, splits)) : nullptr;
  auto run = [&](const Kernel& kernel, int64_t groups) {
    Arguments arguments;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (session_.device().has_addresses) {
        arguments.add(address(operands[i]));
      } else {
        arguments.add(operand(operands[i], {ir_.operands[i].dtype, {}}));
      }
    }
    arguments.add(extent0);
    arguments.add(check_ ? check_->flag : nullptr);
    if (v.fold) {
      arguments.add(scratch);
      arguments.add(splits);
    }
    kernel.launch(stream, range_of_groups(groups, rendered), arguments);
  };
  int64_t groups = rendered.group_count(ir_, extent0, splits);
  if (rendered.reads_ahead) {
    groups = std::min(groups, groups_at_once(session_.device(), rendered));
  }
  run(*v.kernel, groups);
  if (v.fold) run(*v.fold, rendered.fold_group_count(ir_, extent0));
  if (check_) session_.watch(stream, check_);
}

}  // namespace tessera::gpu
