#include "compile/random_program.h"

#include <cmath>

#include "compile/random_generator.h"
#include "tessera/autodiff/backward.h"
#include "tessera/graph/build.h"
#include "tessera/graph/interpret_scalar.h"

namespace tessera {

namespace {

using namespace graph;
using Values = std::vector<Value>;

constexpr double kMostMagnitude = 1e4;

const std::vector<DType> kIntegers = {DType::i64, DType::i32, DType::i8, DType::u8, DType::u32};
const std::vector<DType> kDTypes = {DType::f64, DType::f64,  DType::f64,    DType::f32, DType::f32,
                                    DType::f16, DType::bf16, DType::i64,    DType::i32, DType::i8,
                                    DType::u8,  DType::u32,  DType::boolean};

bool broadcasts(const Shape& a, const Shape& b) {
  for (int i = 1; i <= std::min(a.rank(), b.rank()); ++i) {
    const int64_t m = a[a.rank() - i], n = b[b.rank() - i];
    if (m != n && m != 1 && n != 1) return false;
  }
  return numel(broadcast_shapes("test", a, b)) <= RandomGenerator::kMostElements;
}

}  // namespace

bool casts(const Array& from, DType dtype) {
  if (is_float(dtype) || dtype == DType::boolean) return true;
  for (const double x : from.real) {
    if (double(truncate_to(dtype, x)) != std::trunc(x)) return false;
  }
  return true;
}

DType RandomGenerator::dtype() { return random_.pick(kDTypes); }

int64_t RandomGenerator::extent() {
  static const std::vector<int64_t> common = {1, 1, 2, 3, 4, 5, 7, 8, 13};
  static const std::vector<int64_t> rare = {0, 16, 17, 31, 64, 67, 130, 257};
  return random_.chance(0.85) ? random_.pick(common) : random_.pick(rare);
}

Shape RandomGenerator::shape() {
  static const std::vector<int64_t> ranks = {0, 1, 1, 2, 2, 2, 3, 3, 4, 5};
  const int64_t rank = random_.pick(ranks);
  Shape result;
  int64_t elements = 1;
  for (int64_t i = 0; i < rank; ++i) {
    int64_t n = extent();
    if (elements * n > kMostElements) n = 1;
    result.push_back(n);
    elements *= n;
  }
  return result;
}

Value RandomGenerator::leaf(const Type& type, int64_t below) {
  Array data{type, {}, {}};
  const bool coarse = random_.chance(0.4);
  for (int64_t i = 0; i < numel(type.shape); ++i) {
    const double x = 4 * random_.unit() - 2;
    if (is_float(type.dtype)) {
      data.real.push_back(round_to(type.dtype, coarse ? std::round(4 * x) / 4 : x));
    } else if (below > 0) {
      data.integer.push_back(random_.below(below));
    } else {
      data.integer.push_back(
          wrap_to(type.dtype, random_.between(coarse ? -2 : -100, coarse ? 2 : 100)));
    }
  }
  Value v = make_leaf(type);
  program_.function.externals.push_back(v);
  for (Disturbed& sample : samples_) sample.set_leaf(v, data);
  program_.data.push_back(std::move(data));
  for (const uint64_t region : regions_) {
    Attrs attrs;
    attrs.bits = region;
    v = {make_node(Op::region_enter, {v}, attrs), 0};
  }
  return v;
}

Value RandomGenerator::partner(const Value& a) {
  if (random_.chance(0.1)) return constant(a.dtype(), double(random_.between(0, 4)));
  for (int attempt = 0; attempt < 8; ++attempt) {
    const Value b = pick(is_any);
    if (!broadcasts(a.shape(), b.shape()) || !casts(samples_[0].at(b), a.dtype())) continue;
    return cast(b, a.dtype());
  }
  Shape s = a.shape();
  for (int64_t& n : s) n = random_.chance(0.3) ? 1 : n;
  return leaf({a.dtype(), s});
}

Value RandomGenerator::like(const Type& type) {
  for (const Value& v : pool_) {
    if (v.type() == type && random_.chance(0.5)) return v;
  }
  for (int attempt = 0; attempt < 6; ++attempt) {
    const Value v = pick(is_any);
    if (numel(v.shape()) != numel(type.shape) || !casts(samples_[0].at(v), type.dtype)) continue;
    return cast(reshape(v, type.shape), type.dtype);
  }
  return leaf(type);
}

Value RandomGenerator::index(const Shape& shape, int64_t extent) {
  const DType type = extent > 127 ? random_.pick(std::vector{DType::i64, DType::i32, DType::u32})
                                  : random_.pick(kIntegers);
  if (shape.rank() > 0 && random_.chance(0.3)) {
    const int axis = int(random_.below(shape.rank()));
    if (shape[axis] <= 127 || extent > 127) {
      return apply(Op::minimum, iota(type, shape, axis), constant_int(type, extent - 1));
    }
  }
  const Value v = leaf({type, shape}, extent);
  return random_.chance(0.3) ? constant_int(type, extent - 1) - v : v;
}

bool RandomGenerator::admit(const Value& v) {
  const Array& exact = samples_[0].at(v);
  double largest = 0;
  for (const double x : exact.real) {
    if (!(std::fabs(x) <= kMostMagnitude)) return false;
    largest = std::max(largest, std::fabs(x));
  }
  for (Disturbed& sample : samples_) {
    if (sample.at(v).integer != exact.integer) return false;
  }
  return spread(v) <= 0.3 * largest;
}

double RandomGenerator::spread(const Value& v) {
  const Array& exact = samples_[0].at(v);
  double result = 0;
  for (Disturbed& sample : samples_) {
    const Array& other = sample.at(v);
    for (size_t i = 0; i < exact.real.size(); ++i) {
      const double distance = std::fabs(other.real[i] - exact.real[i]);
      result = std::isnan(distance) ? distance : std::max(result, distance);
    }
  }
  return result;
}

void RandomGenerator::step() {
  struct Row {
    int weight;
    Step make;
  };
  using G = RandomGenerator;
  static const std::vector<Row> rows = {
      {6, &G::unary},          {3, &G::positive},      {10, &G::binary},
      {4, &G::divide},         {3, &G::compare},       {2, &G::logical},
      {3, &G::choose},         {4, &G::convert},       {8, &G::fold},
      {2, &G::first_greatest}, {4, &G::change_shape},  {5, &G::transpose},
      {4, &G::repeat},         {4, &G::cut},           {3, &G::surround},
      {4, &G::join},           {3, &G::look_up},       {3, &G::add_at},
      {3, &G::cut_at},         {3, &G::replace_at},    {5, &G::product},
      {3, &G::soft_maximum},   {3, &G::normalize},     {1, &G::count},
      {1, &G::draw},           {1, &G::literal},       {1, &G::mark},
      {1, &G::own_gradient},   {2, &G::input},         {3, &G::windows},
      {3, &G::put_at},         {3, &G::running_total}, {3, &G::order}};
  int64_t all = 0;
  for (const Row& row : rows) all += row.weight;
  int64_t chosen = random_.below(all);
  for (const Row& row : rows) {
    chosen -= row.weight;
    if (chosen >= 0) continue;
    for (const Value& v : (this->*row.make)()) {
      if (numel(v.shape()) <= 2 * kMostElements && admit(v)) pool_.push_back(v);
    }
    return;
  }
}

void RandomGenerator::region() {
  Attrs attrs;
  attrs.bits = ++region_count_;
  Values inside;
  for (int64_t i = random_.between(1, 3); i > 0; --i) {
    inside.push_back({make_node(Op::region_enter, {pick(is_any)}, attrs), 0});
  }
  std::swap(pool_, inside);
  regions_.push_back(attrs.bits);
  for (int64_t i = random_.between(1, 8); i > 0; --i) {
    if (regions_.size() < 3 && random_.chance(0.1)) {
      region();
    } else {
      step();
    }
  }
  regions_.pop_back();
  std::swap(pool_, inside);
  for (int64_t i = random_.between(1, 2); i > 0; --i) {
    const Value& y = inside[inside.size() - size_t(random_.between(
                                                1, std::min<int64_t>(3, int64_t(inside.size()))))];
    pool_.push_back({make_node(Op::region_exit, {y}, attrs), 0});
  }
}

void RandomGenerator::add_gradients() {
  Value loss = constant(DType::f64, 0);
  for (int64_t i = random_.between(1, 3); i > 0; --i) {
    const Value v = cast(pick(is_real), DType::f64);
    Dims axes;
    for (int k = 0; k < v.shape().rank(); ++k) axes.push_back(k);
    loss = loss + reshape(reduce(Op::sum, v * v, axes), {});
  }
  Values inputs;
  for (const Value& v : program_.function.externals) {
    if (is_real(v)) inputs.push_back(v);
  }
  const Value one = constant(DType::f64, 1);
  if (admit(loss)) program_.function.outputs.push_back(loss);
  for (const Value& g : backward(std::span(&loss, 1), std::span(&one, 1), inputs)) {
    if (!g || !admit(g)) continue;
    program_.function.outputs.push_back(g);
    pool_.push_back(g);
  }
}

void RandomGenerator::add_assigns() {
  GraphFunction& f = program_.function;
  for (int i = 0; i < int(f.externals.size()); ++i) {
    if (!random_.chance(0.4)) continue;
    const Type& type = f.externals[size_t(i)].type();
    Values choices;
    for (const Value& v : pool_) {
      if (v.type() == type) choices.push_back(v);
      if (is_number(v) && v.dtype() == type.dtype && v.shape() != type.shape &&
          broadcasts(v.shape(), type.shape) &&
          broadcast_shapes("test", v.shape(), type.shape) == type.shape) {
        choices.push_back(v + f.externals[size_t(i)]);
      }
    }
    if (choices.empty()) continue;
    const Value value = random_.pick(choices);
    if (admit(value)) f.assigns.push_back({i, value});
  }
}

RandomProgram RandomGenerator::run() {
  for (int64_t i = random_.between(1, 4); i > 0; --i) {
    pool_.push_back(leaf({random_.chance(0.7) ? DType::f64 : dtype(), shape()}));
  }
  for (int64_t i = random_.between(2, random_.chance(0.3) ? 50 : 15); i > 0; --i) {
    if (random_.chance(0.05)) {
      region();
    } else {
      step();
    }
  }
  if (random_.chance(0.35)) add_gradients();
  if (random_.chance(0.5)) add_assigns();
  GraphFunction& f = program_.function;
  for (int64_t i = random_.between(1, 5); i > 0; --i) f.outputs.push_back(pick(is_any));
  for (const Value& v : f.outputs) program_.spread.push_back(spread(v));
  for (const auto& assign : f.assigns) program_.spread.push_back(spread(assign.value));
  return std::move(program_);
}

RandomProgram random_program(uint64_t seed) { return RandomGenerator(seed).run(); }

}  // namespace tessera
