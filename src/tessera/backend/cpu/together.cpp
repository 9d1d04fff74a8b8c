#include "tessera/backend/cpu/together.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace tessera::cpu {

namespace {

bool is_chain(const Step& step) { return !step.links.empty(); }

class Grouper {
 public:
  Grouper(const Plan& plan, const std::vector<int>& uses) : plan_(plan), uses_(uses) {}

  std::vector<Step> run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (is_chain(step)) {
        if (!fits(step)) finish();
        row_operands_ += row_operands(step);
        chains_.push_back(step);
        continue;
      }
      // What the chains do not lead to may as well come before them.
      const bool lasts = step.kind == IrKind::store || step.kind == IrKind::reduce;
      if (lasts || reads_chains(step)) finish();
      result_.push_back(step);
    }
    finish();
    place_results();
    return std::move(result_);
  }

 private:
  const IrInst& inst(int reg) const { return plan_.ir.insts[size_t(reg)]; }

  int row_operands(const Step& chain) const {
    const auto is_row = [&](int reg) {
      return reg >= 0 && plan_.registers[size_t(reg)].level == Level::row;
    };
    int count = is_row(chain.args[0]);
    for (const PlannedLink& link : chain.links) count += is_row(link.arg);
    return count;
  }

  bool fits(const Step& chain) const {
    return int(chains_.size()) < kMostTogether &&
           row_operands_ + row_operands(chain) <= kMostRowOperands &&
           (chains_.empty() || chains_.front().chain == chain.chain);
  }

  bool reads_chains(const Step& step) const {
    const auto reads = [&](const PlannedLink& link) {
      return std::count(std::begin(step.args), std::end(step.args), link.reg) > 0;
    };
    return std::any_of(chains_.begin(), chains_.end(), [&](const Step& chain) {
      return std::any_of(chain.links.begin(), chain.links.end(), reads);
    });
  }

  void finish() {
    if (chains_.empty()) return;
    mark_local();
    for (Step& chain : chains_) chain.together = 0;
    chains_.front().together = int(chains_.size());
    std::move(chains_.begin(), chains_.end(), std::back_inserter(result_));
    chains_.clear();
    row_operands_ = 0;
  }

  // A value that nobody but these chains reads stays within a block.
  void mark_local() {
    std::vector<int> unread = uses_;
    for (const Step& chain : chains_) {
      for (const PlannedLink& link : chain.links) {
        for (int a : inst(link.reg).args) unread[size_t(std::max(a, 0))] -= a >= 0;
      }
    }
    std::vector<bool> local(uses_.size(), false);
    for (Step& chain : chains_) {
      for (PlannedLink& link : chain.links) {
        link.local = local[size_t(link.reg)] = unread[size_t(link.reg)] == 0;
      }
    }
    for (Step& chain : chains_) {
      chain.from_local = local[size_t(chain.args[0])];
      for (PlannedLink& link : chain.links)
        link.arg_local = link.arg >= 0 && local[size_t(link.arg)];
    }
  }

  // Results of the last chains that only stores and folds follow may be written where they belong,
  // as long as that memory is not an operand that is read later on.
  void place_results() {
    const auto lasts = [](const Step& step) {
      return step.kind == IrKind::store || step.kind == IrKind::reduce;
    };
    const size_t end =
        size_t(result_.rend() - std::find_if_not(result_.rbegin(), result_.rend(), lasts));
    size_t first = end;
    while (first > 0 && is_chain(result_[first - 1]) && !leads(first, end)) --first;
    std::vector<int> read_later;
    for (size_t i = end; i < result_.size(); ++i) {
      if (result_[i].kind == IrKind::reduce) note_loads(result_[i].args, read_later);
    }
    for (size_t i = end; i-- > first;) place_chain(result_[i], end, read_later);
  }

  // Whether the chains from `first` to `end` are all that run together.
  bool leads(size_t first, size_t end) const {
    return first < end && first + size_t(result_[first].together) == end;
  }

  void place_chain(Step& chain, size_t end, std::vector<int>& read_later) const {
    for (size_t k = chain.links.size(); k-- > 0;) {
      PlannedLink& link = chain.links[k];
      for (size_t i = end; i < result_.size(); ++i) {
        const Step& store = result_[i];
        const bool of_points = store.kind == IrKind::store && store.level == Level::point;
        if (of_points && store.args[0] == link.reg) link.direct = store.access;
      }
      if (link.direct >= 0) link.read_later = read_later;
      note_loads({&link.arg, 1}, read_later);
    }
    note_loads({chain.args, 1}, read_later);
  }

  void note_loads(std::span<const int> registers, std::vector<int>& loads) const {
    for (const int reg : registers) {
      if (reg >= 0 && inst(reg).kind == IrKind::load) loads.push_back(reg);
    }
  }

  const Plan& plan_;
  const std::vector<int>& uses_;
  std::vector<Step> result_;
  std::vector<Step> chains_;  // that will run together
  int row_operands_ = 0;      // of all of them
};

}  // namespace

std::vector<Step> run_together(const Plan& plan, const std::vector<Step>& steps,
                               const std::vector<int>& uses) {
  return Grouper(plan, uses).run(steps);
}

}  // namespace tessera::cpu
