#include "tessera/bench/claims.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tessera/bench/format.h"

namespace tessera::bench {

namespace {

struct Finding {
  std::string measured;
  Verdict verdict;
};

Verdict holds_if(bool holds) { return holds ? Verdict::holds : Verdict::does_not_hold; }

using Lines = std::vector<const Line*>;

struct Row {
  std::string statement;
  std::vector<std::pair<std::string, std::string>> about;  // suite, line
  // The lines in the order of `about`.
  std::function<Finding(const Lines& lines, const Limits& limits)> judge;
  bool needs_cpu = true;  // its column in every line
};

// Where the numbers come from the first device that is no CPU.
const Measurement* gpu_cell(const Line& line, bool with_transfers) {
  for (const Measurement& cell : line.cells) {
    if (is_yardstick(cell.column) || cell.column.starts_with("cpu")) continue;
    if (cell.column.ends_with(kTransfers) == with_transfers) return &cell;
  }
  return nullptr;
}

// "plain 1.2 GFLOP/s, oneDNN 210 GFLOP/s, cpu 205 GFLOP/s"
std::string rates(const Line& line) {
  std::string text;
  for (const Measurement& cell : line.cells) {
    if (cell.column == kBytes) continue;
    text += cat(text.empty() ? "" : ", ", cell.by.empty() ? cell.column : cell.by, " ",
                rate_text(line.rate(cell), line.unit));
  }
  return text;
}

// On the CPU; judge() has seen to it that there is such a column.
double seconds(const Line& line) { return line.find("cpu")->time.median; }

Row gpu_product(int n, double factor) {
  return {cat("A GPU multiplies f32 matrices of ", n, " at least ", factor,
              " times as fast as the CPU"),
          {{"matmul", cat("f32 ", n)}},
          [factor](const Lines& lines, const Limits&) -> Finding {
            const Measurement* gpu = gpu_cell(*lines[0], false);
            if (gpu == nullptr) return {rates(*lines[0]), Verdict::no_device};
            return {rates(*lines[0]), holds_if(seconds(*lines[0]) >= factor * gpu->time.median)};
          }};
}

Row library_product(int n) {
  return {cat("No CPU library multiplies f32 matrices of ", n,
              " more than a tenth faster than Tessera"),
          {{"matmul", cat("f32 ", n)}},
          [](const Lines& lines, const Limits&) -> Finding {
            const Measurement* library = lines[0]->find(kLibrary);
            if (library == nullptr) return {"no library was found", Verdict::not_measured};
            const double ratio = library->time.median / seconds(*lines[0]);
            return {cat(rates(*lines[0]), ": ", percent_text(ratio), " of ", library->by),
                    holds_if(ratio >= 0.9)};
          }};
}

// The subject takes at most `factor` times as long as moving the same bytes.
Row memory_speed(std::string statement, std::string suite, std::string line, double factor) {
  return {std::move(statement),
          {{std::move(suite), std::move(line)}},
          [factor](const Lines& lines, const Limits&) -> Finding {
            const Measurement* moved = lines[0]->find(kBytes);
            if (moved == nullptr) return {"nobody moved the same bytes", Verdict::not_measured};
            const double times = seconds(*lines[0]) / moved->time.median;
            return {cat(time_text(seconds(*lines[0])), ", the same bytes moved in ",
                        time_text(moved->time.median), ": ", three_digits(times), " times"),
                    holds_if(times <= factor)};
          }};
}

Row faster_than_plain(std::string statement, std::string suite, std::string line, double factor) {
  return {std::move(statement),
          {{std::move(suite), std::move(line)}},
          [factor](const Lines& lines, const Limits&) -> Finding {
            const Measurement* plain = lines[0]->find(kPlain);
            if (plain == nullptr) return {"the plain loop was not run", Verdict::not_measured};
            const double times = plain->time.median / seconds(*lines[0]);
            return {cat(rates(*lines[0]), ": ", three_digits(times), " times"),
                    holds_if(times >= factor)};
          }};
}

Row gpu_elementwise(std::string function, bool with_transfers) {
  return {cat("A GPU applies ", function, " to 262,144 numbers faster than the CPU, transfers ",
              with_transfers ? "included" : "not counted"),
          {{"elementwise", function + " 262,144"}},
          [with_transfers](const Lines& lines, const Limits&) -> Finding {
            const Measurement* gpu = gpu_cell(*lines[0], with_transfers);
            if (gpu == nullptr) return {rates(*lines[0]), Verdict::no_device};
            return {rates(*lines[0]), holds_if(gpu->time.median < seconds(*lines[0]))};
          }};
}

Row gpu_transfer(std::string line, double gigabytes) {
  return {cat("A copy reaches ", gigabytes, " GB/s: ", line, ", of a GPU"),
          {{"transfer", line}},
          [gigabytes](const Lines& lines, const Limits&) -> Finding {
            const Measurement* gpu = gpu_cell(*lines[0], false);
            if (gpu == nullptr) return {rates(*lines[0]), Verdict::no_device};
            return {rates(*lines[0]), holds_if(lines[0]->rate(*gpu) >= gigabytes)};
          }};
}

// A claim about the GPU alone, by its cell in each line.
template <class F>
Row about_gpu(std::string statement, std::vector<std::pair<std::string, std::string>> about,
              F&& judge) {
  const auto judge_all = [judge](const Lines& lines, const Limits& limits) -> Finding {
    std::vector<const Measurement*> cells;
    for (const Line* line : lines) {
      cells.push_back(gpu_cell(*line, false));
      if (cells.back() == nullptr) return {rates(*line), Verdict::no_device};
    }
    return judge(lines, cells, limits);
  };
  return {std::move(statement), std::move(about), judge_all, false};
}
using Cells = std::vector<const Measurement*>;

// The GPU moves the bytes of the line at a share of the rate at which it copies.
Row gpu_memory_speed(std::string what, std::string suite, std::string line, double share) {
  return about_gpu(
      cat("A GPU computes ", what, " at ", percent_text(share), " of its copy bandwidth"),
      {{std::move(suite), std::move(line)}},
      [share](const Lines& lines, const Cells& cells, const Limits& limits) -> Finding {
        const std::optional<Relation> reached = lines[0]->share(limits, *cells[0]);
        if (!reached) return {"its bandwidth was not measured", Verdict::not_measured};
        return {cat(cells[0]->column, " ", time_text(cells[0]->time.median), ": ",
                    percent_text(reached->value), " of ",
                    three_digits(limits.find(cells[0]->column)->copy_bytes * 1e-9), " GB/s"),
                holds_if(reached->value >= share)};
      });
}

Row gpu_fusion() {
  return about_gpu(
      "On a GPU, fusing that chain makes it 3 times as fast",
      {{"elementwise", "chain of six 16 M, fused"}, {"elementwise", "chain of six 16 M, unfused"}},
      [](const Lines&, const Cells& cells, const Limits&) -> Finding {
        const double fused = cells[0]->time.median, unfused = cells[1]->time.median;
        return {cat(cells[0]->column, " unfused ", time_text(unfused), ", fused ", time_text(fused),
                    ": ", three_digits(unfused / fused), " times as fast"),
                holds_if(unfused >= 3 * fused)};
      });
}

Row gpu_replay() {
  return about_gpu("A GPU runs a recorded program of small kernels in at most 2.5 µs a kernel",
                   {{"step", "replay of 1,000 nodes on 2 x 2 matrices"}},
                   [](const Lines& lines, const Cells& cells, const Limits&) -> Finding {
                     const std::string& device = cells[0]->column;
                     const double kernels = lines[0]->fact(cat(kKernelsOn, device)).value_or(0);
                     if (kernels == 0)
                       return {"its kernels were not counted", Verdict::not_measured};
                     const double each = cells[0]->time.median / kernels;
                     return {cat(device, " ", time_text(cells[0]->time.median), " for ",
                                 three_digits(kernels), " kernels, ", time_text(each), " each"),
                             holds_if(each <= 2.5e-6)};
                   });
}

Row gpu_step(std::string line) {
  return {cat("A GPU makes a training step 10 times as fast as the CPU: ", line),
          {{"step", line}},
          [](const Lines& lines, const Limits&) -> Finding {
            const Measurement* gpu = gpu_cell(*lines[0], false);
            if (gpu == nullptr) return {rates(*lines[0]), Verdict::no_device};
            return {rates(*lines[0]), holds_if(seconds(*lines[0]) >= 10 * gpu->time.median)};
          }};
}

Row updates(std::string optimizer, double wanted) {
  return {
      cat(optimizer, " makes more than ", three_digits(wanted),
          " updates a second of a small network (784-256-10, B = 64)"),
      {{"step", cat("mlp 784-256-10, B = 64, step with ", optimizer)}},
      [wanted](const Lines& lines, const Limits&) -> Finding {
        const double rate = 1 / seconds(*lines[0]);
        return {cat(three_digits(rate), " updates/s, ", rates(*lines[0])), holds_if(rate > wanted)};
      }};
}

Row backward_cost() {
  return {"A backward pass takes twice its forward pass (784-256-10, B = 64; to a fifth)",
          {{"step", "mlp 784-256-10, forward"}, {"step", "mlp 784-256-10, forward + backward"}},
          [](const Lines& lines, const Limits&) -> Finding {
            const double forward = seconds(*lines[0]), both = seconds(*lines[1]);
            const double ratio = (both - forward) / forward;
            const double flops = (lines[1]->flops - lines[0]->flops) / lines[0]->flops;
            return {cat("forward ", time_text(forward), ", with backward ", time_text(both),
                        ": backward takes ", three_digits(ratio), " times forward, and has ",
                        three_digits(flops), " times its operations"),
                    holds_if(ratio >= 1.6 && ratio <= 2.4)};
          }};
}

std::string kernels_text(const Line& line) {
  return cat(line.fact("kernels").value_or(0), " kernels, ",
             three_digits(line.fact("moved bytes").value_or(0) * 1e-6), " MB, ",
             time_text(seconds(line)));
}

Row fusion() {
  return {
      "Fusing a chain of six elementwise ops over 16 M numbers makes it 3 times as fast",
      {{"elementwise", "chain of six 16 M, fused"}, {"elementwise", "chain of six 16 M, unfused"}},
      [](const Lines& lines, const Limits&) -> Finding {
        const double times = seconds(*lines[1]) / seconds(*lines[0]);
        return {cat("unfused ", kernels_text(*lines[1]), "; fused ", kernels_text(*lines[0]), ": ",
                    three_digits(times), " times as fast"),
                holds_if(times >= 3)};
      }};
}

Row replay() {
  return {"Replaying a compiled program costs the host at most 20 µs and 0.3 µs an instruction",
          {{"step", "replay of 1,000 nodes on 2 x 2 matrices"}},
          [](const Lines& lines, const Limits&) -> Finding {
            const double kernels = lines[0]->fact("kernels").value_or(0);
            return {cat(time_text(seconds(*lines[0])), " for ", three_digits(kernels),
                        " instructions, ", time_text(seconds(*lines[0]) / std::max(1.0, kernels)),
                        " each"),
                    holds_if(seconds(*lines[0]) <= 20e-6 + 0.3e-6 * kernels)};
          }};
}

std::vector<Row> make_rows() {
  std::vector<Row> rows;
  for (const int n : {128, 256, 512, 1024, 2048, 4096}) rows.push_back(gpu_product(n, 10));
  for (const int n : {128, 256, 512, 1024, 2048, 4096}) rows.push_back(library_product(n));
  rows.push_back(faster_than_plain("Tuning makes an f32 product of 1024 20 times as fast", "matmul",
                                   "f32 1024", 20));
  rows.push_back(gpu_elementwise("add", false));
  rows.push_back(gpu_elementwise("gelu", false));
  rows.push_back(gpu_elementwise("gelu", true));
  rows.push_back(
      memory_speed("Adding 262,144 numbers runs at the speed of moving them (to a tenth)",
                   "elementwise", "add 262,144", 1.1));
  rows.push_back(
      faster_than_plain("Vector instructions and threads make gelu of 262,144 numbers "
                        "10 times as fast",
                        "elementwise", "gelu 262,144", 10));
  for (const char* line :
       {"softmax 64 x 1024", "softmax forward + backward 64 x 1024", "layer_norm 64 x 1024",
        "layer_norm forward + backward 64 x 1024", "softmax 4096 x 1024",
        "softmax 4096 x 1024, cold", "softmax forward + backward 4096 x 1024",
        "layer_norm 4096 x 1024", "layer_norm 4096 x 1024, cold",
        "layer_norm forward + backward 4096 x 1024"}) {
    rows.push_back(memory_speed(cat(line, " takes at most 1.5 times moving the same bytes"), "rows",
                                line, 1.5));
  }
  rows.push_back(fusion());
  rows.push_back(
      memory_speed("That chain, fused, runs at the speed of moving its operands (to 15 %)",
                   "elementwise", "chain of six 16 M, fused", 1.15));
  rows.push_back(gpu_transfer("host to device 16 MiB", 10));
  rows.push_back(gpu_transfer("device to host 16 MiB", 10));
  rows.push_back(gpu_transfer("device to device 16 MiB", 100));
  rows.push_back(updates("SGD", 1000));
  rows.push_back(updates("AdamW", 1000));
  rows.push_back(backward_cost());
  rows.push_back(replay());
  rows.push_back(
      gpu_memory_speed("the fused chain", "elementwise", "chain of six 16 M, fused", 0.85));
  for (const std::string line : {"softmax 4096 x 1024", "layer_norm 4096 x 1024"}) {
    rows.push_back(gpu_memory_speed(line, "rows", line, 0.67));
  }
  rows.push_back(gpu_fusion());
  rows.push_back(gpu_replay());
  for (const char* line :
       {"mlp 784-256-10, B = 64, step with AdamW", "GPT 6 x 384, B = 8, T = 256, AdamW step"}) {
    rows.push_back(gpu_step(line));
  }
  return rows;
}

const std::vector<Row>& all_rows() {
  static const std::vector<Row> rows = make_rows();
  return rows;
}

Claim judge(const Row& row, const Results& results) {
  Lines lines;
  for (const auto& [suite, name] : row.about) {
    const Line* line = results.find(suite, name);
    const char* reason = line == nullptr                                 ? " was not run"
                         : !line->passed()                               ? " is wrong"
                         : row.needs_cpu && line->find("cpu") == nullptr ? " was not run on the CPU"
                                                                         : nullptr;
    if (reason != nullptr) {
      return {row.statement, cat(suite, " ", name, reason), Verdict::not_measured};
    }
    lines.push_back(line);
  }
  Finding finding = row.judge(lines, results.limits);
  return {row.statement, std::move(finding.measured), finding.verdict};
}

}  // namespace

std::vector<Claim> judge_claims(const Results& results) {
  std::vector<Claim> claims;
  for (const Row& row : all_rows()) claims.push_back(judge(row, results));
  return claims;
}

bool is_claimed(std::string_view suite, std::string_view line) {
  return std::ranges::any_of(all_rows(), [&](const Row& row) {
    return std::ranges::any_of(
        row.about, [&](const auto& one) { return one.first == suite && one.second == line; });
  });
}

}  // namespace tessera::bench
