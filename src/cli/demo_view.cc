#include "cli/demo_view.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.h"

namespace pawl::cli {
namespace {

using drill::DemoEvent;
using drill::DemoStatus;
using Tone = DemoEvent::Tone;

constexpr std::size_t kTextWidth = 92;     // Longer lines are hard to read.
constexpr std::size_t kPictureWidth = 60;  // A narrower terminal gets lines only.
constexpr std::size_t kBar = 24;
constexpr std::size_t kIndent = 13;

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

bool can_draw() {
  const char* term = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && term != nullptr && std::string_view(term) != "dumb" &&
         terminal_width() >= kPictureWidth;
}

bool locale_is_utf8() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view locale = value;
    return locale.find("UTF-8") != locale.npos || locale.find("utf8") != locale.npos;
  }
  return false;
}

class JsonView final : public drill::DemoView {
 public:
  explicit JsonView(Console& console) : console_(console) {}

  void on_event(const DemoEvent& event) override {
    Json json;
    json.object().key("event").string(event.event).key("at_ms").number(event.at.count());
    json.key("guarded").boolean(event.guarded).key("who");
    event.worker.empty() ? json.null() : json.string(event.worker);
    json.key("token");
    event.token == 0 ? json.null() : json.number(static_cast<std::int64_t>(event.token));
    json.key("row").string(event.row).key("text").string(event.text).end();
    console_.data(json);
  }
  void show(const DemoStatus&) override {}

 private:
  Console& console_;
};

// Lines only.
class LineView : public drill::DemoView {
 public:
  explicit LineView(Console& console) : console_(console) {}

  void on_event(const DemoEvent& event) override { console_.data(line(event)); }
  void show(const DemoStatus&) override {}

 protected:
  Console& console() { return console_; }

  [[nodiscard]] std::string line(const DemoEvent& event) const {
    const std::size_t width = std::min(kTextWidth, terminal_width() - 1);
    const std::string text = printable(event.text);
    if (event.tone == Tone::kHeading)
      return fmt::format("\n{}\n", console_.paint(Paint::kStrong, text));
    if (event.worker.empty()) return "\n" + wrapped("", text, 0, width) + "\n";
    const std::string head =
        fmt::format("{:>6.1f} s  {:<3}", static_cast<double>(event.at.count()) / 1e3, event.worker);
    std::string out = wrapped(head, text, kIndent, width);
    if (event.tone == Tone::kGood) out = console_.paint(Paint::kGood, out);
    if (event.tone == Tone::kBad) out = console_.paint(Paint::kBad, out);
    if (event.event == "written" || event.event == "refused") {
      out += fmt::format("\n{:<{}}{}", "", kIndent,
                         console_.paint(Paint::kStrong, "the row: " + printable(event.row)));
    }
    return out + "\n";
  }

 private:
  Console& console_;
};

// Lines, and below them a picture of the present state, which is redrawn.
class PictureView final : public LineView {
 public:
  explicit PictureView(Console& console)
      : LineView(console),
        full_(locale_is_utf8() ? "█" : "#"),
        empty_(locale_is_utf8() ? "░" : "-") {}
  ~PictureView() override { console().data(erasure()); }

  void on_event(const DemoEvent& event) override {
    console().data(erasure() + line(event));
    drawn_ = 0;
  }

  void show(const DemoStatus& status) override {
    const std::vector<std::string> rows = picture(status);
    std::string out = erasure();
    for (const std::string& row : rows) out += row + "\n";
    console().data(out);
    drawn_ = rows.size();
  }

 private:
  // Erases the picture; the next output takes its place.
  [[nodiscard]] std::string erasure() const {
    return drawn_ == 0 ? "" : fmt::format("\033[{}A\r\033[J", drawn_);
  }

  [[nodiscard]] std::vector<std::string> picture(const DemoStatus& status) {
    return {"", row("lock", holder_text(status), Paint::kStrong), row("A", status.a, Paint::kDim),
            row("B", status.b, Paint::kDim), row("row", row_text(status), Paint::kStrong)};
  }

  [[nodiscard]] std::string row(std::string_view name, std::string_view text, Paint paint) {
    std::string cut;
    std::string_view rest = text;
    for (std::size_t room = terminal_width() - 1 - kIndent; room > 0 && !rest.empty(); --room) {
      const std::size_t size = std::max<std::size_t>(utf8_length(rest), 1);
      cut += rest.substr(0, size);
      rest.remove_prefix(size);
    }
    return fmt::format("     {:>4}    {}", name, console().paint(paint, cut));
  }

  [[nodiscard]] std::string holder_text(const DemoStatus& status) const {
    if (status.holder.empty()) return "free";
    const double share = static_cast<double>(status.left.count()) /
                         static_cast<double>(std::max<std::int64_t>(status.ttl.count(), 1));
    const auto full = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBar + 0.5);
    std::string bar;
    for (std::size_t i = 0; i < kBar; ++i) bar += i < full ? full_ : empty_;
    return fmt::format("{} {} {:.1f} s left, token {}", status.holder, bar,
                       static_cast<double>(status.left.count()) / 1e3, status.token);
  }

  [[nodiscard]] static std::string row_text(const DemoStatus& status) {
    return fmt::format(
        "{}{}  ({})", status.row,
        status.row_token == 0 ? "" : fmt::format(", written with token {}", status.row_token),
        status.guarded ? "under guard" : "no guard");
  }

  const std::string full_, empty_;
  std::size_t drawn_ = 0;  // lines of the picture that are on the screen
};

}  // namespace

std::unique_ptr<drill::DemoView> make_demo_view(Console& console) {
  if (console.json()) return std::make_unique<JsonView>(console);
  if (can_draw()) return std::make_unique<PictureView>(console);
  return std::make_unique<LineView>(console);
}

}  // namespace pawl::cli
