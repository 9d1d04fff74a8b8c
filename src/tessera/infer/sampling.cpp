#include "tessera/infer/sampling.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "tessera/infer/device_var.h"
#include "tessera/tensor/ops.h"

namespace tessera {

namespace {

constexpr int64_t kLeastCandidates = 64;
constexpr double kNever = -std::numeric_limits<double>::infinity();

Random make_random(Device device) {
  const Random random(0, "sampler");
  move_to(random.key(), device);
  move_to(random.counter(), device);
  return random;
}

// A power of two, so that few Programs serve every k.
int64_t bucket(int64_t top_k, int64_t vocabulary) {
  const int64_t rounded = int64_t(std::bit_ceil(uint64_t(std::max(top_k, kLeastCandidates))));
  return std::min(rounded, vocabulary);
}

}  // namespace

void check(const SamplingOptions& o) {
  if (!(o.temperature >= 0 && o.temperature <= 1e6)) {
    fail("generate: expected a temperature from 0 to 1e6, got ", o.temperature);
  }
  if (o.top_k < 0) fail("generate: expected a top-k of at least 0, got ", o.top_k);
  if (!(o.top_p > 0 && o.top_p <= 1)) {
    fail("generate: expected a top-p above 0 and at most 1, got ", o.top_p);
  }
  if (!(o.min_p >= 0 && o.min_p <= 1)) {
    fail("generate: expected a min-p from 0 to 1, got ", o.min_p);
  }
  if (!(o.repetition_penalty > 0 && o.repetition_penalty <= 1e6)) {
    fail("generate: expected a repetition penalty above 0 and at most 1e6, got ",
         o.repetition_penalty);
  }
}

std::vector<int64_t> SamplingForm::statics() const {
  return {greedy, penalised, nucleus, least, candidates};
}

SamplingForm SamplingForm::from(std::span<const int64_t> s) {
  TESSERA_ASSERT(s.size() == 5);
  return {s[0] != 0, s[1] != 0, s[2] != 0, s[3] != 0, s[4]};
}

Sampler::Sampler(int64_t rows, int64_t vocabulary, Device device)
    : rows_(rows),
      vocabulary_(vocabulary),
      temperature_(device_var(zeros({}), "temperature", device)),
      top_p_(device_var(zeros({}), "top_p", device)),
      min_p_(device_var(zeros({}), "min_p", device)),
      penalty_(device_var(zeros({}), "repetition_penalty", device)),
      top_k_(device_var(zeros({}, DType::i64), "top_k", device)),
      seen_(device_var(zeros({rows, vocabulary}, DType::boolean), "seen", device)),
      random_(make_random(device)) {}

SamplingForm Sampler::begin(const SamplingOptions& o,
                            const std::vector<std::vector<int32_t>>& texts) {
  check(o);
  TESSERA_ASSERT(int64_t(texts.size()) == rows_);
  SamplingForm form;
  form.greedy = o.temperature == 0;
  form.penalised = o.repetition_penalty != 1;
  if (form.penalised) {
    std::vector<uint8_t> seen(size_t(rows_ * vocabulary_), 0);
    for (size_t row = 0; row < texts.size(); ++row) {
      for (const int32_t token : texts[row]) {
        if (token < vocabulary_) seen[row * size_t(vocabulary_) + size_t(token)] = 1;
      }
    }
    seen_.set_bytes(DType::boolean, seen.data());
    penalty_.set(o.repetition_penalty);
  }
  if (form.greedy) return form;
  const bool few = o.top_k > 0 && o.top_k < vocabulary_;
  form.nucleus = o.top_p < 1;
  form.least = o.min_p > 0;
  form.candidates = few ? bucket(o.top_k, vocabulary_) : form.nucleus ? vocabulary_ : 0;
  temperature_.set(o.temperature);
  top_k_.set(few ? o.top_k : vocabulary_);
  top_p_.set(o.top_p);
  min_p_.set(o.min_p);
  random_.key().set(o.seed);
  random_.counter().set(0);
  return form;
}

Tensor Sampler::penalised(const Tensor& logits) const {
  return where(seen_, where(logits > 0, logits / penalty_, logits * penalty_), logits);
}

// -> (rows, 1)
Tensor Sampler::draw(const Tensor& logits, const SamplingForm& form) const {
  Tensor scores = logits / temperature_;
  Tensor tokens;  // behind the scores; none: their own positions
  if (form.candidates > 0) {
    const Ordered likeliest = topk(scores, form.candidates);
    tokens = likeliest.indices;
    const Tensor ranks = iota(likeliest.values.shape(), -1);
    scores = where(ranks < top_k_.value(), likeliest.values, kNever);
  }
  Tensor weights = softmax(scores);
  if (form.nucleus) {
    // What stands before a token must not have reached p yet: the first one always stays.
    weights = where(cumsum(weights) - weights < top_p_.value(), weights, 0);
  }
  if (form.least) {
    weights = where(weights >= min_p_.value() * max(weights, {-1}, true), weights, 0);
  }
  const Tensor drawn = random_.multinomial(weights, 1, true);
  return tokens.defined() ? gather(tokens, drawn, -1) : drawn;
}

Tensor Sampler::choose(const Tensor& logits, const SamplingForm& form) const {
  Tensor scores = cast(logits, DType::f32);
  if (form.penalised) scores = penalised(scores);
  const Tensor tokens = form.greedy ? argmax(scores, -1, true) : draw(scores, form);
  if (form.penalised) {
    seen_.assign(scatter(seen_, tokens, ones({rows_, 1}, DType::boolean), 1));
  }
  return reshape(tokens, {rows_});
}

}  // namespace tessera
