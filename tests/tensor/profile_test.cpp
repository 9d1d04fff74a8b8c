#include "tessera/tensor/profile.h"

#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/graph/scope.h"
#include "tessera/io/json.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

using Kind = Profile::Kind;

int64_t calls(const Profile& profile, Kind kind, const std::string& label) {
  int64_t n = 0;
  for (const Profile::Row& row : profile.rows()) {
    if (row.kind == kind && row.label == label) n += row.calls;
  }
  return n;
}

Json trace_of(const Profile& profile) {
  const TempFolder folder;
  write_trace(profile, folder / "trace.json");
  EXPECT_EQ(folder.files(), 1u);
  return Json::parse(read_text(folder / "trace.json"), "trace.json");
}

TEST(ProfileGuard, HoldsKernelsTransfersAndCompilation) {
  auto f = compile([](const Tensor& x) {
    const Scope scope("net");
    return exp(matmul(x, x));
  });
  const ProfileGuard guard;
  const Tensor x = tensor<float>({1, 2, 3, 4}, {2, 2});
  for (int i = 0; i < 3; ++i) f(x).to_vector<float>();
  const Profile& profile = guard.profile();
  EXPECT_EQ(calls(profile, Kind::kernel, "matmul"), 3);
  EXPECT_EQ(calls(profile, Kind::kernel, "exp"), 3);
  EXPECT_EQ(calls(profile, Kind::transfer, "upload"), 1);
  EXPECT_EQ(calls(profile, Kind::transfer, "copy inputs"), 3);
  EXPECT_EQ(calls(profile, Kind::transfer, "download"), 3);
  EXPECT_EQ(calls(profile, Kind::trace, "function"), 1);
  EXPECT_EQ(calls(profile, Kind::compile, "fuse"), 1);
  EXPECT_EQ(calls(profile, Kind::run, "launch"), 3);
}

TEST(ProfileGuard, HoldsThePlainStyleToo) {
  const Var w(ones({4, 4}), "w");
  const ProfileGuard guard;
  for (int i = 0; i < 3; ++i) {
    w.assign(w.value() * 0.5);
    flush();
  }
  EXPECT_EQ(calls(guard.profile(), Kind::kernel, "mul"), 3);
  EXPECT_EQ(calls(guard.profile(), Kind::trace, "find program"), 3);
}

TEST(ProfileGuard, RowsAddUpToNoMoreThanTheWallTime) {
  const ProfileGuard guard;
  Tensor x = ones({64, 64});
  for (int i = 0; i < 5; ++i) x = matmul(exp(x * 1e-3), x).eval();
  int64_t sum = 0;
  for (const Profile::Row& row : guard.profile().rows()) {
    EXPECT_GE(row.nanoseconds, 0) << row.label;
    sum += row.nanoseconds;
  }
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, guard.profile().nanoseconds());
}

TEST(ProfileGuard, EndsAndNests) {
  ProfileGuard outer;
  {
    const ProfileGuard inner;
    exp(ones({3})).eval();
    EXPECT_EQ(calls(inner.profile(), Kind::run, "launch"), 1);
  }
  EXPECT_EQ(calls(outer.profile(), Kind::run, "launch"), 0) << "the innermost takes all";
  exp(ones({3})).eval();
  outer.stop();
  EXPECT_FALSE(is_profiling());
  exp(ones({3})).eval();
  outer.stop();
  EXPECT_EQ(calls(outer.profile(), Kind::run, "launch"), 1);
}

TEST(ProfileGuard, ThreadsAddSideBySide) {
  const ProfileGuard guard;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 20; ++i) (exp(full({8}, double(t))) + i).to_vector<float>();
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(calls(guard.profile(), Kind::run, "launch"), 80);
  EXPECT_EQ(calls(guard.profile(), Kind::transfer, "download"), 80);
}

TEST(Trace, HasTracksEventsAndTheArena) {
  auto f = compile([](const Tensor& x) {
    const Scope scope("net");
    return matmul(matmul(x, x), matmul(x, x + 1));
  });
  const Tensor x = ones({8, 8}).eval();
  ProfileGuard guard;
  f(x);
  f(x);
  guard.stop();
  const Json trace = trace_of(guard.profile());
  EXPECT_EQ(trace.at("otherData").get<int64_t>("events_left_out"), 0);
  std::map<int64_t, std::string> tracks;
  std::map<std::string, int> events;
  std::vector<int64_t> arena;
  double last = 0;
  for (const Json& event : trace.at("traceEvents").as_array()) {
    const std::string phase = event.get<std::string>("ph"), name = event.get<std::string>("name");
    EXPECT_EQ(event.get<int64_t>("pid"), 1);
    if (phase == "M" && name == "thread_name") {
      tracks[event.get<int64_t>("tid")] = event.at("args").get<std::string>("name");
    } else if (phase == "C") {
      EXPECT_EQ(name, "arena of cpu");
      EXPECT_GE(event.get<double>("ts"), last) << "a counter goes forward";
      last = event.get<double>("ts");
      arena.push_back(event.at("args").get<int64_t>("bytes"));
    } else if (phase == "X") {
      const std::string category = event.get<std::string>("cat");
      ++events[category];
      EXPECT_GE(event.get<double>("ts"), 0);
      EXPECT_GE(event.get<double>("dur"), 0);
      EXPECT_LE(event.get<double>("ts") + event.get<double>("dur"),
                double(guard.profile().nanoseconds()) / 1e3 + 1);
      const bool kernel = category == "kernel";
      EXPECT_EQ(tracks.at(event.get<int64_t>("tid")), kernel ? "cpu" : "host");
      if (!kernel) continue;
      const Json& args = event.at("args");
      EXPECT_EQ(args.get<std::string>("scope"), "net");
      EXPECT_TRUE(args.get<std::string>("source").starts_with("profile_test.cpp:"));
      EXPECT_GT(args.get<int64_t>("bytes"), 0);
      EXPECT_NE(args.get<std::string>("operands").find(" -> f32(8, 8)"), std::string::npos);
      if (name == "matmul") EXPECT_EQ(args.get<int64_t>("flops"), 2 * 8 * 8 * 8);
    }
  }
  EXPECT_EQ(events["kernel"], 2 * f.program().report.kernels);
  EXPECT_EQ(events["run"], 2);
  EXPECT_GT(events["compile"], 5);
  ASSERT_FALSE(arena.empty());
  EXPECT_EQ(*std::max_element(arena.begin(), arena.end()), f.program().report.peak_bytes);
  EXPECT_EQ(arena.back(), 0) << "empty after the run";
}

TEST(Trace, TakesAnyBytesInNames) {
  ProfileGuard guard;
  {
    const Scope scope("bad \xff\xfe \"name\"\n");
    exp(ones({3}) * 2).eval();
  }
  guard.stop();
  std::string scope;
  const Json trace = trace_of(guard.profile());
  for (const Json& event : trace.at("traceEvents").as_array()) {
    if (event["cat"] == Json("kernel")) scope = event.at("args").get<std::string>("scope");
  }
  EXPECT_EQ(scope, "bad ?? \"name\"\n");
}

TEST(Trace, OfNothingIsATraceToo) {
  ProfileGuard guard;
  guard.stop();
  EXPECT_EQ(trace_of(guard.profile()).at("traceEvents").as_array().size(), 1u);
  EXPECT_NE(to_string(guard.profile()).find("host: other"), std::string::npos);
}

TEST(TraceError, NeedsAFileThatCanBeWritten) {
  const ProfileGuard guard;
  const TempFolder folder;
  const std::string path = (folder / "none" / "trace.json").string();
  EXPECT_EQ(error_text([&] { write_trace(guard.profile(), path); }),
            "write: cannot write '" + path + "': No such file or directory");
}

}  // namespace
}  // namespace tessera
