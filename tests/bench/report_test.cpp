// Results as text, JSON and HTML.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "bench/sample_results.h"
#include "tessera/bench/format.h"
#include "tessera/bench/html.h"
#include "tessera/bench/json.h"
#include "tessera/bench/svg.h"
#include "tessera/bench/text.h"
#include "tessera/io/json.h"

namespace tessera::bench {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Empty where every tag is closed in its order; else what is wrong.
std::string malformed(const std::string& html) {
  std::vector<std::string> open;
  size_t found = 0;
  for (size_t at = html.find('<'); at != std::string::npos; at = html.find('<', at + 1)) {
    const size_t end = html.find_first_of("<>", at + 1);
    if (end == std::string::npos || html[end] == '<') return "a tag without end";
    const std::string tag = html.substr(at + 1, end - at - 1);
    if (tag.starts_with('!')) continue;
    ++found;
    const bool closes = tag.starts_with('/');
    const std::string name = tag.substr(closes, tag.find_first_of(" /\n", 1) - closes);
    if (tag.ends_with('/')) continue;
    if (!closes) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return cat("</", name, "> closes ", open.empty() ? "nothing" : open.back());
    } else {
      open.pop_back();
    }
  }
  if (found == 0) return "no tags";
  return open.empty() ? "" : cat("<", open.back(), "> stays open");
}

TEST(Format, NumbersAsPeopleReadThem) {
  EXPECT_EQ(three_digits(1234567), "1,234,567");
  EXPECT_EQ(three_digits(999.4), "999");
  EXPECT_EQ(three_digits(12.345), "12.3");
  EXPECT_EQ(three_digits(0.012345), "0.0123");
  EXPECT_EQ(three_digits(-1234), "-1,234");
  EXPECT_EQ(three_digits(-123), "-123");
  EXPECT_EQ(three_digits(0), "0");
  EXPECT_EQ(three_digits(std::numeric_limits<double>::infinity()), "inf");
  EXPECT_EQ(three_digits(std::numeric_limits<double>::quiet_NaN()), "nan");
  EXPECT_EQ(time_text(1.5), "1.50 s");
  EXPECT_EQ(time_text(12.34e-3), "12.3 ms");
  EXPECT_EQ(time_text(12.34e-6), "12.3 µs");
  EXPECT_EQ(time_text(123e-9), "123 ns");
  EXPECT_EQ(percent_text(0.876), "88 %");
  EXPECT_EQ(width_of("12.3 µs"), 7u);
  EXPECT_EQ(right("µs", 4), "  µs");
  EXPECT_EQ(left("µs", 4), "µs  ");
}

TEST(BenchText, ALineOfNumbers) {
  const Results results = sample_results();
  EXPECT_EQ(header_text("matmul", results.devices),
            "\nmatmul                                          plain     library         cpu       "
            "         rate   ratio   share\n");
  EXPECT_EQ(line_text(results.lines[0], results),
            "f32 1024                                       1.00 s     30.0 ms     25.0 ms        "
            "80.0 GFLOP/s    1.20    80 %  oneDNN 2.6.3\n");
  EXPECT_EQ(
      line_text(results.lines[1], results),
      "softmax 64 x 1024                              400 ms      100 ms      300 ms~          "
      "3.33 GB/s    1.33    33 %\n")
      << "a spread above 5 % is marked";
}

TEST(BenchText, DevicesHaveTwoColumns) {
  EXPECT_EQ(columns_of("matmul", {"cpu", "cuda:0"}),
            (std::vector<std::string>{"plain", "library", "cpu", "cuda:0", "cuda:0 + transfers"}));
  EXPECT_EQ(columns_of("transfer", {"cuda:0"}),
            (std::vector<std::string>{"plain", "bytes", "cuda:0"}));
  EXPECT_EQ(columns_of("step", {"cpu"}), (std::vector<std::string>{"plain", "cpu"}));
  const Line line = product_line("f32 8", {cell("cpu", 1), cell("cuda:0 + transfers", 0.5)});
  Results results;
  results.devices = {"cpu", "cuda:0"};
  EXPECT_TRUE(contains(line_text(line, results), "—              500 ms "));
}

TEST(BenchText, EachDeviceHasItsRateAndItsShare) {
  const Results results = gpu_results();
  EXPECT_TRUE(header_text("matmul", results.devices)
                  .ends_with("rate   ratio   share        cuda:0 rate   share\n"))
      << header_text("matmul", results.devices);
  EXPECT_TRUE(
      line_text(results.lines[0], results)
          .ends_with(" 80.0 GFLOP/s    1.20    80 %     40,000 GFLOP/s    80 %  oneDNN 2.6.3\n"))
      << line_text(results.lines[0], results);
  EXPECT_TRUE(contains(limits_text(results.limits),
                       "            cuda:0, a card\n              copy 4,000 GB/s; product of f32 "
                       "8192: 50,000 GFLOP/s\n"))
      << limits_text(results.limits);
}

TEST(BenchText, AnAbsentDeviceSaysSo) {
  Results results = sample_results();
  results.devices = {"cpu", "cuda:0"};
  results.absent = {{"cuda:0", "libcuda.so.1 not found"}};
  EXPECT_TRUE(contains(machine_text(results), "no device   cuda:0: libcuda.so.1 not found\n"));
  EXPECT_TRUE(
      contains(line_text(results.lines[0], results), "25.0 ms   no device           no device "))
      << line_text(results.lines[0], results);
  const std::string html = to_html(results);
  EXPECT_EQ(malformed(html), "");
  EXPECT_TRUE(contains(html, "<td class=\"soft\">no device</td>"));
  const Json document = Json::parse(to_json(results), "results");
  EXPECT_EQ(document.at("absent").at(size_t(0)).get<std::string>("reason"),
            "libcuda.so.1 not found");
}

TEST(BenchText, ALineThatNeedsAGpuSaysThatThereIsNone) {
  Results results = sample_results();
  Line& line = results.lines[0];
  line.cells = {};
  line.checks = {};
  line.no_device = true;
  EXPECT_EQ(line_text(line, results), "f32 1024                                    no device\n");
  EXPECT_TRUE(results.passed());
  const std::string html = to_html(results);
  EXPECT_EQ(malformed(html), "");
  EXPECT_TRUE(contains(html, "<td class=\"soft\" colspan=\"6\">no device</td>"));
  const Json document = Json::parse(to_json(results), "results");
  EXPECT_TRUE(document.at("lines").at(size_t(0)).get<bool>("no_device"));
  EXPECT_FALSE(document.at("lines").at(size_t(1)).get<bool>("no_device"));
}

TEST(BenchText, EpochsMemoryAndNotesStandBehindALine) {
  Results results = sample_results();
  Line& line = results.lines[0];
  line.cells = {cell("cpu", 0.5)};  // 2 GFLOP, or tokens, or whatever the unit counts
  line.epoch = 100;
  line.facts = {{cat(kMemoryOn, "cpu"), 2.5e9}, {"kernels", 3}};
  line.note = "B = 2";
  EXPECT_TRUE(
      line_text(line, results).ends_with("  1 MB in 25.0 s on cpu; 2.50 GB on cpu; B = 2\n"))
      << line_text(line, results);
  const Json document = Json::parse(to_json(results), "results");
  const Json& first = document.at("lines").at(size_t(0));
  EXPECT_EQ(first.at("times").at(size_t(0)).get<double>("epoch_seconds"), 25);
  EXPECT_EQ(first.get<std::string>("note"), "B = 2");
}

TEST(BenchText, WrongLinesSayByHowMuch) {
  const Results results = wrong_results();
  EXPECT_EQ(line_text(results.lines[0], results),
            "f32 1024                                    wrong: library: largest error 1,234 ulps, "
            "allowed 100\n");
  EXPECT_TRUE(contains(footer_text(results), "\n1 of 2 lines are wrong\n"));
  EXPECT_FALSE(contains(footer_text(sample_results()), "wrong"));
}

TEST(BenchText, QuickSaysSo) {
  Results results = sample_results();
  EXPECT_FALSE(contains(machine_text(results), "quick"));
  results.quick = true;
  results.left_out = 7;
  EXPECT_TRUE(contains(machine_text(results), "quick       few samples"));
  EXPECT_TRUE(contains(footer_text(results), "7 lines that take long were left out"));
}

TEST(BenchText, Limits) {
  EXPECT_EQ(limits_text(sample_results().limits),
            "limits      f32 multiply-adds, baseline: 10.0 GFLOP/s on one thread, 20.0 on all\n"
            "            f32 multiply-adds, avx2: 50.0 GFLOP/s on one thread, 100 on all\n"
            "            memory, all threads: copy 20.0 GB/s past the caches, two read and one "
            "written 15.0 GB/s\n");
}

TEST(BenchJson, ParsesBack) {
  Results results = sample_results();
  results.quick = true;
  results.left_out = 3;
  results.claims = {{"a statement", "the numbers", Verdict::does_not_hold}};
  const Json document = Json::parse(to_json(results), "results");
  EXPECT_EQ(document.get<int64_t>("format"), kJsonFormat);
  EXPECT_EQ(document.at("machine").get<std::string>("cpu"), "a <processor>");
  EXPECT_TRUE(document.get<bool>("quick"));
  EXPECT_EQ(document.get<int64_t>("left_out"), 3);
  EXPECT_TRUE(document.get<bool>("passed"));
  EXPECT_EQ(document.at("limits").at("fma").at(size_t(1)).get<double>("all_threads_flops"), 1e11);
  const Json& line = document.at("lines").at(size_t(0));
  EXPECT_EQ(line.get<std::string>("name"), "f32 1024");
  EXPECT_EQ(line.at("times").as_array().size(), 3u);
  const Json& library = line.at("times").at(size_t(1));
  EXPECT_EQ(library.get<std::string>("by"), "oneDNN 2.6.3");
  EXPECT_EQ(library.get<double>("median"), 0.03);
  EXPECT_DOUBLE_EQ(library.get<double>("least"), 0.98 * 0.03);
  EXPECT_NEAR(library.get<double>("spread"), 0.02, 1e-12);
  EXPECT_FALSE(library.get<bool>("noisy"));
  EXPECT_EQ(line.at("checks").at(size_t(0)).get<double>("error"), 3);
  EXPECT_EQ(line.at("checks").at(size_t(0)).get<double>("tolerance"), 100);
  EXPECT_DOUBLE_EQ(line.at("ratio").get<double>("value"), 1.2);
  EXPECT_DOUBLE_EQ(line.at("share").get<double>("value"), 0.8);
  EXPECT_EQ(document.at("lines").at(size_t(1)).at("facts").get<double>("kernels"), 1);
  EXPECT_EQ(document.at("claims").at(size_t(0)).get<std::string>("verdict"), "does not hold");
}

TEST(BenchJson, HoldsTheLimitsOfDevices) {
  const Json document = Json::parse(to_json(gpu_results()), "results");
  const Json& device = document.at("limits").at("devices").at(size_t(0));
  EXPECT_EQ(device.get<std::string>("device"), "cuda:0");
  EXPECT_EQ(device.get<double>("copy_bytes"), 4e12);
  EXPECT_EQ(device.at("products").at(size_t(0)).get<std::string>("dtype"), "f32");
  EXPECT_EQ(device.at("products").at(size_t(0)).get<int64_t>("extent"), 8192);
  const Json& times = document.at("lines").at(size_t(0)).at("times");
  EXPECT_TRUE(times.at(size_t(0)).at("share").is_null());
  EXPECT_DOUBLE_EQ(times.at(size_t(3)).at("share").get<double>("value"), 0.8);
  EXPECT_TRUE(contains(to_html(gpu_results()), "40,000 GFLOP/s, 80 % of products of f32, spread"));
}

TEST(BenchJson, KeepsWhatIsWrong) {
  Results results = wrong_results();
  results.lines[0].checks[1].error = std::numeric_limits<double>::infinity();
  const Json document = Json::parse(to_json(results), "results");
  EXPECT_FALSE(document.get<bool>("passed"));
  const Json& line = document.at("lines").at(size_t(0));
  EXPECT_FALSE(line.get<bool>("passed"));
  EXPECT_TRUE(line.at("times").as_array().empty());
  EXPECT_TRUE(line.at("ratio").is_null());
  EXPECT_TRUE(line.at("checks").at(size_t(1)).at("error").is_null());
}

TEST(BenchHtml, IsWellFormedAndNeedsNothing) {
  for (Results results : {sample_results(), wrong_results()}) {
    results.claims = {{"fast <& \"safe\"", "numbers", Verdict::no_device}};
    const std::string html = to_html(results);
    EXPECT_EQ(malformed(html), "");
    EXPECT_TRUE(html.starts_with("<!DOCTYPE html>\n"));
    for (const char* outside : {"http", "<script", "src=", "url(", "@import", "<link"}) {
      EXPECT_FALSE(contains(html, outside)) << outside;
    }
    EXPECT_TRUE(contains(html, "<svg "));
    EXPECT_TRUE(contains(html, "prefers-color-scheme: dark"));
    EXPECT_TRUE(contains(html, "a &lt;processor&gt;"));
    EXPECT_TRUE(contains(html, "fast &lt;&amp; &quot;safe&quot;"));
    EXPECT_TRUE(contains(html, "<td>no device</td>"));
  }
  EXPECT_TRUE(contains(to_html(wrong_results()), ">wrong: library: largest error 1,234 ulps"));
}

TEST(BenchHtml, TheCheckerFindsWhatIsMalformed) {
  EXPECT_EQ(malformed("<a><b></a></b>"), "</a> closes b");
  EXPECT_EQ(malformed("<a><b></b>"), "<a> stays open");
  EXPECT_EQ(malformed("</a>"), "</a> closes nothing");
}

TEST(Svg, BarsAreRelativeToTheLongestOfTheirGroup) {
  const std::string svg = bar_chart("chart", {{"first", {{"own", "slow", 1}, {"plain", "fast", 4}}},
                                              {"second", {{"own", "alone", 0.5}}}});
  EXPECT_EQ(malformed(svg), "");
  EXPECT_TRUE(contains(svg, "width=\"95.0\" height=\"14.0\" class=\"own\"><title>slow<"));
  EXPECT_TRUE(contains(svg, "width=\"380.0\" height=\"14.0\" class=\"plain\"><title>fast<"));
  EXPECT_TRUE(contains(svg, "width=\"380.0\" height=\"14.0\" class=\"own\"><title>alone<"));
  EXPECT_EQ(escape("a'b"), "a&#39;b");
}

}  // namespace
}  // namespace tessera::bench
