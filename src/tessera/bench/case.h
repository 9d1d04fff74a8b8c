// A line of the table before it is run: data, not code. suites.h lists them all.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tessera/base/device.h"
#include "tessera/bench/results.h"

namespace tessera::bench {

// Somebody who does the work of a line.
struct Contender {
  std::string column;                          // results.h
  std::string by = {};                         // whose work it is, where the column leaves it open
  std::function<void()> run = nullptr;         // once, until it is done or `wait` says so
  std::function<Outputs()> outputs = nullptr;  // runs and reads; null: a yardstick, not checked
  double settle_seconds = 0;                   // timing.h
  std::function<void()> wait = nullptr;        // for what run() queued on a device, all of it
};

// A line with its data, which lives as long as this does.
struct Contest {
  std::vector<Expected> expected;
  std::vector<Contender> contenders;
  std::vector<Fact> facts = {};
  double scale = 1;       // of the line's work that a run does, where memory allows no more
  std::string note = {};  // Line::note
};

struct Setting {
  std::vector<Device> devices;
  bool quick = false;
};

struct Case {
  std::string suite, name;
  std::string unit;   // of the rate
  double amount = 0;  // Line::amount
  LimitKind limit = LimitKind::none;
  double flops = 0, bytes = 0;
  DType dtype = DType::f32;  // Line::dtype
  double epoch = 0;          // Line::epoch
  bool slow = false;         // left out by --quick
  bool needs_gpu = false;    // no column for the CPU
  double most_seconds = 0;   // Policy::most_seconds
  std::function<Contest(const Setting& setting)> make;
};

}  // namespace tessera::bench
