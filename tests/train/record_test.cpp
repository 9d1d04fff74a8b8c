#include "tessera/train/record.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/file_size_limit.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"

namespace tessera {
namespace {

StepRecord some(int64_t step) {
  return {.step = step,
          .loss = double(1.0f / float(step)),
          .lr = 0.001,
          .grad_norm = 2,
          .seconds = 0.5};
}

TEST(CsvLog, LossesReadBackBitForBit) {
  const TempFolder folder;
  CsvLog log(folder / "log.csv", 0);
  for (int64_t step = 1; step <= 50; ++step) {
    StepRecord record = some(step);
    if (step % 10 == 0) record.eval_loss = double(3.0f / float(step));
    log.add(record);
  }
  const std::vector<StepRecord> read = read_csv_log(folder / "log.csv");
  ASSERT_EQ(read.size(), 50u);
  for (const StepRecord& r : read) {
    EXPECT_EQ(float(r.loss), 1.0f / float(r.step));
    EXPECT_EQ(r.eval_loss.has_value(), r.step % 10 == 0);
    if (r.eval_loss) EXPECT_EQ(float(*r.eval_loss), 3.0f / float(r.step));
    EXPECT_EQ(r.lr, 0.001);
    EXPECT_EQ(r.grad_norm, 2);
    EXPECT_EQ(r.seconds, 0.5);
  }
}

TEST(CsvLog, HoldsWhatIsNotFinite) {
  const TempFolder folder;
  StepRecord record = some(1);
  record.loss = NAN;
  record.grad_norm = INFINITY;
  CsvLog(folder / "log.csv", 0).add(record);
  const StepRecord read = read_csv_log(folder / "log.csv").at(0);
  EXPECT_TRUE(std::isnan(read.loss));
  EXPECT_TRUE(std::isinf(read.grad_norm));
}

TEST(CsvLog, GoesOnBehindAStep) {
  const TempFolder folder;
  {
    CsvLog log(folder / "log.csv", 0);
    for (int64_t step = 1; step <= 8; ++step) log.add(some(step));
  }
  const std::string whole = read_text(folder / "log.csv");
  write_text(folder / "log.csv", whole.substr(0, whole.size() - 5));  // cut by a kill
  EXPECT_EQ(read_csv_log(folder / "log.csv").size(), 7u);
  CsvLog(folder / "log.csv", 5).add(some(6));
  const std::vector<StepRecord> read = read_csv_log(folder / "log.csv");
  ASSERT_EQ(read.size(), 6u);
  EXPECT_EQ(read.back().step, 6);
}

TEST(CsvLog, BeginsAnewAtStepNought) {
  const TempFolder folder;
  CsvLog(folder / "log.csv", 0).add(some(1));
  const CsvLog log(folder / "log.csv", 0);
  EXPECT_TRUE(read_csv_log(folder / "log.csv").empty());
}

TEST(CsvLogErrors, SayWhatIsWrong) {
  const TempFolder folder;
  const std::string path = folder / "log.csv";
  write_text(path, "a,b\n");
  EXPECT_EQ(error_text([&] { read_csv_log(path); }),
            "log: " + path + " does not begin with its columns");
  for (const char* line : {"1,2,3\n", "x,1,,1,1,1\n", "1,1,x,1,1,1\n", "1,1,,1,1,1x\n"}) {
    write_text(path, std::string("step,loss,eval_loss,lr,grad_norm,seconds\n1,1,,1,1,1\n") + line);
    EXPECT_EQ(error_text([&] { read_csv_log(path); }), "log: " + path + " has no step in line 3");
  }
  CsvLog log(path, 0);
  const FileSizeLimit full(60);
  EXPECT_EQ(error_text([&] {
              for (int64_t step = 1; step < 9; ++step) log.add(some(step));
            }),
            "log: cannot write '" + path + "': File too large");
}

}  // namespace
}  // namespace tessera
