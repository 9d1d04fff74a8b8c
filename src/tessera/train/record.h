// What is known of one step of training, and its place in a table.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/io/descriptor.h"

namespace tessera {

struct StepRecord {
  int64_t step = 0;  // steps taken, this one included
  double loss = 0;   // mean over the batches of the step
  std::optional<double> eval_loss = {};
  double lr = 0;
  double grad_norm = 0;  // before clipping
  double seconds = 0;    // of training so far, evaluations and saving not counted
};

// log.csv: a line for each step, whose losses read back to the same float.
class CsvLog {
 public:
  // Goes on with the lines up to `step` that the file has; the others, of a run that was killed
  // after its last checkpoint, are dropped. All throw Error with the path and the system's reason.
  CsvLog(std::filesystem::path path, int64_t step);

  void add(const StepRecord& record);

 private:
  std::filesystem::path path_;
  Descriptor file_{-1};
  int64_t size_ = 0;
};

// Throws where the file cannot be read or a line is none of the above, with the line's number. A
// last line without an end, which a kill has cut, is left out.
std::vector<StepRecord> read_csv_log(const std::filesystem::path& path);

}  // namespace tessera
