// Speed of the CPU backend's kernels: matrix products beside oneDNN's, elementwise chains and row
// kernels beside loops that move the same bytes, and the cost of a launch.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tessera/backend/cpu/cpu_backend.h"
#include "tessera/backend/cpu/isa.h"
#include "tessera/base/thread_pool.h"
#include "tessera/runtime/shared_library.h"

namespace tessera {
namespace {

// The best of several runs, in seconds per call.
double measure(const std::function<void()>& work) {
  using Clock = std::chrono::steady_clock;
  auto time = [&](int64_t calls) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) work();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int64_t calls = 1;
  while (time(calls) < 0.02) calls *= 2;
  double best = 1e9;
  for (int i = 0; i < 7; ++i) best = std::min(best, time(calls) / double(calls));
  return best;
}

Backend& cpu_backend() {
  static const std::unique_ptr<Backend> backend = make_cpu_backend();
  return *backend;
}

class Call {
 public:
  explicit Call(KernelCall call)
      : call_(std::move(call)), executable_(cpu_backend().compile(call_)) {
    for (const OperandView& operand : call_.operands) add(operand.dtype, numel(operand.view.shape));
  }
  Call(const KernelIR& ir, const std::vector<int64_t>& counts) {
    call_.ir = std::make_shared<KernelIR>(ir);
    executable_ = cpu_backend().compile(call_);
    for (size_t i = 0; i < counts.size(); ++i) add(ir.operands[i].dtype, counts[i]);
    extent0_ = ir.extents[0];
  }
  void operator()() const { cpu_backend().launch(*executable_, refs_, extent0_, Stream{}); }
  float* data(size_t operand) { return static_cast<float*>(refs_[operand].handle); }

 private:
  void add(DType dtype, int64_t count) {
    memory_.push_back(cpu_backend().allocate(count * size_of(dtype)));
    refs_.push_back({memory_.back()->handle, 0});
    if (dtype != DType::f32) return;
    for (int64_t i = 0; i < count; ++i) data(refs_.size() - 1)[i] = float(i % 13) - 6;
  }

  KernelCall call_;
  std::unique_ptr<Executable> executable_;
  std::vector<std::shared_ptr<Memory>> memory_;
  std::vector<BufferRef> refs_;
  int64_t extent0_ = 0;
};

IrInst load(int operand, Dims strides, DType dtype = DType::f32) {
  IrInst inst;
  inst.kind = IrKind::load;
  inst.operand = operand;
  inst.strides = strides;
  inst.dtype = dtype;
  return inst;
}

IrInst store(int operand, int value, Dims strides, IrLevel level = IrLevel::elem) {
  IrInst inst;
  inst.kind = IrKind::store;
  inst.level = level;
  inst.operand = operand;
  inst.args[0] = value;
  inst.strides = strides;
  return inst;
}

IrInst scalar(ScalarOp op, int a, int b = -1) {
  IrInst inst;
  inst.kind = IrKind::scalar;
  inst.op = op;
  inst.args[0] = a;
  inst.args[1] = b;
  return inst;
}

IrInst reduce(ReduceOp op, int a) {
  IrInst inst;
  inst.kind = IrKind::reduce;
  inst.level = IrLevel::row;
  inst.reduce = op;
  inst.args[0] = a;
  return inst;
}

IrInst constant(float value) {
  IrInst inst;
  inst.bits = scalar_bits(DType::f32, double(value));
  return inst;
}

// An elementwise kernel of contiguous operands; `insts` follow the loads.
KernelIR map_of(int64_t n, int inputs, const std::vector<IrInst>& insts) {
  KernelIR ir;
  ir.extents = {n};
  for (int i = 0; i < inputs; ++i) ir.insts.push_back(load(ir.add_operand(DType::f32, false), {1}));
  ir.insts.insert(ir.insts.end(), insts.begin(), insts.end());
  ir.insts.push_back(store(ir.add_operand(DType::f32, true), int(ir.insts.size()) - 1, {1}));
  return ir;
}

// z = ((x y + x) 0.5 - y) x + 1
KernelIR six_ops(int64_t n) {
  return map_of(
      n, 2,
      {constant(0.5f), constant(1.f), scalar(ScalarOp::mul, 0, 1), scalar(ScalarOp::add, 4, 0),
       scalar(ScalarOp::mul, 5, 2), scalar(ScalarOp::sub, 6, 1), scalar(ScalarOp::mul, 7, 0),
       scalar(ScalarOp::add, 8, 3)});
}

KernelIR unary(ScalarOp op, int64_t n) { return map_of(n, 1, {scalar(op, 0)}); }
KernelIR binary(ScalarOp op, int64_t n) { return map_of(n, 2, {scalar(op, 0, 1)}); }
KernelIR with_literal(ScalarOp op, int64_t n) {
  return map_of(n, 1, {constant(0.5f), scalar(op, 0, 1)});
}

KernelIR softmax(int64_t rows, int64_t columns) {
  KernelIR ir;
  ir.extents = {rows, columns};
  ir.inner = 1;
  ir.operands = {{DType::f32, false}, {DType::f32, true}};
  ir.insts = {load(0, {columns, 1}),    reduce(ReduceOp::max, 0), scalar(ScalarOp::sub, 0, 1),
              scalar(ScalarOp::exp, 2), reduce(ReduceOp::sum, 3), scalar(ScalarOp::div, 3, 4),
              store(1, 5, {columns, 1})};
  return ir;
}

// softmax(x / 8), spelled out.
KernelIR scaled_softmax(int64_t rows, int64_t columns) {
  KernelIR ir = softmax(rows, columns);
  ir.insts = {load(0, {columns, 1}),       constant(0.125f),
              scalar(ScalarOp::mul, 0, 1), reduce(ReduceOp::max, 2),
              scalar(ScalarOp::sub, 2, 3), scalar(ScalarOp::exp, 4),
              reduce(ReduceOp::sum, 5),    scalar(ScalarOp::div, 5, 6),
              store(1, 7, {columns, 1})};
  return ir;
}

// y (g - sum(g y))
KernelIR softmax_backward(int64_t rows, int64_t columns) {
  KernelIR ir = softmax(rows, columns);
  ir.operands = {{DType::f32, false}, {DType::f32, false}, {DType::f32, true}};
  ir.insts = {load(0, {columns, 1}),    load(1, {columns, 1}),       scalar(ScalarOp::mul, 0, 1),
              reduce(ReduceOp::sum, 2), scalar(ScalarOp::sub, 1, 3), scalar(ScalarOp::mul, 0, 4),
              store(2, 5, {columns, 1})};
  return ir;
}

KernelIR fold(ReduceOp op, int64_t outer, int64_t inner, Dims strides) {
  KernelIR ir;
  ir.extents = {outer, inner};
  ir.inner = 1;
  IrInst folded = reduce(op, 0);
  folded.dtype = op == ReduceOp::argmax ? DType::i64 : DType::f32;
  ir.operands = {{DType::f32, false}, {folded.dtype, true}};
  ir.insts = {load(0, strides), folded, store(1, 1, {1, 0}, IrLevel::row)};
  return ir;
}

KernelCall matmul(const View& a, const View& b, const View& c, DType dtype) {
  KernelCall call;
  call.kernel = "matmul";
  call.operands = {{dtype, a}, {dtype, b}, {dtype, c}};
  return call;
}

View matrix(int64_t rows, int64_t columns, bool transposed = false) {
  return {{rows, columns}, transposed ? Dims{1, rows} : Dims{columns, 1}, 0};
}

using Sgemm = int(char, char, int64_t, int64_t, int64_t, float, const float*, int64_t, const float*,
                  int64_t, float, float*, int64_t);

Sgemm* find_onednn() {
  constexpr const char* kNames[] = {"libdnnl.so.3", "libdnnl.so.2"};
  const auto library = SharedLibrary::open(kNames);
  if (!library) return nullptr;
  if (auto* cap = library->function<int(int)>("dnnl_set_max_cpu_isa")) cap(0xe7);
  if (auto* threads = library->function<void(int)>("omp_set_num_threads")) {
    threads(1 + thread_pool().workers());
  }
  return library->function<Sgemm>("dnnl_sgemm");
}

void bench_matmul() {
  Sgemm* sgemm = find_onednn();
  std::printf("%-34s %10s %10s\n", "matmul", "GFLOP/s", "oneDNN");
  const int64_t shapes[][3] = {{64, 64, 64},     {128, 128, 128},    {256, 256, 256},
                               {512, 512, 512},  {1024, 1024, 1024}, {2048, 2048, 2048},
                               {1, 768, 768},    {8, 768, 3072},     {32, 768, 768},
                               {1024, 768, 768}, {1024, 768, 3072},  {1024, 3072, 768}};
  for (const auto& s : shapes) {
    for (bool transposed : {false, true}) {
      const int64_t m = s[0], n = s[1], k = s[2];
      Call call(matmul(matrix(m, k), matrix(k, n, transposed), matrix(m, n), DType::f32));
      const double work = 2e-9 * double(m * n * k);
      const double ours = work / measure([&] { call(); });
      double theirs = 0;
      if (sgemm != nullptr) {
        theirs = work / measure([&] {
                   sgemm('N', transposed ? 'T' : 'N', m, n, k, 1, call.data(0), k, call.data(1),
                         transposed ? k : n, 0, call.data(2), n);
                 });
      }
      const std::string label = cat(m, " x ", n, " x ", k, transposed ? ", b transposed" : "");
      std::printf("%-34s %10.1f %10.1f   %.2f\n", label.c_str(), ours, theirs, ours / theirs);
    }
  }
}

void report(const char* label, const Call& call, double bytes) {
  const double seconds = measure([&] { call(); });
  std::printf("%-34s %10.1f GB/s %10.2f us\n", label, bytes / seconds * 1e-9, seconds * 1e6);
}

// Alternatives run in turn, so that they see the same machine; the first one is what the others are
// compared with.
struct Contender {
  std::string label;
  std::function<void()> work;
  double best = 1e9;
};

void compare(std::vector<Contender> contenders) {
  using Clock = std::chrono::steady_clock;
  for (int round = 0; round < 30; ++round) {
    for (Contender& c : contenders) {
      const auto start = Clock::now();
      c.work();
      c.best = std::min(c.best, std::chrono::duration<double>(Clock::now() - start).count());
    }
  }
  for (const Contender& c : contenders) {
    std::printf("%-34s %10.2f us   %.2f\n", c.label.c_str(), c.best * 1e6,
                c.best / contenders[0].best);
  }
}

// Loops that only move memory: d = a + b, d = -a, and the greatest of a.
class Streams {
 public:
  explicit Streams(int64_t n) : n_(n), call_(binary(ScalarOp::add, n), {n, n, n}) {}

  void add() {
    over([](float* a, float* b, float* d, int64_t n) {
      cpu::loops().scalar[int(ScalarOp::add)][int(DType::f32)](n, d, a, b, nullptr, 0);
    });
  }
  void negate() {
    over([](float* a, float*, float* d, int64_t n) {
      cpu::loops().scalar[int(ScalarOp::neg)][int(DType::f32)](n, d, a, nullptr, nullptr, 0);
    });
  }
  void read() {
    over([](float* a, float*, float*, int64_t n) {
      float greatest = 0;
      cpu::loops().fold[int(ReduceOp::max)][int(DType::f32)](&greatest, nullptr, a,
                                                             {1, n, true, 0});
    });
  }

 private:
  void over(void (*loop)(float*, float*, float*, int64_t)) {
    auto body = [&](int64_t begin, int64_t end) {
      loop(call_.data(0) + begin, call_.data(1) + begin, call_.data(2) + begin, end - begin);
    };
    thread_pool().parallel_for(n_, 32768, std::cref(body));
  }

  int64_t n_;
  Call call_;
};

void bench_chain() {
  const int64_t n = 1 << 24;
  Streams streams(n);
  Call fused(six_ops(n), {n, n, n});
  Call mul(binary(ScalarOp::mul, n), {n, n, n}), add(binary(ScalarOp::add, n), {n, n, n}),
      sub(binary(ScalarOp::sub, n), {n, n, n}), half(with_literal(ScalarOp::mul, n), {n, n}),
      plus(with_literal(ScalarOp::add, n), {n, n});
  compare({{"2 reads, 1 write of 2^24", [&] { streams.add(); }},
           {"six ops, fused", [&] { fused(); }},
           {"six ops, one by one", [&] { mul(), add(), half(), sub(), mul(), plus(); }}});
}

KernelCall layer_norm(bool backward) {
  KernelCall call;
  const View x = contiguous_view({4096, 1024});
  const View column = contiguous_view({1024}), row = contiguous_view({4096, 1});
  call.attrs.scalar = 1e-5;
  call.kernel = backward ? "layer_norm_backward" : "layer_norm";
  constexpr auto f32 = DType::f32;
  if (backward) {
    call.operands = {{f32, x},   {f32, x}, {f32, column}, {f32, row},
                     {f32, row}, {f32, x}, {f32, column}, {f32, column}};
  } else {
    call.operands = {{f32, x}, {f32, column}, {f32, column}, {f32, x}, {f32, row}, {f32, row}};
  }
  return call;
}

void bench_rows() {
  const int64_t rows = 4096, columns = 1024, n = rows * columns;
  Streams streams(n);
  KernelCall named;
  named.kernel = "softmax";
  named.operands = {{DType::f32, contiguous_view({rows, columns})},
                    {DType::f32, contiguous_view({rows, columns})}};
  Call softmax_named(named), generated(softmax(rows, columns), {n, n}),
      scaled(scaled_softmax(rows, columns), {n, n}), forward(layer_norm(false));
  compare({{"1 read, 1 write of 4096 x 1024", [&] { streams.negate(); }},
           {"softmax, named", [&] { softmax_named(); }},
           {"softmax, generated", [&] { generated(); }},
           {"softmax(x / 8), generated", [&] { scaled(); }},
           {"layer_norm", [&] { forward(); }}});
  Call gradient(softmax_backward(rows, columns), {n, n, n}), backward(layer_norm(true));
  compare({{"2 reads, 1 write of 4096 x 1024", [&] { streams.add(); }},
           {"softmax backward, generated", [&] { gradient(); }},
           {"layer_norm_backward", [&] { backward(); }}});
  std::vector<std::unique_ptr<Call>> folds;
  std::vector<Contender> contenders = {{"1 read of 4096 x 1024", [&] { streams.read(); }}};
  for (bool by_rows : {true, false}) {
    for (int op = 0; op < cpu::kReduceCount; ++op) {
      const int64_t outer = by_rows ? rows : columns, inner = n / outer;
      const Dims strides = by_rows ? Dims{columns, 1} : Dims{1, columns};
      folds.push_back(std::make_unique<Call>(fold(ReduceOp(op), outer, inner, strides),
                                             std::vector<int64_t>{n, outer}));
      contenders.push_back({cat(name(ReduceOp(op)), " over axis ", by_rows ? 1 : 0),
                            [call = folds.back().get()] { (*call)(); }});
    }
  }
  compare(contenders);
}

void bench_generated() {
  const int64_t n = 1 << 24;
  const std::pair<const char*, ScalarOp> functions[] = {
      {"exp", ScalarOp::exp},        {"log", ScalarOp::log},   {"tanh", ScalarOp::tanh},
      {"erf", ScalarOp::erf},        {"sqrt", ScalarOp::sqrt}, {"sin", ScalarOp::sin},
      {"sigmoid", ScalarOp::sigmoid}};
  for (const auto& [label, op] : functions) {
    report(cat(label, ", 2^20").c_str(), Call(unary(op, 1 << 20), {1 << 20, 1 << 20}),
           8.0 * (1 << 20));
  }
  report("softmax 64 x 65536", Call(softmax(64, 65536), {1 << 22, 1 << 22}), 8.0 * (1 << 22));
  report("sum of 2^24", Call(fold(ReduceOp::sum, 1, n, {0, 1}), {n, 1}), 4.0 * double(n));
}

void bench_launch() {
  for (int64_t n : {1, 16, 256}) {
    Call call(six_ops(n), {n, n, n});
    std::printf("%-34s %10.0f ns\n", cat("launch: six ops over ", n).c_str(),
                measure([&] { call(); }) * 1e9);
  }
  Call rows(softmax(4, 16), {64, 64});
  std::printf("%-34s %10.0f ns\n", "launch: softmax 4 x 16", measure([&] { rows(); }) * 1e9);
  Call small(matmul(matrix(4, 4), matrix(4, 4), matrix(4, 4), DType::f32));
  std::printf("%-34s %10.0f ns\n", "launch: matmul 4 x 4 x 4", measure([&] { small(); }) * 1e9);
}

}  // namespace
}  // namespace tessera

int main() {
  // Our own products beside oneDNN's, which gets its own threads; TESSERA_ONEDNN=1 measures what
  // the backend does with it instead, and leaves the peer one thread.
  setenv("TESSERA_ONEDNN", "0", 0);
  std::printf("%s\n", tessera::cpu_backend().target().description.c_str());
  tessera::bench_launch();
  tessera::bench_chain();
  tessera::bench_rows();
  tessera::bench_generated();
  tessera::bench_matmul();
}
