// Random programs, compiled with random options and run on the CPU, against the interpreter. For
// longer runs: TESSERA_FUZZ_FIRST=1000 TESSERA_FUZZ_COUNT=5000.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "compile/random_program.h"
#include "tessera/compile/compile.h"
#include "tessera/conformance/reference.h"
#include "tessera/exec/executor.h"
#include "tessera/graph/print.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

CompileOptions options_of(int64_t bits) {
  CompileOptions options;
  options.simplify = (bits & 1) != 0;
  options.match = (bits & 2) != 0;
  options.rematerialize = (bits & 4) != 0;
  options.fuse = (bits & 8) != 0;
  options.kernel_ops = (bits & 16) != 0;
  options.recompute = (bits & 32) != 0;
  options.horizontal = (bits & 64) != 0;
  options.verify = true;
  return options;
}

Buffer allocate(Backend& device, const Type& type) {
  const int64_t bytes = byte_size(type);
  Buffer buffer{device.allocate(bytes), 0, bytes};
  // What nobody writes must not look like a result.
  const std::vector<char> noise(size_t(bytes), char(0x5A));
  device.upload(ref(buffer), noise.data(), bytes, {});
  return buffer;
}

void upload(Backend& device, const Buffer& to, const Array& array) {
  visit(array.type.dtype, [&]<class T>() {
    std::vector<char> bytes;
    const auto put = [&bytes](T x) {
      const char* p = reinterpret_cast<const char*>(&x);
      bytes.insert(bytes.end(), p, p + sizeof(T));
    };
    for (const double x : array.real) {
      if constexpr (!std::is_integral_v<T>) put(T(x));
    }
    for (const int64_t x : array.integer) {
      if constexpr (std::is_integral_v<T>) put(T(x));
    }
    device.upload(ref(to), bytes.data(), int64_t(bytes.size()), {});
  });
}

Array download(Backend& device, const Buffer& from, const Type& type) {
  std::vector<char> bytes(size_t(from.bytes));
  device.download(bytes.data(), ref(from), from.bytes, {});
  Array array{type, {}, {}};
  visit(type.dtype, [&]<class T>() {
    for (size_t i = 0; i < bytes.size(); i += sizeof(T)) {
      T x;
      std::memcpy(&x, &bytes[i], sizeof(T));
      if (is_float(type.dtype)) {
        array.real.push_back(double(x));
      } else {
        array.integer.push_back(int64_t(x));
      }
    }
  });
  return array;
}

// What is wrong with a result; empty when nothing is.
std::string difference(const Array& actual, const Array& expected, double spread) {
  if (actual.integer != expected.integer) return "integers differ";
  double largest = 0;
  for (const double x : expected.real) largest = std::max(largest, std::fabs(x));
  const double unit = std::ldexp(1.0, -digits(expected.type.dtype));
  const double tolerance = 16 * spread + 8 * unit * largest;
  for (size_t i = 0; i < expected.real.size(); ++i) {
    const double distance = std::fabs(actual.real[i] - expected.real[i]);
    if (distance <= tolerance) continue;
    return cat("element ", i, " is ", actual.real[i], " instead of ", expected.real[i],
               ", tolerance ", tolerance);
  }
  return "";
}

class ProgramRunner {
 public:
  // What is wrong with the program compiled with these options; empty when nothing is.
  std::string run(const RandomProgram& program, const std::vector<Array>& expected,
                  const CompileOptions& options) {
    const GraphFunction& f = program.function;
    Target target = device_.target();
    target.table_words = 100;  // so that joined kernels are run, of few parts each
    Executor executor(compile_graph(f, target, options), context_);
    std::vector<Buffer> externals, outputs;
    for (size_t i = 0; i < f.externals.size(); ++i) {
      externals.push_back(allocate(device_, f.externals[i].type()));
      upload(device_, externals.back(), program.data[i]);
    }
    for (const Value& v : f.outputs) outputs.push_back(allocate(device_, v.type()));
    executor.run(externals, outputs);
    return compare(program, expected, externals, outputs);
  }

 private:
  std::string compare(const RandomProgram& program, const std::vector<Array>& expected,
                      const std::vector<Buffer>& externals, const std::vector<Buffer>& outputs) {
    const GraphFunction& f = program.function;
    std::vector<char> assigned(f.externals.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      const bool is_output = i < outputs.size();
      const int external = is_output ? -1 : f.assigns[i - outputs.size()].external;
      if (!is_output) assigned[size_t(external)] = 1;
      const Buffer& buffer = is_output ? outputs[i] : externals[size_t(external)];
      const std::string wrong =
          difference(download(device_, buffer, expected[i].type), expected[i], program.spread[i]);
      if (!wrong.empty()) {
        return cat(is_output ? "output " : "assign ", is_output ? i : i - outputs.size(), ": ",
                   wrong);
      }
    }
    for (size_t i = 0; i < externals.size(); ++i) {
      const Array now = download(device_, externals[i], f.externals[i].type());
      if (!assigned[i] &&
          (now.real != program.data[i].real || now.integer != program.data[i].integer)) {
        return cat("external ", i, " was overwritten");
      }
    }
    return "";
  }

  Backend& device_ = backend("cpu");
  ExecContext context_{device_};
};

std::string describe(const RandomProgram& program, const std::vector<Value>& values) {
  std::string text = to_text(values);
  text += "the last " + std::to_string(program.function.assigns.size()) + " assigned to";
  for (const auto& assign : program.function.assigns) text += " " + std::to_string(assign.external);
  return text;
}

std::string check_seed(ProgramRunner& runner, uint64_t seed) {
  const RandomProgram program = random_program(seed);
  const GraphFunction& f = program.function;
  std::vector<Value> values = f.outputs;
  for (const auto& assign : f.assigns) values.push_back(assign.value);
  const std::vector<Array> expected = interpret(values, [&](const Node& leaf) {
    const auto found = std::find_if(f.externals.begin(), f.externals.end(),
                                    [&](const Value& v) { return v.node.get() == &leaf; });
    return program.data[size_t(found - f.externals.begin())];
  });
  RandomSource random(~seed);
  for (const int64_t bits : {int64_t{127}, random.below(128), random.below(128)}) {
    std::string wrong;
    try {
      wrong = runner.run(program, expected, options_of(bits));
    } catch (const Error& error) {
      wrong = error.what();
    }
    if (!wrong.empty()) return cat(wrong, "\noptions ", bits, "\n", describe(program, values));
  }
  return "";
}

TEST(RandomProgram, CompiledProgramsGiveWhatTheInterpreterGives) {
  ProgramRunner runner;
  const SeedRange range = seed_range(300);
  for (uint64_t seed = range.first; seed < range.end; ++seed) {
    const std::string wrong = check_seed(runner, seed);
    EXPECT_TRUE(wrong.empty()) << "seed " << seed << ": " << wrong;
  }
}

}  // namespace
}  // namespace tessera
