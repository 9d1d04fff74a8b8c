// The ops of random programs: one function each, with operands that keep the op's contract.
#include "compile/random_generator.h"
#include "tessera/graph/build.h"

namespace tessera {

namespace {

using namespace graph;
using Values = std::vector<Value>;

const std::vector<Op> kUnary = {Op::neg,  Op::abs, Op::sign,    Op::exp,   Op::sin,     Op::cos,
                                Op::tanh, Op::erf, Op::sigmoid, Op::floor, Op::isfinite};
const std::vector<Op> kPositive = {Op::log, Op::sqrt, Op::rsqrt, Op::reciprocal};
const std::vector<Op> kIntegerUnary = {Op::neg, Op::abs, Op::sign};
const std::vector<Op> kBinary = {Op::add, Op::sub, Op::mul, Op::maximum, Op::minimum};
const std::vector<Op> kCompare = {Op::eq, Op::ne, Op::lt, Op::le, Op::gt, Op::ge};
const std::vector<Op> kReduce = {Op::sum, Op::sum, Op::prod, Op::max, Op::min};

}  // namespace

Values RandomGenerator::unary() {
  const Value a = pick(is_number);
  return {apply(random_.pick(is_real(a) ? kUnary : kIntegerUnary), a)};
}

Values RandomGenerator::positive() {
  return {apply(random_.pick(kPositive), apply(Op::abs, pick(is_real)) + 0.5)};
}

Values RandomGenerator::binary() {
  const Value a = pick(is_number);
  const Value b = partner(a);
  const Op op = random_.pick(kBinary);
  return {random_.chance(0.5) ? apply(op, a, b) : apply(op, b, a)};
}

Values RandomGenerator::divide() {
  const Value a = pick(is_real), b = partner(a);
  if (random_.chance(0.3)) return {apply(Op::pow, apply(Op::abs, a) + 0.5, b)};
  return {random_.chance(0.5) ? a / b : a / (apply(Op::abs, b) + 0.5)};
}

Values RandomGenerator::compare() {
  const Value a = pick(is_number);
  return {apply(random_.pick(kCompare), a, partner(a))};
}

Values RandomGenerator::logical() {
  const Value a = pick([](const Value& v) { return !is_number(v); }, DType::boolean);
  if (random_.chance(0.3)) return {apply(Op::logical_not, a)};
  return {apply(random_.chance(0.5) ? Op::logical_and : Op::logical_or, a, partner(a))};
}

Values RandomGenerator::choose() {
  const Value a = pick(is_any), b = partner(a);
  const Value chosen = broadcast_to(b, broadcast_shapes("test", a.shape(), b.shape()));
  Value condition = partner(cast(chosen, DType::boolean));
  return {where(condition, a, b)};
}

Values RandomGenerator::convert() {
  const Value a = pick(is_any);
  const DType to = dtype();
  return {casts(samples_[0].at(a), to) ? cast(a, to) : a};
}

Values RandomGenerator::fold() {
  const Value a = pick(is_number);
  const Op op = random_.pick(kReduce);
  Dims axes;
  for (int i = 0; i < a.shape().rank(); ++i) {
    const bool folds_none = op == Op::sum || op == Op::prod;
    if (random_.chance(0.5) && (folds_none || a.shape()[i] > 0)) axes.push_back(i);
  }
  const Value folded = reduce(op, a, axes);
  // The form of softmax and normalization: an element-wise op between a value and its fold.
  if (random_.chance(0.5)) return {folded};
  return {folded, apply(random_.pick(kBinary), a, folded)};
}

Values RandomGenerator::first_greatest() {
  const Value a = pick([](const Value& v) { return has_axis(v) && is_number(v); });
  const int axis = axis_of(a);
  if (a.shape()[axis] == 0) return {a};
  return {reduce(Op::argmax, a, {axis})};
}

Values RandomGenerator::change_shape() {
  const Value a = pick(is_any);
  int64_t rest = numel(a.shape());
  if (rest == 0) return {reshape(a, {2, 0, 3})};
  Shape result;
  for (const int64_t factor : {2, 3, 5, 7, 4, 13}) {
    if (rest % factor == 0 && random_.chance(0.6) && result.rank() < 4) {
      result.push_back(factor);
      rest /= factor;
    }
  }
  result.insert(int(random_.below(result.rank() + 1)), rest);
  if (random_.chance(0.3)) result.insert(int(random_.below(result.rank() + 1)), 1);
  return {reshape(a, result)};
}

Values RandomGenerator::transpose() {
  const Value a = pick(has_axis);
  Dims order;
  for (int i = 0; i < a.shape().rank(); ++i) order.insert(int(random_.below(i + 1)), i);
  return {permute(a, order)};
}

Values RandomGenerator::repeat() {
  const Value a = pick(is_any);
  Shape to = a.shape();
  for (int64_t& n : to) {
    if (n == 1 && random_.chance(0.7)) n = extent();
  }
  if (to.rank() < 5 && random_.chance(0.4)) to.insert(0, extent());
  return {numel(to) <= kMostElements ? broadcast_to(a, to) : a};
}

Values RandomGenerator::cut() {
  const Value a = pick(has_axis);
  Dims starts, sizes, steps;
  for (const int64_t n : a.shape()) {
    const bool whole = n == 0 || random_.chance(0.4);
    const int64_t step = whole ? 1 : random_.pick(std::vector<int64_t>{1, 1, 2, 3, -1, -1, -2});
    const int64_t start = whole ? 0 : random_.below(n);
    const int64_t most = step > 0 ? (n - start + step - 1) / step : start / -step + 1;
    starts.push_back(start);
    sizes.push_back(whole ? n : random_.between(random_.chance(0.05) ? 0 : 1, most));
    steps.push_back(step);
  }
  return {slice(a, starts, sizes, steps)};
}

Values RandomGenerator::windows() {
  const Value a = pick([](const Value& v) { return has_axis(v) && v.shape().rank() < 6; });
  const int axis = axis_of(a);
  const int64_t n = a.shape()[axis];
  if (n == 0) return {a};
  const int64_t size = random_.between(1, std::min<int64_t>(n, 5)), step = random_.between(1, 4);
  const Value y = window(a, axis, size, step);
  return {numel(y.shape()) <= kMostElements ? y : a};
}

Values RandomGenerator::surround() {
  const Value a = pick(has_axis);
  Dims before, after;
  for (int i = 0; i < a.shape().rank(); ++i) {
    before.push_back(random_.chance(0.5) ? random_.below(4) : 0);
    after.push_back(random_.chance(0.5) ? random_.below(4) : 0);
  }
  return {pad(a, before, after, double(random_.below(2)))};
}

Values RandomGenerator::join() {
  const Value a = pick(has_axis);
  const int axis = axis_of(a);
  Values parts = {a};
  for (int64_t i = random_.below(3); i >= 0; --i) {
    Type type = a.type();
    type.shape[axis] = random_.below(5);
    parts.push_back(random_.chance(0.3) ? a : like(type));
  }
  std::rotate(parts.begin(), parts.begin() + random_.below(int64_t(parts.size())), parts.end());
  return {concat(parts, axis)};
}

Values RandomGenerator::look_up() {
  const Value a = pick(has_axis);
  const int axis = axis_of(a);
  if (a.shape()[axis] == 0) return {a};
  Shape s = a.shape();
  s[axis] = extent();
  return {gather(a, index(s, a.shape()[axis]), axis)};
}

Values RandomGenerator::add_at() {
  const Value a = pick([](const Value& v) { return has_axis(v) && is_number(v); });
  const int axis = axis_of(a);
  if (a.shape()[axis] == 0) return {a};
  Shape s = a.shape();
  s[axis] = extent();
  return {scatter_add(a, index(s, a.shape()[axis]), like({a.dtype(), s}), axis)};
}

Values RandomGenerator::put_at() {
  const Value a = pick(has_axis);
  const int axis = axis_of(a);
  if (a.shape()[axis] == 0) return {a};
  Shape s = a.shape();
  s[axis] = extent();
  return {scatter(a, index(s, a.shape()[axis]), like({a.dtype(), s}), axis)};
}

Values RandomGenerator::cut_at() {
  const Value a = pick(has_axis);
  const int axis = axis_of(a);
  const int64_t n = a.shape()[axis], size = random_.between(0, n);
  return {dynamic_slice(a, index({}, n - size + 1), axis, size)};
}

Values RandomGenerator::replace_at() {
  const Value a = pick(has_axis);
  const int axis = axis_of(a);
  Type type = a.type();
  const int64_t n = a.shape()[axis], size = random_.between(0, n);
  type.shape[axis] = size;
  return {dynamic_update_slice(a, like(type), index({}, n - size + 1), axis)};
}

Values RandomGenerator::product() {
  const Value a = pick([](const Value& v) { return v.shape().rank() > 1 && is_number(v); });
  const int r = a.shape().rank();
  Shape s = a.shape();
  s[r - 2] = a.shape()[r - 1];
  s[r - 1] = extent();
  for (int i = 0; i < r - 2; ++i) {
    if (random_.chance(0.3)) s[i] = 1;
  }
  if (numel(s) > kMostElements) s[r - 1] = 1;
  const Value b = like({a.dtype(), s});
  return {random_.chance(0.7) ? matmul(a, b) : matmul(swap_last(b), swap_last(a))};
}

Values RandomGenerator::running_total() {
  const Value a = pick([](const Value& v) { return has_axis(v) && is_number(v); });
  const int axis = axis_of(a);
  return {random_.chance(0.5) ? cumsum(a, axis) : cumprod(a, axis)};
}

Values RandomGenerator::order() {
  // The reference compares every element of a row with every other.
  const Value a = pick([](const Value& v) { return has_axis(v) && v.shape().back() <= 40; });
  const bool falling = random_.chance(0.5);
  if (random_.chance(0.5)) return sort(a, falling);
  return topk(a, random_.between(0, a.shape().back()), falling);
}

Values RandomGenerator::soft_maximum() {
  return {softmax(pick([](const Value& v) { return has_axis(v) && is_real(v); }))};
}

Values RandomGenerator::normalize() {
  const Value x = pick([](const Value& v) { return has_axis(v) && is_real(v); });
  const Type columns{x.dtype(), {x.shape().back()}};
  const Value gamma = like(columns), beta = like(columns);
  return layer_norm(x, gamma, beta, 1e-3);
}

Values RandomGenerator::count() {
  const Value a = pick(has_axis);
  const DType type = is_number(a) ? a.dtype() : DType::i32;
  return {iota(type, a.shape(), axis_of(a))};
}

Values RandomGenerator::draw() {
  const Value key = random_.chance(0.5) ? leaf({DType::i64, {}}) : constant_int(DType::i64, 7);
  return {uniform(key, leaf({DType::i64, {}}, 1000), shape())};
}

Values RandomGenerator::literal() { return {constant(dtype(), double(random_.between(0, 3)) / 2)}; }

Values RandomGenerator::mark() { return {stop_gradient(pick(is_any))}; }

Values RandomGenerator::own_gradient() {
  const Value x = pick(is_real), y = apply(Op::tanh, x);
  Attrs attrs;
  attrs.axis = 1;
  const auto doubled = [](const Values&, const Values&, const Values& g) {
    return Values{g[0] * 2.0};
  };
  return {
      {make_node(Op::custom_vjp, {x, y}, attrs, std::make_shared<const VjpFunction>(doubled)), 0}};
}

Values RandomGenerator::input() { return {leaf({dtype(), shape()})}; }

}  // namespace tessera
