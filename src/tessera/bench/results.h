// What a run of `tessera bench` found; json.h, text.h and html.h show it.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/bench/check.h"
#include "tessera/bench/statistics.h"

namespace tessera::bench {

// Columns that are not Tessera's; those are called like their device, "cpu", "cuda:0", and where
// the time contains moving the operands there and the result back, "cuda:0 + transfers".
inline constexpr std::string_view kPlain = "plain";      // a one-thread loop
inline constexpr std::string_view kLibrary = "library";  // the best CPU library found
inline constexpr std::string_view kBytes = "bytes";      // a loop that moves the same bytes
inline constexpr std::string_view kTransfers = " + transfers";

inline constexpr std::string_view kKernelsOn = "kernels on ";  // of a fact: "kernels on cuda:0"
inline constexpr std::string_view kMemoryOn = "memory on ";    // bytes of a step, state included

inline bool is_yardstick(std::string_view column) {
  return column == kPlain || column == kLibrary || column == kBytes;
}

struct Measurement {
  std::string column;
  std::string by;  // whose work it is: "oneDNN 2.6.3"; empty where the column says it
  Summary time;
};

struct Fact {
  std::string name;
  double value;
};

enum class LimitKind : uint8_t {
  none,
  fma,         // the rate of f32 multiply-adds
  bytes,       // moving the same bytes: the column "bytes", or the bandwidth where there is none
  host_bytes,  // the same, of the CPU alone: other devices move these over a bus
};

// A number that compares: times as fast, or a share.
struct Relation {
  double value;
  std::string to;
};

struct Limits {
  struct Fma {
    std::string isa;
    double one_thread, all_threads;  // f32 FLOP/s
  };
  std::vector<Fma> fma;
  double copy_bytes = 0, add_bytes = 0;      // a second: d = a, and d = a + b; all threads, memory
  bool copy_past = false, add_past = false;  // whether storing past the caches was faster

  // Of a device that is no CPU.
  struct Product {
    DType dtype;
    int64_t extent;  // of the square matrices with which it was reached
    double flops;    // a second
  };
  struct OfDevice {
    std::string device, description;  // "cuda:0", "NVIDIA H200, 132 multiprocessors, …"
    double copy_bytes = 0;            // a second, read and written
    std::vector<Product> products = {};

    double product_flops(DType dtype) const;  // 0: not measured
  };
  std::vector<OfDevice> devices = {};

  double best_fma() const;  // all threads
  const OfDevice* find(std::string_view device) const;
};

struct Line {
  std::string suite, name;
  std::string unit;   // of the rate, "GFLOP/s"
  double amount = 0;  // of the unit's work in one run: the rate is amount / seconds
  LimitKind limit = LimitKind::none;
  double flops = 0, bytes = 0;  // least work of one run
  DType dtype = DType::f32;     // of the products that are the limit of a GPU
  double epoch = 0;             // of the unit's work in 1 MB of text; 0: not about text
  bool no_device = false;       // needs a GPU, and there was none
  std::string note = {};        // what a reader must know besides
  std::vector<Check> checks;
  std::vector<Measurement> cells;  // none where a check failed
  std::vector<Fact> facts;

  bool passed() const;
  const Measurement* find(std::string_view column) const;
  // Tessera's first column, which ratio and share speak of; null where the line is wrong.
  const Measurement* subject() const;
  double rate(const Measurement& cell) const { return amount / cell.time.median; }
  std::optional<double> fact(std::string_view name) const;
  // Seconds of an epoch of 1 MB of text.
  std::optional<double> epoch_seconds(const Measurement& cell) const;

  // How many times as fast as the library, or else as the plain loop.
  std::optional<Relation> ratio() const;
  // Of the limit of the device, where there is one.
  std::optional<Relation> share(const Limits& limits, const Measurement& cell) const;
  std::optional<Relation> share(const Limits& limits) const;  // the subject's
};

struct Machine {
  std::string cpu;          // the processor's name
  std::string description;  // of the device "cpu": threads, instruction set, matrix products
  std::string isa;
  int threads = 0;
  std::string compiler, version;  // of Tessera
};

enum class Verdict : uint8_t { holds, does_not_hold, no_device, not_measured };
std::string_view name(Verdict verdict);

// A device that was asked for and is not there: its columns say "no device".
struct AbsentDevice {
  std::string device, reason;
};

struct Claim {
  std::string statement;
  std::string measured;  // the numbers, in words
  Verdict verdict;
};

struct Results {
  Machine machine;
  std::vector<std::string> devices;  // those asked for, in this order
  std::vector<AbsentDevice> absent = {};
  bool quick = false;
  int left_out = 0;  // lines that --quick does not run
  Limits limits;
  std::vector<Line> lines;
  std::vector<Claim> claims;

  bool passed() const;                            // no line is wrong
  bool is_absent(std::string_view column) const;  // a column of an absent device
  const Line* find(std::string_view suite, std::string_view line) const;
  std::vector<std::string> suites() const;  // in order of first appearance
};

}  // namespace tessera::bench
