#include "tessera/io/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "tessera/io/descriptor.h"

namespace tessera {

namespace {

constexpr std::string_view kDoing = "map: cannot read";

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a writer before we could refuse it.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status = {};
  if (!file.valid() || ::fstat(file.get(), &status) != 0) fail_system(kDoing, path, errno);
  if (!S_ISREG(status.st_mode)) fail(kDoing, " '", path.native(), "': not a regular file");
  const auto size = static_cast<size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses length 0
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (address == MAP_FAILED) fail_system(kDoing, path, errno);
  bytes_ = {static_cast<const std::byte*>(address), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, std::span<const std::byte>())) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace tessera
