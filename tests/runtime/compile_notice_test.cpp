#include "tessera/runtime/compile_notice.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "io/temp_folder.h"
#include "runtime/child.h"
#include "tessera/base/log.h"

namespace tessera {
namespace {

// In a process of its own: a notice is given once in the life of one.
std::vector<std::string> notices(const char* folder, const std::function<void()>& compile) {
  const TempFolder scratch;
  EXPECT_EQ(wait_for_child(start_child([&] {
              ::setenv("TESSERA_CACHE_DIR", folder, 1);
              std::string text;
              set_log_sink([&](LogLevel, std::string_view line) { text += cat(line, "\n"); });
              compile();
              write_text(scratch / "said", text);
              return 0;
            })),
            0);
  std::vector<std::string> lines;
  std::ifstream in(scratch / "said");
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

using Lines = std::vector<std::string>;

TEST(CompileNotice, IsGivenOnce) {
  EXPECT_EQ(notices("/somewhere",
                    [] {
                      note_compilation("a card");
                      note_compilation("another");
                    }),
            Lines{"compiling kernels for a card, kept in /somewhere"});
  EXPECT_EQ(notices("", [] { note_compilation("a card"); }), Lines{"compiling kernels for a card"});
  EXPECT_EQ(notices("", [] {}), Lines{});
}

TEST(CompileNotice, CountsWhatABatchHasLeft) {
  const auto said = [](int64_t count) {
    return notices("/somewhere", [count] {
      const CompileBatch batch(count);
      note_compilation("a card");
    });
  };
  EXPECT_EQ(said(12), Lines{"compiling up to 12 kernels for a card, kept in /somewhere"});
  EXPECT_EQ(said(1), Lines{"compiling kernels for a card, kept in /somewhere"});
  EXPECT_EQ(notices("/somewhere",
                    [] {
                      { const CompileBatch over(7); }
                      note_compilation("a card");
                    }),
            Lines{"compiling kernels for a card, kept in /somewhere"});
}

}  // namespace
}  // namespace tessera
