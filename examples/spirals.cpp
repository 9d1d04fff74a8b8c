// Trains a small network to tell two spirals apart, and draws the regions it has learnt.
#include <tessera/tessera.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iostream>
#include <numbers>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

using namespace tessera;

namespace {

constexpr int64_t kPointsPerClass = 200;
constexpr int64_t kHidden = 64;
constexpr int64_t kColumns = 64, kRows = 28;
constexpr double kEdge = 1.15;  // the picture shows ±kEdge in both directions
constexpr double kTurns = 1.75;
constexpr double kNoise = 0.02;

constexpr const char* kUsage =
    "usage: spirals [--steps N] [--seed N]\n"
    "Trains a small network to tell two spirals apart and draws what it has learnt.\n"
    "  --steps N   steps of training (default 1500)\n"
    "  --seed N    of points, weights and dropout (default 1)\n";

struct Settings {
  int64_t steps = 1500;
  int64_t seed = 1;
};

struct Points {
  std::vector<float> coordinates;  // (N, 2)
  std::vector<int32_t> classes;    // (N)
};

Points make_spirals(int64_t seed) {
  std::mt19937_64 generator{static_cast<uint64_t>(seed)};
  auto noise = [&] { return kNoise * (2 * double(generator() >> 11) * 0x1p-53 - 1); };
  Points points;
  for (int64_t i = 0; i < kPointsPerClass; ++i) {
    const double radius = 0.1 + 0.9 * double(i) / double(kPointsPerClass - 1);
    for (const int32_t which : {0, 1}) {
      const double angle = std::numbers::pi * (2 * kTurns * radius + which);
      points.coordinates.push_back(float(radius * std::cos(angle) + noise()));
      points.coordinates.push_back(float(radius * std::sin(angle) + noise()));
      points.classes.push_back(which);
    }
  }
  return points;
}

void build(Sequential& model, const Random& random) {
  model.add<Linear>("fc1", 2, kHidden, random);
  model.add("gelu1", gelu);
  model.add<Linear>("fc2", kHidden, kHidden, random);
  model.add("gelu2", gelu);
  model.add<Dropout>("dropout", 0.05, random);
  model.add<Linear>("fc3", kHidden, 2, random);
}

// One line that is written over on a terminal, else a line now and then.
class Progress {
 public:
  explicit Progress(int64_t steps) : steps_(steps), terminal_(isatty(STDOUT_FILENO) == 1) {}

  void show(int64_t done, double loss, double lr) const {
    const int64_t every = terminal_ ? 10 : std::max<int64_t>(steps_ / 10, 1);
    if (done % every != 0 && done != steps_) return;
    std::printf("%sstep %5lld / %lld   loss %.4f   lr %.5f   %.1f s%s", terminal_ ? "\r" : "",
                static_cast<long long>(done), static_cast<long long>(steps_), loss, lr, seconds(),
                terminal_ && done != steps_ ? "" : "\n");
    std::fflush(stdout);
  }

 private:
  double seconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

  int64_t steps_;
  bool terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

void train(const Sequential& model, const Tensor& x, const Tensor& y, int64_t steps) {
  AdamW optimizer(model.parameters(), {.weight_decay = 1e-2, .skip_nonfinite = true});
  const Schedule schedule = warmup_cosine({.peak = 1e-2, .warmup = steps / 20, .total = steps});
  const auto step = compile([&](const Tensor& points, const Tensor& classes) {
    const Tensor loss = cross_entropy(model(points), classes);
    backward(loss);
    clip_grad_norm(optimizer.parameters(), 1.0);
    optimizer.step();
    return loss;
  });
  const Progress progress(steps);
  Tensor previous;
  for (int64_t i = 0; i < steps; ++i) {
    optimizer.set_lr(schedule(i));
    const Tensor loss = step(x, y);
    // The loss of the step before: reading this one would make the host wait for the device.
    if (previous.defined()) progress.show(i, previous.item(), schedule(i - 1));
    previous = loss;
  }
  if (previous.defined()) progress.show(steps, previous.item(), schedule(steps - 1));
}

std::vector<int64_t> classify(const Sequential& model, const Tensor& x) {
  const ModeGuard evaluation(false);
  return argmax(model(x)).to_vector<int64_t>();
}

double accuracy(const Sequential& model, const Tensor& x, const Points& points) {
  const std::vector<int64_t> guesses = classify(model, x);
  int64_t right = 0;
  for (size_t i = 0; i < guesses.size(); ++i) right += guesses[i] == points.classes[i];
  return double(right) / double(guesses.size());
}

// Where a coordinate falls among `cells` cells.
int64_t cell_of(double coordinate, int64_t cells) {
  return int64_t((coordinate + kEdge) / (2 * kEdge) * double(cells));
}

std::vector<std::string> draw_regions(const Sequential& model) {
  std::vector<float> centres;  // (kRows · kColumns, 2)
  auto centre = [](int64_t i, int64_t cells) {
    return float(((double(i) + 0.5) / double(cells) * 2 - 1) * kEdge);
  };
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t column = 0; column < kColumns; ++column) {
      centres.push_back(centre(column, kColumns));
      centres.push_back(-centre(row, kRows));  // the top of the picture is +kEdge
    }
  }
  const std::vector<int64_t> guesses = classify(model, tensor(centres, {kRows * kColumns, 2}));
  std::vector<std::string> picture(size_t(kRows), std::string(size_t(kColumns), ' '));
  for (size_t i = 0; i < guesses.size(); ++i) {
    picture[i / size_t(kColumns)][i % size_t(kColumns)] = guesses[i] == 0 ? '.' : ' ';
  }
  return picture;
}

void mark_points(std::vector<std::string>& picture, const Points& points) {
  for (size_t i = 0; i < points.classes.size(); ++i) {
    const int64_t column = cell_of(points.coordinates[2 * i], kColumns);
    const int64_t row = cell_of(-points.coordinates[2 * i + 1], kRows);
    picture[size_t(row)][size_t(column)] = points.classes[i] == 0 ? 'o' : '#';
  }
}

std::optional<int64_t> parse_count(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) return std::nullopt;
  return value;
}

// Nothing when an argument is wrong.
std::optional<Settings> parse(const std::vector<std::string>& arguments) {
  Settings settings;
  for (size_t i = 0; i + 1 < arguments.size(); i += 2) {
    const std::optional<int64_t> value = parse_count(arguments[i + 1]);
    if (!value) return std::nullopt;
    if (arguments[i] == "--steps") {
      settings.steps = *value;
    } else if (arguments[i] == "--seed") {
      settings.seed = *value;
    } else {
      return std::nullopt;
    }
  }
  if (arguments.size() % 2 != 0) return std::nullopt;
  return settings;
}

void run(const Settings& settings) {
  init();
  const Points points = make_spirals(settings.seed);
  const int64_t count = int64_t(points.classes.size());
  const Tensor x = tensor(points.coordinates, {count, 2});
  const Tensor y = tensor(points.classes);
  Sequential model("model");
  build(model, Random(settings.seed));
  train(model, x, y, settings.steps);
  std::vector<std::string> picture = draw_regions(model);
  mark_points(picture, points);
  for (const std::string& row : picture) std::cout << row << "\n";
  std::printf("accuracy %.1f %% of %lld points (o in '.', # in ' ')\n",
              100 * accuracy(model, x, points), static_cast<long long>(count));
}

}  // namespace

int main(int count, char** values) {
  const std::vector<std::string> arguments(values + 1, values + count);
  if (arguments == std::vector<std::string>{"--help"}) {
    std::cout << kUsage;
    return 0;
  }
  const std::optional<Settings> settings = parse(arguments);
  if (!settings) {
    std::cerr << kUsage;
    return 2;
  }
  try {
    run(*settings);
  } catch (const std::exception& error) {
    std::cerr << "spirals: " << error.what() << "\n";
    return 1;
  }
  return 0;
}
