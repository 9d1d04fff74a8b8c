// Runs the examples of the documents: documents tour | table.
#include <cstring>
#include <iostream>
#include <sstream>
#include <string>

#include "docs/documents.h"

namespace tessera {

void read(const Tensor& tensor) { tensor.eval(); }
void read(const std::vector<Tensor>& tensors) { eval(tensors); }

namespace {

// What it writes to std::cout, with the error it throws behind that.
struct Outcome {
  std::string output;
  bool threw = false;
};

Outcome run(const Snippet& snippet) {
  Outcome outcome;
  std::ostringstream text;
  std::streambuf* const out = std::cout.rdbuf(text.rdbuf());
  try {
    snippet.run();
  } catch (const std::exception& error) {
    text << "threw: " << error.what() << "\n";
    outcome.threw = true;
  }
  std::cout.rdbuf(out);
  outcome.output = text.str();
  return outcome;
}

bool is_right(const char* document, const Snippet& snippet) {
  const auto [output, threw] = run(snippet);
  if (!threw && (snippet.output == nullptr || output == snippet.output)) return true;
  std::cout << document << ":" << snippet.line << ": " << snippet.title << "\n";
  if (snippet.output != nullptr) std::cout << "--- in the document\n" << snippet.output;
  std::cout << "--- printed\n" << output << "---\n";
  return false;
}

int run_all(const char* document, std::span<const Snippet> snippets) {
  size_t right = 0;
  for (const Snippet& snippet : snippets) right += is_right(document, snippet) ? 1 : 0;
  std::cout << document << ": " << right << "/" << snippets.size() << " as written\n";
  return right == snippets.size() ? 0 : 1;
}

}  // namespace

}  // namespace tessera

int main(int argc, char** argv) {
  tessera::init();
  if (argc == 2 && std::strcmp(argv[1], "tour") == 0) {
    return tessera::run_all("docs/tour.md", tessera::kTour);
  }
  if (argc == 2 && std::strcmp(argv[1], "table") == 0) {
    return tessera::run_all("docs/from_pytorch.md", tessera::kTable);
  }
  std::cerr << "usage: documents tour|table\n";
  return 2;
}
