// What a worker writes down: one JSON object a line, appended with one write(2) each before the
// worker goes on, so that kill -9 loses at most the line that was being written. judge.py reads it.
//
//   log.say("granted", {{"n", 3}, {"token", 17}});
//   {"e":"granted","at":81234567,"n":3,"token":17}
//
// Times are readings of CLOCK_BOOTTIME in nanoseconds as the machine has them: a worker that runs
// in a time namespace gets the offset of its clock, and subtracts it.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace pawl::nemesis {

// A number, a text, a truth, or JSON that is written already.
class Value {
 public:
  Value(std::uint64_t number);     // NOLINT: implicit by design, as the next ones are.
  Value(std::int64_t number);      // NOLINT
  Value(int number);               // NOLINT
  Value(bool truth);               // NOLINT
  Value(const std::string& text);  // NOLINT
  Value(const char* text);         // NOLINT
  [[nodiscard]] const std::string& json() const { return json_; }

 private:
  std::string json_;
};

struct Field {
  std::string_view name;
  Value value;
};

class EventLog {
 public:
  // Appends to the file, which is made if it is not there. `ahead` is taken off every reading of
  // the clock.
  EventLog(const std::string& path, std::int64_t ahead);
  ~EventLog();
  EventLog(const EventLog&) = delete;
  EventLog& operator=(const EventLog&) = delete;

  // The machine's clock.
  [[nodiscard]] std::int64_t now() const;
  // A reading of this process's clock, as the machine has it.
  [[nodiscard]] std::int64_t from_own_clock(std::int64_t reading) const { return reading - ahead_; }

  void say(std::string_view event, std::initializer_list<Field> fields);
  void say_at(std::int64_t at, std::string_view event, std::initializer_list<Field> fields);

 private:
  int file_;
  std::int64_t ahead_;
};

}  // namespace pawl::nemesis
