// docs/codegen.md shows what the code emits: every block behind a line `<!-- shows: … -->`.
// TESSERA_REWRITE_GOLDEN=1 writes the blocks anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "codegen/emitted.h"
#include "codegen/host_kernel.h"
#include "tessera/conformance/reference.h"
#include "tessera/tessera.h"

namespace tessera {
namespace {

const std::string kPage = cat(TESSERA_TEST_DIR, "/../../docs/codegen.md");

// The kernel without what stands before it.
std::string kernel_text(const KernelIR& ir, const Dialect& dialect, bool split = false) {
  const std::string source =
      render(ir, dialect, {.alignment = 16, .narrow_index = true, .split = split}).source;
  return source.substr(source.find("// "));
}

KernelIR the_kernel(const Tensor& tensor) {
  const std::vector<Value> outputs = {tensor.value()};
  const std::vector<EmittedKernel> kernels = emitted_kernels(outputs, "docs/codegen.md");
  EXPECT_EQ(kernels.size(), 1u);
  return *kernels[0].ir;
}

std::map<std::string, std::string> blocks() {
  std::map<std::string, std::string> result;
  const Tensor x = random_tensor({4096, 768}, 1), weight = random_tensor({768}, 2);
  Tensor y = x * rsqrt(mean(x * x, -1, true) + 1e-6) * weight;
  const KernelIR norm = the_kernel(y);
  result["ir"] = to_string(norm);
  result["cuda"] = kernel_text(norm, cuda_dialect());
  const std::string opencl = kernel_text(norm, opencl_dialect());
  const size_t begin = opencl.find("    shared_f32[lane]"), end = opencl.find("    const f32 div");
  result["opencl fold"] = opencl.substr(begin, end - begin);

  const Tensor h = random_tensor({1003}, 3, DType::bf16);
  Tensor z = relu(h) * 2;
  result["map"] = kernel_text(the_kernel(z), cuda_dialect());

  Tensor total = sum(x, {0, 1}, true);
  result["split"] = kernel_text(the_kernel(total), cuda_dialect(), true);

  const Tensor logits = random_tensor({2, 32768}, 4);
  Tensor p = softmax(logits, -1);
  const std::string shared =
      render(the_kernel(p), cuda_dialect(),
             {.max_row_group = 1024, .cluster_groups = 8, .alignment = 16, .narrow_index = true})
          .source;
  const size_t entry = shared.find("// "), second = shared.find("    f32 sum_");
  result["cluster"] = shared.substr(entry, second - entry);

  const std::string joined = render(the_kernel(z), cuda_dialect(), {.parts = 160}).source;
  const size_t types = joined.find("struct t_part"), body = joined.find("  const idx count");
  result["parts"] = joined.substr(types, body - types);
  return result;
}

// The page with each shown block replaced.
std::string with_blocks(const std::string& page, const std::map<std::string, std::string>& blocks,
                        size_t& shown) {
  const std::string mark = "<!-- shows: ";
  std::string result;
  size_t done = 0;
  for (size_t at = page.find(mark); at != std::string::npos; at = page.find(mark, at + 1)) {
    const size_t name_at = at + mark.size();
    const std::string name = page.substr(name_at, page.find(" -->", at) - name_at);
    const size_t begin = page.find('\n', page.find("```", at)) + 1, end = page.find("```\n", begin);
    EXPECT_TRUE(blocks.contains(name)) << name;
    if (!blocks.contains(name)) return page;
    result += page.substr(done, begin - done) + blocks.at(name);
    done = end;
    ++shown;
  }
  return result + page.substr(done);
}

TEST(CodegenPage, ShowsWhatIsEmitted) {
  const std::optional<std::string> page = read_text(kPage);
  ASSERT_TRUE(page.has_value()) << kPage;
  const std::map<std::string, std::string> expected = blocks();
  size_t shown = 0;
  const std::string right = with_blocks(*page, expected, shown);
  EXPECT_EQ(shown, expected.size());
  if (std::getenv("TESSERA_REWRITE_GOLDEN") != nullptr) {
    write_text(kPage, right);
  } else {
    EXPECT_EQ(*page, right);
  }
}

// Its C++ lines stand above, where they are compiled.
TEST(CodegenPage, QuotesCompiledLines) {
  const std::string page = read_text(kPage).value_or(""),
                    own = read_text(cat(TESSERA_TEST_DIR, "/docs_test.cpp")).value_or("");
  size_t lines = 0;
  for (size_t at = page.find("```cpp\n"); at != std::string::npos;
       at = page.find("```cpp\n", at + 1)) {
    size_t begin = at + 7;
    while (page.compare(begin, 3, "```") != 0) {
      const size_t end = page.find('\n', begin);
      EXPECT_NE(own.find("  " + page.substr(begin, end - begin) + "\n"), std::string::npos)
          << page.substr(begin, end - begin);
      begin = end + 1;
      ++lines;
    }
  }
  EXPECT_EQ(lines, 4u);
}

}  // namespace
}  // namespace tessera
