// BreakNotes: who broke a lease and why, so that its holder can be told when it renews. Of the
// newest breaks only, and in memory: after a restart a holder learns that its lease was broken, not
// by whom.
//
//   notes.add(token, session.user_name(), "host is gone");
//   notes.about(token)   // " by ops: host is gone"; empty when nothing is known
#pragma once

#include <algorithm>
#include <deque>
#include <string>
#include <string_view>

#include "base/limits.h"
#include "base/types.h"

namespace pawl::server {

class BreakNotes {
 public:
  // `user` is empty where nobody has to authenticate.
  void add(Token token, std::string_view user, std::string_view reason) {
    std::string text;
    if (!user.empty()) text.append(" by ").append(user);
    if (!reason.empty()) text.append(": ").append(reason);
    if (notes_.size() == limits::kBreakNotes) notes_.pop_back();
    notes_.push_front({token, std::move(text)});
  }
  [[nodiscard]] std::string_view about(Token token) const {
    const auto found = std::find_if(notes_.begin(), notes_.end(),
                                    [&](const Note& note) { return note.token == token; });
    return found == notes_.end() ? std::string_view() : std::string_view(found->text);
  }

 private:
  struct Note {
    Token token;
    std::string text;
  };
  std::deque<Note> notes_;  // newest first
};

}  // namespace pawl::server
