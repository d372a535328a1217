// A child process with a JSON protocol: one request per line on its stdin, one answer per line on
// its stdout.
//
// Every request carries an "id" and every answer repeats it; answers may come in any order, so that
// a request that has to wait does not hold up the others. Any thread may ask.
#pragma once

#include <boost/json.hpp>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "base/process.h"
#include "base/unique_fd.h"
#include "pawl/result.h"

namespace pawl::conformance {

class JsonLines {
 public:
  // Runs `command` with /bin/sh, in its own process group; its stderr is ours. The kernel kills it
  // when the calling thread ends.
  static Result<std::unique_ptr<JsonLines>> start(const std::string& command);
  // Closes the child's stdin, waits a few seconds for it to close its stdout, and kills its group.
  ~JsonLines();
  JsonLines(const JsonLines&) = delete;
  JsonLines& operator=(const JsonLines&) = delete;

  // The answer, unchecked. An error: the child has ended, wrote something that is not an answer, or
  // took longer than a minute.
  Result<boost::json::object> ask(const boost::json::object& request);

 private:
  JsonLines(Process process, UniqueFd in, UniqueFd out);
  void read_answers();
  // Nothing when the line is a valid answer; else what is wrong with it.
  std::optional<std::string> take(const std::string& line);
  bool send(const std::string& line);
  void give_up(const std::string& why);

  Process process_;
  UniqueFd in_;   // its stdin
  UniqueFd out_;  // its stdout; read by reader_ only
  std::mutex writing_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::int64_t last_id_ = 0;
  // By request id; nothing: not answered yet.
  std::map<std::int64_t, std::optional<boost::json::object>> answers_;
  std::string broken_;  // why there will be no more answers; empty: it works
  std::thread reader_;
};

}  // namespace pawl::conformance
