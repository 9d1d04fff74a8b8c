// Generator: text from a Gpt, token by token.
//
//   const std::unique_ptr<Gpt> model = load_gpt("folder");
//   Generator generator(*model);
//   generator.generate({tokenizer.encode("Once")}, {.tokens = 100}, [&](int64_t, int32_t token) {
//     std::cout << tokenizer.decode({&token, 1});
//     return true;
//   });
//
// The prompts are one run of a compiled function, every further token one replay of another, over a
// KvCache; per step the host reads the chosen tokens and nothing else. The same prompts, options
// and device give the same tokens.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "tessera/infer/sampling.h"
#include "tessera/models/gpt.h"
#include "tessera/tensor/compiled.h"

namespace tessera {

using Tokens = std::vector<int32_t>;

struct GenerateOptions {
  int64_t tokens = 200;  // of each row, at most
  SamplingOptions sampling = {};
  std::optional<int32_t> end_token = {};  // ends a row, and is no part of it
};

class Generator {
 public:
  // Tokens from `choices` on are never chosen: a vocabulary that was rounded up has some that stand
  // for nothing. 0: all are. The model must live as long as this.
  explicit Generator(const Gpt& model, int64_t choices = 0);
  ~Generator();

  // Is called with each token as it comes; false ends the row, after this token.
  using OnToken = std::function<bool(int64_t row, int32_t token)>;

  // What follows each prompt of 1 to `context` tokens; they may differ in length. Where a text
  // outgrows the context, it goes on with the last half of it. Rows are independent of each other,
  // but draw different random numbers; the first row's are those of a batch of one.
  std::vector<Tokens> generate(const std::vector<Tokens>& prompts, const GenerateOptions& options,
                               const OnToken& on_token = {});

  // Of both functions, for all sizes so far.
  CompiledStats stats() const;

 private:
  struct Session;
  Session& session(int64_t rows, int64_t tokens);

  const Gpt& model_;
  int64_t choices_;
  std::list<std::unique_ptr<Session>> sessions_;  // the last used first
  CompiledStats dropped_;                         // of sessions that are gone
};

}  // namespace tessera
