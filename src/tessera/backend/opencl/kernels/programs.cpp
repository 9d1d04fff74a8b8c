#include "tessera/backend/opencl/kernels/programs.h"

#include "tessera/backend/gpu/build_error.h"
#include "tessera/base/error.h"
#include "tessera/runtime/binary_cache.h"
#include "tessera/runtime/compile_notice.h"

namespace tessera::opencl {

namespace {

std::string options_of(const DeviceInfo& info) {
  // -w: some compilers print their warnings.
  return cat("-w -cl-std=CL1.2",
             info.divides_exactly ? " -cl-fp32-correctly-rounded-divide-sqrt" : "");
}

std::string build_log(ProgramId program, DeviceId device) {
  size_t size = 0;
  api().get_program_build_info(program, device, kBuildLog, 0, nullptr, &size);
  std::string log(size, ' ');
  api().get_program_build_info(program, device, kBuildLog, size, log.data(), nullptr);
  return log;
}

}  // namespace

Programs::Programs(ContextId context, const DeviceInfo& info, std::string name)
    : context_(context), info_(info), name_(std::move(name)), options_(options_of(info)) {}

Program Programs::compile(const std::string& op, const std::string& source) const {
  const char* text = source.c_str();
  const size_t length = source.size();
  Status status = kSuccess;
  Program program(api().create_program_with_source(context_, 1, &text, &length, &status));
  expect_success(status, "creating a program");
  status = api().build_program(program.get(), 1, &info_.id, options_.c_str(), nullptr, nullptr);
  if (status != kSuccess) {
    fail(op, ": the kernel does not compile on ", name_, " (", describe(info_),
         "): ", gpu::first_error(build_log(program.get(), info_.id)), "; its source is kept in ",
         gpu::keep_source(op, source, ".cl"));
  }
  return program;
}

// Null where the driver refuses the binary.
Program Programs::load(const std::string& binary) const {
  const size_t size = binary.size();
  const auto* bytes = reinterpret_cast<const unsigned char*>(binary.data());
  Status status = kSuccess, loaded = kSuccess;
  Program program(
      api().create_program_with_binary(context_, 1, &info_.id, &size, &bytes, &loaded, &status));
  if (status != kSuccess || loaded != kSuccess) return nullptr;
  status = api().build_program(program.get(), 1, &info_.id, options_.c_str(), nullptr, nullptr);
  return status == kSuccess ? std::move(program) : nullptr;
}

Program Programs::build(const std::string& op, const std::string& source) const {
  const std::string device = cat(info_.name, ", driver ", info_.driver);
  const BinaryKey key = {source, options_, info_.version, device};
  const Descriptor turn = binary_cache().wait_turn(key);
  if (const std::optional<std::string> binary = binary_cache().find(key)) {
    if (Program program = load(*binary)) return program;
    binary_cache().drop(key, "the driver refuses it");
  }
  note_compilation(cat(name_, " (", info_.name, ")"));
  Program program = compile(op, source);
  size_t size = 0;
  api().get_program_info(program.get(), kBinarySizes, sizeof size, &size, nullptr);
  std::string binary(size, 0);
  char* data = binary.data();
  if (size > 0 &&
      api().get_program_info(program.get(), kBinaries, sizeof data, &data, nullptr) == kSuccess) {
    binary_cache().store(key, binary);
  }
  return program;
}

std::shared_ptr<const Program> Programs::get(const std::string& op, const std::string& source) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = by_source_.find(source); found != by_source_.end()) {
      if (auto program = found->second.lock()) return program;
    }
  }
  // Built without the lock: it may take long. Another thread may have built the same meanwhile.
  auto program = std::make_shared<const Program>(build(op, source));
  const std::lock_guard lock(mutex_);
  std::erase_if(by_source_, [](const auto& entry) { return entry.second.expired(); });
  by_source_[source] = program;
  return program;
}

}  // namespace tessera::opencl
