#include "tessera/bench/tessera_contenders.h"

#include "tessera/bench/options_guard.h"
#include "tessera/tensor/compiled.h"
#include "tessera/tensor/creation.h"
#include "tessera/tensor/device.h"
#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/var.h"

namespace tessera::bench {

namespace {

void read(const Tensor& tensor, std::vector<std::byte>& bytes) {
  bytes.resize(size_t(tensor.numel()) * size_t(size_of(tensor.dtype())));
  tensor.read_bytes(tensor.dtype(), bytes.data());
}

// The function bound to a device. Operands and results are Vars: they stay where they are, as the
// arrays of a loop do, whereas inputs of a compiled function are copied and its results alternate
// between two places.
class Bound {
 public:
  Bound(const TensorWork& work, Device device, bool with_transfers)
      : function_(compile(bind(work, device, vars_, results_))),
        backend_(device_context(device).backend),
        with_transfers_(with_transfers) {
    if (with_transfers) sent_.resize(work.inputs.size());
    for (size_t i = 0; i < sent_.size(); ++i) read(work.inputs[i], sent_[i]);
    const OptionsGuard guard(work.options);
    run();
    wait();
  }

  void run() {
    if (with_transfers_) {
      for (size_t i = 0; i < sent_.size(); ++i)
        vars_[i].set_bytes(vars_[i].dtype(), sent_[i].data());
    }
    function_();
    if (!with_transfers_) return;
    received_.resize(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) read(results_[i], received_[i]);
  }

  void wait() { backend_.synchronize(Stream{}); }

  Outputs outputs() {
    run();
    Outputs values;
    for (const Var& result : results_) {
      values.push_back(cast(result, DType::f32).to_vector<float>());
    }
    return values;
  }

  const Program& program() const { return function_.program(); }

 private:
  static std::function<std::vector<Tensor>()> bind(const TensorWork& work, Device device,
                                                   std::vector<Var>& vars,
                                                   std::vector<Var>& results) {
    for (const Tensor& input : work.inputs) vars.emplace_back(input.to(device), "operand");
    for (const Tensor& result : work.function(std::vector<Tensor>(vars.begin(), vars.end()))) {
      results.emplace_back(zeros(result.shape(), result.dtype()).to(device), "result");
    }
    return [function = work.function, vars, results]() mutable {
      const std::vector<Tensor> values = function(std::vector<Tensor>(vars.begin(), vars.end()));
      for (size_t i = 0; i < values.size(); ++i) results[i].assign(values[i]);
      return std::vector<Tensor>();
    };
  }

  std::vector<Var> vars_, results_;
  CompiledFunction<std::vector<Tensor>> function_;
  Backend& backend_;
  bool with_transfers_;
  std::vector<std::vector<std::byte>> sent_, received_;
};

using Bounds = std::vector<std::shared_ptr<Bound>>;  // taken in turn

Contender contender(const Bounds& bounds, Device device, bool with_transfers) {
  const std::shared_ptr<Bound>& first = bounds.front();
  Contender made{
      .column = cat(device, with_transfers ? kTransfers : ""),
      .run = [bounds, next = size_t(0)]() mutable { bounds[next++ % bounds.size()]->run(); },
      .outputs = [first] { return first->outputs(); }};
  // Reading the results has waited for everything already.
  if (device.kind != DeviceKind::cpu && !with_transfers) made.wait = [first] { first->wait(); };
  return made;
}

}  // namespace

Contender make_contender(const TensorWork& work, Device device, bool with_transfers) {
  const EagerGuard compiled(false);
  return contender({std::make_shared<Bound>(work, device, with_transfers)}, device, with_transfers);
}

void add_tessera(Contest& contest, const Setting& setting, std::span<const TensorWork> works) {
  const EagerGuard compiled(false);
  for (const Device device : setting.devices) {
    Bounds bounds;
    for (const TensorWork& work : works) {
      bounds.push_back(std::make_shared<Bound>(work, device, false));
    }
    contest.contenders.push_back(contender(bounds, device, false));
    if (device.kind == DeviceKind::cpu) continue;
    const double kernels = double(bounds.front()->program().report.kernels);
    contest.facts.push_back({cat(kKernelsOn, device), kernels});
    contest.contenders.push_back(make_contender(works.front(), device, true));
  }
}

void add_program_facts(Contest& contest, const TensorWork& work) {
  const EagerGuard compiled(false);
  const Bound bound(work, Device(), false);
  const Report& report = bound.program().report;
  contest.facts.push_back({"kernels", double(report.kernels)});
  contest.facts.push_back({"moved bytes", double(report.bytes_moved)});
}

}  // namespace tessera::bench
