#include "tessera/cli/lattice_bench.h"

#include <stdlib.h>  // mkdtemp

#include <cmath>
#include <filesystem>
#include <ostream>
#include <system_error>

#include "tessera/base/philox.h"
#include "tessera/base/thread_pool.h"
#include "tessera/bench/format.h"
#include "tessera/bench/limits.h"
#include "tessera/bench/timing.h"
#include "tessera/cli/lattice_words.h"
#include "tessera/io/atomic_file.h"
#include "tessera/io/json.h"
#include "tessera/io/npy.h"
#include "tessera/lattice/measure.h"

namespace tessera::cli {

namespace {

using bench::fixed, bench::right, bench::three_digits, bench::time_text;

constexpr int32_t kBits[] = {0, 1, 4, 8};
constexpr int32_t kTimedBits = 4;  // what compress takes by itself
constexpr int64_t kQueries = 200, kDepth = 10;

// A folder that goes with this object.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::error_code code;
    std::string name = (std::filesystem::temp_directory_path(code) / "tessera-XXXXXX").native();
    if (code || ::mkdtemp(name.data()) == nullptr) {
      fail("bench: expected a folder for temporary files (TMPDIR), got none to write to");
    }
    path_ = name;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  std::filesystem::path operator/(const char* name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

float normal(uint64_t seed, int64_t index) {
  const auto bits = philox(seed, uint64_t(index));
  const float radius = std::sqrt(-2 * std::log(1 - unit_float(bits[0])));
  return radius * std::cos(6.2831853f * unit_float(bits[1]));
}

struct Phase {
  const char* name;
  double seconds;
};

// Of the index of kTimedBits. The training's phases are those of all iterations.
std::vector<Phase> phases_of(const LatticeRun& run) {
  double assign = 0, means = 0, update = 0;
  for (const lattice::TrainingProgress& p : run.iterations) {
    assign += p.assign_seconds;
    means += p.means_seconds;
    update += p.update_seconds;
  }
  std::vector<Phase> phases;
  for (const LatticeSize& size : run.sizes) {
    if (size.bits != kTimedBits) continue;
    const lattice::BuildReport& r = size.report;
    phases = {{"seeding", r.seeding_seconds},
              {"assign", assign},
              {"means", means},
              {"update", update},
              {"transform", r.transform_seconds},
              {"encode", r.encode_seconds},
              {"all", size.seconds}};
  }
  return phases;
}

double ratio_of(const LatticeSize& size) {
  return double(size.report.file_bytes) / double(size.report.vector_bytes);
}

// Null before there is a change.
Json change_json(const LatticeRun& run, size_t i) {
  if (i == 0) return {};
  return Json(run.iterations[i].energy - run.iterations[i - 1].energy);
}

Json to_json(const LatticeRun& run) {
  Json iterations = Json::array(), sizes = Json::array(), seconds = Json::object();
  for (size_t i = 0; i < run.iterations.size(); ++i) {
    const lattice::TrainingProgress& p = run.iterations[i];
    iterations.push(Json()
                        .set("iteration", p.iteration)
                        .set("temperature", p.temperature)
                        .set("energy", p.energy)
                        .set("energy_change", change_json(run, i))
                        .set("moved", p.moved)
                        .set("anchors", p.anchors));
  }
  for (const LatticeSize& size : run.sizes) {
    sizes.push(Json()
                   .set("bits", size.bits)
                   .set("bytes", size.report.file_bytes)
                   .set("ratio", ratio_of(size))
                   .set("recall_at_10", size.recall)
                   .set("seconds", size.seconds));
  }
  for (const Phase& phase : phases_of(run)) seconds.set(phase.name, phase.seconds);
  return Json()
      .set("name", run.task.name)
      .set("points", run.task.points)
      .set("dim", run.task.dim)
      .set("anchors", run.task.anchors)
      .set("converged", run.sizes.front().report.converged)
      .set("iterations", std::move(iterations))
      .set("seconds", std::move(seconds))
      .set("sizes", std::move(sizes));
}

std::vector<LatticeCase> chosen(const Arguments& arguments) {
  const bool all = arguments.has("--small") == arguments.has("--large");
  std::vector<LatticeCase> cases;
  for (const LatticeCase& one : kLatticeCases) {
    if (all || arguments.has(cat("--", one.name))) cases.push_back(one);
  }
  return cases;
}

}  // namespace

std::vector<float> lattice_points(const LatticeCase& task) {
  std::vector<float> points(size_t(task.points * task.dim));
  thread_pool().parallel_for(task.points, 64, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t part = philox(3, uint64_t(i))[0] % task.anchors;
      for (int64_t j = 0; j < task.dim; ++j) {
        const float centre = normal(1, part * task.dim + j), noise = normal(2, i * task.dim + j);
        points[size_t(i * task.dim + j)] = (centre + noise) / std::sqrt(float(j + 1));
      }
    }
  });
  return points;
}

LatticeRun run_lattice_case(const LatticeCase& task) {
  const ScratchFolder folder;
  const std::vector<float> points = lattice_points(task);
  write_npy(folder / "vectors.npy", DType::f32, {task.points, task.dim},
            std::as_bytes(std::span(points)));
  const VectorFile vectors = VectorFile::open(folder / "vectors.npy");
  const lattice::GroundTruth truth =
      lattice::sampled_truth(vectors, lattice::Metric::l2, kQueries, kDepth, 2, int64_t(64) << 20);
  LatticeRun run{task, {}, {}};
  for (const int32_t bits : kBits) {
    lattice::BuildOptions options;
    options.anchors.anchors = task.anchors;
    options.bits = bits;
    run.iterations.clear();  // the same each time, but for the seconds
    LatticeSize size{bits, {}, 0, 0};
    const auto note = [&](const lattice::TrainingProgress& p) { run.iterations.push_back(p); };
    size.seconds = bench::seconds_of([&] {
      size.report = lattice::build_index(vectors, folder / "vectors.tsr", options, note);
    });
    const lattice::VectorIndex index(folder / "vectors.tsr");
    size.recall = measure(index, vectors, truth, kDepth, int32_t(size.report.cells)).recall;
    run.sizes.push_back(std::move(size));
  }
  return run;
}

std::string to_text(const LatticeRun& run) {
  std::string text = cat("\n", run.task.name, ": ", run.task.points, " points of ", run.task.dim,
                         " dimensions, ", run.task.anchors, " anchors\n",
                         "iteration          T          E         ΔE    moved  anchors\n");
  for (size_t i = 0; i < run.iterations.size(); ++i) {
    const lattice::TrainingProgress& p = run.iterations[i];
    const std::string change = i == 0 ? "" : three_digits(p.energy - run.iterations[i - 1].energy);
    text += cat(right(cat(p.iteration), 9), right(fixed(p.temperature, 3), 11),
                right(fixed(p.energy, 4), 11), right(change, 11), right(cat(p.moved), 9),
                right(cat(p.anchors), 9), "\n");
  }
  text +=
      cat(run.sizes.front().report.converged ? "converged after " : "not converged after ",
          run.iterations.size(), "\n\nbits      bytes  a vector   of f32  recall@10    seconds\n");
  for (const LatticeSize& size : run.sizes) {
    text += cat(right(cat(size.bits), 4), right(cat(size.report.file_bytes), 11),
                right(fixed(double(size.report.file_bytes) / double(run.task.points), 1), 10),
                right(fixed(100 * ratio_of(size), 1) + " %", 9), right(fixed(size.recall, 3), 11),
                right(fixed(size.seconds, 3), 11), "\n");
  }
  text += cat("\ntime at ", kTimedBits, " bits: ");
  for (const Phase& phase : phases_of(run)) {
    const bool last = std::string_view(phase.name) == "all";
    text += cat(last ? "in all" : phase.name, " ", time_text(phase.seconds), last ? "\n" : ", ");
  }
  return text;
}

std::string to_json(std::span<const LatticeRun> runs) {
  const bench::Machine machine = bench::describe_machine();
  Json cases = Json::array();
  for (const LatticeRun& run : runs) cases.push(to_json(run));
  return Json()
             .set("format", 1)
             .set("cpu", machine.cpu)
             .set("instruction_set", machine.isa)
             .set("threads", machine.threads)
             .set("cases", std::move(cases))
             .dump(2) +
         "\n";
}

Status run_lattice_bench(const Arguments& arguments, Console& console) {
  for (const std::string_view option : {"--device", "--html", "--quick"}) {
    if (arguments.has(option)) throw UsageError(cat("bench: lattice does not take ", option));
  }
  const std::string json = arguments.value("--json", "");
  if (!json.empty() && json != "-") AtomicFile{json};  // that it can be written
  std::vector<LatticeRun> runs;
  Progress progress(console);
  for (const LatticeCase& task : chosen(arguments)) {
    progress.show(cat("lattice: ", task.name));
    runs.push_back(run_lattice_case(task));
    progress.clear();
    if (json != "-") console.out << to_text(runs.back()) << std::flush;
  }
  if (json == "-") console.out << to_json(runs);
  if (!json.empty() && json != "-") write_result(json, to_json(runs));
  return Status::done;
}

}  // namespace tessera::cli
