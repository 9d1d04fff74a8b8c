#include "tessera/backend/cuda/early_start.h"

#include <cctype>
#include <string_view>

namespace tessera::cuda {

namespace {

// Only a card's compiler knows the instructions.
constexpr std::string_view kPrefix =
    "#ifdef __CUDA_ARCH__\n"
    "#define T_START asm volatile(\"griddepcontrol.wait;\" ::: \"memory\"); "
    "asm volatile(\"griddepcontrol.launch_dependents;\");\n"
    "#else\n#define T_START\n#endif\n#line 1\n";
constexpr std::string_view kEntries[] = {"__global__", "KERNEL", "KERNEL_OF"};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

// What follows the comment, the directive or the string at `at`; `at` where none begins there.
size_t skipped(const std::string& text, size_t at) {
  auto behind = [&](std::string_view end, size_t from) {
    const size_t found = text.find(end, from);
    return found == std::string::npos ? text.size() : found + end.size();
  };
  if (text.compare(at, 2, "//") == 0) return behind("\n", at);
  if (text.compare(at, 2, "/*") == 0) return behind("*/", at + 2);
  if (text[at] == '#') {
    size_t end = behind("\n", at);
    while (end < text.size() && text[end - 2] == '\\') end = behind("\n", end);
    return end;
  }
  if (text[at] != '"') return at;
  size_t end = at + 1;
  while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
  return end + 1;
}

// Behind the brace that opens the body of the entry whose qualifiers are at `at`; 0: it has none.
size_t body_of(const std::string& text, size_t at) {
  int depth = 0;
  while (at < text.size()) {
    if (const size_t next = skipped(text, at); next != at) {
      at = next;
      continue;
    }
    const char c = text[at++];
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth == 0 && c == ';') return 0;
    if (depth == 0 && c == '{') return at;
  }
  return 0;
}

bool is_entry(std::string_view word) {
  for (const std::string_view entry : kEntries) {
    if (word == entry) return true;
  }
  return false;
}

}  // namespace

std::string with_early_start(const std::string& source) {
  std::string result(kPrefix);
  size_t copied = 0, at = 0;
  while (at < source.size()) {
    if (const size_t next = skipped(source, at); next != at) {
      at = next;
      continue;
    }
    if (!is_word(source[at])) {
      ++at;
      continue;
    }
    const size_t begin = at;
    while (at < source.size() && is_word(source[at])) ++at;
    if (!is_entry(std::string_view(source).substr(begin, at - begin))) continue;
    const size_t body = body_of(source, at);
    if (body == 0) continue;
    result.append(source, copied, body - copied).append(" T_START");
    copied = at = body;
  }
  return result.append(source, copied);
}

}  // namespace tessera::cuda
