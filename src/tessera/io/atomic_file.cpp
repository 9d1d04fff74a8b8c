#include "tessera/io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>

namespace tessera {

namespace {

constexpr std::string_view kDoing = "write: cannot write";

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? "." : folder;
}

std::filesystem::path temporary_name(const std::filesystem::path& path) {
  static std::atomic<uint64_t> number{0};
  return folder_of(path) / cat(".tessera-", ::getpid(), "-", number++, ".tmp");
}

}  // namespace

int sync_folder(const std::filesystem::path& folder) {
  const Descriptor descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!descriptor.valid()) return errno;
  return ::fsync(descriptor.get()) == 0 || errno == EINVAL ? 0 : errno;
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode)) {
    fail(kDoing, " '", path.native(), "': not a regular file");
  }
  do {  // a name may be left over from a killed process that had our number
    temporary_ = temporary_name(path);
    file_ = Descriptor(::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  } while (!file_.valid() && errno == EEXIST);
  if (!file_.valid()) fail_system(kDoing, path, errno);
}

AtomicFile::~AtomicFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::give_up(int code) {
  file_.close();
  ::unlink(temporary_.c_str());
  temporary_.clear();
  fail_system(kDoing, path_, code);
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  TESSERA_ASSERT(file_.valid());
  while (!bytes.empty()) {
    const ssize_t written = ::write(file_.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) give_up(errno);
    bytes = bytes.subspan(size_t(written));
  }
}

void AtomicFile::rewrite(int64_t at, std::span<const std::byte> bytes) {
  TESSERA_ASSERT(file_.valid());
  if (const int code = write_at(file_, at, bytes); code != 0) give_up(code);
}

void AtomicFile::commit() {
  TESSERA_ASSERT(file_.valid());
  if (::fsync(file_.get()) != 0) give_up(errno);
  if (!file_.close()) give_up(errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) give_up(errno);
  temporary_.clear();
  const int code = sync_folder(folder_of(path_));
  if (code != 0) fail_system(kDoing, path_, code);
}

}  // namespace tessera
