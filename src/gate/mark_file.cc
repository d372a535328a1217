#include "gate/mark_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/crc32c.h"
#include "guard_contract/parse.h"

namespace pawl::gate {
namespace {

constexpr std::string_view kFirstLine = "pawl gate marks 1\n";
constexpr std::string_view kFile = "marks", kNewFile = "marks.new";
constexpr std::uint64_t kRewriteMin = 1 << 20;

std::string line_of(const std::vector<NamedMark>& batch) {
  std::string marks;
  for (const auto& [name, mark] : batch)
    marks += fmt::format(" {} {} {}", mark.open ? "open" : "closed", mark.token.value, name);
  return fmt::format("{:08x}{}\n", crc32c(marks), marks);
}

std::string_view take_word(std::string_view& text) {
  const auto end = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

// False when the line is not one that line_of() writes.
bool take_line(std::string_view line, Marks& marks) {
  constexpr std::size_t kSum = 8;
  if (line.size() <= kSum ||
      fmt::format("{:08x}", crc32c(line.substr(kSum))) != line.substr(0, kSum))
    return false;
  line.remove_prefix(kSum + 1);
  while (!line.empty()) {
    const std::string_view state = take_word(line), number = take_word(line),
                           name = take_word(line);
    const auto token = guard::parse_token(number);
    if ((state != "open" && state != "closed") || !token || name.empty()) return false;
    marks.insert_or_assign(std::string(name), Mark{Token{*token}, state == "open"});
  }
  return true;
}

// Whether a line that begins at `begin` of the file has sectors that were never written. They are
// zero from one boundary to the next, or to an end of the line; a damaged byte is not.
bool has_missing_sector(std::string_view line, std::size_t begin) {
  constexpr std::size_t kSector = 512;
  for (std::size_t at = line.find('\0'); at != std::string_view::npos; at = line.find('\0', at)) {
    const std::size_t end = std::min(line.find_first_not_of('\0', at), line.size());
    if ((at == 0 || (begin + at) % kSector == 0) &&
        (end == line.size() || (begin + end) % kSector == 0))
      return true;
    at = end;
  }
  return false;
}

Result<std::string> read_all(store::Files& files, const std::string& path) {
  auto file = files.open_read(path);
  if (!file) return file.error();
  const auto size = (*file)->size();
  if (!size) return size.error();
  std::string bytes(static_cast<std::size_t>(*size), '\0');
  const auto count = (*file)->read(0, bytes);
  if (!count) return count.error();
  bytes.resize(*count);
  return bytes;
}

}  // namespace

Result<Marks> parse_marks(std::string_view bytes) {
  const auto damaged = [](std::size_t line, std::string_view what) {
    return Error{Code::kInvalid, fmt::format("line {} {}", line, what)};
  };
  if (!bytes.starts_with(kFirstLine)) return damaged(1, "is not the first line of a gate's marks");
  Marks marks;
  std::size_t at = kFirstLine.size();
  for (std::size_t number = 2; at < bytes.size(); ++number) {
    const std::size_t end = std::min(bytes.find('\n', at), bytes.size());
    const std::string_view line = bytes.substr(at, end - at);
    if (!take_line(line, marks)) {
      const bool is_last = end + 1 >= bytes.size();
      if (is_last && (end == bytes.size() || has_missing_sector(line, at))) break;
      return damaged(number, "does not match its checksum");
    }
    at = end + 1;
  }
  return marks;
}

Result<std::unique_ptr<MarkFile>> MarkFile::open(store::Files& files, const std::string& directory,
                                                 Missing missing) {
  const std::string path = fmt::format("{}/{}", directory, kFile);
  const auto there = files.exists(path);
  if (!there) return there.error();
  if (!*there && missing == Missing::kRefuse) {
    return Error{Code::kInvalid,
                 fmt::format("{} does not exist, and --must-exist was given; is the "
                             "state directory mounted?",
                             path)};
  }
  if (const auto made = files.make_directory(directory); !made) return made.error();
  std::unique_ptr<MarkFile> marks(new MarkFile(files, directory));
  auto lock = files.lock_directory(directory);
  if (!lock) return lock.error();
  marks->lock_ = std::move(*lock);
  // Only now: another gate may have written it meanwhile.
  const auto exists = files.exists(path);
  if (!exists) return exists.error();
  if (*exists) {
    const auto bytes = read_all(files, path);
    if (!bytes) return bytes.error();
    auto parsed = parse_marks(*bytes);
    if (!parsed) {
      return Error{
          Code::kInvalid,
          fmt::format("{} is damaged: {}; restore it from a copy. Without it the gate does "
                      "not know which tokens are old",
                      path, parsed.error().detail)};
    }
    marks->marks_ = std::move(*parsed);
  }
  if (const auto written = marks->rewrite(); !written) return written.error();
  return marks;
}

Result<void> MarkFile::rewrite() {
  std::string bytes(kFirstLine);
  for (const auto& [name, mark] : marks_) bytes += line_of({{name, mark}});
  const std::string path = fmt::format("{}/{}", directory_, kNewFile);
  auto file = files_.create(path);
  if (!file) return file.error();
  if (const auto done = (*file)->write(0, bytes); !done) return done;
  if (const auto done = (*file)->sync(); !done) return done;
  if (const auto done = files_.rename(path, fmt::format("{}/{}", directory_, kFile)); !done)
    return done;
  if (const auto done = files_.sync_directory(directory_); !done) return done;
  file_ = std::move(*file);
  size_ = bytes.size();
  rewrite_at_ = std::max(kRewriteMin, 2 * size_);
  return {};
}

Result<void> MarkFile::append(const std::vector<NamedMark>& batch) {
  for (const auto& [name, mark] : batch) marks_.insert_or_assign(name, mark);
  ++syncs_;
  if (size_ >= rewrite_at_) return rewrite();
  const std::string line = line_of(batch);
  if (const auto done = file_->write(size_, line); !done) return done;
  size_ += line.size();
  return file_->sync();
}

}  // namespace pawl::gate
