#include "tessera/bench/gpt_lines.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "tessera/bench/gpt_run.h"
#include "tessera/tensor/elementwise.h"

namespace tessera::bench {

namespace {

constexpr double kEpochBytes = 1e6;
constexpr int kCheckedRuns = 2;  // the second loss has seen an update of every parameter

// Of losses and of norms, ulps of `dtype`.
struct Tolerance {
  DType dtype;
  double losses, norms;
};

// f32: sums over some thousand terms in every layer. tf32 rounds operands to 10 bits, bf16 to 7.
Tolerance tolerance_of(const GptVariant& variant) {
  if (variant.dtype != DType::f32) return {variant.dtype, 2, 4};
  if (variant.tf32) return {DType::f32, 0x1p13, 0x1p15};
  return {DType::f32, 64, 256};
}

Expected expected_values(std::vector<double> values, DType dtype, double tolerance) {
  Expected expected{std::move(values)};
  expected.tolerance = tolerance;
  expected.unit = Unit::element;
  expected.dtype = dtype;
  return expected;
}

// Losses and norms of the first iterations: nothing fused, on the CPU nothing by a kernel of its
// own either; block by block where memory is short. Computed once for all lines of a size.
const Outputs& reference_outputs(const GptSize& size, const GptReference& by) {
  static std::map<std::string, Outputs> known;
  const std::string key = cat(size.name, " ", size.batch, " ", by.device);
  if (const auto found = known.find(key); found != known.end()) return found->second;
  GptVariant plain{.dtype = by.dtype};
  plain.options.fuse = plain.options.match = plain.options.simplify = false;
  if (size.needs_gpu) {
    plain.checkpointing = Checkpointing::block;
  } else {
    plain.options.kernel_ops = plain.options.recompute = false;
  }
  const GptRun run(size.config, size.batch, GptPart::iteration, plain, by.device);
  return known.emplace(key, run.outputs(kCheckedRuns)).first->second;
}

std::vector<double> first(const std::vector<float>& values, size_t count) {
  return {values.begin(), values.begin() + int64_t(count)};
}

std::vector<Expected> expected_losses(const GptSize& size, GptPart part, const GptVariant& variant,
                                      const GptReference& by) {
  const Outputs& outputs = reference_outputs(size, by);
  const Tolerance tolerance = tolerance_of(variant);
  const size_t runs = part == GptPart::iteration ? kCheckedRuns : 1;
  std::vector<Expected> expected = {
      expected_values(first(outputs[0], runs), tolerance.dtype, tolerance.losses)};
  if (part != GptPart::forward) {
    expected.push_back(expected_values(first(outputs[1], runs), tolerance.dtype, tolerance.norms));
  }
  return expected;
}

// The optimiser -----------------------------------------------------------------------------------

constexpr int64_t kComparedParameters = 4096;

std::vector<float> read(const Var& var) { return cast(var, DType::f32).to_vector<float>(); }

// The first weight of a block, behind both tables and a norm.
const Var& looked_at(const GptRun& run) { return run.parameters()[4]; }

// AdamW's formula with the defaults of optim/, over gradients that are the first values, clipped.
double stepped(double start, double norm, int steps) {
  const double g = start * std::min(1.0, kClip / (norm + 1e-6));
  double p = start, m = 0, v = 0;
  for (int t = 1; t <= steps; ++t) {
    p -= 1e-3 * 1e-2 * p;
    m = 0.9 * m + 0.1 * g;
    v = 0.999 * v + 0.001 * g * g;
    p -= 1e-3 / (1 - std::pow(0.9, t)) * m /
         (std::sqrt(v) / std::sqrt(1 - std::pow(0.999, t)) + 1e-8);
  }
  return p;
}

std::vector<Expected> expected_update(const GptSize& size, const GptVariant& variant) {
  const GptRun run(size.config, 1, GptPart::forward, variant, Device());
  double squares = 0;
  for (const Var& var : run.parameters()) {
    for (const float x : read(var)) squares += double(x) * double(x);
  }
  const double norm = std::sqrt(squares);
  const std::vector<float> start = read(looked_at(run));
  const Tolerance tolerance = tolerance_of(variant);
  Expected values{{}, sample_positions(int64_t(start.size()), kComparedParameters)};
  for (const int64_t at : values.positions) {
    values.values.push_back(stepped(start[size_t(at)], norm, kCheckedRuns));
  }
  values.dtype = variant.dtype;
  values.tolerance = 4;
  return {expected_values(std::vector(kCheckedRuns, norm), tolerance.dtype, tolerance.norms),
          values};
}

// A line ------------------------------------------------------------------------------------------

struct PartLine {
  GptPart part;
  GptVariant variant;
  bool needs_gpu;
};

Outputs outputs_of(const GptRun& run, GptPart part) {
  Outputs outputs =
      run.outputs(part == GptPart::iteration || part == GptPart::optimizer ? kCheckedRuns : 1);
  if (part == GptPart::optimizer) outputs.push_back(read(looked_at(run)));
  return outputs;
}

Contender contender(const PartLine& line, const std::shared_ptr<GptRun>& run, Device device) {
  Contender made{.column = to_string(device),
                 .run = [run] { run->run(); },
                 .outputs = [run, part = line.part] { return outputs_of(*run, part); }};
  if (device.kind != DeviceKind::cpu) made.wait = [run] { run->wait(); };
  return made;
}

Contest make_contest(const GptSize& size, const PartLine& line, const Setting& setting) {
  Contest contest;
  contest.expected =
      line.part == GptPart::optimizer
          ? expected_update(size, line.variant)
          : expected_losses(size, line.part, line.variant, gpt_reference(size, setting));
  for (const Device device : gpt_devices(line.needs_gpu, setting)) {
    const auto run =
        std::make_shared<GptRun>(size.config, size.batch, line.part, line.variant, device);
    contest.contenders.push_back(contender(line, run, device));
    contest.facts.push_back({cat(kMemoryOn, device), double(run->memory())});
  }
  return contest;
}

bool is_out_of_memory(const Error& error) {
  return std::string_view(error.what()).find("out of memory") != std::string_view::npos;
}

// Of a parameter: its gradient is read for the norm and for the update; value and moments are read
// and written. Half types have a master in f32 and are written alone.
double bytes_of_update(DType dtype) {
  const double own = double(size_of(dtype)), wide = sizeof(float);
  return 2 * own + 4 * wide + (dtype == DType::f32 ? 2 * wide : 2 * wide + own);
}

std::string precision_of(const GptVariant& variant) {
  return variant.tf32 ? "tf32" : std::string(name(variant.dtype));
}

Case part_case(const GptSize& size, GptPart part, std::string_view what, GptVariant variant) {
  const double tokens = double(size.batch * size.config.context);
  const double flops = tokens * training_flops(size.config);
  Case one;
  one.suite = "step";
  one.name = gpt_line_name(size, precision_of(variant), what);
  one.unit = part == GptPart::optimizer ? "updates/s" : "tokens/s";
  one.amount = part == GptPart::optimizer ? 1 : tokens;
  // A backward pass has two products for each of the forward pass. There is no measured limit of
  // products of tf32.
  one.flops = part == GptPart::forward ? flops / 3 : part == GptPart::optimizer ? 0 : flops;
  one.limit = variant.tf32 ? LimitKind::none : LimitKind::fma;
  if (part == GptPart::optimizer) {
    one.limit = LimitKind::bytes;
    one.bytes = double(parameter_count(size.config)) * bytes_of_update(variant.dtype);
  }
  one.dtype = variant.dtype;
  if (part == GptPart::iteration) one.epoch = kEpochBytes / size.bytes_per_token;
  one.slow = true;
  one.needs_gpu = size.needs_gpu || variant.tf32;
  one.most_seconds = kGptSeconds;
  one.make = [size, line = PartLine{part, variant, one.needs_gpu}](const Setting& setting) {
    return largest_contest(
        size, [&](const GptSize& smaller) { return make_contest(smaller, line, setting); });
  };
  return one;
}

}  // namespace

std::string gpt_line_name(const GptSize& size, std::string_view precision, std::string_view what) {
  return cat(size.name, " ", precision, ", ", what);
}

GptReference gpt_reference(const GptSize& size, const Setting& setting) {
  if (!size.needs_gpu) return {Device(), DType::f64};
  return {gpt_devices(true, setting).at(0), DType::f32};
}

Contest largest_contest(const GptSize& size, const std::function<Contest(const GptSize&)>& make) {
  GptSize smaller = size;
  for (;; smaller.batch /= 2) {
    try {
      Contest contest = make(smaller);
      if (smaller.batch == size.batch) return contest;
      contest.scale = double(smaller.batch) / double(size.batch);
      contest.note = cat("B = ", smaller.batch, ": memory holds no more");
      return contest;
    } catch (const Error& error) {
      if (smaller.batch == 1 || !is_out_of_memory(error)) throw;
    }
  }
}

std::vector<Device> gpt_devices(bool needs_gpu, const Setting& setting) {
  std::vector<Device> devices = setting.devices;
  if (needs_gpu) {
    std::erase_if(devices, [](Device device) { return device.kind == DeviceKind::cpu; });
  }
  return devices;
}

std::vector<Case> gpt_part_cases(const GptSize& size) {
  const GptVariant plain{.dtype = size.dtype};
  return {part_case(size, GptPart::forward, "forward", plain),
          part_case(size, GptPart::both, "forward + backward", plain),
          part_case(size, GptPart::optimizer, "optimiser", plain), gpt_iteration_case(size)};
}

Case gpt_iteration_case(const GptSize& size) {
  return part_case(size, GptPart::iteration, "iteration", {.dtype = size.dtype});
}

std::vector<Case> gpt_variant_cases(const GptSize& size) {
  const auto made = [&](std::string_view what, const GptVariant& variant) {
    return part_case(size, GptPart::iteration, what, variant);
  };
  const DType dtype = size.dtype;
  std::vector<Case> cases = {
      made("unfused", {.dtype = dtype, .options = {.fuse = false}}),
      made("selective checkpoints", {.dtype = dtype, .checkpointing = Checkpointing::selective}),
      made("block checkpoints", {.dtype = dtype, .checkpointing = Checkpointing::block}),
      made("iteration", {.tf32 = true})};
  for (const DType other : {DType::f32, DType::bf16}) {
    if (other != dtype) cases.push_back(made("iteration", {.dtype = other}));
  }
  return cases;
}

}  // namespace tessera::bench
