// Functions of elements, and a chain of six of them fused and unfused.
#include <cmath>

#include "tessera/bench/op_case.h"
#include "tessera/bench/suites.h"
#include "tessera/tensor/elementwise.h"

namespace tessera::bench {

namespace {

constexpr int64_t kSmall = 262'144, kLarge = int64_t(1) << 24;

struct Function {
  const char* name;
  int operands;
  Loop loop;
  TensorFunction apply;
  double tolerance;
  Unit unit;
  bool slow = false;  // its reference at kLarge, that is
};

template <class F>
Loop map_loop(F) {
  return loop_of([](const Operands& in, auto& out) {
    using T = typename std::remove_reference_t<decltype(out[0])>::value_type;
    const float *x = in[0].values.data(), *y = in.back().values.data();
    T* const d = out[0].data();
    for (size_t i = 0; i < out[0].size(); ++i) d[i] = F{}(T(x[i]), T(y[i]));
  });
}

template <class F>
Function unary(const char* name, F f, Tensor (*apply)(In), double tolerance, Unit unit) {
  return {name,        1,
          map_loop(f), [apply](const std::vector<Tensor>& in) { return std::vector{apply(in[0])}; },
          tolerance,   unit,
          true};
}

template <class F>
Function binary(const char* name, F f, Tensor (*apply)(In, In), double tolerance, Unit unit) {
  return {name,
          2,
          map_loop(f),
          [apply](const std::vector<Tensor>& in) { return std::vector{apply(in[0], in[1])}; },
          tolerance,
          unit};
}

// mul, add, mul, sub, max, add: six kernels that move 16 arrays, or one that moves 3.
Tensor chain(In x, In y) { return maximum((x * y + x) * 0.5 - y, 0.25) + x; }
constexpr auto kChain = [](auto x, auto y) {
  using T = decltype(x);
  return std::max((x * y + x) * T(0.5) - y, T(0.25)) + x;
};

std::vector<Function> functions() {
  const auto own = [](Op op) { return tolerance_of(op); };
  return {
      binary(
          "add", [](auto x, auto y) { return x + y; }, add, own(Op::add), Unit::element),
      binary(
          "mul", [](auto x, auto y) { return x * y; }, mul, own(Op::mul), Unit::element),
      unary(
          "exp", [](auto x, auto) { return std::exp(x); }, exp, own(Op::exp), Unit::element),
      unary(
          "tanh", [](auto x, auto) { return std::tanh(x); }, tanh, own(Op::tanh), Unit::element),
      unary(
          "gelu",
          [](auto x, auto) {
            using T = decltype(x);
            return T(0.5) * x * (1 + std::erf(x * T(M_SQRT1_2)));
          },
          gelu, own(Op::erf), Unit::largest),
  };
}

// Each of the six roundings is one of the op table's.
Function chain_function() {
  return binary("chain of six", kChain, chain, 6 * tolerance_of(Op::add), Unit::largest);
}

OpCase line(const Function& f, int64_t n, std::string name) {
  OpCase op;
  op.suite = "elementwise";
  op.name = std::move(name);
  op.operands = [n, count = f.operands] {
    Operands operands;
    for (int i = 0; i < count; ++i) {
      operands.push_back({{n}, make_data(n, -4, 4, uint64_t(i))});
    }
    return operands;
  };
  op.apply = f.apply;
  op.loop = f.loop;
  op.outputs = {{n, f.tolerance, f.unit}};
  op.moved = {{f.operands == 2 ? Move::add : Move::copy, n}};
  op.slow = f.slow && n == kLarge;
  return op;
}

}  // namespace

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases;
  for (const int64_t n : {kSmall, kLarge}) {
    const std::string size = n == kSmall ? " 262,144" : " 16 M";
    for (const Function& f : functions()) cases.push_back(to_case(line(f, n, f.name + size)));
  }
  for (const bool fuse : {true, false}) {
    OpCase op = line(chain_function(), kLarge,
                     fuse ? "chain of six 16 M, fused" : "chain of six 16 M, unfused");
    op.options.fuse = fuse;
    cases.push_back(to_case(std::move(op)));
  }
  return cases;
}

}  // namespace tessera::bench
