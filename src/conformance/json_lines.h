// A child process that is asked in JSON, one object a line on its stdin, and answers the same way
// on its stdout.
//
// Every request carries an "id" and every answer repeats it; answers may come in any order, so that
// a request that has to wait does not hold up the others. Any thread may ask.
#pragma once

#include <sys/types.h>

#include <boost/json.hpp>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/unique_fd.h"
#include "pawl/result.h"

namespace pawl::conformance {

class JsonLines {
 public:
  // Runs `command` with /bin/sh, in a process group of its own; its stderr is ours.
  static Result<std::unique_ptr<JsonLines>> start(const std::string& command);
  // Closes the child's stdin, and kills the group when its stdout stays open for longer than a few
  // seconds.
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // The answer, without judging it. An error: the child is gone, said what is no answer, or took
  // longer than a minute.
  Result<boost::json::object> ask(const boost::json::object& request);

 private:
  JsonLines(pid_t pid, UniqueFd in, UniqueFd out);
  void read_answers();
  // Nothing when the line was an answer that a caller waits for; else what is wrong with it.
  std::optional<std::string> take(const std::string& line);
  bool send(const std::string& line);
  void give_up(const std::string& why);

  const pid_t pid_;
  UniqueFd in_;   // its stdin
  UniqueFd out_;  // its stdout; read by reader_ only
  std::mutex writing_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t last_id_ = 0;
  std::map<std::int64_t, std::optional<boost::json::object>>
      answers_;         // by id: asked and, perhaps, answered
  std::string broken_;  // why there will be no more answers
  std::thread reader_;
};

}  // namespace pawl::conformance
