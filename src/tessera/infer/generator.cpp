#include "tessera/infer/generator.h"

#include <algorithm>
#include <bit>

#include "tessera/infer/device_var.h"
#include "tessera/infer/kv_cache.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr size_t kSessions = 4;         // kept, each with a cache
constexpr int64_t kLeastCapacity = 64;  // of a cache
constexpr int64_t kLeastPrompt = 16;    // columns of a prefill

// Sizes are rounded up to powers of two, so that few Programs serve every length.
int64_t rounded(int64_t n, int64_t least, int64_t most) {
  return std::min(int64_t(std::bit_ceil(uint64_t(std::max(n, least)))), most);
}

// The texts of all rows as they grow, the last tokens of which are in one column.
class Texts {
 public:
  Texts(const std::vector<Tokens>& prompts, int64_t context)
      : rows_(prompts), made_(prompts.size()), ended_(prompts.size(), false), context_(context) {
    for (const Tokens& prompt : prompts) columns_ = std::max(columns_, int64_t(prompt.size()));
  }

  int64_t columns() const { return columns_; }  // that the model sees
  bool ended() const {
    return std::ranges::all_of(ended_, [](bool ended) { return ended; });
  }
  const std::vector<Tokens>& made() const { return made_; }

  // How many of the columns come before a row's first token.
  std::vector<int64_t> pads() const {
    std::vector<int64_t> pads;
    for (const Tokens& row : rows_) {
      pads.push_back(std::max<int64_t>(columns_ - int64_t(row.size()), 0));
    }
    return pads;
  }

  // The columns, padded on the left with token 0, and on the right up to `width`.
  std::vector<int32_t> matrix(int64_t width) const {
    std::vector<int32_t> matrix(rows_.size() * size_t(width), 0);
    for (size_t r = 0; r < rows_.size(); ++r) {
      const int64_t used = std::min(columns_, int64_t(rows_[r].size()));
      const auto end = matrix.begin() + int64_t(r) * width + columns_;
      std::copy_n(rows_[r].end() - used, used, end - used);
    }
    return matrix;
  }

  // One token to each row; those that have ended go on unseen. False: the context is full, and what
  // the model sees must be read again.
  bool append(const std::vector<int64_t>& tokens, std::optional<int32_t> end_token,
              const Generator::OnToken& on_token) {
    for (size_t r = 0; r < rows_.size(); ++r) {
      const auto token = int32_t(tokens[r]);
      rows_[r].push_back(token);
      if (!ended_[r] && token == end_token) ended_[r] = true;
      if (ended_[r]) continue;
      made_[r].push_back(token);
      if (on_token && !on_token(int64_t(r), token)) ended_[r] = true;
    }
    if (++columns_ <= context_) return true;
    columns_ = std::max<int64_t>(context_ / 2, 1);
    return false;
  }

 private:
  std::vector<Tokens> rows_, made_;  // with prompts, and without
  std::vector<bool> ended_;
  int64_t context_;
  int64_t columns_ = 0;
};

void check(const std::vector<Tokens>& prompts, const GenerateOptions& options, int64_t context) {
  if (prompts.empty()) fail("generate: expected at least 1 prompt, got 0");
  for (const Tokens& prompt : prompts) {
    if (prompt.empty() || int64_t(prompt.size()) > context) {
      fail("generate: expected prompts of 1 to ", context, " tokens, got one of ", prompt.size());
    }
  }
  if (options.tokens < 0) fail("generate: expected at least 0 tokens, got ", options.tokens);
  check(options.sampling);
}

}  // namespace

// What is compiled for one number of rows and one capacity.
struct Generator::Session {
  Session(const Gpt& model_, int64_t choices, int64_t rows, int64_t capacity, DType dtype_,
          Device device_)
      : model(model_),
        dtype(dtype_),
        device(device_),
        cache(model.config(), rows, capacity, dtype, device),
        sampler(rows, choices, device),
        last(device_var(zeros({rows}, DType::i64), "cache.last", device)),
        prefill([this, choices](std::span<const Tensor> in, std::span<const int64_t> form) {
          return choose(cache.prefill(model, in[0], in[1], form[0] != 0), choices, form);
        }),
        decode([this, choices](std::span<const Tensor>, std::span<const int64_t> form) {
          return choose(cache.decode(model, last, form[0] != 0), choices, form);
        }) {}

  std::vector<Tensor> choose(const Tensor& x, int64_t choices, std::span<const int64_t> form) {
    const Tensor logits = slice(model.head(x), -1, 0, choices);
    const Tensor tokens = sampler.choose(logits, SamplingForm::from(form.subspan(1)));
    last.assign(tokens);
    return {tokens};
  }

  // The tokens that follow the texts, and then those that follow these.
  std::vector<int64_t> start(const Texts& texts, const SamplingForm& form) {
    const std::vector<int64_t> pads = texts.pads();
    cache.set_pads(pads);
    statics = form.statics();
    statics.insert(statics.begin(), std::ranges::max(pads) > 0);
    const int64_t width = rounded(texts.columns(), kLeastPrompt, cache.capacity());
    const Tensor tokens = tensor(texts.matrix(width), {cache.rows(), width}).to(device);
    const std::vector<Tensor> in = {tokens, scalar(texts.columns()).to(device)};
    return prefill(in, statics)[0].to_vector<int64_t>();
  }
  std::vector<int64_t> next() { return decode({}, statics)[0].to_vector<int64_t>(); }

  const Gpt& model;
  const DType dtype;
  const Device device;
  KvCache cache;
  Sampler sampler;
  Var last;                      // (B) i64: the tokens chosen last
  std::vector<int64_t> statics;  // whether rows are padded, and the form of sampling
  Compiled prefill, decode;
};

Generator::Generator(const Gpt& model, int64_t choices)
    : model_(model), choices_(choices == 0 ? model.config().vocabulary : choices) {
  if (choices_ < 1 || choices_ > model.config().vocabulary) {
    fail("generate: expected a choice of 1 to ", model.config().vocabulary, " tokens, got ",
         choices_);
  }
}

Generator::~Generator() = default;

Generator::Session& Generator::session(int64_t rows, int64_t tokens) {
  const int64_t capacity = rounded(tokens, kLeastCapacity, model_.config().context);
  const Var table = model_.parameters()[0];
  const DType dtype = table.dtype();
  const Device device = table.value().device();
  const auto fits = [&](const auto& s) {
    return s->cache.rows() == rows && s->cache.capacity() == capacity && s->dtype == dtype &&
           s->device == device;
  };
  const auto found = std::ranges::find_if(sessions_, fits);
  if (found != sessions_.end()) {
    sessions_.splice(sessions_.begin(), sessions_, found);
    return *sessions_.front();
  }
  if (sessions_.size() == kSessions) {
    const CompiledStats all = stats();
    sessions_.pop_back();
    const CompiledStats left = stats();
    dropped_.compilations += all.compilations - left.compilations;
    dropped_.replays += all.replays - left.replays;
  }
  sessions_.push_front(std::make_unique<Session>(model_, choices_, rows, capacity, dtype, device));
  return *sessions_.front();
}

CompiledStats Generator::stats() const {
  CompiledStats total = dropped_;
  for (const auto& session : sessions_) {
    for (const Compiled* function : {&session->prefill, &session->decode}) {
      total.compilations += function->stats().compilations;
      total.replays += function->stats().replays;
    }
  }
  return total;
}

std::vector<Tokens> Generator::generate(const std::vector<Tokens>& prompts,
                                        const GenerateOptions& options, const OnToken& on_token) {
  check(prompts, options, model_.config().context);
  const ModeGuard evaluation(false);
  Texts texts(prompts, model_.config().context);
  Session& current = session(int64_t(prompts.size()), texts.columns() + options.tokens);
  const SamplingForm form = current.sampler.begin(options.sampling, prompts);
  bool cached = false;
  for (int64_t i = 0; i < options.tokens && !texts.ended(); ++i) {
    const std::vector<int64_t> tokens = cached ? current.next() : current.start(texts, form);
    cached = texts.append(tokens, options.end_token, on_token);
  }
  return texts.made();
}

}  // namespace tessera
