#include "tessera/backend/cpu/chain.h"

#include <algorithm>

#include "tessera/backend/cpu/together.h"

namespace tessera::cpu {

namespace {

struct CodeRow {
  ScalarOp op;
  LinkCode value_first, operand_first;
};
constexpr CodeRow kCodes[] = {
    {ScalarOp::add, LinkCode::add, LinkCode::add},
    {ScalarOp::sub, LinkCode::sub, LinkCode::sub_from},
    {ScalarOp::mul, LinkCode::mul, LinkCode::mul},
    {ScalarOp::div, LinkCode::div, LinkCode::div_into},
    {ScalarOp::maximum, LinkCode::max, LinkCode::max_from},
    {ScalarOp::minimum, LinkCode::min, LinkCode::min_from},
    {ScalarOp::neg, LinkCode::neg, LinkCode::neg},
    {ScalarOp::sqrt, LinkCode::sqrt, LinkCode::sqrt},
};

LinkCode code_of(ScalarOp op, bool operand_first) {
  for (const CodeRow& row : kCodes) {
    if (row.op == op) return operand_first ? row.operand_first : row.value_first;
  }
  return operand_first ? LinkCode::call_flipped : LinkCode::call;
}

bool calls(const Step& chain) {
  return std::any_of(chain.links.begin(), chain.links.end(),
                     [](const PlannedLink& link) { return link.code >= LinkCode::call; });
}

class Joiner {
 public:
  Joiner(const Plan& plan, const LoopTable& loops, const std::vector<int>& uses)
      : plan_(plan), loops_(loops), uses_(uses) {}

  std::vector<Step> run(const std::vector<Step>& steps) {
    for (const Step& step : steps) {
      if (is_link(step)) {
        if (!continues(step)) start(step);
        append(step);
        continue;
      }
      // A load that the chain does not lead to may as well come before it.
      if (step.kind != IrKind::load || reads_chain(step)) finish();
      result_.push_back(step);
    }
    finish();
    return std::move(result_);
  }

 private:
  DType dtype(int reg) const { return plan_.ir.insts[size_t(reg)].dtype; }
  Level level(int reg) const { return plan_.registers[size_t(reg)].level; }

  bool is_link(const Step& step) const {
    const bool computes = step.kind == IrKind::scalar || step.kind == IrKind::cast;
    if (!computes || step.level != Level::point || step.arity > 2) return false;
    const DType type = dtype(step.reg);
    const bool floats = (type == DType::f32 || type == DType::f64) && dtype(step.args[0]) == type;
    return floats && (step.kind == IrKind::scalar || step.cast == nullptr);
  }

  int row_operands(const Step& step) const {
    return int(std::count_if(step.args, step.args + step.arity,
                             [&](int a) { return level(a) == Level::row; }));
  }

  bool reads(const Step& step, int reg) const {
    return std::find(std::begin(step.args), std::end(step.args), reg) != std::end(step.args);
  }

  bool reads_chain(const Step& step) const {
    return std::any_of(chain_.links.begin(), chain_.links.end(),
                       [&](const PlannedLink& link) { return reads(step, link.reg); });
  }

  bool continues(const Step& step) const {
    return !chain_.links.empty() && int(chain_.links.size()) < kMostLinks &&
           reads(step, chain_.reg) && dtype(chain_.reg) == dtype(step.reg) &&
           row_operands_ + row_operands(step) <= kMostRowOperands;
  }

  void start(const Step& step) {
    finish();
    const bool first = level(step.args[0]) == Level::point;
    chain_ = step;
    chain_.kind = IrKind::scalar;
    chain_.args[0] = step.args[first ? 0 : 1];
    chain_.args[1] = -1;
    chain_.arity = 1;
    chain_.reg = chain_.args[0];  // what the first link takes
    chain_.chain = dtype(step.reg) == DType::f64 ? loops_.chain_f64 : loops_.chain_f32;
    row_operands_ = 0;
  }

  void append(const Step& step) {
    const int value = chain_.reg;
    PlannedLink link;
    link.reg = step.reg;
    link.loop = step.scalar;
    link.cast = step.round;
    const bool twice = step.arity == 2 && step.args[0] == step.args[1];
    const bool operand_first = step.args[0] != value;
    if (step.arity == 2 && !twice) link.arg = step.args[operand_first ? 0 : 1];
    const ScalarOp op = plan_.ir.insts[size_t(step.reg)].op;
    if (step.kind == IrKind::cast) {
      link.code = LinkCode::round;
    } else if (twice) {
      link.code = op == ScalarOp::mul ? LinkCode::square : LinkCode::with_itself;
    } else {
      link.code = code_of(op, operand_first);
    }
    // The one before is kept where it is more than this link's value.
    if (!chain_.links.empty()) {
      chain_.links.back().keeps = uses_[size_t(value)] > (twice ? 2 : 1);
    }
    row_operands_ += row_operands(step);
    chain_.links.push_back(link);
    chain_.reg = step.reg;
  }

  void finish() {
    if (chain_.links.empty()) return;
    result_.push_back(std::move(chain_));
    chain_ = Step{};
  }

  const Plan& plan_;
  const LoopTable& loops_;
  const std::vector<int>& uses_;
  std::vector<Step> result_;
  Step chain_;
  int row_operands_ = 0;
};

}  // namespace

std::vector<Step> join_chains(const Plan& plan, const LoopTable& loops,
                              const std::vector<Step>& steps, const std::vector<int>& uses) {
  return Joiner(plan, loops, uses).run(steps);
}

void join_products(const Plan& plan, const LoopTable& loops, std::vector<Step>& steps,
                   const std::vector<int>& uses) {
  const auto inst = [&](int reg) -> const IrInst& { return plan.ir.insts[size_t(reg)]; };
  const auto is_factor = [&](int reg) { return plan.registers[size_t(reg)].level == Level::point; };
  for (Step& sum : steps) {
    const DType dtype = inst(sum.reg).dtype;
    if (sum.kind != IrKind::reduce || inst(sum.reg).reduce != ReduceOp::sum) continue;
    if (!plan.inner_fast || (dtype != DType::f32 && dtype != DType::f64)) continue;
    const IrInst& product = inst(sum.args[0]);
    if (product.kind != IrKind::scalar || product.op != ScalarOp::mul ||
        uses[size_t(sum.args[0])] != 1 || !is_factor(product.args[0]) ||
        !is_factor(product.args[1])) {
      continue;
    }
    const auto is_product = [reg = sum.args[0]](const Step& step) { return step.reg == reg; };
    sum.dot = dtype == DType::f32 ? loops.dot_f32 : loops.dot_f64;
    std::find_if(steps.begin(), steps.end(), is_product)->reg = -1;
    std::copy(product.args, product.args + 2, sum.args);
  }
  std::erase_if(steps, [](const Step& step) { return step.reg < 0; });
}

void choose_ahead(Plan& plan) {
  if (plan.map) return;
  for (const Phase& phase : plan.chunked.phases) {
    for (const Step& step : phase.points) {
      const bool moves = step.kind == IrKind::load || step.kind == IrKind::store;
      const bool known = std::count(plan.ahead.begin(), plan.ahead.end(), step.access) > 0;
      const bool room = int(plan.ahead.size()) < Chain::kMostAhead;
      if (moves && !known && room) plan.ahead.push_back(step.access);
    }
  }
  Step* chosen = nullptr;
  for (Phase& phase : plan.whole.phases) {
    for (Step& step : phase.points) {
      if (step.links.empty()) continue;
      if (chosen == nullptr || (calls(step) && !calls(*chosen))) chosen = &step;
    }
  }
  if (chosen != nullptr) chosen->looks_ahead = true;
}

}  // namespace tessera::cpu
