// A network between one worker and pawld that can be cut: in both directions, or in one only, and
// mended.
//
// While it is cut nothing passes and nobody is told: connections stay open, new ones are accepted
// and stay silent, as behind a switch that has gone. What was sent meanwhile arrives when it is
// mended.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/unique_fd.h"
#include "client/address.h"
#include "client/poll_connection.h"
#include "drill/part.h"
#include "pawl/result.h"

namespace pawl::drill {

enum class Cut : std::uint8_t { kNone, kBoth, kToPawld, kFromPawld };

class Proxy final : public Part {
 public:
  // kUnavailable: no port could be had, or pawld's name is not known.
  static Result<std::unique_ptr<Proxy>> open(const std::vector<client::Address>& pawld);

  // Where workers connect to, without a scheme.
  [[nodiscard]] std::string address() const;
  void cut(Cut cut) { cut_ = cut; }
  [[nodiscard]] Cut state() const { return cut_; }

  [[nodiscard]] std::vector<pollfd> interest() const override;
  void turn(std::span<const pollfd> ready) override;

 private:
  // Bytes on their way in one direction.
  struct Lane {
    std::string waiting;
    bool ended = false;  // nothing more will come; told on once all has passed
  };
  struct Link {
    UniqueFd worker, pawld;
    Lane to_pawld, from_pawld;
  };

  Proxy(UniqueFd listener, std::vector<client::Endpoint> pawld);
  [[nodiscard]] bool passes(Cut direction) const {
    return cut_ == Cut::kNone || (cut_ != direction && cut_ != Cut::kBoth);
  }
  void accept();
  UniqueFd connect();
  // False: the link is gone.
  bool read(int from, Lane& lane);
  static bool write(int to, Lane& lane);
  bool serve(Link& link, const pollfd& worker, const pollfd& pawld);

  const UniqueFd listener_;
  const std::vector<client::Endpoint> pawld_;
  std::size_t next_ = 0;  // which of them is tried first
  Cut cut_ = Cut::kNone;
  std::deque<Link> links_;
};

}  // namespace pawl::drill
