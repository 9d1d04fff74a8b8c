#include "tessera/bench/op_case.h"

#include <memory>

#include "tessera/base/thread_pool.h"

namespace tessera::bench {

namespace {

constexpr int64_t kMostCompared = int64_t(1) << 20;  // elements of one output
constexpr int kManyCopies = 8;

Tensor to_tensor(const Operand& operand) {
  return tensor(operand.values, operand.shape).to(operand.dtype).eval();
}

template <class T>
std::vector<std::vector<T>> make_outputs(const OpCase& op) {
  std::vector<std::vector<T>> outputs;
  for (const Output& output : op.outputs) outputs.emplace_back(size_t(output.size));
  return outputs;
}

std::vector<Expected> reference(const OpCase& op, const Operands& operands) {
  Doubles values = make_outputs<double>(op);
  op.loop.exact(operands, values);
  std::vector<Expected> expected;
  for (size_t i = 0; i < values.size(); ++i) {
    const Output& output = op.outputs[i];
    Expected one{{}, sample_positions(output.size, kMostCompared), output.tolerance, output.unit};
    for (const int64_t at : one.positions) one.values.push_back(values[i][size_t(at)]);
    expected.push_back(std::move(one));
  }
  return expected;
}

Contender plain_loop(const OpCase& op, std::shared_ptr<const Operands> operands) {
  const auto outputs = std::make_shared<Floats>(make_outputs<float>(op));
  const auto run = [loop = op.loop.single, operands, outputs] { loop(*operands, *outputs); };
  return {.column = std::string(kPlain), .run = run, .outputs = [run, outputs] {
            run();
            return *outputs;
          }};
}

Contest make_contest(const OpCase& op, const Setting& setting) {
  const auto operands = std::make_shared<const Operands>(op.operands());
  Contest contest{reference(op, *operands), {}};
  if (op.plain) contest.contenders.push_back(plain_loop(op, operands));
  if (!op.moved.empty()) contest.contenders.push_back(move_bytes(op.moved, op.copies));
  std::vector<TensorWork> works(size_t(op.copies), TensorWork{{}, op.apply, op.options});
  for (TensorWork& work : works) {
    for (const Operand& operand : *operands) work.inputs.push_back(to_tensor(operand));
  }
  add_program_facts(contest, works.front());
  add_tessera(contest, setting, works);
  return contest;
}

}  // namespace

OpCase cold(OpCase op) {
  op.name += ", cold";
  op.copies = kManyCopies;
  return op;
}

Case to_case(OpCase op) {
  Case result;
  result.suite = op.suite;
  result.name = op.name;
  result.flops = op.flops;
  for (const Moved& part : op.moved) result.bytes += bytes_of(part);
  const bool computes = op.flops > 0;
  result.limit = computes ? LimitKind::fma : op.moved.empty() ? LimitKind::none : LimitKind::bytes;
  result.unit = computes ? "GFLOP/s" : result.bytes > 0 ? "GB/s" : "runs/s";
  result.amount = computes ? op.flops * 1e-9 : result.bytes > 0 ? result.bytes * 1e-9 : 1;
  result.slow = op.slow;
  result.make = [op = std::move(op)](const Setting& setting) { return make_contest(op, setting); };
  return result;
}

std::vector<float> make_data(int64_t n, double low, double high, uint64_t seed) {
  std::vector<float> values(static_cast<size_t>(n));
  thread_pool().parallel_for(n, 1 << 14, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      // SplitMix64 (Steele, Lea and Flood 2014) of the place.
      uint64_t bits = (uint64_t(i) + seed * 0x632be59bd9b4e019u) * 0x9e3779b97f4a7c15u;
      bits = (bits ^ (bits >> 30)) * 0xbf58476d1ce4e5b9u;
      bits = (bits ^ (bits >> 27)) * 0x94d049bb133111ebu;
      bits ^= bits >> 31;
      values[size_t(i)] = float(low + (high - low) * double(bits >> 40) * 0x1p-24);
    }
  });
  return values;
}

}  // namespace tessera::bench
