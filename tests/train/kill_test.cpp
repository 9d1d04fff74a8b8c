// Training that is killed at random moments, again and again, ends as if nothing had happened.
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "io/temp_folder.h"
#include "tessera/base/philox.h"
#include "tessera/train/checkpoint.h"
#include "train/problem.h"

namespace tessera::train_test {
namespace {

constexpr int64_t kSteps = 100'000;  // more than there is time for

TrainerOptions options(const std::filesystem::path& folder, int64_t steps) {
  return {.steps = steps,
          .accumulate = 2,
          .clip = 1,
          .ema = 0.9,
          .log_every = 1,
          .save_every = 2,
          .folder = folder,
          .keep_last = 2};
}

// Resumes, trains until killed, and tells of every checkpoint when it is there. 3: it could not go
// on from what was there.
[[noreturn]] void work(const std::filesystem::path& folder, int64_t least, int tell) {
  try {
    Problem problem({.trainer = options(folder, kSteps)});
    problem.trainer.resume();
    if (problem.trainer.step() < least) ::_exit(3);
    CsvLog log(folder / "log.csv", problem.trainer.step());
    problem.trainer.on_record = [&](const StepRecord& record) { log.add(record); };
    problem.trainer.on_save = [&](int64_t step, const auto&) {
      if (::write(tell, &step, sizeof(step)) != ssize_t(sizeof(step))) ::_exit(2);
    };
    problem.trainer.run();
    ::_exit(0);
  } catch (...) {
    ::_exit(1);
  }
}

// Waits until `from` has something to read; false when that takes too long.
bool wait_for(int from) {
  pollfd one = {from, POLLIN, 0};
  return ::poll(&one, 1, 60'000) == 1;
}

// Kills a child that long after its start, or after its first checkpoint. Returns the last one that
// it told of, or `least`.
int64_t run_and_kill(const std::filesystem::path& folder, int64_t least, bool from_start,
                     std::chrono::microseconds time) {
  int ends[2] = {};
  TESSERA_ASSERT(::pipe(ends) == 0);
  const pid_t child = ::fork();
  TESSERA_ASSERT(child >= 0);
  if (child == 0) work(folder, least, ends[1]);
  ::close(ends[1]);
  if (!from_start) EXPECT_TRUE(wait_for(ends[0]));
  std::this_thread::sleep_for(time);
  ::kill(child, SIGKILL);
  int status = 0;
  ::waitpid(child, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "the trainer failed: " << WEXITSTATUS(status);
  int64_t step = 0;
  while (::read(ends[0], &step, sizeof(step)) == ssize_t(sizeof(step))) least = step;
  ::close(ends[0]);
  return least;
}

// TESSERA_KILLS=200 for all that is asked of it.
TEST(KilledTraining, LosesNoCheckpointAndNoBit) {
  // A forked process has no driver's threads.
  if (default_device() != Device("cpu")) GTEST_SKIP() << "on the CPU alone";
  const char* asked = std::getenv("TESSERA_KILLS");
  const int kills = asked != nullptr ? std::atoi(asked) : 25;
  const TempFolder folder;
  int64_t saved = 0;
  for (int i = 0; i < kills; ++i) {
    const auto drawn = philox(5, uint64_t(i), 0);
    const bool from_start = drawn[0] % 4 == 0;
    const std::chrono::microseconds time(drawn[1] % (from_start ? 200'000 : 30'000));
    saved = run_and_kill(folder.path(), saved, from_start, time);
    if (saved > 0) ASSERT_GE(last_checkpoint(folder.path()).value_or(0), saved) << "kill " << i;
  }
  ASSERT_GT(saved, 10) << "the children had no time for anything";
  // Only from here on does this process use its threads, which no child would have.
  const int64_t end = *last_checkpoint(folder.path()) + 3;
  Problem last({.trainer = options(folder.path(), end)});
  ASSERT_TRUE(last.trainer.resume());
  const int64_t resumed = last.trainer.step();
  last.trainer.run();
  const TempFolder other;
  Problem whole({.trainer = options(other.path(), end)});
  whole.trainer.run();
  std::vector<StepRecord> logged = read_csv_log(folder / "log.csv");
  std::erase_if(logged, [&](const StepRecord& r) { return r.step > resumed; });
  logged.insert(logged.end(), last.records.begin(), last.records.end());
  ASSERT_EQ(logged.size(), whole.records.size());
  for (size_t i = 0; i < logged.size(); ++i) {
    ASSERT_EQ(logged[i].step, whole.records[i].step);
    ASSERT_EQ(float(logged[i].loss), float(whole.records[i].loss)) << "step " << logged[i].step;
  }
}

}  // namespace
}  // namespace tessera::train_test
