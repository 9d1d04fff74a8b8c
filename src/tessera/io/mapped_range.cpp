#include "tessera/io/mapped_range.h"

#include <sys/mman.h>

#include <cerrno>

namespace tessera {

MappedRange::MappedRange(const Descriptor& file, int64_t begin, int64_t end,
                         const std::filesystem::path& path)
    : begin_(begin) {
  TESSERA_ASSERT(0 <= begin && begin <= end);
  if (begin == end) return;  // mmap refuses length 0
  before_ = size_t(begin % ::sysconf(_SC_PAGESIZE));
  const size_t size = size_t(end - begin);
  void* address = ::mmap(nullptr, before_ + size, PROT_READ, MAP_SHARED, file.get(),
                         off_t(begin) - off_t(before_));
  if (address == MAP_FAILED) fail_system("map: cannot read", path, errno);
  bytes_ = {static_cast<const std::byte*>(address) + before_, size};
}

MappedRange::~MappedRange() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()) - before_, before_ + bytes_.size());
}

}  // namespace tessera
