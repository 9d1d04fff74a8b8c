// What `tessera selftest` finds, as text and as JSON.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tessera/cli/console.h"
#include "tessera/conformance/check_device.h"
#include "tessera/conformance/check_op.h"

namespace tessera::cli {

struct DeviceFacts {
  std::string name;             // "cpu"
  std::string description;      // in words
  std::string instruction_set;  // of the CPU; empty elsewhere
  int threads = 0;              // of the CPU
  int64_t memory_bytes = 0;
  std::optional<int64_t> free_bytes;
};

struct SelftestReport {
  DeviceFacts device;
  MemoryCheck memory;
  SmallProduct small;
  std::vector<OpCheck> ops;
  std::optional<LargeProduct> large;  // nothing: not asked for
  bool timed = true;                  // whether times are part of the result

  int64_t ops_passed() const;
  bool passed() const;
};

// The sections of the text in their order, each of whole lines.
std::string device_text(const DeviceFacts& device);
std::string memory_text(const MemoryCheck& check, bool timed, const Console& console);
std::string small_product_text(const SmallProduct& check, const Console& console);
std::string ops_header();
std::string op_text(const OpCheck& check, const Console& console);
std::string ops_summary(const SelftestReport& report, const Console& console);
std::string large_product_text(const LargeProduct& check, const Console& console);

// The dtypes in few words: "floats" and "integers" stand for all of them.
std::string dtypes_text(const std::vector<DType>& dtypes);

// One document and a newline. Errors that are not finite become null.
std::string selftest_json(const SelftestReport& report);

}  // namespace tessera::cli
