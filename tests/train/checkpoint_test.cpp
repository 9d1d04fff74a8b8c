#include "tessera/train/checkpoint.h"

#include <gtest/gtest.h>

#include <cmath>

#include "io/file_size_limit.h"
#include "io/temp_folder.h"
#include "support/expect_error.h"
#include "tessera/io/atomic_file.h"
#include "tessera/tensor/creation.h"
#include "tessera/tensor/ops.h"

namespace tessera {
namespace {

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void write_some(const std::filesystem::path& run, int64_t step) {
  write_checkpoint(run, step, [&](const auto& to) { write_file(to / "a", std::to_string(step)); });
}

using Steps = std::vector<int64_t>;

TEST(Checkpoint, IsAFolderOfItsStep) {
  const TempFolder folder;
  const auto run = folder / "run";
  EXPECT_EQ(list_checkpoints(run), Steps());
  EXPECT_EQ(last_checkpoint(run), std::nullopt);
  for (const int64_t step : {100, 5, 30}) write_some(run, step);
  std::filesystem::create_directory(run / "step-7x");
  std::filesystem::create_directory(run / "step-007");
  std::filesystem::create_directory(run / "other");
  write_text(run / "step-900", "a file");
  EXPECT_EQ(list_checkpoints(run), (Steps{5, 30, 100}));
  EXPECT_EQ(last_checkpoint(run), 100);
  EXPECT_EQ(read_text(checkpoint_path(run, 30) / "a"), "30");
}

TEST(Checkpoint, OfAStepStaysAsItIs) {
  const TempFolder folder;
  write_some(folder.path(), 3);
  write_checkpoint(folder.path(), 3, [](const auto&) { FAIL() << "it is there"; });
  EXPECT_EQ(read_text(checkpoint_path(folder.path(), 3) / "a"), "3");
}

TEST(Checkpoint, ThatFailsLeavesNothing) {
  const TempFolder folder;
  write_some(folder.path(), 1);
  EXPECT_EQ(error_text([&] {
              write_checkpoint(folder.path(), 2, [](const auto& to) {
                write_file(to / "a", "half");
                fail("no more");
              });
            }),
            "no more");
  EXPECT_EQ(folder.files(), 1u);
  EXPECT_EQ(last_checkpoint(folder.path()), 1);
}

TEST(Checkpoint, OnAFullDiskLeavesTheOneBefore) {
  const TempFolder folder;
  const std::vector<NamedVar> vars = {{"w", Var(ones({1000}))}};
  const auto save = [&](int64_t step) {
    write_checkpoint(folder.path(), step,
                     [&](const auto& to) { save_vars(to / "vars.safetensors", vars); });
  };
  save(1);
  {
    const FileSizeLimit full(2000);
    EXPECT_TRUE(error_text([&] { save(2); }).ends_with("File too large"));
  }
  EXPECT_EQ(folder.files(), 1u);
  load_vars(checkpoint_path(folder.path(), 1) / "vars.safetensors", vars);
  save(2);
  EXPECT_EQ(list_checkpoints(folder.path()), (Steps{1, 2}));
}

TEST(Checkpoint, LastAndBestAreKept) {
  const TempFolder folder;
  for (int64_t step = 1; step <= 6; ++step) write_some(folder.path(), step);
  prune_checkpoints(folder.path(), 2, 3);
  EXPECT_EQ(list_checkpoints(folder.path()), (Steps{3, 5, 6}));
  prune_checkpoints(folder.path(), 9, {});
  EXPECT_EQ(list_checkpoints(folder.path()), (Steps{3, 5, 6}));
  prune_checkpoints(folder.path(), 1, 6);
  EXPECT_EQ(list_checkpoints(folder.path()), (Steps{6}));
  EXPECT_EQ(folder.files(), 1u);
}

TEST(Checkpoint, LeftoversGo) {
  const TempFolder folder;
  write_some(folder.path(), 1);
  for (const char* name : {".step-2.tmp", ".step-1.old"}) {
    std::filesystem::create_directory(folder / name);
    write_text(folder / name / "a", "half");
  }
  std::filesystem::create_directory(folder / ".other.tmp");
  EXPECT_EQ(list_checkpoints(folder.path()), (Steps{1}));
  remove_leftovers(folder.path());
  EXPECT_EQ(folder.files(), 2u);
  remove_leftovers(folder / "absent");
}

TEST(CheckpointErrors, NameTheFolder) {
  const TempFolder folder;
  EXPECT_EQ(error_text([&] { remove_checkpoint(folder.path(), 5); }),
            "checkpoint: cannot make '" + (folder / ".step-5.old").native() +
                "': No such file or directory");
  EXPECT_EQ(error_text([&] {
              write_checkpoint(folder.path(), 2,
                               [](const auto& to) { std::filesystem::remove(to); });
            }),
            "checkpoint: cannot sync '" + (folder / ".step-2.tmp").native() +
                "': No such file or directory");
}

TEST(CheckpointVars, AreBitForBit) {
  const TempFolder folder;
  const Var w(tensor(std::vector<float>{0.1f, -0.0f, 3e-45f}), "w");
  const Var h(cast(tensor(std::vector<float>{1.01f, 2}), DType::bf16), "h");
  const Var n(scalar(int64_t{1} << 60), "n", false);
  const std::vector<NamedVar> vars = {{"a.w", w}, {"h", h}, {"n", n}};
  save_vars(folder / "v.safetensors", vars);
  const auto w_before = w.value().to_vector<float>();
  const auto h_before = h.value().to(DType::f32).to_vector<float>();
  for (const auto& [name, var] : vars) var.set(0);
  load_vars(folder / "v.safetensors", vars);
  EXPECT_EQ(w.value().to_vector<float>(), w_before);
  EXPECT_TRUE(std::signbit(w.value().to_vector<float>()[1]));
  EXPECT_EQ(h.value().to(DType::f32).to_vector<float>(), h_before);
  EXPECT_EQ(n.value().to_vector<int64_t>()[0], int64_t{1} << 60);
}

TEST(CheckpointVarsErrors, TellEverythingAndSetNothing) {
  const TempFolder folder;
  const std::string path = folder / "v.safetensors";
  save_vars(path, std::vector<NamedVar>{{"a", Var(ones({2}))}, {"b", Var(ones({3}))}});
  const Var a(zeros({2})), b(zeros({4})), c(zeros({}));
  EXPECT_EQ(error_text([&] {
              load_vars(path, std::vector<NamedVar>{{"a", a}, {"c", c}, {"b", b}});
            }),
            "checkpoint: " + path +
                " belongs to something else; it has no 'c'; expected f32(4,) "
                "for 'b', got f32(3,)");
  EXPECT_EQ(error_text([&] {
              load_vars(path, std::vector<NamedVar>{{"a", a}});
            }),
            "checkpoint: " + path + " belongs to something else; nothing is called 'b'");
  EXPECT_EQ(a.value().to_vector<float>(), std::vector<float>(2, 0));
}

}  // namespace
}  // namespace tessera
