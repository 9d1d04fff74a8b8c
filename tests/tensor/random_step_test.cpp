// Random steps over Vars, compiled and in the plain style, against the same steps done on the host
// value by value: what donation, ordering and pending assigns must never change. For longer runs:
// TESSERA_FUZZ_FIRST=1000 TESSERA_FUZZ_COUNT=5000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "support/random_source.h"
#include "tessera/tensor/eval.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

// An n×n matrix on the host.
struct Matrix {
  int64_t n = 0;
  std::vector<double> data;

  double at(int64_t i, int64_t j) const { return data[size_t(i * n + j)]; }
};

template <class F>
Matrix make_matrix(int64_t n, F element) {
  Matrix result{n, {}};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t j = 0; j < n; ++j) result.data.push_back(element(i, j));
  }
  return result;
}

Matrix random_matrix(int64_t n, RandomSource& random) {
  return make_matrix(n, [&](int64_t, int64_t) { return double(random.between(-8, 8)); });
}

Tensor to_tensor(const Matrix& m) { return tensor(m.data, {m.n, m.n}); }

// The operations of a step. Each is exact on halves of small integers, and none makes numbers grow.
enum class Act : uint8_t {
  read,     // the Var `a`
  input,    // the argument
  average,  // of registers a and b
  larger,   // of registers a and b, element by element
  negate,   // register a
  flip,     // register a upside down
  transpose,
  shift,    // register a without its first `row` rows, and zeros behind
  place,    // register a with rows from `row` on replaced by the first rows of register b
  spread,   // every row the greatest of each column of register a
  product,  // of register a and a matrix that takes each row from the one below
  assign,   // register a to Var b
  result,   // register a
  count,
};

struct Instruction {
  Act act;
  int64_t a = 0, b = 0, row = 0;
};
using Script = std::vector<Instruction>;

bool makes_register(Act act) { return act != Act::assign && act != Act::result; }

Script random_script(RandomSource& random, int64_t vars, int64_t n) {
  Script script = {{Act::input}, {Act::read, random.below(vars)}, {Act::read, random.below(vars)}};
  int64_t registers = 3;
  for (int64_t i = random.between(3, 24); i > 0; --i) {
    static const std::vector<Act> often = {Act::assign, Act::assign, Act::read, Act::result};
    Instruction next{random.chance(0.5) ? random.pick(often)
                                        : Act(random.below(int64_t(Act::count)))};
    next.a = next.act == Act::read ? random.below(vars) : random.below(registers);
    next.b = next.act == Act::assign ? random.below(vars) : random.below(registers);
    next.row = random.below(n);
    registers += makes_register(next.act);
    script.push_back(next);
  }
  return script;
}

// Of each Var only the first assign. In the plain style a second one writes the first, and what a
// script has read before would be gone.
Script without_repeats(const Script& script) {
  Script result;
  std::vector<int64_t> assigned;
  for (const Instruction& it : script) {
    if (it.act == Act::assign) {
      if (std::find(assigned.begin(), assigned.end(), it.b) != assigned.end()) continue;
      assigned.push_back(it.b);
    }
    result.push_back(it);
  }
  return result;
}

// What a script means on the host.
struct HostMachine {
  std::vector<Matrix> vars;

  std::vector<Matrix> run(const Script& script, const Matrix& input) {
    std::vector<Matrix> registers, results;
    for (const Instruction& it : script) {
      if (it.act == Act::assign) {
        vars[size_t(it.b)] = registers[size_t(it.a)];
      } else if (it.act == Act::result) {
        results.push_back(registers[size_t(it.a)]);
      } else {
        registers.push_back(compute(it, registers, input));
      }
    }
    return results;
  }

 private:
  Matrix compute(const Instruction& it, const std::vector<Matrix>& registers,
                 const Matrix& input) const {
    if (it.act == Act::read) return vars[size_t(it.a)];
    if (it.act == Act::input) return input;
    const Matrix &a = registers[size_t(it.a)], &b = registers[size_t(it.b)];
    const int64_t n = a.n, row = it.row;
    return make_matrix(n, [&](int64_t i, int64_t j) {
      switch (it.act) {
        case Act::average: return (a.at(i, j) + b.at(i, j)) * 0.5;
        case Act::larger: return std::max(a.at(i, j), b.at(i, j));
        case Act::negate: return -a.at(i, j);
        case Act::flip: return a.at(n - 1 - i, j);
        case Act::transpose: return a.at(j, i);
        case Act::shift: return i + row < n ? a.at(i + row, j) : 0;
        case Act::place: return i < row ? a.at(i, j) : b.at(i - row, j);
        case Act::product: return i + 1 < n ? a.at(i + 1, j) : 0;
        default: break;
      }
      double greatest = a.at(0, j);
      for (int64_t k = 1; k < n; ++k) greatest = std::max(greatest, a.at(k, j));
      return greatest;
    });
  }
};

Tensor compute(const Instruction& it, const std::vector<Tensor>& registers) {
  const Tensor &a = registers[size_t(it.a)], &b = registers[size_t(it.b)];
  const int64_t n = a.size(0), row = it.row;
  switch (it.act) {
    case Act::average: return (a + b) * 0.5;
    case Act::larger: return maximum(a, b);
    case Act::negate: return -a;
    case Act::flip: return flip(a, 0);
    case Act::transpose: return transpose(a);
    case Act::shift: return concat({slice(a, 0, row, n), zeros({row, n}, DType::f64)}, 0);
    case Act::place: return dynamic_update_slice(a, slice(b, 0, 0, n - row), scalar(row), 0);
    case Act::product: {
      const Tensor next = iota({n, n}, 0) + 1 == iota({n, n}, 1);
      return matmul(cast(next, DType::f64), a);
    }
    default: return broadcast_to(max(a, {0}, true), {n, n});
  }
}

std::vector<Tensor> run(const Script& script, const std::vector<Var>& vars, const Tensor& input) {
  std::vector<Tensor> registers, results;
  for (const Instruction& it : script) {
    switch (it.act) {
      case Act::read: registers.push_back(vars[size_t(it.a)]); break;
      case Act::input: registers.push_back(input); break;
      case Act::assign: vars[size_t(it.b)].assign(registers[size_t(it.a)]); break;
      case Act::result: results.push_back(registers[size_t(it.a)]); break;
      default: registers.push_back(compute(it, registers)); break;
    }
  }
  return results;
}

CompileOptions random_options(RandomSource& random) {
  CompileOptions options;
  options.simplify = random.chance(0.7);
  options.match = random.chance(0.7);
  options.fuse = random.chance(0.7);
  options.verify = true;
  return options;
}

// Vars and their doubles on the host, taken through rounds of steps.
class Rounds {
 public:
  explicit Rounds(uint64_t seed) : random_(seed) {
    n_ = random_.pick(std::vector<int64_t>{1, 2, 3, 5, 8, 17, 40});
    const int64_t count = random_.between(1, 4);
    for (int64_t i = 0; i < count; ++i) {
      host_.vars.push_back(random_matrix(n_, random_));
      vars_.emplace_back(to_tensor(host_.vars.back()), "v" + std::to_string(i));
    }
    for (int i = 0; i < 3; ++i) {
      scripts_.push_back(random_script(random_, count, n_));
      steps_.emplace_back([script = scripts_.back(), this](std::span<const Tensor> inputs,
                                                           std::span<const int64_t>) {
        return tessera::run(script, vars_, inputs[0]);
      });
    }
  }

  void run() {
    const CompileOptions before = set_compile_options(random_options(random_));
    for (int64_t i = random_.between(2, 8); i > 0; --i) {
      round();
      if (random_.chance(0.4)) check_vars();
      if (random_.chance(0.2)) overwrite();
    }
    if (random_.chance(0.5)) check_results();
    check_vars();
    check_results();
    set_compile_options(before);
  }

 private:
  void round() {
    const size_t which = size_t(random_.below(int64_t(scripts_.size())));
    const Matrix input = random_matrix(n_, random_);
    const Tensor x = to_tensor(input);
    const bool compiled = random_.chance(0.5);
    std::vector<Tensor> results;
    const Script script = compiled ? scripts_[which] : without_repeats(scripts_[which]);
    if (compiled) {
      results = steps_[which](std::span(&x, 1));
    } else {
      flush();
      // A handle to a Var's value ends with it: only what is computed can be kept.
      for (const Tensor& result : tessera::run(script, vars_, x)) {
        results.push_back(result + 1.0);
        keep_readable(results.back());
      }
      if (random_.chance(0.3)) flush();
    }
    std::vector<Matrix> expected = host_.run(script, input);
    for (size_t i = 0; i < expected.size(); ++i) {
      for (double& value : expected[i].data) value += compiled ? 0 : 1;
      if (random_.chance(0.8)) held_.emplace_back(results[i], expected[i]);
    }
    if (random_.chance(0.3)) {
      const size_t v = size_t(random_.below(int64_t(vars_.size())));
      held_.emplace_back(vars_[v].value().detach(), host_.vars[v]);
    }
  }

  // The host's own write, whatever is pending.
  void overwrite() {
    const size_t v = size_t(random_.below(int64_t(vars_.size())));
    if (random_.chance(0.5)) {
      host_.vars[v] = random_matrix(n_, random_);
      vars_[v].set_bytes(DType::f64, host_.vars[v].data.data());
    } else {
      vars_[v].set(2.5);
      host_.vars[v] = make_matrix(n_, [](int64_t, int64_t) { return 2.5; });
    }
  }

  void check_vars() {
    for (size_t i = 0; i < vars_.size(); ++i) {
      EXPECT_EQ(vars_[i].value().to_vector<double>(), host_.vars[i].data) << "Var " << i;
    }
  }

  void check_results() {
    for (const auto& [actual, expected] : held_) {
      EXPECT_EQ(actual.to_vector<double>(), expected.data) << "a result";
    }
  }

  RandomSource random_;
  int64_t n_ = 0;
  HostMachine host_;
  std::vector<Var> vars_;
  std::vector<Script> scripts_;
  std::vector<Compiled> steps_;
  std::vector<std::pair<Tensor, Matrix>> held_;
};

TEST(RandomStep, StepsGiveWhatTheHostGives) {
  const SeedRange range = seed_range(300);
  for (uint64_t seed = range.first; seed < range.end; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    try {
      Rounds(seed).run();
    } catch (const std::exception& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace tessera
