#include "tessera/tensor/equation.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "tessera/graph/scope.h"

namespace tessera {

void refuse_equation(std::string_view text, const std::string& reason) {
  fail_here("einsum: \"", text, "\": ", reason);
}

namespace {

constexpr std::string_view kDots = "...", kArrow = "->";

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

std::string shown(char c) {
  if (c > ' ' && c <= '~') return cat("'", c, "'");
  return cat("byte ", int(static_cast<unsigned char>(c)));
}

// The letters of one operand or of the result, and where among them "..." stands.
struct Term {
  std::string letters;
  std::optional<size_t> dots;

  std::string text() const {
    return dots ? letters.substr(0, *dots) + std::string(kDots) + letters.substr(*dots) : letters;
  }
};

struct Terms {
  std::vector<Term> operands;
  std::optional<Term> result;
};

Terms split(std::string_view text) {
  Terms terms;
  Term term;
  bool behind_arrow = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string_view rest = text.substr(i);
    if (text[i] == ' ') continue;
    if (is_letter(text[i])) {
      term.letters += text[i];
    } else if (rest.starts_with(kDots)) {
      if (term.dots) refuse_equation(text, "expected \"...\" at most once in a term, got it twice");
      term.dots = term.letters.size();
      i += kDots.size() - 1;
    } else if (!behind_arrow && (text[i] == ',' || rest.starts_with(kArrow))) {
      behind_arrow = text[i] != ',';
      terms.operands.push_back(std::exchange(term, {}));
      i += behind_arrow ? kArrow.size() - 1 : 0;
    } else {
      refuse_equation(text, cat("expected letters, \"...\", \",\" and one \"->\", got ",
                                shown(text[i]), " at position ", i));
    }
  }
  if (behind_arrow) {
    terms.result = term;
  } else {
    terms.operands.push_back(term);
  }
  return terms;
}

void append_dots(Labels& labels, int count) {
  for (int i = -count; i < 0; ++i) labels.push_back(i);
}

// One label per axis; "..." stands for `dots` axes.
Labels labels_of(const Term& term, int dots) {
  Labels labels;
  for (size_t i = 0; i <= term.letters.size(); ++i) {
    if (term.dots == i) append_dots(labels, dots);
    if (i < term.letters.size()) labels.push_back(term.letters[i]);
  }
  return labels;
}

class Reader {
 public:
  Reader(std::string_view text, const std::vector<Shape>& shapes) : text_(text), shapes_(shapes) {}

  Equation read() {
    const Terms terms = split(text_);
    if (terms.operands.size() != shapes_.size()) {
      refuse(cat("expected an operand for each of ", terms.operands.size(), " terms, got ",
                 shapes_.size()));
    }
    for (size_t i = 0; i < shapes_.size(); ++i) read_operand(terms.operands[i], i);
    if (terms.result) {
      read_result(*terms.result);
    } else {
      imply_result();
    }
    if (equation_.result.size() > size_t(kMaxRank)) {
      refuse(
          cat("expected a result of at most ", kMaxRank, " axes, got ", equation_.result.size()));
    }
    return std::move(equation_);
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const { refuse_equation(text_, reason); }

  void read_operand(const Term& term, size_t operand) {
    const Shape& shape = shapes_[operand];
    const int dots = shape.rank() - int(term.letters.size());
    if (dots < 0 || (dots > 0 && !term.dots)) {
      refuse(cat("expected ", term.dots ? "at least " : "", term.letters.size(), " axes for \"",
                 term.text(), "\", got ", shape));
    }
    if (term.dots) dots_ = std::max(dots_, dots);
    const Labels labels = labels_of(term, dots);
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const int label = labels[size_t(axis)];
      const auto first = std::find(labels.begin(), labels.end(), label) - labels.begin();
      if (first < axis && shape[int(first)] != shape[axis]) {
        refuse(cat("expected equal extents for '", char(label), "', of which \"", term.text(),
                   "\" takes the diagonal, got ", shape));
      }
      join(label, shape[axis], operand);
    }
    equation_.operands.push_back(labels);
  }

  void join(int label, int64_t extent, size_t operand) {
    const auto [found, added] = equation_.extents.emplace(label, extent);
    int64_t& known = found->second;
    if (added || known == 1) {
      known = extent;
      source_[label] = operand;
    } else if (extent != known && extent != 1) {
      const std::string name = label < 0 ? "an axis of \"...\"" : cat("'", char(label), "'");
      const size_t other = source_[label];
      refuse(cat("expected one extent for ", name, ", got ", known, " in operand ", other, " ",
                 shapes_[other], " and ", extent, " in operand ", operand, " ", shapes_[operand]));
    }
  }

  void read_result(const Term& term) {
    for (const char letter : term.letters) {
      if (!equation_.extents.contains(letter)) {
        refuse(cat("expected the letters of the operands in the result, got '", letter, "'"));
      }
      if (std::count(term.letters.begin(), term.letters.end(), letter) > 1) {
        refuse(cat("expected each letter at most once in the result, got '", letter, "' again"));
      }
    }
    equation_.result = labels_of(term, dots_);
  }

  // The axes of "...", then the letters that occur once, in the order of their codes.
  void imply_result() {
    append_dots(equation_.result, dots_);
    for (const auto& [label, extent] : equation_.extents) {
      int64_t occurrences = 0;
      for (const Labels& labels : equation_.operands) {
        occurrences += std::count(labels.begin(), labels.end(), label);
      }
      if (label > 0 && occurrences == 1) equation_.result.push_back(label);
    }
  }

  std::string_view text_;
  const std::vector<Shape>& shapes_;
  Equation equation_;
  int dots_ = 0;                  // the most axes that "..." stands for in an operand
  std::map<int, size_t> source_;  // the operand that gave a label its extent
};

}  // namespace

Equation parse_equation(std::string_view text, const std::vector<Shape>& shapes) {
  return Reader(text, shapes).read();
}

}  // namespace tessera
