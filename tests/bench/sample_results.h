// Results with given numbers, to test what is made of them.
#pragma once

#include "tessera/bench/results.h"

namespace tessera::bench {

inline Measurement cell(std::string column, double seconds, std::string by = "") {
  return {std::move(column), std::move(by),
          Summary{seconds, 0.99 * seconds, 1.01 * seconds, 0.98 * seconds, 30, 1}};
}

inline Line product_line(std::string name, std::vector<Measurement> cells) {
  Line line;
  line.suite = "matmul";
  line.name = std::move(name);
  line.unit = "GFLOP/s";
  line.amount = 2;
  line.flops = 2e9;
  line.limit = LimitKind::fma;
  line.checks = {{"cpu", 3, 100, 2048}};
  line.cells = std::move(cells);
  return line;
}

inline Line memory_line(std::string suite, std::string name, double own, double moved) {
  Line line;
  line.suite = std::move(suite);
  line.name = std::move(name);
  line.unit = "GB/s";
  line.amount = 1;
  line.bytes = 1e9;
  line.limit = LimitKind::bytes;
  line.checks = {{"cpu", 0, 4, 10}};
  line.cells = {cell("plain", 4 * moved), cell("bytes", moved), cell("cpu", own)};
  return line;
}

inline Results sample_results() {
  Results results;
  results.machine = {"a <processor>", "cpu & more", "avx2", 2, "gcc 12.2.0", "0.1.0"};
  results.devices = {"cpu"};
  results.limits.fma = {{"baseline", 1e10, 2e10}, {"avx2", 5e10, 1e11}};
  results.limits.copy_bytes = 2e10;
  results.limits.add_bytes = 1.5e10;
  results.limits.copy_past = true;
  results.lines = {
      product_line("f32 1024",
                   {cell("plain", 1), cell("library", 0.03, "oneDNN 2.6.3"), cell("cpu", 0.025)}),
      memory_line("rows", "softmax 64 x 1024", 0.3, 0.1)};
  results.lines[1].cells[2].time.p90 = 0.4;
  results.lines[1].facts = {{"kernels", 1}};
  return results;
}

// The same with a GPU beside it.
inline Results gpu_results() {
  Results results = sample_results();
  results.devices.push_back("cuda:0");
  results.limits.devices = {{"cuda:0", "a card", 4e12, {{DType::f32, 8192, 5e13}}}};
  results.lines[0].cells.push_back(cell("cuda:0", 5e-5));
  results.lines[0].cells.push_back(cell("cuda:0 + transfers", 5e-3));
  results.lines[1].cells.push_back(cell("cuda:0", 5e-4));
  return results;
}

// The first line gets a result that is not right, as run_case leaves it.
inline Results wrong_results() {
  Results results = sample_results();
  results.lines[0].checks.push_back({"library", 1234, 100, 2048});
  results.lines[0].cells.clear();
  return results;
}

}  // namespace tessera::bench
