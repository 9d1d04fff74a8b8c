#include "tessera/train/record.h"

#include <fcntl.h>

#include <charconv>
#include <iomanip>
#include <span>
#include <sstream>

#include "tessera/io/atomic_file.h"
#include "tessera/io/mapped_file.h"

namespace tessera {

namespace {

constexpr std::string_view kDoing = "log: cannot write";
constexpr std::string_view kHeader = "step,loss,eval_loss,lr,grad_norm,seconds\n";
constexpr size_t kColumns = 6;

std::string line_of(const StepRecord& r) {
  std::ostringstream out;
  out << std::setprecision(9) << r.step << ',' << r.loss << ',';
  if (r.eval_loss) out << *r.eval_loss;
  out << ',' << r.lr << ',' << r.grad_norm << ',' << std::setprecision(6) << r.seconds << '\n';
  return out.str();
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (size_t start = 0; start <= line.size();) {
    const size_t end = std::min(line.find(',', start), line.size());
    cells.push_back(line.substr(start, end - start));
    start = end + 1;
  }
  return cells;
}

template <class T>
bool parse(std::string_view text, T& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  return error == std::errc() && end == text.data() + text.size();
}

bool parse_line(std::string_view line, StepRecord& r) {
  const std::vector<std::string_view> cells = cells_of(line);
  if (cells.size() != kColumns) return false;
  double eval_loss = 0;
  const bool evaluated = !cells[2].empty();
  if (evaluated && !parse(cells[2], eval_loss)) return false;
  if (evaluated) r.eval_loss = eval_loss;
  return parse(cells[0], r.step) && parse(cells[1], r.loss) && parse(cells[3], r.lr) &&
         parse(cells[4], r.grad_norm) && parse(cells[5], r.seconds);
}

}  // namespace

std::vector<StepRecord> read_csv_log(const std::filesystem::path& path) {
  const MappedFile file(path);
  const std::string_view text(reinterpret_cast<const char*>(file.bytes().data()),
                              file.bytes().size());
  if (!text.starts_with(kHeader)) fail("log: ", path.native(), " does not begin with its columns");
  std::vector<StepRecord> records;
  size_t number = 2;
  for (size_t start = kHeader.size();; ++number) {
    const size_t end = text.find('\n', start);
    if (end == std::string_view::npos) return records;
    StepRecord record;
    if (!parse_line(text.substr(start, end - start), record)) {
      fail("log: ", path.native(), " has no step in line ", number);
    }
    records.push_back(record);
    start = end + 1;
  }
}

CsvLog::CsvLog(std::filesystem::path path, int64_t step) : path_(std::move(path)) {
  std::string text(kHeader);
  if (step > 0 && std::filesystem::exists(path_)) {
    for (const StepRecord& record : read_csv_log(path_)) {
      if (record.step <= step) text += line_of(record);
    }
  }
  AtomicFile whole(path_);
  whole.write(std::as_bytes(std::span(text)));
  whole.commit();
  size_ = int64_t(text.size());
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file_.valid()) fail_system(kDoing, path_, errno);
}

void CsvLog::add(const StepRecord& record) {
  const std::string line = line_of(record);
  const int code = write_at(file_, size_, std::as_bytes(std::span(line)));
  if (code != 0) fail_system(kDoing, path_, code);
  size_ += int64_t(line.size());
}

}  // namespace tessera
