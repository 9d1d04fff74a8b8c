#include <algorithm>
#include <limits>

#include "tessera/tensor/elementwise.h"
#include "tessera/tensor/equation.h"
#include "tessera/tensor/linalg.h"
#include "tessera/tensor/op_support.h"
#include "tessera/tensor/structure.h"

namespace tessera {

namespace {

bool contains(const Labels& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

template <class Predicate>
Labels filtered(const Labels& labels, Predicate keep) {
  Labels result;
  std::copy_if(labels.begin(), labels.end(), std::back_inserter(result), keep);
  return result;
}

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// The order of contractions ---------------------------------------------------------------------

// Up to so many operands every order is tried; beyond, the smallest intermediate comes first.
constexpr size_t kTryAll = 4;

struct Step {
  size_t a = 0, b = 0;  // a < b; the product goes to the end of the list
  Labels kept;          // of a or b, and of the result or another operand
  double work = 0;      // multiplications
  double size = 0;      // elements of the product
};

struct Plan {
  double work = std::numeric_limits<double>::infinity();
  std::vector<Step> steps;
};

class Planner {
 public:
  explicit Planner(const Equation& equation) : equation_(equation) {}

  // No steps and infinite work where it meets a product of too many axes in every order it tries.
  Plan plan(const std::vector<Labels>& parts) const {
    if (parts.size() == 1) return {0, {}};
    std::vector<Step> candidates = steps_of(parts);
    if (parts.size() > kTryAll && !candidates.empty()) {
      const auto smaller = [](const Step& x, const Step& y) {
        return std::pair(x.size, x.work) < std::pair(y.size, y.work);
      };
      candidates = {*std::min_element(candidates.begin(), candidates.end(), smaller)};
    }
    Plan best;
    for (const Step& step : candidates) {
      std::vector<Labels> rest = parts;
      rest.erase(rest.begin() + std::ptrdiff_t(step.b));
      rest.erase(rest.begin() + std::ptrdiff_t(step.a));
      rest.push_back(step.kept);
      Plan tail = plan(rest);
      if (step.work + tail.work >= best.work) continue;
      best.work = step.work + tail.work;
      best.steps = std::move(tail.steps);
      best.steps.insert(best.steps.begin(), step);
    }
    return best;
  }

 private:
  double count(const Labels& labels) const {
    double product = 1;
    for (const int label : labels) product *= double(equation_.extents.at(label));
    return product;
  }

  std::vector<Step> steps_of(const std::vector<Labels>& parts) const {
    std::vector<Step> steps;
    for (size_t b = 1; b < parts.size(); ++b) {
      for (size_t a = 0; a < b; ++a) {
        const Labels all = joined(
            parts[a], filtered(parts[b], [&](int label) { return !contains(parts[a], label); }));
        const Labels kept = filtered(all, [&](int label) { return needed(parts, a, b, label); });
        if (kept.size() <= size_t(kMaxRank)) steps.push_back({a, b, kept, count(all), count(kept)});
      }
    }
    return steps;
  }

  bool needed(const std::vector<Labels>& parts, size_t a, size_t b, int label) const {
    if (contains(equation_.result, label)) return true;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (i != a && i != b && contains(parts[i], label)) return true;
    }
    return false;
  }

  const Equation& equation_;
};

// The contractions ------------------------------------------------------------------------------

// An operand or a product; no label twice, no axis of extent 1.
struct Part {
  Tensor x;
  Labels labels;
};

Shape shape_of(const Equation& equation, const Labels& labels) {
  Shape shape;
  for (const int label : labels) shape.push_back(equation.extents.at(label));
  return shape;
}

Tensor in_order(const Part& part, const Labels& order) {
  Dims permutation;
  for (const int label : order) {
    permutation.push_back(std::find(part.labels.begin(), part.labels.end(), label) -
                          part.labels.begin());
  }
  return permute(part.x, permutation);
}

// Keeps the elements whose positions on two axes of extent n are equal, on the first of them.
Tensor diagonal(const Tensor& x, int first, int second) {
  Dims order;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != first && i != second) order.push_back(i);
  }
  Shape shape;
  for (const int64_t axis : order) shape.push_back(x.shape()[int(axis)]);
  const int64_t n = x.shape()[first];
  order.push_back(first);
  order.push_back(second);
  shape.push_back(n * n);
  const int last = shape.rank() - 1;
  Dims steps = Dims::filled(shape.rank(), 1);
  steps[last] = n + 1;
  Shape sizes = shape;
  sizes[last] = n;
  const Tensor pairs = reshape(permute(x, order), shape);
  const Tensor taken(graph::slice(pairs.value(), Dims::filled(shape.rank(), 0), sizes, steps));
  Dims back;
  for (int i = 0; i < last; ++i) back.push_back(i);
  back.insert(first, last);
  return permute(taken, back);
}

Part without_repeats(Part part) {
  for (size_t second = 1; second < part.labels.size();) {
    const auto begin = part.labels.begin();
    const auto first = std::find(begin, begin + std::ptrdiff_t(second), part.labels[second]);
    const int axis = int(first - begin);
    if (size_t(axis) == second) {
      ++second;
      continue;
    }
    part.x = diagonal(part.x, axis, int(second));
    part.labels.erase(begin + std::ptrdiff_t(second));
  }
  return part;
}

Part without_ones(const Part& part) {
  Part result;
  Shape shape;
  for (int i = 0; i < part.x.rank(); ++i) {
    if (part.x.shape()[i] == 1) continue;
    shape.push_back(part.x.shape()[i]);
    result.labels.push_back(part.labels[size_t(i)]);
  }
  result.x = reshape(part.x, shape);
  return result;
}

// Sums the labels that no other part and not the result have.
void sum_lone(const Equation& equation, std::vector<Part>& parts) {
  for (Part& part : parts) {
    Dims axes;
    Labels kept;
    for (size_t i = 0; i < part.labels.size(); ++i) {
      const int label = part.labels[i];
      const auto holders = std::count_if(parts.begin(), parts.end(), [&](const Part& other) {
        return contains(other.labels, label);
      });
      if (holders == 1 && !contains(equation.result, label)) {
        axes.push_back(int64_t(i));
      } else {
        kept.push_back(label);
      }
    }
    if (axes.empty()) continue;
    part.x =
        reshape(Tensor(graph::reduce(Op::sum, part.x.value(), axes)), shape_of(equation, kept));
    part.labels = kept;
  }
}

// a · b where nothing is summed; axes that one of them lacks are repeated by broadcasting.
Part multiply(const Equation& equation, const Part& a, const Part& b, const Labels& order) {
  const auto lifted = [&](const Part& part) {
    Shape shape;
    for (const int label : order) {
      shape.push_back(contains(part.labels, label) ? equation.extents.at(label) : 1);
    }
    const auto own = [&](int label) { return contains(part.labels, label); };
    return reshape(in_order(part, filtered(order, own)), shape);
  };
  return {lifted(a) * lifted(b), order};
}

// The kept labels in the order of the result, so that the last product needs no permutation.
Labels result_first(const Equation& equation, const Labels& kept) {
  const Labels named = filtered(equation.result, [&](int label) { return contains(kept, label); });
  return joined(filtered(kept, [&](int label) { return !contains(named, label); }), named);
}

Part contract(const Equation& equation, const Part& left, const Part& right, const Labels& kept) {
  const Labels order = result_first(equation, kept);
  // The result's last axis should be one of the right operand's columns.
  const bool swap = !order.empty() && !contains(right.labels, order.back());
  const Part &a = swap ? right : left, &b = swap ? left : right;
  const Part& larger = a.x.numel() >= b.x.numel() ? a : b;
  const auto shared = [&](int label) {
    return contains(a.labels, label) && contains(b.labels, label);
  };
  const auto is_kept = [&](int label) { return contains(kept, label); };
  const Labels batch = filtered(order, shared);
  const Labels rows = filtered(a.labels, [&](int label) { return !shared(label); });
  const Labels columns = filtered(b.labels, [&](int label) { return !shared(label); });
  // In the order of the larger operand, whose axes then join without a copy where they can.
  const Labels inner =
      filtered(larger.labels, [&](int label) { return shared(label) && !is_kept(label); });
  if (inner.empty()) return multiply(equation, a, b, order);

  const auto count = [&](const Labels& labels) { return numel(shape_of(equation, labels)); };
  const auto matrices = [&](const Part& part, const Labels& m, const Labels& n) {
    Shape shape = shape_of(equation, batch);
    if (shape.rank() + 2 > kMaxRank) shape = {count(batch)};
    shape.push_back(count(m));
    shape.push_back(count(n));
    return reshape(in_order(part, joined(joined(batch, m), n)), shape);
  };
  const Tensor product = matmul(matrices(a, rows, inner), matrices(b, inner, columns));
  const Labels labels = joined(joined(batch, rows), columns);
  return {reshape(product, shape_of(equation, labels)), labels};
}

std::vector<Part> parts_of(const Equation& equation, const std::vector<Tensor>& operands,
                           DType dtype) {
  std::vector<Part> parts;
  for (size_t i = 0; i < operands.size(); ++i) {
    const Part whole{cast(operands[i], dtype), equation.operands[i]};
    parts.push_back(without_ones(without_repeats(whole)));
  }
  return parts;
}

bool sums(const Equation& equation) {
  return std::any_of(equation.extents.begin(), equation.extents.end(),
                     [&](const auto& entry) { return !contains(equation.result, entry.first); });
}

}  // namespace

Tensor einsum(std::string_view text, const std::vector<Tensor>& operands,
              std::source_location line) {
  set_line(line);
  std::vector<Shape> shapes;
  DType dtype = DType::boolean;
  for (const Tensor& x : operands) {
    shapes.push_back(x.shape());
    dtype = promote(dtype, x.dtype());
  }
  const Equation equation = parse_equation(text, shapes);
  if (dtype == DType::boolean && (operands.size() > 1 || sums(equation))) {
    refuse_equation(text, "expected numbers to multiply or sum, got bool");
  }
  std::vector<Part> parts = parts_of(equation, operands, dtype);
  sum_lone(equation, parts);
  std::vector<Labels> labels;
  for (const Part& part : parts) labels.push_back(part.labels);
  const Plan plan = Planner(equation).plan(labels);
  if (plan.steps.size() + 1 != parts.size()) {
    refuse_equation(text,
                    cat("found no order in which every product has at most ", kMaxRank, " axes"));
  }
  for (const Step& step : plan.steps) {
    Part product = contract(equation, parts[step.a], parts[step.b], step.kept);
    parts.erase(parts.begin() + std::ptrdiff_t(step.b));
    parts.erase(parts.begin() + std::ptrdiff_t(step.a));
    parts.push_back(std::move(product));
  }
  const Part& last = parts[0];
  const Labels order =
      filtered(equation.result, [&](int label) { return contains(last.labels, label); });
  return reshape(in_order(last, order), shape_of(equation, equation.result));
}

}  // namespace tessera
