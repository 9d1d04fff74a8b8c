#include "tessera/backend/gpu/joined_kernel.h"

#include <algorithm>

#include "tessera/kernel/part_table.h"

namespace tessera::gpu {

namespace {

// A group that has found its part takes several turns, where there are groups enough.
constexpr int64_t kMostTurns = 4, kGroupsPerUnit = 32;
constexpr int64_t kMostGroups = int64_t{1} << 30;

}  // namespace

JoinedKernel::JoinedKernel(Session& session, const KernelCall& call)
    : session_(session), call_(call) {
  TESSERA_ASSERT(session.device().has_addresses);
  const KernelIR& ir = *call.ir;
  promises_.narrow_index = true;
  for (const int64_t extent0 : call.parts) {
    splits_.push_back(splits_of(session, ir, extent0));
    promises_.split = promises_.split || splits_.back() > 1;
    promises_.narrow_index = promises_.narrow_index && fits_narrow_index(ir, extent0);
  }
  promises_.parts = int(table_capacity(int64_t(call.parts.size())));
  variant(true);
}

const BuiltKernel& JoinedKernel::variant(bool aligned) const {
  const std::lock_guard lock(mutex_);
  auto& made = variants_[size_t(aligned)];
  if (made == nullptr) {
    RenderOptions promises = promises_;
    promises.alignment = aligned ? kOperandAlignment : 1;
    made = build_generated(session_, *call_.ir, promises);
  }
  return *made;
}

std::vector<KernelPart> JoinedKernel::parts_of(std::span<const BufferRef> operands,
                                               const BuiltKernel& built, Stream stream) const {
  std::vector<KernelPart> parts(call_.parts.size());
  std::vector<int64_t> scratch;  // where each part's begins
  int64_t bytes = 0;
  for (size_t p = 0; p < parts.size(); ++p) {
    parts[p].extent0 = call_.parts[p];
    parts[p].splits = splits_[p];
    scratch.push_back(bytes);
    if (built.fold) {
      bytes += built.rendered.scratch_bytes(*call_.ir, parts[p].extent0, parts[p].splits);
    }
  }
  for (size_t i = 0; i < operands.size(); ++i) {
    parts[part_operand(call_, i).part].operands.push_back(address(operands[i]));
  }
  if (!built.fold) return parts;
  void* const begin = session_.workspace(stream, bytes);
  for (size_t p = 0; p < parts.size(); ++p) {
    parts[p].scratch = static_cast<std::byte*>(begin) + scratch[p];
  }
  return parts;
}

void JoinedKernel::give_groups(std::vector<KernelPart>& parts,
                               const RenderedKernel& rendered) const {
  int64_t total = 0;
  for (KernelPart& part : parts) {
    part.groups = rendered.group_count(*call_.ir, part.extent0, part.splits);
    total += part.groups;
  }
  if (promises_.split) return;
  const int64_t enough = kGroupsPerUnit * session_.device().compute_units;
  const int64_t turns =
      std::max(std::clamp<int64_t>(total / enough, 1, kMostTurns), 1 + total / kMostGroups);
  for (KernelPart& part : parts) part.groups = (part.groups + turns - 1) / turns;
}

void JoinedKernel::run(const Kernel& kernel, const RenderedKernel& rendered,
                       std::span<const KernelPart> parts, Stream stream) const {
  const std::vector<uint64_t> table = part_table(parts, promises_.parts, promises_.split);
  Arguments arguments;
  arguments.add_bytes(std::as_bytes(std::span(table)));
  arguments.add(static_cast<void*>(nullptr));  // no index to check
  int64_t groups = 0;
  for (const KernelPart& part : parts) groups += part.groups;
  kernel.launch(stream, range_of_groups(groups, rendered), arguments);
}

void JoinedKernel::launch(std::span<const BufferRef> operands, int64_t, Stream stream) const {
  const BuiltKernel& built = variant(are_aligned(operands));
  std::vector<KernelPart> parts = parts_of(operands, built, stream);
  give_groups(parts, built.rendered);
  run(*built.kernel, built.rendered, parts, stream);
  if (!built.fold) return;
  for (KernelPart& part : parts) {
    part.groups = built.rendered.fold_group_count(*call_.ir, part.extent0);
  }
  run(*built.fold, built.rendered, parts, stream);
}

}  // namespace tessera::gpu
