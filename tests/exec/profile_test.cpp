#include <gtest/gtest.h>

#include <thread>

#include "support/expect_error.h"
#include "tessera/exec/executor.h"
#include "tessera/graph/build.h"
#include "tessera/graph/scope.h"
#include "tessera/runtime/registry.h"

namespace tessera {
namespace {

using namespace graph;
using Kind = Profile::Kind;
using std::chrono::microseconds;

const Profile::Clock::time_point kStart = Profile::Clock::now();

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// The profile is the active one for the life of this.
struct Activated {
  explicit Activated(std::shared_ptr<Profile> profile) : before(set_active_profile(profile)) {}
  ~Activated() { set_active_profile(before); }
  std::shared_ptr<Profile> before;
};

TEST(Profile, RowsAddUpByLabelAndScope) {
  Profile profile;
  const int small = profile.intern({.label = "matmul", .scope = "a", .flops = 1000});
  const int large = profile.intern({.label = "matmul", .scope = "a", .flops = 9000});
  const int other = profile.intern({.label = "matmul", .scope = "b"});
  EXPECT_EQ(profile.intern({.label = "matmul", .scope = "b"}), other);
  EXPECT_NE(small, large);
  profile.add(other, kStart, kStart + microseconds(1), 5);
  profile.add(small, kStart, kStart + microseconds(2), 10);
  profile.add(large, kStart, kStart + microseconds(7), 20, 3000);
  const std::vector<Profile::Row> rows = profile.rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].scope, "a");
  EXPECT_EQ(rows[0].calls, 2);
  EXPECT_EQ(rows[0].nanoseconds, 9000 - 3000) << "what is inside has a row of its own";
  EXPECT_EQ(rows[0].bytes, 30);
  EXPECT_EQ(rows[0].flops, 10000);
  EXPECT_EQ(rows[1].nanoseconds, 1000);
  const Profile::Contents contents = profile.contents();
  ASSERT_EQ(contents.events.size(), 3u);
  EXPECT_EQ(contents.events[2].nanoseconds, 7000) << "an event has its full time";
  EXPECT_EQ(contents.threads, 1);
}

TEST(Profile, KeepsABoundedNumberOfEvents) {
  Profile profile(2);
  const int exp = profile.intern({.label = "exp"});
  for (int i = 0; i < 5; ++i) profile.add(exp, kStart, kStart + microseconds(1), 0);
  EXPECT_EQ(profile.contents().events.size(), 2u);
  EXPECT_EQ(profile.dropped(), 3);
  EXPECT_EQ(profile.rows()[0].calls, 5) << "rows count all";
  EXPECT_TRUE(
      contains(to_string(profile), "\n3 more events are in this table but not in the trace\n"));
}

TEST(Profile, StopEndsTheWallTimeOnce) {
  Profile profile;
  profile.stop();
  const int64_t wall = profile.nanoseconds();
  std::this_thread::sleep_for(microseconds(10));
  profile.stop();
  EXPECT_EQ(profile.nanoseconds(), wall);
  EXPECT_EQ(profile.contents().nanoseconds, wall);
}

TEST(ProfileTable, SortsByTimeAndShowsRates) {
  Profile profile;
  const int exp = profile.intern({.label = "exp", .scope = "mlp/fc1"});
  const int product = profile.intern({.label = "matmul", .flops = 4e6});
  const int upload = profile.intern({.kind = Kind::transfer, .label = "upload"});
  profile.add(exp, kStart, kStart + microseconds(10), 20'000);
  for (int i = 0; i < 2; ++i) profile.add(product, kStart, kStart + microseconds(100), 1'000'000);
  profile.add(upload, kStart, kStart + microseconds(1), 3000);
  profile.stop();
  const std::string text = to_string(profile);
  const size_t first = text.find("matmul"), second = text.find("exp"),
               third = text.find("transfer: upload"), other = text.find("host: other");
  EXPECT_LT(first, second) << text;
  EXPECT_LT(second, third) << text;
  EXPECT_NE(other, std::string::npos) << text;
  const std::string line = text.substr(first, text.find('\n', first) - first);
  EXPECT_TRUE(contains(line, "  2  ") && contains(line, " 0.200 ")) << line;      // calls, ms
  EXPECT_TRUE(contains(line, " 100.00  ") && contains(line, " 2.00  ")) << line;  // µs, MB
  EXPECT_TRUE(contains(line, " 10.0 ") && line.ends_with(" 40.0")) << line;       // GB/s, GFLOP/s
  EXPECT_TRUE(contains(text, "mlp/fc1")) << text;
  EXPECT_TRUE(contains(text, "wall time ") && contains(text, " ms, 0.210 ms in kernels\n")) << text;
  EXPECT_FALSE(contains(text, "not in the trace"));
}

TEST(ProfileTable, FoldsWhatTakesLittle) {
  Profile profile;
  for (int i = 0; i < 60; ++i) {
    const int kernel = profile.intern({.label = cat("kernel", i), .scope = std::string(50, 's')});
    profile.add(kernel, kStart, kStart + microseconds(1 + i), 0);
  }
  const std::string text = to_string(profile);
  EXPECT_TRUE(contains(text, "kernel59 ")) << text;
  EXPECT_TRUE(contains(text, "\n21 more rows ")) << text;  // 60 kernels and the host, 40 shown
  EXPECT_FALSE(contains(text, "kernel3 ")) << text;
  EXPECT_TRUE(contains(text, " ..." + std::string(25, 's') + " ")) << text;
}

TEST(HostSpan, NestsAndIsSilentWithoutAProfile) {
  EXPECT_EQ(active_profile(), nullptr);
  { const HostSpan span(Kind::trace, "nobody listens"); }
  const auto profile = std::make_shared<Profile>();
  const Activated activated(profile);
  EXPECT_EQ(active_profile(), profile);
  {
    const HostSpan outer(Kind::trace, "outer");
    std::this_thread::sleep_for(microseconds(200));
    const HostSpan inner(Kind::transfer, "inner", 8);
    std::this_thread::sleep_for(microseconds(300));
  }
  const Profile::Contents contents = profile->contents();
  ASSERT_EQ(contents.events.size(), 2u);
  const Profile::Event &inner = contents.events[0], &outer = contents.events[1];
  EXPECT_EQ(inner.bytes, 8);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_GE(outer.begin + outer.nanoseconds, inner.begin + inner.nanoseconds);
  const std::vector<Profile::Row> rows = profile->rows();
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].nanoseconds + rows[1].nanoseconds, outer.nanoseconds);
  EXPECT_GE(rows[1].nanoseconds, 300'000);
}

TEST(HostSpan, ThreadsHaveTracksOfTheirOwn) {
  const auto profile = std::make_shared<Profile>();
  const Activated activated(profile);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 100; ++i) const HostSpan span(Kind::trace, "work");
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(profile->rows().at(0).calls, 400);
  // A thread may take the number of one that has ended.
  EXPECT_GE(profile->contents().threads, 1);
  EXPECT_LE(profile->contents().threads, 4);
}

TEST(HostSpan, KeepsItsProfileAlive) {
  auto profile = std::make_shared<Profile>();
  const std::weak_ptr<Profile> watch = profile;
  {
    auto activated = std::make_unique<Activated>(std::move(profile));
    const HostSpan span(Kind::trace, "work");
    activated.reset();
    EXPECT_FALSE(watch.expired());
  }
  EXPECT_TRUE(watch.expired());
}

struct Example {
  Example() {
    const Value x = make_leaf({DType::f32, {4, 8}}), y = make_leaf({DType::f32, {8, 2}});
    const Scope outer("model"), inner("head");
    function = {{x, y}, {matmul(x, y)}, {}};
    for (const int64_t bytes : {128, 64}) externals.push_back(buffer(bytes));
    output = buffer(32);
  }
  Buffer buffer(int64_t bytes) {
    Buffer made{device.allocate(bytes), 0, bytes};
    device.upload(ref(made), std::vector<char>(size_t(bytes)).data(), bytes, {});
    return made;
  }

  Backend& device = backend("cpu");
  ExecContext context{device};
  GraphFunction function;
  std::vector<Buffer> externals;
  Buffer output;
};

TEST(ProfiledRun, DescribesEveryKernel) {
  Example example;
  const auto profile = std::make_shared<Profile>();
  const Activated activated(profile);
  Executor executor(compile_profiled(example.function, example.device.target(), {}),
                    example.context);
  for (int i = 0; i < 3; ++i) executor.run(example.externals, std::span(&example.output, 1));
  const Profile::Contents contents = profile->contents();
  int kernels = 0, runs = 0;
  for (const Profile::Event& event : contents.events) {
    const Profile::Activity& activity = contents.activities[size_t(event.activity)];
    runs += activity.kind == Kind::run;
    if (activity.kind != Kind::kernel) continue;
    ++kernels;
    EXPECT_EQ(activity.label, "matmul");
    EXPECT_EQ(activity.device, "cpu");
    EXPECT_EQ(activity.scope, "model/head");
    EXPECT_TRUE(activity.place.starts_with("profile_test.cpp:")) << activity.place;
    EXPECT_EQ(activity.operands, "f32(4, 8), f32(8, 2) -> f32(4, 2)");
    EXPECT_EQ(activity.flops, 2 * 4 * 8 * 2);
    EXPECT_EQ(event.bytes, 128 + 64 + 32);
  }
  EXPECT_EQ(kernels, 3);
  EXPECT_EQ(runs, 3);
  std::vector<std::string> passes;
  for (const Profile::Row& row : profile->rows()) {
    if (row.kind == Kind::compile) passes.push_back(row.label);
  }
  for (const char* pass : {"lower", "layout", "fuse", "plan_memory", "prepare kernels"}) {
    EXPECT_NE(std::find(passes.begin(), passes.end(), pass), passes.end()) << pass;
  }
}

TEST(ProfiledRun, ANewProfileLearnsTheKernelsAgain) {
  Example example;
  Executor executor(compile_graph(example.function, example.device.target()), example.context);
  Profile first, second;
  for (Profile* profile : {&first, &second, &first}) {
    executor.run(example.externals, std::span(&example.output, 1), profile);
  }
  auto calls = [](const Profile& profile) {
    int64_t n = 0;
    for (const Profile::Row& row : profile.rows()) n += row.label == "matmul" ? row.calls : 0;
    return n;
  };
  EXPECT_EQ(calls(first), 2);
  EXPECT_EQ(calls(second), 1);
}

TEST(ProfiledRun, AnErrorEndsTheRunsSpan) {
  Backend& device = backend("cpu");
  ExecContext context(device);
  const Value x = make_leaf({DType::f32, {3}}), index = make_leaf({DType::i64, {1}});
  Executor executor(compile_graph({{x, index}, {gather(x, index, 0)}, {}}, device.target()),
                    context);
  const int64_t bad = 7;
  std::vector<Buffer> buffers;
  for (const int64_t bytes : {12, 8, 4}) buffers.push_back({device.allocate(bytes), 0, bytes});
  device.upload(ref(buffers[1]), &bad, 8, {});
  Profile profile;
  const std::string text = error_text(
      [&] { executor.run(std::span(buffers).first(2), std::span(buffers).last(1), &profile); });
  EXPECT_TRUE(text.starts_with("index 7 is out of range [0, 3) in kernel gather")) << text;
  const Profile::Contents contents = profile.contents();
  ASSERT_EQ(contents.events.size(), 1u) << "the kernel that failed has no time";
  EXPECT_EQ(contents.activities[size_t(contents.events[0].activity)].kind, Kind::run);
}

}  // namespace
}  // namespace tessera
