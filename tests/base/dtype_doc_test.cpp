// docs/dtypes.md says what promote() does.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tessera/base/dtype.h"
#include "tessera/base/error.h"

namespace tessera {
namespace {

std::string document() {
  const std::ifstream file(TESSERA_TEST_DIR "/../../docs/dtypes.md");
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string promotion_table() {
  std::string head = "| |", rule = "|---|", rows;
  for (int a = 0; a < kDTypeCount; ++a) {
    head += cat(" ", DType(a), " |");
    rule += "---|";
    rows += cat("| **", DType(a), "** |");
    for (int b = 0; b < kDTypeCount; ++b) rows += cat(" ", promote(DType(a), DType(b)), " |");
    rows += "\n";
  }
  return cat(head, "\n", rule, "\n", rows);
}

TEST(DTypeDocument, HoldsThePromotionTable) {
  EXPECT_NE(document().find(promotion_table()), std::string::npos)
      << "docs/dtypes.md should contain\n"
      << promotion_table();
}

TEST(DTypeDocument, NamesEveryDType) {
  const std::string text = document();
  for (int i = 0; i < kDTypeCount; ++i) {
    EXPECT_NE(text.find(cat("\n| ", DType(i), " | `")), std::string::npos) << name(DType(i));
  }
}

}  // namespace
}  // namespace tessera
