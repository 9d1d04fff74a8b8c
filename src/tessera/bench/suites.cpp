#include "tessera/bench/suites.h"

#include <algorithm>

#include "tessera/bench/claims.h"

namespace tessera::bench {

namespace {

constexpr Suite kSuites[] = {
    {"matmul", "matrix products: f32 128 to 4096, skinny, batched, of a GPT; bf16"},
    {"elementwise", "functions of 262,144 and 16 M elements; a chain fused and unfused"},
    {"rows", "softmax, norms, sums, losses, sorting, attention"},
    {"transfer", "copies of 4 KiB to 256 MiB to, from and on a device"},
    {"step", "training steps of a small network, a character GPT and GPT-2, and their parts"},
    {"claims", "what is said in this field, judged by the lines it is about"},
};

}  // namespace

std::span<const Suite> suites() { return kSuites; }

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto make : {matmul_cases, elementwise_cases, rows_cases, attention_cases,
                          transfer_cases, step_cases, gpt_cases}) {
    std::vector<Case> cases = make();
    std::move(cases.begin(), cases.end(), std::back_inserter(all));
  }
  return all;
}

std::vector<Case> chosen_cases(std::vector<Case> cases, std::span<const std::string> asked) {
  if (asked.empty()) return cases;
  const bool claims = std::ranges::find(asked, "claims") != asked.end();
  std::erase_if(cases, [&](const Case& one) {
    if (std::ranges::find(asked, one.suite) != asked.end()) return false;
    return !claims || !is_claimed(one.suite, one.name);
  });
  return cases;
}

}  // namespace tessera::bench
