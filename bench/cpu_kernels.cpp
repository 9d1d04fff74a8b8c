// Speed of the CPU backend's kernels: matrix products beside oneDNN's, elementwise chains and
// reductions as a share of the memory's speed, and the cost of a launch.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include "tessera/backend/cpu/cpu_backend.h"
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

// z = gelu-like chain of x and y
KernelIR chain(int64_t n) {
  KernelIR ir;
  ir.extents = {n};
  ir.operands = {{DType::f32, false}, {DType::f32, false}, {DType::f32, true}};
  ir.insts = {load(0, {1}),
              load(1, {1}),
              scalar(ScalarOp::add, 0, 1),
              scalar(ScalarOp::mul, 2, 0),
              scalar(ScalarOp::add, 3, 1),
              store(2, 4, {1})};
  return ir;
}

KernelIR unary(ScalarOp op, int64_t n) {
  KernelIR ir;
  ir.extents = {n};
  ir.operands = {{DType::f32, false}, {DType::f32, true}};
  ir.insts = {load(0, {1}), scalar(op, 0), store(1, 1, {1})};
  return ir;
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

KernelIR sum(int64_t outer, int64_t inner, Dims strides) {
  KernelIR ir;
  ir.extents = {outer, inner};
  ir.inner = 1;
  ir.operands = {{DType::f32, false}, {DType::f32, true}};
  ir.insts = {load(0, strides), reduce(ReduceOp::sum, 0), store(1, 1, {1, 0}, IrLevel::row)};
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

void bench_generated() {
  const int64_t n = 1 << 24;
  report("chain of 3, 2^24", Call(chain(n), {n, n, n}), 12.0 * double(n));
  report("chain of 3, 2^16", Call(chain(1 << 16), {1 << 16, 1 << 16, 1 << 16}), 12.0 * 65536);
  const std::pair<const char*, ScalarOp> functions[] = {
      {"exp", ScalarOp::exp},        {"log", ScalarOp::log},   {"tanh", ScalarOp::tanh},
      {"erf", ScalarOp::erf},        {"sqrt", ScalarOp::sqrt}, {"sin", ScalarOp::sin},
      {"sigmoid", ScalarOp::sigmoid}};
  for (const auto& [label, op] : functions) {
    report(cat(label, ", 2^20").c_str(), Call(unary(op, 1 << 20), {1 << 20, 1 << 20}),
           8.0 * (1 << 20));
  }
  report("softmax 4096 x 1024", Call(softmax(4096, 1024), {1 << 22, 1 << 22}), 8.0 * (1 << 22));
  report("softmax 64 x 65536", Call(softmax(64, 65536), {1 << 22, 1 << 22}), 8.0 * (1 << 22));
  report("sum of rows 4096 x 1024", Call(sum(4096, 1024, {1024, 1}), {1 << 22, 4096}),
         4.0 * (1 << 22));
  report("sum of columns 4096 x 1024", Call(sum(1024, 4096, {1, 1024}), {1 << 22, 1024}),
         4.0 * (1 << 22));
  report("sum of 2^24", Call(sum(1, n, {0, 1}), {n, 1}), 4.0 * double(n));
}

void bench_named() {
  KernelCall call;
  const View x = contiguous_view({4096, 1024});
  call.kernel = "softmax";
  call.operands = {{DType::f32, x}, {DType::f32, x}};
  report("named softmax 4096 x 1024", Call(call), 8.0 * (1 << 22));
  call.kernel = "layer_norm";
  const View column = contiguous_view({1024}), row = contiguous_view({4096, 1});
  call.operands = {{DType::f32, x}, {DType::f32, column}, {DType::f32, column},
                   {DType::f32, x}, {DType::f32, row},    {DType::f32, row}};
  report("named layer_norm 4096 x 1024", Call(call), 8.0 * (1 << 22));
}

void bench_launch() {
  for (int64_t n : {1, 16, 256}) {
    Call call(chain(n), {n, n, n});
    std::printf("%-34s %10.0f ns\n", cat("launch: chain of 3 over ", n).c_str(),
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
  tessera::bench_generated();
  tessera::bench_named();
  tessera::bench_matmul();
}
