#include "tessera/backend/cpu/slots.h"

#include <algorithm>
#include <array>
#include <bit>

namespace tessera::cpu {

namespace {

class Slots {
 public:
  int total() const { return total_; }

  int take(int size) {
    std::vector<int>& free = free_of(size);
    if (free.empty()) {
      total_ += size;
      return total_ - size;
    }
    const int slot = free.back();
    free.pop_back();
    return slot;
  }
  void give(int slot, int size) { free_of(size).push_back(slot); }

 private:
  std::vector<int>& free_of(int size) { return free_[size_t(std::countr_zero(unsigned(size)))]; }

  int total_ = 0;
  std::array<std::vector<int>, 4> free_;
};

std::vector<int> registers_read(const Step& step) {
  std::vector<int> result;
  for (int a : step.args) {
    if (a >= 0) result.push_back(a);
  }
  for (const PlannedLink& link : step.links) {
    if (link.arg >= 0) result.push_back(link.arg);
  }
  return result;
}

bool is_plain(const Plan& plan, const Access& access) {
  return !access.converts && !access.masked && !access.indexed && !access.must_copy &&
         plan.inner_fast && access.strides[plan.ir.extents.rank() - 1] == 1;
}

}  // namespace

int assign_slots(const Plan& plan, std::span<Step* const> steps) {
  const size_t registers = plan.registers.size();
  std::vector<int> last_use(registers, -1), slot(registers, -1);
  for (int s = 0; s < int(steps.size()); ++s) {
    for (int a : registers_read(*steps[size_t(s)])) last_use[size_t(a)] = s;
  }
  Slots slots;
  for (int s = 0; s < int(steps.size()); ++s) {
    Step& step = *steps[size_t(s)];
    std::vector<int> ended = registers_read(step);
    const bool defines = step.kind != IrKind::store && step.kind != IrKind::reduce;
    if (defines) step.slot = slot[size_t(step.reg)] = slots.take(step.size);
    for (PlannedLink& link : step.links) {
      if (!link.keeps) continue;
      link.slot = slot[size_t(link.reg)] = slots.take(step.size);
      ended.push_back(link.reg);
    }
    // Only now: what a step reads is not where it writes.
    std::sort(ended.begin(), ended.end());
    ended.erase(std::unique(ended.begin(), ended.end()), ended.end());
    for (int a : ended) {
      if (slot[size_t(a)] < 0 || last_use[size_t(a)] > s) continue;
      slots.give(slot[size_t(a)], plan.registers[size_t(a)].size);
    }
  }
  return slots.total();
}

int written_bytes(const Plan& plan, const Step& step) {
  if (step.kind == IrKind::store || step.kind == IrKind::reduce) return 0;
  if (step.kind == IrKind::load && is_plain(plan, plan.accesses[size_t(step.access)])) return 0;
  if (step.links.empty()) return step.size;
  int bytes = 0;
  for (const PlannedLink& link : step.links) {
    const bool written = link.keeps || &link == &step.links.back();
    if (written && !link.local && link.direct < 0) bytes += step.size;
  }
  return bytes;
}

}  // namespace tessera::cpu
