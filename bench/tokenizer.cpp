// Byte-level BPE on a text: seconds to count words and to learn merges, MB/s to encode and decode.
//
//   tokenizer <file> [megabytes] [vocabulary]    (default 100 50257; the file is repeated with its
//                                                 letters turned, so that new words keep coming)
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tessera/base/thread_pool.h"
#include "tessera/data/bpe_trainer.h"

using namespace tessera;

namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string read_file(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// `text` again and again, each time with the lower-case letters moved by one more, vowels among
// vowels: the words differ from those before, their lengths and counts stay a language's.
std::string grow(const std::string& text, size_t bytes) {
  constexpr std::string_view kVowels = "aeiou", kOthers = "bcdfghjklmnpqrstvwxyz";
  std::string grown;
  for (size_t turn = 0; grown.size() < bytes; ++turn) {
    for (char c : text) {
      for (const std::string_view set : {kVowels, kOthers}) {
        const size_t at = set.find(c);
        if (at != std::string_view::npos) {
          c = set[(at + turn) % set.size()];
          break;
        }
      }
      grown += c;
    }
  }
  grown.resize(bytes);
  return grown;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string base = argc > 1 ? read_file(argv[1]) : std::string();
  if (base.empty()) {
    std::fprintf(stderr, "tokenizer: expected a file with text as the first argument\n");
    return 2;
  }
  const double megabytes = argc > 2 ? std::atof(argv[2]) : 100;
  const int64_t vocabulary = argc > 3 ? std::atoll(argv[3]) : 50257;
  const std::string text = grow(base, size_t(megabytes * 1e6));
  std::printf("%.1f MB, %d threads\n", double(text.size()) / 1e6, thread_pool().workers() + 1);

  BpeTrainer trainer({.vocab_size = vocabulary});
  const double start = now();
  trainer.add(text);
  const double counted = now();
  const Tokenizer tokenizer = trainer.train();
  const double trained = now();
  const std::vector<int32_t> tokens = tokenizer.encode(text);
  const double encoded = now();
  const bool same = tokenizer.decode(tokens) == text;
  const double decoded = now();

  const double mb = double(text.size()) / 1e6;
  std::printf("count words   %8.2f s\n", counted - start);
  std::printf("learn merges  %8.2f s  (%lld tokens)\n", trained - counted,
              static_cast<long long>(tokenizer.size()));
  std::printf("encode        %8.1f MB/s  (%.2f bytes a token)\n", mb / (encoded - trained),
              double(text.size()) / double(tokens.size()));
  std::printf("decode        %8.1f MB/s  (%s)\n", mb / (decoded - encoded),
              same ? "the same text" : "ANOTHER TEXT");
  return same ? 0 : 1;
}
